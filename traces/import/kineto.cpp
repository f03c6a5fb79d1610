// PyTorch profiler traces: Chrome trace events written by Kineto.

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "traces/import/kineto_calls.hpp"
#include "traces/import/kineto_events.hpp"

namespace rubato {

namespace {

using kineto::CallTable, kineto::DeviceWork, kineto::Events, kineto::HostCall, kineto::Message,
    kineto::Span;

// Puts device work beside what the host did when it was launched.
class KinetoLinker {
 public:
  KinetoLinker(const Events& events, CaptureBuilder& builder)
      : events_(events), builder_(builder), table_(events) {
    for (const DeviceWork& work : events.work) launch_call_.push_back(table_.call_of(work));
  }

  void run() {
    builder_.capture().provenance.generator = "PyTorch profiler (Kineto)";
    builder_.capture().epoch_ns = events_.epoch_ns;
    builder_.capture().rank = events_.rank;
    builder_.capture().world_size = events_.world_size;
    find_steps();
    const std::vector<HostContext> context = contexts();
    const std::vector<std::optional<Pass>> labelled = labelled_passes();
    const std::vector<Share> calls = calls_of_kernels(operators_of_kernels(context));
    for (const DeviceWork& work : events_.work) {
      const std::uint32_t stream = builder_.stream(work.device, work.stream);
      if (work.priority) builder_.capture().streams[stream].priority = work.priority;
    }
    const auto kept_calls = kineto::keep_calls(events_, table_, launch_call_, builder_);
    const auto collectives = kineto::keep_collectives(events_, launch_call_, builder_);
    for (std::size_t i = 0; i < events_.work.size(); ++i) {
      const DeviceWork& work = events_.work[i];
      CapturedLaunch launch{.kernel = {},
                            .stream = builder_.stream(work.device, work.stream),
                            .start_ns = work.start_ns,
                            .duration_ns = work.duration_ns,
                            .launch_ns = {},
                            .step = {},
                            .pass = Pass::unknown,
                            .call = kept_calls[i],
                            .collective = collectives[i]};
      if (const HostCall* call = call_of(i)) {
        launch.launch_ns = call->start_ns;
        launch.step = step_at(call->start_ns);
        const Pass by_thread = context[i].autograd    ? Pass::backward
                               : context[i].optimizer ? Pass::optimizer
                                                      : Pass::forward;
        launch.pass = labelled[i].value_or(by_thread);
      }
      launch.kernel = builder_.kernel(kernel_of(work, launch.pass, calls[i]),
                                      short_kernel_name(events_.names[work.name]));
      builder_.launch(launch);
    }
    for (const auto& [id, name] : events_.device_names) {
      const auto& devices = builder_.capture().devices;
      if (std::ranges::find(devices, id, &CaptureDevice::id) != devices.end())
        (void)builder_.device(id, name);
    }
  }

 private:
  // Of the launch of some work; null if the file does not say.
  [[nodiscard]] const HostCall* call_of(std::size_t work) const {
    return launch_call_[work] ? &events_.host_calls[*launch_call_[work]] : nullptr;
  }

  struct HostContext {
    const Span* innermost = nullptr;  ///< operator around the launch
    bool autograd = false;
    bool optimizer = false;
  };

