#include "models/calibration/utilisation_power.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include <fmt/format.h>
#include <Eigen/Core>

#include "common/csv.hpp"
#include "common/error.hpp"
#include "common/version.hpp"
#include "models/gpu/device.hpp"
#include "models/kernel/model.hpp"
#include "models/linear/levenberg_marquardt.hpp"
#include "models/linear/robust_loss.hpp"
#include "traces/plausible.hpp"

namespace rubato {

namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr double least_use = 1e-3;

const MemState& state_of(const GpuSpec& spec, const std::string& name) {
  const auto found = std::ranges::find(spec.mem_states, name, &MemState::name);
  if (found == spec.mem_states.end())
    throw UsageError(fmt::format("{} has no memory state '{}'", spec.name, name));
  return *found;
}

// "u_sp_add" -> "sp"
std::string unit_of(const std::string& column) { return column.substr(2, column.find('_', 2) - 2); }

// The fit. Its parameters in one vector: voltage steps, base powers, leakage, clock, DRAM, units,
// four shapes; all as logarithms, but the latency share as a logit.
class UtilisationFit {
 public:
  UtilisationFit(const GpuSpec& frame, const UtilisationSweep& sweep, double core_mhz,
                 const std::string& mem_state)
      : frame_(frame), sweep_(sweep) {
    std::set<double> clocks;
    std::set<std::string> units;
    double least_w = 1e9;
    for (const UtilisationPoint& point : sweep.points) {
      if (point.clock.core_mhz) clocks.insert(*point.clock.core_mhz);
      for (const auto& [unit, use] : point.units) units.insert(unit);
      least_w = std::min(least_w, point.power_w);
    }
    if (clocks.size() < 2)
      throw DataError(fmt::format("{}: fewer than two core clocks", sweep.file));
    units_.assign(units.begin(), units.end());
    frame_.voltage = {{clocks.begin(), clocks.end()}, std::vector<double>(clocks.size(), 1.0)};
    UtilisationModel& model = frame_.utilisation.emplace();
    model.core_mhz = core_mhz;
    model.mem_state = state_of(frame, mem_state).name;

    constexpr double step = 0.02, unit_w = 20.0, dram_w = 50.0, clock_share = 0.2, base_share = 0.7;
    start_ = VectorXd::Zero(size());
    start_.head(steps()).setConstant(std::log(step));
    for (Index i = 0; i < states(); ++i) {
      const double relative =
          frame_.mem_states[static_cast<std::size_t>(i)].mem_mhz / frame_.mem_states.back().mem_mhz;
      start_[steps() + i] = std::log(base_share * least_w * std::max(relative, 0.5));
    }
    start_[leakage()] = std::log(0.1 * least_w);
    start_[leakage() + 1] = std::log(clock_share * least_w / *clocks.rbegin());
    start_[leakage() + 2] = std::log(dram_w);
    start_.segment(first_unit(), std::ssize(units_)).setConstant(std::log(unit_w));
  }

