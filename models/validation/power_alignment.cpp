#include "models/validation/power_alignment.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <Eigen/Core>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "models/linear/linear_algebra.hpp"

namespace rubato {

namespace {

constexpr double quarter_hour_s = 900.0;
constexpr int quarters_west = -48, quarters_east = 56;  // UTC-12 to UTC+14

bool has_any(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(
      parts, [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

// Samples whose windows lie in the curve's span, and what the sensor reads there: nobody knows what
// the GPU did before.
struct Pairs {
  std::vector<double> readings, powers;
};

double window_end(const SensorModel& sensor, double at_s) {
  return sensor.cycle_s > 0.0 ? std::floor(at_s / sensor.cycle_s) * sensor.cycle_s : at_s;
}

Pairs pairs_at(const StepCurve& curve, const PowerLog& log, const SensorModel& sensor,
               double offset_s) {
  Pairs pairs;
  const auto from =
      std::ranges::lower_bound(log.samples, curve.first_s() - offset_s, {}, &PowerSample::time_s);
  for (auto sample = from; sample != log.samples.end(); ++sample) {
    const double at_s = sample->time_s + offset_s;
    if (at_s > curve.last_s()) break;
    if (window_end(sensor, at_s) - sensor.window_s < curve.first_s()) continue;
    pairs.readings.push_back(reading(curve, sensor, at_s));
    pairs.powers.push_back(sample->power_w);
  }
  return pairs;
}

// Pearson's correlation; nothing if either side does not vary, or of too few samples.
std::optional<double> correlation_of(const Pairs& pairs) {
  if (pairs.powers.size() < least_samples) return std::nullopt;
  const auto n = static_cast<double>(pairs.powers.size());
  const double mean_x = sum(pairs.readings) / n, mean_y = sum(pairs.powers) / n;
  double xx = 0.0, yy = 0.0, xy = 0.0;
  for (std::size_t i = 0; i < pairs.powers.size(); ++i) {
    const double x = pairs.readings[i] - mean_x, y = pairs.powers[i] - mean_y;
    xx += x * x;
    yy += y * y;
    xy += x * y;
  }
  constexpr double least_spread = 1e-4;  // of a busy fraction, and relative of a power
  if (xx <= n * least_spread * least_spread || yy <= n * std::pow(least_spread * mean_y, 2))
    return std::nullopt;
  return xy / std::sqrt(xx * yy);
}

// Whether a busy fraction says nothing of when it was: but for a tenth at either end it is the
// same.
bool hardly_varies(std::vector<double> busy) {
  constexpr double little = 0.1;
  std::ranges::sort(busy);
  const std::size_t tenth = busy.size() / 10;
  return busy[busy.size() - 1 - tenth] - busy[tenth] < little;
}

double overlap_s(const StepCurve& curve, const PowerLog& log, double offset_s) {
  return std::min(curve.last_s(), log.samples.back().time_s + offset_s) -
         std::max(curve.first_s(), log.samples.front().time_s + offset_s);
}

// The quarter hour whose offset gives most overlap, the one nearest to UTC among equals.
int guessed_quarters(const StepCurve& curve, const PowerLog& log, double epoch_s) {
  int best = 0;
  double most_s = -std::numeric_limits<double>::infinity();
  for (int q = quarters_west; q <= quarters_east; ++q) {
    const double common_s = overlap_s(curve, log, -epoch_s - q * quarter_hour_s);
    if (common_s > most_s || (common_s == most_s && std::abs(q) < std::abs(best))) {
      most_s = common_s;
      best = q;
    }
  }
  return best;
}

struct Search {
  double base_s, from_s, to_s;
  std::size_t least = least_samples;
};

DataError not_alignable(const PowerLog& log, const std::string& why, std::string hint) {
  return DataError(fmt::format("{}: cannot be put beside the trace: {}", log.file, why),
                   {.hint = std::move(hint)});
}

Alignment best_shift(const StepCurve& curve, const PowerLog& log, const SensorModel& sensor,
                     const Search& search) {
  constexpr double coarse_s = 0.01, fine_s = 0.001;
  Alignment best;
  bool any_samples = false;
  const auto consider = [&](double shift_s) {
    const Pairs pairs = pairs_at(curve, log, sensor, search.base_s + shift_s);
    if (pairs.powers.size() < least_samples) return;
    any_samples = true;
    if (pairs.powers.size() < search.least) return;
    const auto found = correlation_of(pairs);
    const bool nearer =
        found && *found == best.correlation && std::abs(shift_s) < std::abs(best.shift_s);
    if (!found || (*found <= best.correlation && !nearer)) return;
    best = {search.base_s + shift_s, {}, shift_s, *found, pairs.powers.size()};
  };
  const auto steps = static_cast<int>(std::ceil((search.to_s - search.from_s) / coarse_s));
  for (int i = 0; i <= steps; ++i) consider(search.from_s + i * coarse_s);
  const double middle_s = best.shift_s;
  if (best.correlation) {
    for (int i = -9; i <= 9; ++i) consider(middle_s + i * fine_s);
  }
  if (!any_samples) {
    throw not_alignable(log,
                        fmt::format("fewer than {} samples in the {:.3g} s of the trace",
                                    least_samples, curve.last_s() - curve.first_s()),
                        "sample faster (-lms 20) or profile more steps");
  }
  if (!best.correlation) {
    throw not_alignable(log, "power or GPU use does not vary over the samples",
                        "record a stretch with the GPU idle before or between the steps");
  }
  return best;
}

[[noreturn]] void refuse_zone(const PowerLog& log) {
  throw UsageError(
      fmt::format("{}: --power-zone does nothing: {}", log.file,
                  log.base == TimeBase::utc        ? "the log's times are those of UTC"
                  : log.base == TimeBase::relative ? "the log does not say when it began"
                                                   : "the capture does not say when it began"),
      {.hint = "leave it out"});
}

}  // namespace

std::string text_of(const Alignment& alignment) {
  if (!alignment.correlation)
    return "taken at its own times: too short or too steady a run to show a shift";
  return fmt::format("shifted by {} s, correlation {:.2f} over {} samples",
                     format_signed(alignment.shift_s, 3), *alignment.correlation,
                     alignment.samples);
}

SensorModel sensor_of(std::string_view gpu_name, const PowerLog& log) {
  // Zeus reads the field of instantaneous power.
  const bool instantaneous = log.instantaneous || log.kind == PowerLogKind::zeus;
  const bool hopper = has_any(gpu_name, {"H100", "H200", "H800", "GH200", "H20"});
  if (hopper && !instantaneous) return {.window_s = 1.0, .cycle_s = 0.1};
  if (hopper || has_any(gpu_name, {"A100", "A30 ", "A800", "PG509"}))
    return {.window_s = 0.025, .cycle_s = 0.1};
  if (instantaneous) return {};
  if (has_any(gpu_name, {"RTX 30", "RTX 40", "RTX 50", "RTX A", "RTX PRO", "Ada", "A10", "A40",
                         "A16", "A2", "L40", "L4"}))
    return {.window_s = 1.0, .cycle_s = 0.0};
  return {};
}

StepCurve::StepCurve(std::vector<double> at_s, std::vector<double> value)
    : at_s_(std::move(at_s)), value_(std::move(value)), integral_(at_s_.size(), 0.0) {
  CompensatedSum total;
  for (std::size_t i = 1; i < at_s_.size(); ++i) {
    total.add(value_[i - 1] * (at_s_[i] - at_s_[i - 1]));
    integral_[i] = total.value();
  }
}

double StepCurve::integral_to(double s) const {
  const auto after = std::ranges::upper_bound(at_s_, s);
  if (after == at_s_.begin()) return 0.0;
  const auto i = static_cast<std::size_t>(after - at_s_.begin()) - 1;
  return integral_[i] + value_[i] * (s - at_s_[i]);
}

double StepCurve::mean(double from_s, double to_s) const {
  if (to_s > from_s) return (integral_to(to_s) - integral_to(from_s)) / (to_s - from_s);
  const auto after = std::ranges::upper_bound(at_s_, to_s);
  return after == at_s_.begin() ? 0.0 : value_[static_cast<std::size_t>(after - at_s_.begin()) - 1];
}

StepCurve busy_curve(const Capture& capture, std::uint32_t device, std::int64_t origin_ns) {
  std::vector<std::pair<std::int64_t, int>> changes;
  for (const CapturedLaunch& launch : capture.launches) {
    if (capture.streams[launch.stream].device != device) continue;
    changes.emplace_back(launch.start_ns, 1);
    changes.emplace_back(launch.end_ns(), -1);
  }
  std::ranges::sort(changes);
  std::vector<double> at_s, busy;
  if (changes.empty()) return {{0.0}, {0.0}};
  int running = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    running += changes[i].second;
    if (i + 1 < changes.size() && changes[i + 1].first == changes[i].first) continue;
    at_s.push_back(static_cast<double>(changes[i].first - origin_ns) * 1e-9);
    busy.push_back(running > 0 ? 1.0 : 0.0);
  }
  return {std::move(at_s), std::move(busy)};
}

double reading(const StepCurve& curve, const SensorModel& sensor, double at_s) {
  const double end_s = window_end(sensor, at_s);
  return curve.mean(end_s - sensor.window_s, end_s);
}

Alignment align(const StepCurve& curve, const PowerLog& log, const SensorModel& sensor,
                std::optional<double> epoch_s, std::optional<double> zone_hours) {
  Search search{0.0, -largest_shift_s, largest_shift_s};
  std::optional<int> quarters;
  if (zone_hours && (log.base != TimeBase::local || !epoch_s)) refuse_zone(log);
  if (log.base == TimeBase::relative || !epoch_s) {
    // Nothing ties the clocks: every shift that keeps the shorter one inside the longer.
    const auto [low, high] = std::minmax(
        {curve.first_s() - log.samples.front().time_s, curve.last_s() - log.samples.back().time_s});
    search = {0.0, low - largest_shift_s, high + largest_shift_s};
  } else {
    if (log.base == TimeBase::local) {
      quarters = zone_hours ? static_cast<int>(std::lround(*zone_hours * 4.0))
                            : guessed_quarters(curve, log, *epoch_s);
    }
    search.base_s = -*epoch_s - quarters.value_or(0) * quarter_hour_s;
    const double common_s = overlap_s(curve, log, search.base_s);
    if (common_s < -largest_shift_s) {
      throw not_alignable(
          log, fmt::format("it ends {:.4g} s away from the trace in time", -common_s),
          "log while the profiler runs; set --power-zone if the log is in local time");
    }
  }
  const bool clocks_known = log.base != TimeBase::relative && epoch_s;
  // Samples of one cycle are one reading, and a dozen of readings fit somewhere by chance.
  constexpr double least_cycles = 20.0;
  const double shortest_s = std::max(2.0 * sensor.window_s, least_cycles * sensor.cycle_s);
  if (clocks_known) {
    const Pairs pairs = pairs_at(curve, log, sensor, search.base_s);
    search.least = std::max(least_samples, pairs.powers.size() / 2);
    const bool steady = pairs.powers.size() >= least_samples && hardly_varies(pairs.readings);
    if (steady || curve.last_s() - curve.first_s() < shortest_s)
      return {search.base_s, quarters, 0.0, {}, pairs.powers.size()};
  }
  Alignment best = best_shift(curve, log, sensor, search);
  // Few samples correlate by chance: a shift must be better by two standard errors of Fisher's z.
  if (best.shift_s != 0.0 && clocks_known) {
    const Pairs pairs = pairs_at(curve, log, sensor, search.base_s);
    const double unshifted = correlation_of(pairs).value_or(0.0);
    const auto z = [](double r) { return std::atanh(std::clamp(r, -0.999999, 0.999999)); };
    double readings = static_cast<double>(best.samples);
    if (sensor.cycle_s > 0.0)
      readings = std::min(readings, (curve.last_s() - curve.first_s()) / sensor.cycle_s);
    const double error = std::sqrt(2.0 / std::max(readings - 3.0, 1.0));
    if (*best.correlation >= least_correlation &&
        z(*best.correlation) - z(unshifted) < 2.0 * error) {
      if (unshifted < least_correlation)
        return {search.base_s, quarters, 0.0, {}, pairs.powers.size()};
      best = {search.base_s, {}, 0.0, unshifted, pairs.powers.size()};
    }
  }
  best.zone_quarter_hours = quarters;
  if (*best.correlation < least_correlation) {
    throw not_alignable(
        log,
        fmt::format("the best shift, {} s, correlates {:.2f} with the GPU's use; expected at "
                    "least {}",
                    format_signed(best.shift_s, 3), *best.correlation, least_correlation),
        "check that both are of the same run and the same GPU (--power-gpu)");
  }
  return best;
}

std::optional<SpanEnergy> span_energy(const PowerLog& log, const SensorModel& sensor, double from_s,
                                      double to_s) {
  const auto& samples = log.samples;
  if (samples.empty() || to_s <= from_s || to_s > samples.back().time_s ||
      to_s - from_s < 2.0 * std::max(sensor.window_s, sensor.cycle_s))
    return std::nullopt;
  // A mean over a window is that of its middle.
  from_s += 0.5 * sensor.window_s;
  to_s += 0.5 * sensor.window_s;
  const double period_s = log.period_s(), behind_s = to_s - samples.back().time_s;
  if (from_s < samples.front().time_s || behind_s > period_s) return std::nullopt;
  CompensatedSum energy, covered;
  for (std::size_t i = 1; i < samples.size(); ++i) {
    const PowerSample &a = samples[i - 1], &b = samples[i];
    const double start_s = std::max(a.time_s, from_s), end_s = std::min(b.time_s, to_s);
    if (end_s <= start_s) continue;
    const auto power_at = [&](double s) {
      return a.power_w + (b.power_w - a.power_w) * (s - a.time_s) / (b.time_s - a.time_s);
    };
    energy.add(0.5 * (power_at(start_s) + power_at(end_s)) * (end_s - start_s));
    if (b.time_s - a.time_s < 2.0 * period_s) covered.add(end_s - start_s);
  }
  if (behind_s > 0.0) {  // less than a sample's distance: the last reading holds
    energy.add(samples.back().power_w * behind_s);
    covered.add(behind_s);
  }
  return SpanEnergy{energy.value(), covered.value() / (to_s - from_s)};
}

namespace {

using Columns = std::vector<Eigen::Index>;

Eigen::VectorXd solve_on(const Eigen::MatrixXd& a, const Eigen::VectorXd& b,
                         const Columns& columns) {
  return least_squares(a(Eigen::all, columns), b);
}

// Lawson and Hanson: columns enter one by one where the gradient asks for them, and
// leave where the solution would become negative.
std::pair<Eigen::VectorXd, Columns> non_negative_solution(const Eigen::MatrixXd& a,
                                                          const Eigen::VectorXd& b) {
  Eigen::VectorXd x = Eigen::VectorXd::Zero(a.cols());
  Columns passive;
  const double tolerance = 1e-10 * transposed_product(a, b).cwiseAbs().maxCoeff();
  for (Eigen::Index round = 0; round < 3 * a.cols(); ++round) {
    Eigen::VectorXd gradient = transposed_product(a, b - product(a, x));
    for (const Eigen::Index j : passive) gradient[j] = -std::numeric_limits<double>::infinity();
    Eigen::Index entering = 0;
    if (gradient.maxCoeff(&entering) <= tolerance) break;
    passive.push_back(entering);
    while (true) {
      const Eigen::VectorXd tried = solve_on(a, b, passive);
      double step = 1.0;
      for (std::size_t i = 0; i < passive.size(); ++i) {
        const double now = x[passive[i]], next = tried[static_cast<Eigen::Index>(i)];
        if (next < 0.0) step = std::min(step, now / (now - next));
      }
      for (std::size_t i = 0; i < passive.size(); ++i)
        x[passive[i]] += step * (tried[static_cast<Eigen::Index>(i)] - x[passive[i]]);
      if (step == 1.0) break;
      std::erase_if(passive, [&](Eigen::Index j) { return x[j] <= 1e-12; });
    }
  }
  return {x, passive};
}

}  // namespace

std::optional<PowerFit> fit_class_power(std::span<const double> shares,
                                        std::span<const double> power_w, std::size_t classes) {
  const auto rows = static_cast<Eigen::Index>(power_w.size());
  const auto columns = static_cast<Eigen::Index>(classes) + 1;
  if (rows < 2 * columns) return std::nullopt;
  Eigen::MatrixXd a(rows, columns);
  a.leftCols(columns - 1) =
      Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
          shares.data(), rows, columns - 1);
  a.col(columns - 1).setOnes();
  const Eigen::VectorXd b = Eigen::Map<const Eigen::VectorXd>(power_w.data(), rows);
  const auto [x, passive] = non_negative_solution(a, b);
  const double squares = (b - product(a, x)).squaredNorm();
  PowerFit fit;
  fit.residual_w = std::sqrt(squares / static_cast<double>(rows));
  std::vector<ClassPower> powers(static_cast<std::size_t>(columns));
  for (Eigen::Index j = 0; j < columns; ++j) powers[static_cast<std::size_t>(j)].power_w = x[j];
  const Eigen::MatrixXd used = a(Eigen::all, passive);
  const auto free = static_cast<double>(rows) - static_cast<double>(passive.size());
  // A class that never runs, or always together with others, is not told apart.
  if (const auto inverse = inverse_if_well_conditioned(transposed_product(used, used))) {
    const Eigen::MatrixXd covariance = *inverse * (squares / free);
    for (std::size_t i = 0; i < passive.size(); ++i) {
      const auto at = static_cast<Eigen::Index>(i);
      powers[static_cast<std::size_t>(passive[i])].sigma_w = std::sqrt(covariance(at, at));
    }
  } else {
    for (const Eigen::Index j : passive) powers[static_cast<std::size_t>(j)].power_w.reset();
  }
  for (Eigen::Index j = 0; j + 1 < columns; ++j) {
    if (a.col(j).maxCoeff() <= 0.0) powers[static_cast<std::size_t>(j)] = {};
  }
  fit.idle = powers.back();
  powers.pop_back();
  fit.classes = std::move(powers);
  return fit;
}

}  // namespace rubato