  // What encloses each launch on its thread: spans of a thread nest.
  std::vector<HostContext> contexts() {
    struct Asked {
      std::int64_t ts_ns;
      std::uint32_t thread;
      std::size_t work;
    };
    std::vector<Asked> asked;
    for (std::size_t i = 0; i < events_.work.size(); ++i) {
      if (const HostCall* call = call_of(i)) asked.push_back({call->start_ns, call->thread, i});
    }
    std::ranges::sort(asked, [](const Asked& a, const Asked& b) {
      return std::pair(a.thread, a.ts_ns) < std::pair(b.thread, b.ts_ns);
    });
    std::vector<const Span*> spans;
    for (const auto* list : {&events_.operators, &events_.annotations})
      for (const Span& span : *list) spans.push_back(&span);
    std::ranges::stable_sort(spans, [](const Span* a, const Span* b) {
      return std::tuple(a->thread, a->start_ns, -a->end_ns) <
             std::tuple(b->thread, b->start_ns, -b->end_ns);
    });
    std::vector<HostContext> out(events_.work.size());
    std::vector<const Span*> open;
    auto next = spans.begin();
    for (const Asked& a : asked) {
      for (; next != spans.end() &&
             std::pair((*next)->thread, (*next)->start_ns) <= std::pair(a.thread, a.ts_ns);
           ++next)
        open.push_back(*next);
      std::erase_if(open,
                    [&](const Span* s) { return s->thread != a.thread || s->end_ns < a.ts_ns; });
      HostContext& context = out[a.work];
      for (const Span* span : open) {
        const std::string& name = events_.names[span->name];
        if (name.starts_with("autograd::engine::evaluate_function")) context.autograd = true;
        if (name.starts_with("Optimizer.step")) context.optimizer = true;
        if (span >= events_.operators.data() &&
            span < events_.operators.data() + events_.operators.size())
          context.innermost = span;
      }
    }
    return out;
  }

  void find_steps() {
    std::vector<CapturedStep>& steps = builder_.capture().steps;
    for (const Span& span : events_.annotations) {
      const std::string& name = events_.names[span.name];
      if (name.starts_with("ProfilerStep")) steps.push_back({name, span.start_ns, span.end_ns});
    }
    std::ranges::sort(steps, {}, &CapturedStep::start_ns);
    builder_.capture().step_source =
        steps.empty() ? StepSource::whole_file : StepSource::annotation;
  }