  [[nodiscard]] GpuSpec spec_at(const VectorXd& x) const {
    GpuSpec spec = frame_;
    for (Index i = 0; i < steps(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      spec.voltage.relative_v[at + 1] = spec.voltage.relative_v[at] + std::exp(x[i]);
    }
    for (Index i = 0; i < states(); ++i)
      spec.mem_states[static_cast<std::size_t>(i)].base_power_w = std::exp(x[steps() + i]);
    spec.shared.leakage_w = std::exp(x[leakage()]);
    spec.shared.clock_w_per_mhz = std::exp(x[leakage() + 1]);
    UtilisationModel& model = *spec.utilisation;
    model.dram_w = std::exp(x[leakage() + 2]);
    for (std::size_t i = 0; i < units_.size(); ++i)
      model.unit_w[units_[i]] = std::exp(x[first_unit() + static_cast<Index>(i)]);
    const auto last = x.tail(4);
    model.core_share_exponent = std::exp(last[0]);
    model.dram_share_exponent = std::exp(last[1]);
    model.overlap_exponent = 2.0 + std::exp(last[2]);
    model.latency_core_share = 1.0 / (1.0 + std::exp(-last[3]));
    return spec;
  }

  [[nodiscard]] VectorXd residuals(const VectorXd& x) const {
    constexpr double sigma = 0.03, prior_sigma = 3.0, shape_sigma = 1.0;
    const GpuSpec spec = spec_at(x);
    const Index points = std::ssize(sweep_.points);
    VectorXd out(points + size());
    for (Index i = 0; i < points; ++i) {
      const UtilisationPoint& point = sweep_.points[static_cast<std::size_t>(i)];
      out[i] = robust(std::log(utilisation_power_w(spec, point) / point.power_w) / sigma);
    }
    out.tail(size()) = (x - start_) / prior_sigma;
    out.tail(4) *= prior_sigma / shape_sigma;
    return out;
  }

  [[nodiscard]] GpuSpec fit() const {
    const double difference = 1e-5;
    constexpr double max_step = 0.5;
    constexpr int iterations = 60;
    const LeastSquaresProblem problem{
        .residuals = [this](const VectorXd& x) { return residuals(x); },
        .jacobian =
            [this, difference](const VectorXd& x, const VectorXd& now) {
              Eigen::MatrixXd slope(now.size(), x.size());
              for (Index j = 0; j < x.size(); ++j) {
                VectorXd moved = x;
                moved[j] += difference;
                slope.col(j) = (residuals(moved) - now) / difference;
              }
              return slope;
            }};
    return spec_at(levenberg_marquardt(problem, start_, iterations, max_step));
  }

 private:
  [[nodiscard]] Index steps() const { return std::ssize(frame_.voltage.core_mhz) - 1; }
  [[nodiscard]] Index states() const { return std::ssize(frame_.mem_states); }
  [[nodiscard]] Index leakage() const { return steps() + states(); }  ///< clock and DRAM follow
  [[nodiscard]] Index first_unit() const { return leakage() + 3; }
  [[nodiscard]] Index size() const { return first_unit() + std::ssize(units_) + 4; }

  GpuSpec frame_;
  const UtilisationSweep& sweep_;
  std::vector<std::string> units_;
  VectorXd start_;
};

}  // namespace

bool is_utilisation_sweep(const std::filesystem::path& path) {
  const CsvTable table = CsvTable::read(path);
  const auto is_use = [](const std::string& name) { return name.starts_with("u_"); };
  return !table.find_column("time_s") && std::ranges::any_of(table.header(), is_use);
}

UtilisationSweep read_utilisation_sweep(const std::filesystem::path& path, const GpuSpec& spec,
                                        const SweepColumns& columns) {
  const CsvTable table = CsvTable::read(path);
  ErrorList errors;
  UtilisationSweep sweep{.file = path.string(), .gpu = {}, .points = {}};
  const std::size_t kernel = table.column("kernel"), core = table.column("core_mhz"),
                    mem = table.column("mem_mhz"), power = table.column("power_w");
  const auto gpu = table.find_column("gpu"), set = table.find_column("set");
  const std::vector<bool> copies = table.copies();
  const ReadColumn power_column{.name = "power_w", .quantity = Quantity::power},
      core_column{.name = "core_mhz", .quantity = Quantity::clock};
  const auto expect = [&](std::size_t row, const ReadColumn& column, double value,
                          std::string_view unit, const Bounds& bounds) {
    const auto wrong = implausible(column.name, value, unit, bounds, std::span(&column, 1));
    if (wrong) errors.add(fmt::format("{}: {}", table.where(row), *wrong));
  };
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (copies[row]) continue;
    const bool kept = std::ranges::all_of(columns.where, [&](const auto& filter) {
      return table.cell(row, table.column(filter.first)) == filter.second;
    });
    if (!kept) continue;
    if (gpu) {
      const std::string& name = table.cell(row, *gpu);
      if (sweep.gpu.empty()) sweep.gpu = name;
      if (name != sweep.gpu)
        throw DataError(fmt::format("{}: gpu is '{}' after rows of '{}'; expected one GPU",
                                    table.where(row), name, sweep.gpu),
                        {.in = {}, .hint = fmt::format("choose with --where 'gpu={}'", sweep.gpu)});
    }
    UtilisationPoint point;
    point.kernel = (set ? table.cell(row, *set) + ':' : "") + table.cell(row, kernel);
    const auto state = std::ranges::find(spec.mem_states, table.cell(row, mem), &MemState::name);
    if (state == spec.mem_states.end()) {
      errors.add(fmt::format("{}: mem_mhz '{}' is no memory state of {}", table.where(row),
                             table.cell(row, mem), spec.name));
      continue;
    }
    point.clock = {id_at<MemStateId>(static_cast<std::size_t>(state - spec.mem_states.begin())),
                   table.number(row, core, Range::positive, errors)};
    if (point.clock.core_mhz)
      expect(row, core_column, *point.clock.core_mhz, "MHz", core_clock_mhz);
    const auto power_w = table.number(row, power, Range::positive, errors);
    if (power_w) expect(row, power_column, *power_w, "W", plausible_power_w(spec));
    point.power_w = power_w.value_or(1.0);
    for (std::size_t c = 0; c < table.header().size(); ++c) {
      const std::string& name = table.header()[c];
      if (!name.starts_with("u_")) continue;
      const double use = table.optional_number(row, c, Range::non_negative, errors).value_or(0.0);
      if (name == "u_dram")
        point.dram = use;
      else
        point.units[unit_of(name)] += use;
    }
    sweep.points.push_back(std::move(point));
  }
  errors.throw_if_any();
  if (sweep.points.empty()) throw DataError(fmt::format("{}: no row is left", sweep.file));
  return sweep;
}

