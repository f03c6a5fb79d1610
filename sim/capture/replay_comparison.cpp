#include "sim/capture/replay_comparison.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/algorithms/sort_by.hpp"
#include "common/numbers.hpp"

namespace rubato {

namespace {

constexpr double z_90 = 1.645;  // two-sided 90 % of a normal distribution

double duration_s(const SimulatedLaunch& launch) { return launch.end_s - launch.start_s; }

struct RowSums {
  ReplayRow row;
  double predicted_j = 0.0, predicted_all_s = 0.0;

  void add(double captured_s, const SimulatedLaunch& predicted, const SimulatedLaunch& replayed,
           bool known) {
    ++row.launches;
    row.captured_s += captured_s;
    row.replayed_s += duration_s(replayed);
    predicted_all_s += duration_s(predicted);
    predicted_j += predicted.energy_j;
    if (!known) return;
    row.compared_s += captured_s;
    row.predicted_s += duration_s(predicted);
  }
  [[nodiscard]] ReplayRow finished() && {
    if (predicted_all_s > 0.0) row.predicted_power_w = predicted_j / predicted_all_s;
    if (row.compared_s > 0.0) row.time_error = ErrorBar{row.predicted_s / row.compared_s - 1.0, {}};
    return std::move(row);
  }
};

// Half-width of the 90 % interval of a ratio of sums over kernels, from how the kernels scatter
// around it (ratio estimator). Each kernel weighs by its captured time.
template <class Belongs>
std::optional<double> half_width(const std::vector<ReplayRow>& kernels, const ReplayRow& of,
                                 const Belongs& belongs) {
  double squares = 0.0;
  double count = 0.0;
  for (const ReplayRow& kernel : kernels) {
    if (!belongs(kernel.kind) || kernel.compared_s <= 0.0) continue;
    squares += std::pow(kernel.predicted_s - (1.0 + of.time_error->value) * kernel.compared_s, 2);
    count += 1.0;
  }
  if (count < 2.0) return std::nullopt;
  return z_90 * std::sqrt(squares * count / (count - 1.0)) / of.compared_s;
}

void sort_by_time(std::vector<ReplayRow>& rows) { sort_down_by(rows, &ReplayRow::captured_s); }

void add_rows(const CaptureReplay& replay, const ReplayRuns& runs, ReplayComparison& result) {
  const Capture& capture = replay.capture();
  std::vector<RowSums> kernels(capture.kernels.size());
  std::vector<RowSums> classes(all_names<KernelClass>().size());
  RowSums compute;
  const auto computes = [](KernelClass kind) { return kind != KernelClass::communication; };
  for (std::size_t i = 0; i < capture.launches.size(); ++i) {
    const KernelId id = capture.launches[i].kernel;
    const double captured_s = replay.captured_end_s(i) - replay.captured_start_s(i);
    const auto source = replay.source(id);
    auto& of_class = classes[static_cast<std::size_t>(capture.kernels[index(id)].kind)];
    for (RowSums* sums : {&kernels[index(id)], &of_class, &compute}) {
      if (sums == &compute && !computes(capture.kernels[index(id)].kind)) continue;
      sums->add(captured_s, runs.predicted.launches[i], runs.replayed.launches[i],
                source.has_value());
    }
    ReplayCoverage& c = result.coverage;
    double& covered_s = !source                                  ? c.anchored_s
                        : *source == CoefficientSource::measured ? c.measured_s
                        : *source == CoefficientSource::scaled   ? c.scaled_s
                        : *source == CoefficientSource::derived  ? c.derived_s
                                                                 : c.guessed_s;
    covered_s += captured_s;
  }
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    if (kernels[k].row.launches == 0) continue;
    kernels[k].row.name = capture.kernels[k].name;
    kernels[k].row.kind = capture.kernels[k].kind;
    kernels[k].row.source = replay.source(id_at<KernelId>(k));
    result.kernels.push_back(std::move(kernels[k]).finished());
  }
  for (std::size_t c = 0; c < classes.size(); ++c) {
    if (classes[c].row.launches == 0) continue;
    classes[c].row.kind = static_cast<KernelClass>(c);
    classes[c].row.name = name_of(classes[c].row.kind);
    ReplayRow row = std::move(classes[c]).finished();
    if (row.time_error) {
      row.time_error->half_width =
          half_width(result.kernels, row, [&](KernelClass kind) { return kind == row.kind; });
    }
    result.classes.push_back(std::move(row));
  }
  result.compute = std::move(compute).finished();
  result.compute.name = "compute";
  if (auto& error = result.compute.time_error)
    error->half_width = half_width(result.kernels, result.compute, computes);
  sort_by_time(result.kernels);
  sort_by_time(result.classes);
}

struct Span {
  double from_s = std::numeric_limits<double>::infinity(), to_s = 0.0;

