#include "models/validation/copies.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace rubato {

namespace {

// Standard deviation of logarithms.
double spread(const std::vector<double>& logarithms) {
  double mean = 0.0, squares = 0.0;
  for (const double value : logarithms) mean += value / static_cast<double>(logarithms.size());
  for (const double value : logarithms) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(logarithms.size()));
}

bool are_copies(const SweepKernel& a, const SweepKernel& b) {
  constexpr std::size_t enough_clocks = 5;
  constexpr double same = 2e-3;
  std::vector<double> time, energy;
  for (const SweepPoint& of_a : a.points) {
    const auto of_b = std::ranges::find_if(b.points, [&](const SweepPoint& point) {
      return point.clock == of_a.clock && point.power_cap_w == of_a.power_cap_w;
    });
    if (of_b == b.points.end()) continue;
    time.push_back(std::log(of_a.time_s.value() / of_b->time_s.value()));
    energy.push_back(time.back() + std::log(of_a.power_w.value() / of_b->power_w.value()));
  }
  return time.size() >= enough_clocks && spread(time) < same && spread(energy) < same;
}

}  // namespace

Sweep without_copies(Sweep sweep) {
  std::vector<SweepKernel> kept;
  for (SweepKernel& kernel : sweep.kernels) {
    const auto is_copy = [&](const SweepKernel& other) { return are_copies(other, kernel); };
    if (std::ranges::none_of(kept, is_copy)) kept.push_back(std::move(kernel));
  }
  sweep.kernels = std::move(kept);
  return sweep;
}

}  // namespace rubato
