#include "sim/capture/replay.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "models/kernel/coefficients.hpp"
#include "traces/capture.hpp"

namespace rubato {

namespace {

std::int64_t first_start_ns(const Capture& capture) {
  if (capture.launches.empty())
    throw DataError(fmt::format("{}: no launches to replay", capture.name));
  return std::ranges::min_element(capture.launches, {}, &CapturedLaunch::start_ns)->start_ns;
}

}  // namespace

double CaptureRun::energy_over_j(std::uint32_t device, double from_s, double to_s) const {
  CompensatedSum energy;
  const GpuPhase* now = nullptr;
  const auto add_until = [&](double end_s) {
    if (now == nullptr) return;
    const double covered_s = std::min(end_s, to_s) - std::max(now->start_s, from_s);
    if (covered_s > 0.0) energy.add(now->power_w * covered_s);
  };
  for (const GpuPhase& phase : graph.phases) {
    if (device_of_gpu[index(phase.gpu)] != device) continue;
    add_until(phase.start_s);
    now = &phase;
  }
  add_until(makespan_s);
  return energy.value();
}

CaptureReplay::CaptureReplay(const Capture& capture, const GpuSpec& spec,
                             const ClockPair& captured_clock, std::optional<double> power_limit_w,
                             std::shared_ptr<const NamedCells> cells)
    : capture_(&capture),
      origin_ns_(first_start_ns(capture)),
      run_(std::make_unique<const CaptureGraph>(capture_graph(capture))),
      anchored_(run_->graph, spec, captured_clock, power_limit_w),
      cells_(std::move(cells)) {
  for (const Kernel& kernel : capture.kernels) {
    auto& source = sources_.emplace_back();
    if (cells_ && cells_->find(kernel))
      source = CoefficientSource::measured;
    else if (const auto found = find_coefficients(spec, kernel))
      source = found->source;
  }
}

double CaptureReplay::captured_start_s(std::size_t launch) const {
  return static_cast<double>(capture_->launches[launch].start_ns - origin_ns_) * s_per_ns;
}

double CaptureReplay::captured_end_s(std::size_t launch) const {
  return static_cast<double>(capture_->launches[launch].end_ns() - origin_ns_) * s_per_ns;
}

double CaptureReplay::captured_makespan_s() const {
  double last_s = 0.0;
  for (std::size_t i = 0; i < capture_->launches.size(); ++i)
    last_s = std::max(last_s, captured_end_s(i));
  return last_s;
}

// The model's durations of the kernels it knows from cells or from their work; others as captured.
GraphModel CaptureReplay::predicted_model(const ClockPair& clock) const {
  std::vector<std::optional<KernelCoefficients>> predicted;
  for (const Kernel& kernel : graph().kernels()) {
    const KernelCoefficients& anchored = anchored_.coefficients()[predicted.size()];
    auto& own = predicted.emplace_back();
    if (const auto known = cells_ ? cells_->find(kernel) : std::nullopt) {
      const OperatingPoint cell = cells_->at(*known, clock);
      own = held_to(spec(), anchored, clock, cell.time_s, cell.energy_j);
    } else if (const auto found = find_coefficients(spec(), kernel)) {
      own = found->coefficients;
    }
  }
  return anchored_.with_whole_launches(predicted);
}

// Captured durations brought to a clock. Kernels that have cells take their power from these.
GraphModel CaptureReplay::captured_model(const ClockPair& clock) const {
  if (!cells_) return anchored_;
  std::vector<std::optional<KernelCoefficients>> coefficients;
  for (const Kernel& kernel : graph().kernels()) {
    const auto id = id_at<KernelId>(coefficients.size());
    auto& own = coefficients.emplace_back();
    const auto known = cells_->find(kernel);
    if (!known) continue;
    const OperatingPoint cell = cells_->at(*known, clock);
    const double captured_s = anchored_.evaluate(id, captured_clock()).time_s;
    const double share = captured_s / cells_->at(*known, captured_clock()).time_s;
    own = held_to(spec(), anchored_.coefficients()[index(id)], clock, share * cell.time_s,
                  share * cell.energy_j);
  }
  return anchored_.with_coefficients(coefficients);
}

CaptureRun CaptureReplay::run(const ClockPair& clock, DurationSource durations) const {
  const GraphModel model =
      durations == DurationSource::model ? predicted_model(clock) : captured_model(clock);
  const ClockGrid grid(spec(), {clock});
  GraphSimulator simulator(model, grid);
  GraphRun run = simulator.run(uniform_plan(graph(), *grid.find(clock)), {.phases = true});
  CaptureRun result;
  for (const ActivityId activity : run_->activity_of_launch.front()) {
    const std::size_t i = index(activity);
    result.launches.push_back({run.start_s[i], run.end_s[i], run.energy_j[i]});
    result.makespan_s = std::max(result.makespan_s, run.end_s[i]);
  }
  for (const GraphGpu& gpu : graph().gpus()) result.device_of_gpu.push_back(gpu.device);
  result.energy_j = run.total_energy_j;
  for (const GpuTotals& gpu : run.gpus) result.power_limited_s += gpu.power_limited_s;
  result.graph = std::move(run);
  return result;
}

}  // namespace rubato
