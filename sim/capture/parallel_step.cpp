#include "sim/capture/parallel_step.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/algorithms/sort_by.hpp"
#include "common/error.hpp"
#include "common/version.hpp"
#include "models/table/gpu_model.hpp"

namespace rubato {

namespace {

constexpr std::uint32_t compute = 0, comm = 1;  // streams
constexpr std::int64_t host_call_ns = 5'000;    // a launch of the host, far ahead of the GPU

// Launches of both streams in the order the host makes them.
class StepWriter {
 public:
  StepWriter(Trace trace, const GpuSpec& spec) : spec_(spec), trace_(std::move(trace)) {
    times_s_.resize(trace_.kernels.size());
    const GpuModel model(spec_, trace_);
    for (std::size_t k = 0; k < times_s_.size(); ++k)
      times_s_[k] = model.evaluate(id_at<KernelId>(k), spec_.default_clock).time_s;
    capture_.devices = {{0, spec_.title}};
    capture_.streams = {{0, 7, {}}, {0, 20, {}}};
    capture_.threads.resize(1);
  }

  [[nodiscard]] const Trace& trace() const noexcept { return trace_; }

  void launch(KernelId kernel) { add(compute, kernel, times_s_[index(kernel)]); }

  // A collective that starts no earlier than what the compute stream has by now is over.
  void communicate(const std::string& name, CollectiveKind kind, double elements,
                   const GptShape& shape) {
    const double bytes = elements * element_bytes(shape.dtype);
    wait(comm, compute);
    const auto [kernel, time_s] = collective(name, kind, bytes, shape);
    add(comm, kernel, time_s);
    times_.comm_s += time_s;
    times_.comm_bytes += bytes;
  }

  // A point of the communication stream that the compute stream can wait for later.
  [[nodiscard]] std::uint32_t mark() { return record(comm); }
  void wait_for_mark(std::uint32_t mark) { wait_for(compute, mark); }
  void wait_for_communication() { wait(compute, comm); }

  ParallelStep finish(std::string name, const std::string& options) && {
    capture_.name = std::move(name);
    capture_.kernels = trace_.kernels;
    capture_.provenance = {fmt::format("rubato {}", program_version()),
                           "generated at modelled times; nothing of it ran", options};
    capture_.step_source = StepSource::annotation;
    const std::int64_t end_ns = std::max(end_ns_[compute], end_ns_[comm]);
    capture_.steps = {{"step", 0, end_ns}};
    sort_by(capture_.launches, &CapturedLaunch::start_ns);
    times_.step_s = static_cast<double>(end_ns) * s_per_ns;
    return {std::move(capture_), times_};
  }

 private:
  std::uint32_t call(CallKind kind, std::uint32_t stream) {
    capture_.calls.push_back(
        {.kind = kind, .thread = 0, .start_ns = host_ns_, .duration_ns = 0, .stream = stream});
    host_ns_ += host_call_ns;
    return static_cast<std::uint32_t>(capture_.calls.size() - 1);
  }

  std::uint32_t record(std::uint32_t stream) {
    const std::uint32_t event = call(CallKind::event_record, stream);
    recorded_end_ns_.emplace_back(event, end_ns_[stream]);
    return event;
  }

  void wait_for(std::uint32_t stream, std::uint32_t event) {
    CapturedCall& waiting = capture_.calls[call(CallKind::stream_wait, stream)];
    waiting.record = event;
    waiting.recorded_stream = stream == compute ? comm : compute;
    const auto known = std::ranges::lower_bound(recorded_end_ns_, event, {},
                                                &std::pair<std::uint32_t, std::int64_t>::first);
    free_ns_[stream] = std::max(free_ns_[stream], known->second);
  }

  void wait(std::uint32_t stream, std::uint32_t other) {
    if (end_ns_[other] > 0) wait_for(stream, record(other));
  }

  void add(std::uint32_t stream, KernelId kernel, double time_s) {
    const std::uint32_t own = call(CallKind::launch, stream);
    CapturedLaunch launch;
    launch.kernel = kernel;
    launch.stream = stream;
    launch.launch_ns = capture_.calls[own].start_ns;
    launch.call = own;
    launch.step = 0;
    launch.pass = trace_.kernels[index(kernel)].pass;
    launch.start_ns = std::max({end_ns_[stream], free_ns_[stream], host_ns_});
    launch.duration_ns = std::llround(time_s / s_per_ns);
    end_ns_[stream] = launch.end_ns();
    if (stream == compute) times_.compute_s += time_s;
    capture_.launches.push_back(launch);
  }