double utilisation_power_w(const GpuSpec& spec, const UtilisationPoint& point) {
  const UtilisationModel& model = *spec.utilisation;
  const MemState& mem = spec.mem_states[index(point.clock.mem)];
  const double core_mhz = point.clock.core_mhz.value_or(mem.boost_mhz);
  const double slower_core = model.core_mhz / core_mhz;
  const double slower_dram = state_of(spec, model.mem_state).mem_mhz / mem.mem_mhz;

  double core_w = 0.0, most_used = least_use;
  for (const auto& [unit, use] : point.units) {
    const auto known = model.unit_w.find(unit);
    core_w += use * (known == model.unit_w.end() ? 0.0 : known->second);
    most_used = std::max(most_used, std::min(use, 1.0));
  }
  // Time of a launch over its time at the reference clock: what the core bounds,
  // what DRAM bounds, and waiting.
  const double p = model.overlap_exponent;
  const double core = std::pow(most_used, model.core_share_exponent);
  const double dram = std::pow(std::clamp(point.dram, least_use, 1.0), model.dram_share_exponent);
  const auto together = [p](double a, double b) {
    const auto [less, more] = std::minmax(a, b);
    return more * std::pow(1.0 + std::pow(less / more, p), 1.0 / p);
  };
  const double busy = together(core, dram);
  const double waiting = std::max(0.0, 1.0 - busy);
  const double share = model.latency_core_share;
  const double longer = (together(core * slower_core, dram * slower_dram) +
                         waiting * (share * slower_core + 1.0 - share)) /
                        (busy + waiting);
  const double v = relative_voltage(spec, mem, core_mhz);
  return idle_power_w(spec, mem, core_mhz) + (core_w * v * v + point.dram * model.dram_w) / longer;
}

GpuSpec calibrate_utilisation(const GpuSpec& frame, const UtilisationSweep& sweep, double core_mhz,
                              const std::string& mem_state) {
  GpuSpec spec = UtilisationFit(frame, sweep, core_mhz, mem_state).fit();
  const std::string source = fmt::format("fitted by rubato {} calibrate on {} powers of {}",
                                         program_version(), sweep.points.size(), sweep.gpu);
  spec.sources["core_power"] = source;
  spec.sources["utilisation"] = source;
  return spec;
}

std::vector<double> utilisation_errors(const GpuSpec& frame, const UtilisationSweep& sweep,
                                       double core_mhz, const std::string& mem_state,
                                       std::size_t groups, const RunContext& context) {
  std::map<std::string, std::size_t> group_of;
  for (const UtilisationPoint& point : sweep.points)
    group_of.emplace(point.kernel, group_of.size() % groups);
  std::vector<double> errors;
  for (std::size_t g = 0; g < groups && !context.stop_requested(); ++g) {
    context.report({.done = g, .total = groups, .note = "groups of kernels"});
    UtilisationSweep others = sweep;
    std::erase_if(others.points,
                  [&](const UtilisationPoint& p) { return group_of[p.kernel] == g; });
    const GpuSpec fitted = UtilisationFit(frame, others, core_mhz, mem_state).fit();
    for (const UtilisationPoint& point : sweep.points) {
      if (group_of[point.kernel] == g)
        errors.push_back(utilisation_power_w(fitted, point) / point.power_w - 1.0);
    }
  }
  return errors;
}

}  // namespace rubato
