#pragma once
// The ranks of a pipeline as captured, from kernels whose times at every clock are known.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sim/pipeline_run.hpp"
#include "tests/simulated_captures.hpp"
#include "traces/pipeline/profile.hpp"

namespace rubato {

/// Stages of layers of a KnownModel; the last one has more work, as of a loss.
struct MadePipeline {
  KnownModel model = {};
  PipelineShape shape{.stages = 4, .microbatches = 8, .transfer_s = 1e-3};
  std::uint32_t steps = 5;
  std::vector<std::uint32_t> layers{6, 5, 5, 7};  ///< shape [stages x chunks]
  double jitter = 0.02;                           ///< relative, of every launch
  double gap_s = 3e-6;                            ///< between launches
  double idle_w = 80.0;                           ///< of a GPU that waits
  double reduction_s = 0.0;  ///< > 0: gradients are reduced on a stream of their own, then the norm
                             ///< of all stages is known, then `optimizer` runs
  double embedding_s = 0.0;  ///< > 0, with reductions: then first and last stage reduce embeddings
  std::vector<std::uint32_t> optimizer{6, 7, 7};  ///< kernels, the first before the norm

  /// Kernels of a pass in order: a layer once forward, twice backward, whose weight gradients read
  /// more; see KnownModel for names.
  [[nodiscard]] std::vector<std::uint32_t> launches(std::uint32_t virtual_stage,
                                                    PassKind kind) const {
    const std::vector<std::uint32_t> forward{6, 0, 3, 2, 5, 6, 1, 4, 1, 8, 5};
    const std::vector<std::uint32_t> backward{5, 1, 1, 4, 1, 1, 6, 5, 2, 2, 3, 3, 3, 0, 0, 6, 8, 8};
    std::vector<std::uint32_t> all;
    for (std::uint32_t layer = 0; layer < layers[virtual_stage]; ++layer) {
      const auto& one = kind == PassKind::forward ? forward : backward;
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

  /// A pass without jitter; energies count what lies between launches as waiting.
  [[nodiscard]] ClockOption truth(std::uint32_t virtual_stage, PassKind kind,
                                  const ClockPair& clock) const {
    ClockOption option{.core_mhz = effective_core_mhz(model.truth, clock)};
    const double idle =
        idle_power_w(model.truth, model.truth.mem_states[index(clock.mem)], option.core_mhz);
    for (const std::uint32_t kernel : launches(virtual_stage, kind)) {
      const OperatingPoint at = model.point(kernel, clock);
      option.time_s += at.time_s + gap_s;
      option.energy_j += at.energy_j + idle * gap_s;
    }
    return option;
  }

  /// The true profile at clocks, highest first.
  [[nodiscard]] PipelineProfile profile(const std::vector<ClockPair>& clocks) const {
    PipelineProfile profile{"true", {}};
    for (std::uint32_t v = 0; v < layers.size(); ++v) {
      for (const PassKind kind : {PassKind::forward, PassKind::backward}) {
        PassType& type = profile.passes.emplace_back(PassType{v, kind, {}});
        for (const ClockPair& clock : clocks) type.options.push_back(truth(v, kind, clock));
      }
    }
    return profile;
  }

  /// One capture of each stage. Ranks send moments, without durations; `named` groups list their
  /// ranks.
  [[nodiscard]] std::vector<SimulatedRun> run(const ClockPair& clock, bool named = true,
                                              std::uint64_t seed = 7) const {
    std::mt19937_64 random(seed);
    std::vector<SimulatedRun> ranks;
    for (std::uint32_t s = 0; s < shape.stages; ++s) ranks.push_back(empty_rank(s, named));
    double now_s = 0.5;
    for (std::uint32_t step = 0; step < steps; ++step)
      now_s = add_step(ranks, clock, step, now_s, random);
    for (SimulatedRun& rank : ranks) log_power(rank, clock, now_s, random);
    return ranks;
  }

 private:
  [[nodiscard]] SimulatedRun empty_rank(std::uint32_t stage, bool named) const {
    SimulatedRun made;
    Capture& capture = made.capture;
    capture.name = "rank" + std::to_string(stage);
    capture.rank = stage;
    capture.world_size = shape.stages;
    capture.devices = {{0, "NVIDIA A100-SXM4-80GB"}};
    capture.streams = {{0, 7}, {0, 20}};
    capture.kernels = model.kernels;
    Kernel send;
    send.name = send.label = "ncclDevKernel_SendRecv";
    send.kind = KernelClass::communication;
    capture.kernels.push_back(send);
    CaptureGroup group{"7", "PIPELINE_MODEL_PARALLEL_GROUP", shape.stages, {}};
    for (std::uint32_t s = 0; named && s < shape.stages; ++s) group.ranks.push_back(s);
    CaptureGroup ends{"9", "", 2U, {}};
    if (named) ends.ranks = {0, shape.stages - 1};
    capture.groups = {
        group, {"8", "DATA_PARALLEL_GROUP", 2U, {stage, stage + shape.stages}}, std::move(ends)};
    capture.step_source = StepSource::annotation;
    return made;
  }

  // Passes as long as their jittered launches.
  double add_step(std::vector<SimulatedRun>& ranks, const ClockPair& clock, std::uint32_t step,
                  double begin_s, std::mt19937_64& random) const {
    std::normal_distribution<double> gaussian;
    const PipelineSchedule schedule = make_schedule(shape);
    std::vector<std::vector<double>> times_s(schedule.passes.size());
    std::vector<double> start_s(schedule.passes.size(), begin_s), end_s(schedule.passes.size());
    std::vector<std::vector<Dependency>> out(schedule.passes.size());
    for (const Dependency& one : schedule.dependencies) out[index(one.from)].push_back(one);
    double last_s = begin_s;
    for (const PassId id : topological_order(schedule)) {
      const PipelinePass& pass = schedule.passes[index(id)];
      const std::uint32_t v = pass.chunk * shape.stages + pass.stage;
      end_s[index(id)] = start_s[index(id)];
      for (const std::uint32_t kernel : launches(v, pass.kind)) {
        times_s[index(id)].push_back(model.point(kernel, clock).time_s *
                                     std::exp(jitter * gaussian(random)));
        end_s[index(id)] += times_s[index(id)].back() + gap_s;
      }
      for (const Dependency& one : out[index(id)])
        start_s[index(one.to)] = std::max(start_s[index(one.to)], end_s[index(id)] + one.lag_s);
      last_s = std::max(last_s, end_s[index(id)]);
    }
    for (const std::vector<PassId>& row : schedule.rows()) {
      for (const PassId id : row) {
        const PipelinePass& pass = schedule.passes[index(id)];
        add_pass(ranks[pass.stage].capture, step, pass, start_s[index(id)], times_s[index(id)]);
      }
    }
    if (reduction_s > 0.0) last_s = end_step(ranks, clock, step, schedule, end_s);
    for (SimulatedRun& rank : ranks)
      rank.capture.steps.push_back({"step " + std::to_string(step), ns(begin_s), ns(last_s)});
    return last_s + 0.05;
  }

  static std::int64_t ns(double s) { return std::llround(1e9 * s); }

  void add_pass(Capture& capture, std::uint32_t step, const PipelinePass& pass, double at_s,
                const std::vector<double>& times_s) const {
    const bool forward = pass.kind == PassKind::forward;
    const std::uint32_t stages = shape.stages, last = stages * shape.chunks - 1;
    const std::uint32_t v = pass.chunk * stages + pass.stage;
    const std::uint32_t before = (pass.stage + stages - 1) % stages,
                        next = (pass.stage + 1) % stages;
    if (forward ? v > 0 : v < last)
      add_message(capture, step, pass, at_s, forward ? before : next, pass.stage);
    const std::vector<std::uint32_t> kernels = launches(v, pass.kind);
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      add_launch(capture, step, pass, kernels[i], at_s, times_s[i]);
      at_s += times_s[i] + gap_s;
    }
    if (forward ? v < last : v > 0)
      add_message(capture, step, pass, at_s, pass.stage, forward ? next : before);
  }

  static CapturedLaunch& add_launch(Capture& capture, std::uint32_t step, const PipelinePass& pass,
                                    std::uint32_t kernel, double at_s, double time_s) {
    CapturedLaunch& launch = capture.launches.emplace_back();
    launch.kernel = KernelId{kernel};
    launch.start_ns = ns(at_s);
    launch.duration_ns = ns(time_s);
    launch.step = step;
    launch.pass = pass.kind == PassKind::forward ? Pass::forward : Pass::backward;
    return launch;
  }

  void add_message(Capture& capture, std::uint32_t step, const PipelinePass& pass, double at_s,
                   std::uint32_t from, std::uint32_t to) const {
    const auto kernel = static_cast<std::uint32_t>(capture.kernels.size() - 1);
    add_launch(capture, step, pass, kernel, at_s, 0.0).collective =
        static_cast<std::uint32_t>(capture.collectives.size());
    capture.collectives.push_back(
        {.kind = CollectiveKind::send_recv, .group = 0U, .source_rank = from, .target_rank = to});
  }

  // The norm's collective of each rank begins when it is ready and ends when all are.
  double end_step(std::vector<SimulatedRun>& ranks, const ClockPair& clock, std::uint32_t step,
                  const PipelineSchedule& schedule, const std::vector<double>& end_s) const {
    std::vector<double> ready_s(ranks.size());
    const PipelinePass last{0, 0, 0, PassKind::backward};
    const auto run = [&](std::size_t rank, std::size_t i) {
      const double time_s = model.point(optimizer[i], clock).time_s;
      add_launch(ranks[rank].capture, step, last, optimizer[i], ready_s[rank], time_s).pass =
          Pass::optimizer;
      ready_s[rank] += time_s + gap_s;
    };
    for (std::size_t i = 0; i < end_s.size(); ++i) {
      double& at_s = ready_s[schedule.passes[i].stage];
      at_s = std::max(at_s, end_s[i]);
    }
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      add_reduction(ranks[rank].capture, step, last, ready_s[rank], reduction_s, 1);
      ready_s[rank] += reduction_s;
    }
    if (embedding_s > 0.0) {  // begins when its rank is ready, ends when both have been and it ran
      const double both_s = std::max(ready_s.front(), ready_s.back()) + embedding_s;
      for (const std::size_t rank : {std::size_t{0}, ranks.size() - 1}) {
        add_reduction(ranks[rank].capture, step, last, ready_s[rank], both_s - ready_s[rank], 2);
        ready_s[rank] = both_s;
      }
    }
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) run(rank, 0);
    const double all_s = *std::ranges::max_element(ready_s);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      add_reduction(ranks[rank].capture, step, last, ready_s[rank], all_s - ready_s[rank] + 1e-5,
                    0);
      ready_s[rank] = all_s + 1e-5;
      for (std::size_t i = 1; i < optimizer.size(); ++i) run(rank, i);
    }
    return *std::ranges::max_element(ready_s);
  }

  static void add_reduction(Capture& capture, std::uint32_t step, const PipelinePass& pass,
                            double at_s, double time_s, std::uint32_t group) {
    const auto kernel = static_cast<std::uint32_t>(capture.kernels.size() - 1);
    CapturedLaunch& launch = add_launch(capture, step, pass, kernel, at_s, time_s);
    launch.stream = 1;
    launch.pass = Pass::unknown;
    launch.collective = static_cast<std::uint32_t>(capture.collectives.size());
    capture.collectives.push_back({.kind = CollectiveKind::all_reduce, .group = group});
  }

  void log_power(SimulatedRun& rank, const ClockPair& clock, double end_s,
                 std::mt19937_64& random) const {
    std::vector<double> at_s{0.0}, power_w{idle_w};
    for (const CapturedLaunch& launch : rank.capture.launches) {
      if (launch.duration_ns == 0 || launch.collective) continue;
      const OperatingPoint at = model.point(launch.kernel.value, clock);
      at_s.push_back(s_per_ns * static_cast<double>(launch.start_ns));
      power_w.push_back(at.energy_j / at.time_s);
      at_s.push_back(s_per_ns * static_cast<double>(launch.end_ns()));
      power_w.push_back(idle_w);
    }
    power_w.back() = 0.0;
    KnownModel::read_sensor(StepCurve(at_s, power_w), end_s, {}, random, rank);
  }
};

}  // namespace rubato
