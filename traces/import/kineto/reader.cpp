// PyTorch profiler traces: Chrome trace events written by Kineto.

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>

#include "common/algorithms/sort_by.hpp"
#include "traces/import/kernel_names.hpp"
#include "traces/import/kineto/calls.hpp"
#include "traces/import/kineto/events.hpp"
#include "traces/serving_steps.hpp"

namespace rubato {

namespace {

using kineto::CallTable, kineto::DeviceWork, kineto::Events, kineto::HostCall, kineto::Message,
    kineto::Span;

// Puts device work beside what the host did when it was launched.
class KinetoLinker {
 public:
  KinetoLinker(Events& events, CaptureBuilder& builder)
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
    const std::vector<const Span*> operators = operators_of_kernels(context);
    const std::vector<Share> calls = calls_of_kernels(operators);
    give_classes(operators, calls);
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
      const HostCall* call = call_of(i);
      launch.step = step_of(work, call);
      if (call != nullptr) {
        launch.launch_ns = call->start_ns;
        const Pass by_thread = context[i].autograd    ? Pass::backward
                               : context[i].optimizer ? Pass::optimizer
                                                      : Pass::forward;
        launch.pass = labelled[i].value_or(by_thread);
      }
      launch.kernel = kernel_id(work, launch.pass, calls[i]);
      builder_.timed_launch(launch);
    }
    if (events_.devices.empty() && events_.hip) {
      builder_.name_devices(
          std::array{NamedDevice{.id = {}, .name = "AMD GPU"}});  // whose kernels are AMD's
    } else {
      builder_.name_devices(events_.devices);
    }
  }

 private:
  // The call that launched some work; null if the file does not say.
  [[nodiscard]] const HostCall* call_of(std::size_t work) const {
    return launch_call_[work] ? &events_.host_calls[*launch_call_[work]] : nullptr;
  }

  struct HostContext {
    const Span* innermost = nullptr;  ///< operator around the launch
    bool autograd = false;
    bool optimizer = false;
  };