  // Kernels of equal name are one: layers are equal.
  std::pair<KernelId, double> collective(const std::string& name, CollectiveKind kind, double bytes,
                                         const GptShape& shape) {
    const auto known = std::ranges::find(trace_.kernels, name, &Kernel::name);
    const auto at = static_cast<std::size_t>(known - trace_.kernels.begin());
    if (known == trace_.kernels.end()) {
      Kernel kernel;
      kernel.name = name;
      kernel.label = "NCCL";
      kernel.kind = KernelClass::communication;
      kernel.pass = kind == CollectiveKind::all_gather ? Pass::forward : Pass::backward;
      kernel.dtype = shape.dtype;
      kernel.flops = 0.0;
      kernel.dram_bytes = 2.0 * bytes;
      kernel.collective = Collective{kind, bytes, static_cast<std::uint32_t>(shape.data_parallel),
                                     static_cast<std::uint32_t>(shape.tensor_parallel)};
      kernel.work_source = WorkSource::derived;
      Trace alone{
          .name = name, .provenance = {}, .captured = {}, .kernels = {kernel}, .segments = {}};
      times_s_.push_back(GpuModel(spec_, alone).evaluate(KernelId{0}, spec_.default_clock).time_s);
      trace_.kernels.push_back(std::move(kernel));
    }
    return {id_at<KernelId>(at), times_s_[at]};
  }

  const GpuSpec& spec_;
  Trace trace_;
  std::vector<double> times_s_;  // shape [kernels]
  Capture capture_;
  ParallelStepTimes times_;
  std::array<std::int64_t, 2> end_ns_{}, free_ns_{};                     // of streams
  std::vector<std::pair<std::uint32_t, std::int64_t>> recorded_end_ns_;  // by event
  std::int64_t host_ns_ = 0;
};

// Gradients that wait for their bucket, DDP and ZeRO 1 and 2.
class Buckets {
 public:
  Buckets(const ParallelStepInput& input, StepWriter& step) : input_(input), step_(step) {
    std::vector<double> elements;
    for (const KernelId kernel : launches(step.trace().segments)) {
      const double ready = ready_gradients(input.shape, step.trace().kernels[index(kernel)].name);
      if (ready > 0.0) elements.push_back(ready);
    }
    buckets_ = ddp_buckets(elements, element_bytes(input.shape.dtype), input.buckets);
  }

  void ready() {
    if (++tensors_ < buckets_[next_].first + buckets_[next_].count) return;
    const bool reduce = input_.sharding == Sharding::none;
    // Buckets of equal size are one kernel.
    const double elements = buckets_[next_++].elements;
    step_.communicate(
        fmt::format("{}_{:.0f}", reduce ? "d0_all_reduce" : "d0_reduce_scatter", elements),
        reduce ? CollectiveKind::all_reduce : CollectiveKind::reduce_scatter, elements,
        input_.shape);
  }

  void gather_parameters() {
    for (const GradientBucket& bucket : buckets_)
      step_.communicate(fmt::format("d1_all_gather_{:.0f}", bucket.elements),
                        CollectiveKind::all_gather, bucket.elements, input_.shape);
  }

 private:
  const ParallelStepInput& input_;
  StepWriter& step_;
  std::vector<GradientBucket> buckets_;
  std::size_t next_ = 0, tensors_ = 0;
};

bool is_update(const Kernel& kernel) {
  return kernel.kind == KernelClass::optimizer || kernel.label == "grad norm";
}

void replicated_step(const ParallelStepInput& input, StepWriter& step) {
  Buckets buckets(input, step);
  bool updating = false;
  for (const KernelId kernel : launches(step.trace().segments)) {
    const std::string name = step.trace().kernels[index(kernel)].name;
    if (is_update(step.trace().kernels[index(kernel)]) && !std::exchange(updating, true))
      step.wait_for_communication();
    step.launch(kernel);
    if (ready_gradients(input.shape, name) > 0.0) buckets.ready();
  }
  if (input.sharding == Sharding::optimizer) buckets.gather_parameters();
}

// Fully sharded: units are the layers, and the rest (embeddings and the last norm), which stays
// gathered from its first use on, as the root of FSDP does.
class ShardedStep {
 public:
  ShardedStep(const ParallelStepInput& input, StepWriter& step)
      : input_(input), step_(step), layers_(input.shape.layers) {
    for (const Segment& segment : step.trace().segments) {
      double& unit = segment.name == "layer backward" ? layer_ : root_;
      for (const KernelId kernel : segment.launches)
        unit += ready_gradients(input.shape, step.trace().kernels[index(kernel)].name);
    }
  }

