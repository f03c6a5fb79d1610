#include "models/alternatives/textbook.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "models/alternatives/non_negative.hpp"

namespace rubato {

namespace {

constexpr double hz_per_mhz = 1e6;

bool more_than_one_memory_clock(const GpuSpec& spec, const Sweep& sweep) {
  std::optional<double> first;
  for (const SweepKernel& kernel : sweep.kernels) {
    for (const SweepPoint& point : kernel.points) {
      const double mhz = spec.mem_states[index(point.clock.mem)].mem_mhz;
      if (first.value_or(mhz) != mhz) return true;
      first = mhz;
    }
  }
  return false;
}

// Weights of the terms with least squared relative errors. The third term counts only where the
// memory clock was varied.
template <class TermsOf>
Eigen::Vector3d relative_fit(const SeenPoints& seen, const std::vector<double>& measured,
                             bool with_memory, TermsOf&& terms_of) {
  const auto points = static_cast<Eigen::Index>(measured.size());
  Eigen::MatrixXd a(points, with_memory ? 3 : 2);
  for (Eigen::Index i = 0; i < points; ++i) {
    const auto at = static_cast<std::size_t>(i);
    a.row(i) = terms_of(seen.terms[at]).head(a.cols()).transpose() / measured[at];
  }
  Eigen::Vector3d weights = Eigen::Vector3d::Zero();
  weights.head(a.cols()) = non_negative_least_squares(a, Eigen::VectorXd::Ones(points));
  return weights;
}

Eigen::Vector3d linear_time_terms(const ClockTerms& at) {
  return {1.0, 1.0 / at.core_hz, 1.0 / at.mem_hz};
}

Eigen::Vector3d linear_power_terms(const ClockTerms& at) { return {1.0, at.core_hz, at.mem_hz}; }

Eigen::Vector3d cmos_power_terms(const ClockTerms& at) {
  return {1.0, at.core_hz * at.volts * at.volts, at.mem_hz};
}

OperatingPoint point_of(const ClockTerms& at, double time_s, double power_w) {
  return {.time_s = time_s,
          .energy_j = time_s * power_w,
          .core_mhz = at.core_hz / hz_per_mhz,
          .power_limited = false};
}

// The factor in measured = factor x term with least squared relative errors.
double factor_of(std::span<const double> term_over_measured) {
  double sum = 0.0, squares = 0.0;
  for (const double x : term_over_measured) {
    sum += x;
    squares += x * x;
  }
  return squares > 0.0 ? sum / squares : 0.0;
}

// The best roofline in which core and memory bound point k alike.
// @param core, memory  time of one cycle and of one byte over the measured time, shape [n]
Roofline equal_at(std::size_t k, std::span<const double> core, std::span<const double> memory) {
  const double bytes_per_cycle = core[k] / memory[k];
  std::vector<double> longer;
  for (std::size_t i = 0; i < core.size(); ++i)
    longer.push_back(std::max(core[i], bytes_per_cycle * memory[i]));
  const double cycles = factor_of(longer);
  return {.cycles = cycles, .bytes = cycles * bytes_per_cycle};
}

}  // namespace

ClockReader::ClockReader(const ModelData& data)
    : spec_(data.spec),
      applied_clocks_(data.kernels.applied_clocks),
      memory_varies_(more_than_one_memory_clock(data.spec, data.kernels)) {}

ClockTerms ClockReader::terms(const ClockPair& clock) const {
  const MemState& mem = spec_.mem_states[index(clock.mem)];
  const double core_mhz =
      applied_clocks_ ? applied_core_mhz(spec_, clock) : effective_core_mhz(spec_, clock);
  constexpr double bytes_per_gb = 1e9;
  return {.core_hz = core_mhz * hz_per_mhz,
          .mem_hz = mem.mem_mhz * hz_per_mhz,
          .volts = relative_voltage(spec_, mem, core_mhz),
          .dram_bytes_per_s = mem.bandwidth_gbs * bytes_per_gb};
}

SeenPoints seen_points(const SweepKernel& kernel, const ClockReader& clocks) {
  SeenPoints seen;
  for (const SweepPoint& point : kernel.points) {
    seen.terms.push_back(clocks.terms(point.clock));
    seen.time_s.push_back(point.time_s.value());
    seen.power_w.push_back(point.power_w.value());
  }
  return seen;
}

double Roofline::time_s(const ClockTerms& at) const {
  return std::max(cycles / at.core_hz, bytes / at.dram_bytes_per_s);
}

Roofline fit_roofline(std::span<const ClockTerms> terms, std::span<const double> time_s) {
  // In order of core over memory time: memory bounds a point only if it bounds all before.
  std::vector<std::size_t> order(terms.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, {}, [&](std::size_t i) { return terms[i].dram_bytes_per_s / terms[i].core_hz; });
  std::vector<double> memory, core;
  for (const std::size_t i : order) {
    memory.push_back(1.0 / (terms[i].dram_bytes_per_s * time_s[i]));
    core.push_back(1.0 / (terms[i].core_hz * time_s[i]));
  }
  std::vector<Roofline> tried;
  for (std::size_t bound = 0; bound <= order.size(); ++bound)
    tried.push_back({.cycles = factor_of(std::span(core).subspan(bound)),
                     .bytes = factor_of(std::span(memory).first(bound))});
  for (std::size_t k = 0; k < order.size(); ++k) tried.push_back(equal_at(k, core, memory));
  Roofline best;
  double best_cost = std::numeric_limits<double>::infinity();
  for (const Roofline& roofline : tried) {
    double cost = 0.0;
    for (std::size_t i = 0; i < terms.size(); ++i) {
      const double error = roofline.time_s(terms[i]) / time_s[i] - 1.0;
      cost += error * error;
    }
    if (cost >= best_cost) continue;
    best_cost = cost;
    best = roofline;
  }
  return best;
}

LinearModel::LinearModel(const ModelData& data) : clocks_(data) {
  const bool with_memory = clocks_.memory_varies();
  for (const SweepKernel& kernel : data.kernels.kernels) {
    const SeenPoints seen = seen_points(kernel, clocks_);
    kernels_.push_back({relative_fit(seen, seen.time_s, with_memory, linear_time_terms),
                        relative_fit(seen, seen.power_w, with_memory, linear_power_terms)});
  }
  fit_ = fit_to(data, with_memory ? 6 : 4, 0, "no power limit, no voltage");
}

OperatingPoint LinearModel::at(std::size_t kernel, const ClockPair& clock) const {
  const ClockTerms at = clocks_.terms(clock);
  return point_of(at, kernels_[kernel].time.dot(linear_time_terms(at)),
                  kernels_[kernel].power.dot(linear_power_terms(at)));
}

CmosModel::CmosModel(const ModelData& data) : clocks_(data) {
  const bool with_memory = clocks_.memory_varies();
  for (const SweepKernel& kernel : data.kernels.kernels) {
    const SeenPoints seen = seen_points(kernel, clocks_);
    kernels_.push_back({fit_roofline(seen.terms, seen.time_s),
                        relative_fit(seen, seen.power_w, with_memory, cmos_power_terms)});
  }
  fit_ =
      fit_to(data, with_memory ? 5 : 4, 0, "no power limit; voltage and bandwidths are the spec's");
}

OperatingPoint CmosModel::at(std::size_t kernel, const ClockPair& clock) const {
  const ClockTerms at = clocks_.terms(clock);
  return point_of(at, kernels_[kernel].time.time_s(at),
                  kernels_[kernel].power.dot(cmos_power_terms(at)));
}

}  // namespace rubato