  // What encloses each launch call on its thread. Spans of a thread nest, so the innermost one is
  // the last that has begun and not ended.
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
    std::ranges::sort(asked, {}, [](const Asked& a) { return std::pair(a.thread, a.ts_ns); });
    const std::vector<const Span*> spans = spans_by_start();
    std::vector<HostContext> out(events_.work.size());
    std::vector<const Span*> open;  // operators
    constexpr std::int64_t never = std::numeric_limits<std::int64_t>::min();
    std::int64_t autograd_until_ns = never, optimizer_until_ns = never;
    std::uint32_t thread = 0;
    auto next = spans.begin();
    for (const Asked& a : asked) {
      if (a.thread != thread) {
        thread = a.thread;
        open.clear();
        autograd_until_ns = optimizer_until_ns = never;
        next = std::find_if(next, spans.end(), [&](const Span* s) { return s->thread >= thread; });
      }
      for (; next != spans.end() && (*next)->thread == thread && (*next)->start_ns <= a.ts_ns;
           ++next) {
        const Span& span = **next;
        const std::string& name = events_.names[span.name];
        if (name.starts_with("autograd::engine::evaluate_function"))
          autograd_until_ns = std::max(autograd_until_ns, span.end_ns);
        if (name.starts_with("Optimizer.step"))
          optimizer_until_ns = std::max(optimizer_until_ns, span.end_ns);
        if (is_operator(span)) open.push_back(&span);
      }
      while (!open.empty() && open.back()->end_ns < a.ts_ns) open.pop_back();
      out[a.work] = {.innermost = open.empty() ? nullptr : open.back(),
                     .autograd = autograd_until_ns >= a.ts_ns,
                     .optimizer = optimizer_until_ns >= a.ts_ns};
    }
    return out;
  }

  [[nodiscard]] bool is_operator(const Span& span) const {
    return &span >= events_.operators.data() &&
           &span < events_.operators.data() + events_.operators.size();
  }

  // Operators and annotations, by thread; the outer one of two first.
  [[nodiscard]] std::vector<const Span*> spans_by_start() const {
    std::vector<const Span*> spans;
    spans.reserve(events_.operators.size() + events_.annotations.size());
    for (const auto* list : {&events_.operators, &events_.annotations})
      for (const Span& span : *list) spans.push_back(&span);
    std::ranges::stable_sort(
        spans, {}, [](const Span* s) { return std::tuple(s->thread, s->start_ns, -s->end_ns); });
    return spans;
  }

  void find_steps() {
    std::vector<StepMark> marks;
    for (const Span& span : events_.annotations) {
      const std::string& name = events_.names[span.name];
      if (name.starts_with("ProfilerStep") || serving_step_of(name))
        marks.push_back({events_.threads[span.thread].process, span.start_ns, span.end_ns, name});
    }
    const auto serves = [](const StepMark& mark) { return serving_step_of(mark.name).has_value(); };
    by_device_ = !events_.device_steps.empty() && std::ranges::none_of(marks, serves);
    if (by_device_) marks = steps_on_device();
    steps_ = add_steps(std::move(marks), builder_.capture());
  }

  // Each stream has a span of a step that it works for: one mark for those that overlap.
  [[nodiscard]] std::vector<StepMark> steps_on_device() {
    sort_by(events_.device_steps, &Span::start_ns);
    std::vector<StepMark> marks;
    for (const Span& span : events_.device_steps) {
      const std::string& name = events_.names[span.name];
      if (marks.empty() || marks.back().name != name || marks.back().end_ns <= span.start_ns)
        marks.push_back({0, span.start_ns, span.end_ns, name});
      marks.back().end_ns = std::max(marks.back().end_ns, span.end_ns);
    }
    return marks;
  }

  [[nodiscard]] std::optional<std::uint32_t> step_of(const DeviceWork& work,
                                                     const HostCall* call) const {
    if (call == nullptr && !by_device_) return std::nullopt;
    const auto own = steps_.find(by_device_ ? 0 : events_.threads[call->thread].process);
    if (own == steps_.end()) return std::nullopt;
    return own->second.at(by_device_ ? work.start_ns : call->start_ns);
  }

  // Labels count for all threads: backward work is launched by another thread than the label's.
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

  // Compiled kernels may be named by a hash, others by a namespace that says nothing: their
  // operators tell. Of a product's kernels the one with its work is one.
  void give_classes(const std::vector<const Span*>& operators, const std::vector<Share>& calls) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, KernelClass> classes;  // by kernel, operator
    for (std::size_t i = 0; i < events_.work.size(); ++i) {
      DeviceWork& work = events_.work[i];
      if (!work.is_kernel || work.message != 0 || operators[i] == nullptr) continue;
      const auto [known, fresh] = classes.try_emplace({work.name, operators[i]->name});
      if (fresh)
        known->second =
            kernel_class_of(events_.names[work.name], events_.names[operators[i]->name]);
      const bool product = known->second == KernelClass::gemm ||
                           known->second == KernelClass::gemm_batched ||
                           known->second == KernelClass::attention;
      const bool helps = product && operators[i]->call != 0 && calls[i].call == nullptr;
      if (!helps) work.kind = known->second;
    }
  }

  // The work of an operator's call goes to one of its kernels: to the kernel that is named like a
  // product or attention, else to the longest. Two products of one operator have a kernel each.
  std::vector<Share> calls_of_kernels(const std::vector<const Span*>& operator_of) {
    const auto is_product = [&](std::size_t i) {
      return events_.work[i].kind == KernelClass::gemm ||
             events_.work[i].kind == KernelClass::attention;
    };
    std::vector<std::size_t> with_call;
    for (std::size_t i = 0; i < events_.work.size(); ++i) {
      if (operator_of[i] != nullptr && operator_of[i]->call != 0 && events_.work[i].is_kernel)
        with_call.push_back(i);
    }
    std::ranges::stable_sort(with_call, [&](std::size_t a, std::size_t b) {
      return std::tuple(operator_of[a], !is_product(a), -events_.work[a].duration_ns) <
             std::tuple(operator_of[b], !is_product(b), -events_.work[b].duration_ns);
    });
    std::vector<Share> shares(events_.work.size());
    for (std::size_t first = 0, next = 0; first < with_call.size(); first = next) {
      const Span* span = operator_of[with_call[first]];
      for (next = first; next < with_call.size() && operator_of[with_call[next]] == span;) ++next;
      const OperatorCall& call = events_.calls[span->call];
      const bool two =
          is_two_products(call) && next - first > 1 && is_product(with_call[first + 1]);
      shares[with_call[first]] = {&call, two ? 0.5 : 1.0};
      if (two) shares[with_call[first + 1]] = {&call, 0.5};
    }
    return shares;
  }

  std::vector<const Span*> operators_of_kernels(const std::vector<HostContext>& contexts) {
    struct ById {
      std::uint32_t process;
      std::int64_t id;
      const Span* span;
    };
    std::vector<ById> by_id;
    for (const Span& span : events_.operators) {
      if (span.external_id >= 0)
        by_id.push_back({events_.threads[span.thread].process, span.external_id, &span});
    }
    const auto key_of = [](const ById& entry) { return std::pair(entry.process, entry.id); };
    std::ranges::stable_sort(by_id, {}, key_of);
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
      const std::pair key{process, events_.work[i].external_id};
      const auto found = std::ranges::lower_bound(by_id, key, {}, key_of);
      if (!ids_are_correlations && found != by_id.end() && key_of(*found) == key) {
        out[i] = found->span;
      } else {
        out[i] = contexts[i].innermost;
      }
    }
    return out;
  }

  // Most launches are of a kernel that has been seen with the same grid and call: looked up first.
  KernelId kernel_id(const DeviceWork& work, Pass pass, const Share& share) {
    struct Key {
      std::uint32_t name, message;
      std::array<std::uint32_t, 3> grid, block;
      std::int64_t copied_bytes;
      const OperatorCall* call;
      double of_work;
      std::int64_t pass;
    };
    static_assert(std::is_trivially_copyable_v<Key> && sizeof(Key) == 64);  // no padding
    const Key key{
        work.name,         work.message, work.shape.grid, work.shape.block,
        work.copied_bytes, share.call,   share.of_work,   static_cast<std::int64_t>(pass)};
    key_.assign(reinterpret_cast<const char*>(&key), sizeof key);
    if (const auto known = kernels_.find(key_); known != kernels_.end()) return known->second;
    const KernelId id =
        builder_.kernel(kernel_of(work, pass, share), short_kernel_name(events_.names[work.name]));
    kernels_.emplace(key_, id);
    return id;
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
            Collective{message.collective.kind, static_cast<double>(bytes), *message.group.size, 1};
        kernel.flops = 0.0;
        kernel.dram_bytes = 2.0 * static_cast<double>(bytes);
        kernel.work_source = WorkSource::derived;
      }
    } else if (share.call != nullptr) {
      give_work(operator_work(*share.call), kernel, share.of_work);
    }
    return kernel;
  }

  Events& events_;
  CaptureBuilder& builder_;
  CallTable table_;
  std::vector<std::optional<std::uint32_t>> launch_call_;  ///< by work
  std::map<std::int64_t, StepFinder> steps_;               ///< by process
  bool by_device_ = false;                                 ///< steps are marked on the GPU alone
  std::unordered_map<std::string, KernelId> kernels_;      ///< by what kernel_of() is made of
  std::string key_;
};

}  // namespace

Capture import_kineto(const std::filesystem::path& path, const ImportOptions& options) {
  CaptureBuilder builder(path.filename().string());
  Events events = kineto::read_events(path, options, builder);
  KinetoLinker(events, builder).run();
  return std::move(builder).finish();
}

}  // namespace rubato