  void write() {
    gather("f0_all_gather_root", root_);
    step_.wait_for_mark(step_.mark());
    gather_layer();
    const std::vector<Segment> segments = step_.trace().segments;
    for (const Segment& segment : segments) write_segment(segment);
  }

 private:
  void write_segment(const Segment& segment) {
    const bool forward = segment.name == "layer forward",
               backward = segment.name == "layer backward";
    if (segment.name == "head backward") gather_layer();
    if (segment.name == "optimizer") step_.wait_for_communication();
    for (std::uint32_t r = 0; r < segment.repeat; ++r) {
      if (forward || backward) {
        const std::uint32_t own = gathered_;
        if (r + 1 < layers_) gather_layer();  // the next one, while this one runs
        step_.wait_for_mark(own);
      }
      for (const KernelId kernel : segment.launches) step_.launch(kernel);
      if (backward) scatter("f2_reduce_scatter_layer", layer_);
    }
    if (segment.name == "embedding backward") scatter("f3_reduce_scatter_root", root_);
  }

  void gather(const char* name, double elements) {
    step_.communicate(name, CollectiveKind::all_gather, elements, input_.shape);
  }
  void gather_layer() {
    gather("f1_all_gather_layer", layer_);
    gathered_ = step_.mark();
  }
  void scatter(const char* name, double elements) {
    step_.communicate(name, CollectiveKind::reduce_scatter, elements, input_.shape);
  }

  const ParallelStepInput& input_;
  StepWriter& step_;
  std::uint64_t layers_;
  double layer_ = 0.0, root_ = 0.0;  // elements
  std::uint32_t gathered_ = 0;       // mark of the layer gathered last
};

// Kernels of one rank without data-parallel collectives; of what is sharded it has its part.
Trace own_kernels(const ParallelStepInput& input) {
  GptShape shape = input.shape;
  shape.data_parallel = 1;
  Trace trace = generate_gpt_trace(shape);
  const double ranks = static_cast<double>(input.shape.data_parallel);
  for (Kernel& kernel : trace.kernels) {
    const bool whole_gradients = kernel.kind != KernelClass::memset || kernel.label != "memset" ||
                                 kernel.pass != Pass::optimizer ||
                                 input.sharding != Sharding::parameters;
    if (input.sharding == Sharding::none || (!is_update(kernel) && whole_gradients)) continue;
    kernel.flops = kernel.flops.value_or(0.0) / ranks;
    kernel.dram_bytes = kernel.dram_bytes.value_or(0.0) / ranks;
  }
  return trace;
}

}  // namespace

std::string_view name_of(Sharding value) noexcept {
  switch (value) {
    case Sharding::optimizer: return "zero-1";
    case Sharding::parameters: return "zero-3";
    case Sharding::none: break;
  }
  return "ddp";
}

ParallelStep parallel_step(const ParallelStepInput& input) {
  const GptShape& shape = input.shape;
  constexpr std::uint64_t most = 1'000'000'000;
  if (shape.data_parallel < 2 || shape.data_parallel > most) {
    throw UsageError(fmt::format("dp is {}; communication beside computation needs 2 to {}",
                                 shape.data_parallel, most));
  }
  StepWriter step(own_kernels(input), input.spec);
  if (input.sharding == Sharding::parameters) {
    ShardedStep(input, step).write();
  } else {
    replicated_step(input, step);
  }
  return std::move(step).finish(
      fmt::format("{}-b{}-s{}-tp{}-dp{}-{}", shape.model, shape.batch, shape.seq,
                  shape.tensor_parallel, shape.data_parallel, name_of(input.sharding)),
      fmt::format("gpu={} cluster={} dp={} {} first_bucket={} bucket={} bytes", input.spec.name,
                  cluster_of(input.spec).name, shape.data_parallel, name_of(input.sharding),
                  input.buckets.first_bytes, input.buckets.other_bytes));
}

}  // namespace rubato