  void include(double start_s, double end_s) {
    from_s = std::min(from_s, start_s);
    to_s = std::max(to_s, end_s);
  }
  [[nodiscard]] double length_s() const { return to_s - from_s; }
};

void add_steps(const CaptureReplay& replay, const ReplayRuns& runs,
               const std::optional<PowerEvidence>& power, ReplayComparison& result) {
  const Capture& capture = replay.capture();
  const std::uint32_t device = power ? power->device : 0;
  struct Spans {
    Span captured, predicted, replayed;
    std::uint64_t launches = 0;
  };
  std::vector<Spans> spans(capture.steps.size());
  for (std::size_t i = 0; i < capture.launches.size(); ++i) {
    if (!capture.launches[i].step) continue;
    Spans& of = spans[*capture.launches[i].step];
    of.captured.include(replay.captured_start_s(i), replay.captured_end_s(i));
    of.predicted.include(runs.predicted.launches[i].start_s, runs.predicted.launches[i].end_s);
    of.replayed.include(runs.replayed.launches[i].start_s, runs.replayed.launches[i].end_s);
    ++of.launches;
  }
  for (std::size_t s = 0; s < spans.size(); ++s) {
    const Spans& of = spans[s];
    if (of.launches == 0) continue;
    ReplayStep step{
        .name = capture.steps[s].name,
        .launches = of.launches,
        .captured_s = of.captured.length_s(),
        .predicted_s = of.predicted.length_s(),
        .replayed_s = of.replayed.length_s(),
        .predicted_j = runs.predicted.energy_over_j(device, of.predicted.from_s, of.predicted.to_s),
        .replayed_j = runs.replayed.energy_over_j(device, of.replayed.from_s, of.replayed.to_s),
        .measured = {}};
    if (power) {
      const double offset_s = power->alignment.offset_s;
      step.measured = span_energy(*power->log, power->sensor, of.captured.from_s - offset_s,
                                  of.captured.to_s - offset_s);
    }
    result.steps.push_back(std::move(step));
  }
}

// Fits the power of each class to the windows that the log's samples average.
void add_class_power(const CaptureReplay& replay, const PowerEvidence& power,
                     ReplayComparison& result) {
  const Capture& capture = replay.capture();
  std::vector<StepCurve> curves;
  for (const ReplayRow& row : result.classes) {
    Capture of_class = capture;
    std::erase_if(of_class.launches, [&](const CapturedLaunch& launch) {
      return capture.kernels[index(launch.kernel)].kind != row.kind ||
             capture.streams[launch.stream].device != power.device;
    });
    curves.push_back(busy_curve(of_class, power.device, replay.origin_ns()));
  }
  std::vector<double> shares, power_w;
  const double end_s = replay.captured_makespan_s();
  for (const PowerSample& sample : power.log->samples) {
    const double at_s = sample.time_s + power.alignment.offset_s;
    if (at_s < power.sensor.window_s || at_s > end_s) continue;
    for (const StepCurve& curve : curves) shares.push_back(reading(curve, power.sensor, at_s));
    power_w.push_back(sample.power_w);
  }
  const auto fit = fit_class_power(shares, power_w, curves.size());
  if (!fit) return;
  for (std::size_t c = 0; c < curves.size(); ++c) {
    // While a class runs the board draws its power and idle power.
    const ClassPower &own = fit->classes[c], &idle = fit->idle;
    if (!own.power_w || !own.sigma_w || !idle.power_w) continue;
    const double drawn_w = *own.power_w + *idle.power_w;
    const double sigma_w = std::hypot(*own.sigma_w, idle.sigma_w.value_or(0.0));
    // Samples hardly see a class that runs for a moment: any power would fit.
    if (2.0 * z_90 * sigma_w > drawn_w) continue;
    result.classes[c].measured_power_w = drawn_w;
    result.classes[c].measured_sigma_w = sigma_w;
  }
  result.measured_idle = fit->idle;
  result.power_residual_w = fit->residual_w;
}

}  // namespace

std::string_view name_of(Verdict value) noexcept {
  switch (value) {
    case Verdict::within: return "within";
    case Verdict::off: return "off";
    case Verdict::undecided: return "undecided";
    case Verdict::waits: return "includes waiting";
    case Verdict::not_predicted: break;
  }
  return "not predicted";
}

Verdict verdict_of(const std::optional<ErrorBar>& error) {
  if (!error) return Verdict::not_predicted;
  const double size = std::abs(error->value), bar = error->half_width.value_or(0.0);
  if (size + bar <= verdict_tolerance) return Verdict::within;
  return size - bar > verdict_tolerance ? Verdict::off : Verdict::undecided;
}

Verdict verdict_of(const ReplayRow& row) {
  const bool compares = row.kind == KernelClass::communication && row.time_error;
  return compares ? Verdict::waits : verdict_of(row.time_error);
}

ReplayRuns run_all(const CaptureReplay& replay, const ClockPair& clock) {
  return {replay.run(replay.captured_clock(), DurationSource::captured),
          replay.run(replay.captured_clock(), DurationSource::model),
          replay.run(clock, DurationSource::captured)};
}

ReplayComparison compare(const CaptureReplay& replay, const ReplayRuns& runs,
                         const std::optional<PowerEvidence>& power) {
  ReplayComparison result;
  result.totals = {.captured_s = replay.captured_makespan_s(),
                   .reproduced_s = runs.reproduced.makespan_s,
                   .predicted_s = runs.predicted.makespan_s,
                   .replayed_s = runs.replayed.makespan_s,
                   .reproduced_j = runs.reproduced.energy_j,
                   .predicted_j = runs.predicted.energy_j,
                   .replayed_j = runs.replayed.energy_j};
  add_rows(replay, runs, result);
  add_steps(replay, runs, power, result);
  if (power) {
    const double from_s = -power->alignment.offset_s;
    result.measured =
        span_energy(*power->log, power->sensor, from_s, from_s + result.totals.captured_s);
    add_class_power(replay, *power, result);
  }
  return result;
}

}  // namespace rubato
