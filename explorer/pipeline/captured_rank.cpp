#include "explorer/pipeline/captured_rank.hpp"

#include <algorithm>
#include <cmath>

#include "common/numbers.hpp"
#include "models/gpu/clock_grid.hpp"
#include "models/kernel/model.hpp"

namespace rubato {

std::vector<ClockPair> core_clocks(const CapturedGpu& gpu) {
  constexpr double same_mhz = 0.5;
  const ClockGrid grid = make_clock_grid(gpu.spec, gpu.grid);
  const auto mhz = [&](const ClockPair& pair) { return effective_core_mhz(gpu.spec, pair); };
  std::vector<ClockPair> clocks{gpu.captured_clock};
  for (const ClockPair& pair : grid.pairs()) {
    const bool known = std::ranges::any_of(clocks, [&](const ClockPair& other) {
      return std::abs(mhz(other) - mhz(pair)) <= same_mhz;
    });
    if (pair.mem == gpu.captured_clock.mem && !known) clocks.push_back(pair);
  }
  std::ranges::stable_sort(clocks, std::ranges::greater{}, mhz);
  return clocks;
}

CapturedRank::CapturedRank(const Capture& capture, const CapturedGpu& gpu)
    : capture_(&capture),
      run_(std::make_unique<const CaptureGraph>(capture_graph(capture))),
      captured_(gpu.captured_clock),
      best_(run_->graph, gpu.spec, gpu.captured_clock),
      memory_bound_(best_.with_split(0.0)),
      core_bound_(best_.with_split(1.0)) {}

MeanPass CapturedRank::mean_pass(std::span<const CapturedPass* const> all,
                                 std::uint32_t main_stream) const {
  const std::size_t kernels = capture_->kernels.size();
  MeanPass mean;
  mean.main_s.resize(kernels);
  mean.work.resize(kernels);
  double busy_s = 0.0;
  for (const CapturedPass* pass : all) {
    mean.time_s += pass->time_s();
    for (const std::uint32_t i : pass->launches) {
      const CapturedLaunch& launch = capture_->launches[i];
      mean.work[index(launch.kernel)] += best_.work()[index(run_->activity_of_launch[0][i])];
      if (launch.stream != main_stream) continue;
      const double time_s = s_per_ns * static_cast<double>(launch.duration_ns);
      mean.main_s[index(launch.kernel)] += time_s;
      busy_s += time_s;
    }
  }
  const auto passes = static_cast<double>(all.size());
  mean.gap_s = std::max(mean.time_s - busy_s, 0.0) / passes;
  mean.time_s /= passes;
  for (double& s : mean.main_s) s /= passes;
  for (double& launches : mean.work) launches /= passes;
  return mean;
}

std::array<Cost, 3> CapturedRank::costs(const MeanPass& pass, const ClockPair& clock) const {
  return {cost(best_, pass, clock), cost(memory_bound_, pass, clock),
          cost(core_bound_, pass, clock)};
}

double CapturedRank::guessed_frac(const MeanPass& pass) const {
  double guessed_s = 0.0;
  for (std::size_t k = 0; k < pass.main_s.size(); ++k) {
    if (best_.split(id_at<KernelId>(k)) == SplitSource::class_prior) guessed_s += pass.main_s[k];
  }
  return guessed_s / pass.time_s;
}

Cost CapturedRank::cost(const GraphModel& model, const MeanPass& pass,
                        const ClockPair& clock) const {
  CompensatedSum time_s, above_idle_j;
  time_s.add(pass.gap_s);
  const double idle_w = model.idle_power_w(clock);
  for (std::size_t k = 0; k < pass.main_s.size(); ++k) {
    if (pass.main_s[k] == 0.0 && pass.work[k] == 0.0) continue;
    const OperatingPoint at = model.evaluate(id_at<KernelId>(k), clock);
    const double captured_s = model.evaluate(id_at<KernelId>(k), captured_).time_s;
    time_s.add(pass.main_s[k] * at.time_s / captured_s);
    above_idle_j.add(pass.work[k] * (at.energy_j - idle_w * at.time_s));
  }
  return {time_s.value(), above_idle_j.value() + idle_w * time_s.value()};
}

}  // namespace rubato