  [[nodiscard]] std::optional<std::uint32_t> step_at(std::int64_t ts_ns) {
    const auto& steps = builder_.capture().steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].start_ns <= ts_ns && ts_ns < steps[i].end_ns)
        return static_cast<std::uint32_t>(i);
    }
    return std::nullopt;
  }

  // Labels count whatever their thread: backward work is launched by another one.
  std::vector<std::optional<Pass>> labelled_passes() {
    std::vector<PassLabel> labels;
    for (const Span& span : events_.annotations) {
      if (const auto pass = pass_of_label(events_.names[span.name]))
        labels.push_back({span.start_ns, span.end_ns, *pass});
    }
    std::vector<LaunchCall> calls;
    for (std::size_t i = 0; i < events_.work.size(); ++i) {
      if (const HostCall* call = call_of(i)) calls.push_back({call->start_ns, i});
    }
    return passes_by_label(std::move(labels), std::move(calls), events_.work.size());
  }

  // A call and the share of its work that a kernel does.
  struct Share {
    const OperatorCall* call = nullptr;
    double of_work = 1.0;
  };

  // The call of an operator belongs to one of its kernels: the product to the kernel that is
  // named like one, else to the longest. Two products of one operator have a kernel each.
  std::vector<Share> calls_of_kernels(const std::vector<const Span*>& operator_of) {
    const auto is_product = [&](std::size_t i) {
      return events_.work[i].kind == KernelClass::gemm ||
             events_.work[i].kind == KernelClass::attention;
    };
    std::unordered_map<const Span*, std::vector<std::size_t>> kernels;
    for (std::size_t i = 0; i < events_.work.size(); ++i) {
      if (operator_of[i] != nullptr && operator_of[i]->call != 0 && events_.work[i].is_kernel)
        kernels[operator_of[i]].push_back(i);
    }
    std::vector<Share> shares(events_.work.size());
    for (auto& [span, of_span] : kernels) {
      std::ranges::stable_sort(of_span, [&](std::size_t a, std::size_t b) {
        return std::pair(is_product(a), events_.work[a].duration_ns) >
               std::pair(is_product(b), events_.work[b].duration_ns);
      });
      const OperatorCall& call = events_.calls[span->call];
      const bool two = is_two_products(call) && of_span.size() > 1 && is_product(of_span[1]);
      shares[of_span[0]] = {&call, two ? 0.5 : 1.0};
      if (two) shares[of_span[1]] = {&call, 0.5};
    }
    return shares;
  }

  std::vector<const Span*> operators_of_kernels(const std::vector<HostContext>& contexts) {
    std::map<std::pair<std::uint32_t, std::int64_t>, const Span*> by_id;
    for (const Span& span : events_.operators) {
      if (span.external_id >= 0)
        by_id.emplace(std::pair{events_.threads[span.thread].process, span.external_id}, &span);
    }
    // In older files the external id of a kernel is its correlation: it may hit any operator.
    std::size_t equal = 0, with_id = 0;
    for (const DeviceWork& work : events_.work) {
      if (work.external_id < 0) continue;
      ++with_id;
      if (work.external_id == work.correlation) ++equal;
    }
    const bool ids_are_correlations = with_id > 0 && equal == with_id;
    std::vector<const Span*> out(events_.work.size(), nullptr);
    for (std::size_t i = 0; i < events_.work.size(); ++i) {
      const HostCall* call = call_of(i);
      const std::uint32_t process = call != nullptr ? events_.threads[call->thread].process
                                                    : table_.process_of(events_.work[i].device);
      const auto found = by_id.find({process, events_.work[i].external_id});
      if (!ids_are_correlations && found != by_id.end()) {
        out[i] = found->second;
      } else {
        out[i] = contexts[i].innermost;
      }
    }
    return out;
  }

  [[nodiscard]] Kernel kernel_of(const DeviceWork& work, Pass pass, const Share& share) {
    Kernel kernel;
    kernel.label = events_.names[work.name];
    kernel.kind = work.kind;
    kernel.pass = pass;
    if (work.shape.grid[0] > 0 && work.shape.block[0] > 0) kernel.launch = work.shape;
    if (work.copied_bytes >= 0) {
      // A copy within the device reads and writes there.
      const bool within = kernel.label.find("DtoD") != std::string::npos;
      kernel.dram_bytes = static_cast<double>(work.copied_bytes) * (within ? 2.0 : 1.0);
      kernel.flops = 0.0;
      kernel.work_source = WorkSource::derived;
    } else if (work.message != 0) {
      const Message& message = events_.messages[work.message];
      const std::uint64_t bytes = std::max(message.collective.in_bytes.value_or(0),
                                           message.collective.out_bytes.value_or(0));
      kernel.dtype = message.dtype;
      if (bytes > 0 && message.group.size.value_or(0) > 1) {
        kernel.collective =
            Collective{message.collective.kind, static_cast<double>(bytes), *message.group.size};
        kernel.flops = 0.0;
        kernel.dram_bytes = 2.0 * static_cast<double>(bytes);
        kernel.work_source = WorkSource::derived;
      }
    } else if (share.call != nullptr) {
      const OperatorWork known = operator_work(*share.call);
      if (known.flops) kernel.flops = *known.flops * share.of_work;
      if (known.dram_bytes) kernel.dram_bytes = *known.dram_bytes * share.of_work;
      kernel.gemm = known.gemm;
      kernel.dtype = known.dtype;
      kernel.work_source = known.source;
    }
    return kernel;
  }

  const Events& events_;
  CaptureBuilder& builder_;
  CallTable table_;
  std::vector<std::optional<std::uint32_t>> launch_call_;  ///< by work
};

}  // namespace

Capture import_kineto(const std::filesystem::path& path, const ImportOptions& options) {
  CaptureBuilder builder(path.filename().string());
  const Events events = kineto::read_events(path, options, builder);
  KinetoLinker(events, builder).run();
  return std::move(builder).finish();
}

}  // namespace rubato
