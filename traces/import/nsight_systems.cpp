// SQLite exports of Nsight Systems.

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/text.hpp"
#include "traces/import/kernel_names.hpp"
#include "traces/import/nsight_calls.hpp"
#include "traces/import/nsight_tables.hpp"
#include "traces/import/operator_work.hpp"
#include "traces/serving_steps.hpp"

namespace rubato {

namespace {

using nsight::NvtxRange, nsight::Tables, nsight::Work;

// "aten::mm, seq = 12, sizes = [[8, 4], [4, 2]]", as emit_nvtx writes it; dtypes are not said.
std::optional<OperatorCall> call_of_label(std::string_view label) {
  const std::size_t sizes = label.find("sizes = [");
  if (sizes == std::string_view::npos) return std::nullopt;
  OperatorCall call{std::string(label.substr(0, label.find(','))), {}, {}};
  int depth = 0;
  for (std::size_t i = sizes + 8; i < label.size(); ++i) {
    const char c = label[i];
    if (c == '[' && ++depth == 2) call.dims.emplace_back();
    if (c == ']' && --depth == 0) break;
    if (depth != 2 || c < '0' || c > '9') continue;
    std::uint64_t size = 0;
    const auto [end, error] = std::from_chars(label.data() + i, label.data() + label.size(), size);
    if (error != std::errc()) return std::nullopt;
    call.dims.back().push_back(size);
    i = static_cast<std::size_t>(end - label.data()) - 1;
  }
  call.dtypes.assign(call.dims.size(), Dtype::unknown);
  return call;
}

// "iteration 12", "step_3", "ProfilerStep#7"
bool names_a_step(std::string_view label) {
  std::string text(label.substr(0, 64));
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const std::string_view word : {"profilerstep", "iteration", "iter", "step"}) {
    if (!text.starts_with(word)) continue;
    const std::string_view rest = std::string_view(text).substr(word.size());
    const std::size_t digit = rest.find_first_of("0123456789");
    return digit <= 2 && rest.find_first_not_of("0123456789", digit) == std::string_view::npos;
  }
  return false;
}

// Puts device work beside what the host did when it was launched.
class NsightLinker {
 public:
  NsightLinker(Tables tables, CaptureBuilder& builder)
      : tables_(std::move(tables)), builder_(builder) {}

  void run() {
    builder_.capture().provenance.generator = "Nsight Systems";
    builder_.capture().epoch_ns = tables_.epoch_ns;
    find_steps();
    std::vector<Around> around = surroundings();
    const std::vector<std::optional<Pass>> labelled = labelled_passes();
    const bool any_pass =
        std::ranges::any_of(labelled, [](const auto& pass) { return pass.has_value(); }) ||
        std::ranges::any_of(around, &Around::autograd);
    const auto calls = nsight::keep_calls(tables_, builder_);
    const auto collectives = nsight::keep_collectives(tables_, builder_);
    for (std::size_t i = 0; i < tables_.work.size(); ++i) {
      Work& work = tables_.work[i];
      const Pass by_thread = around[i].autograd ? Pass::backward : Pass::forward;
      const Pass pass =
          labelled[i].value_or(any_pass && work.launch_ns ? by_thread : Pass::unknown);
      work.kernel.pass = pass;
      if (around[i].call && work.kernel.work_source == WorkSource::unknown) {
        const OperatorWork known = operator_work(*around[i].call);
        const bool fits = (!known.gemm || work.kernel.kind == KernelClass::gemm) &&
                          (!known.attention || work.kernel.kind == KernelClass::attention);
        if (fits && known.source == WorkSource::derived) {
          work.kernel.flops = known.flops;
          work.kernel.gemm = known.gemm;
          work.kernel.attention = known.attention;
          work.kernel.work_source = known.source;
        }
      }
      CapturedLaunch launch{.kernel = {},
                            .stream = builder_.stream(work.device, work.stream),
                            .start_ns = work.start_ns,
                            .duration_ns = duration_ns(work),
                            .launch_ns = work.launch_ns,
                            .step = step_of(work),
                            .pass = pass,
                            .call = calls[i],
                            .collective = collectives[i]};
      const std::string short_name = short_kernel_name(work.kernel.label);
      launch.kernel = builder_.kernel(std::move(work.kernel), short_name);
      builder_.timed_launch(launch);
    }
    builder_.name_devices(tables_.gpus);
  }

 private:
  // The innermost range with shapes, and whether autograd runs, by launch.
  struct Around {
    std::optional<OperatorCall> call;
    bool autograd = false;
  };
  std::vector<Around> surroundings() const {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < tables_.work.size(); ++i) {
      if (tables_.work[i].launch_ns && tables_.work[i].thread) order.push_back(i);
    }
    std::ranges::sort(order, {}, [&](std::size_t i) {
      return std::pair(*tables_.work[i].thread, *tables_.work[i].launch_ns);
    });
    std::vector<Around> out(tables_.work.size());
    // Ranges of a thread nest: the innermost with shapes is the last begun that has not ended.
    std::vector<std::pair<const NvtxRange*, OperatorCall>> open;
    constexpr std::int64_t never = std::numeric_limits<std::int64_t>::min();
    std::int64_t autograd_until_ns = never;
    std::optional<std::int64_t> thread;
    auto next = tables_.ranges.begin();
    for (const std::size_t i : order) {
      const std::int64_t ts_ns = *tables_.work[i].launch_ns;
      if (thread != tables_.work[i].thread) {
        thread = tables_.work[i].thread;
        open.clear();
        autograd_until_ns = never;
        next = std::find_if(next, tables_.ranges.end(),
                            [&](const NvtxRange& range) { return range.thread >= *thread; });
      }
      for (; next != tables_.ranges.end() && next->thread == *thread && next->start_ns <= ts_ns;
           ++next) {
        if (next->text.starts_with("autograd::engine"))
          autograd_until_ns = std::max(autograd_until_ns, next->end_ns);
        if (auto call = call_of_label(next->text)) open.emplace_back(&*next, std::move(*call));
      }
      while (!open.empty() && open.back().first->end_ns < ts_ns) open.pop_back();
      out[i].autograd = autograd_until_ns >= ts_ns;
      if (!open.empty()) out[i].call = open.back().second;
    }
    return out;
  }

  std::vector<std::optional<Pass>> labelled_passes() const {
    std::vector<PassLabel> labels;
    for (const NvtxRange& range : tables_.ranges) {
      if (range.text.find("op_id = ") != std::string::npos ||
          range.text.find("seq = ") != std::string::npos)
        continue;  // an operator, not a label of the user
      if (const auto pass = pass_of_label(range.text))
        labels.push_back({range.start_ns, range.end_ns, *pass});
    }
    std::vector<LaunchCall> calls;
    for (std::size_t i = 0; i < tables_.work.size(); ++i) {
      if (tables_.work[i].launch_ns) calls.push_back({*tables_.work[i].launch_ns, i});
    }
    return passes_by_label(std::move(labels), std::move(calls), tables_.work.size());
  }

  // Times whose difference no number holds are more than a day apart.
  static std::int64_t duration_ns(const Work& work) {
    std::int64_t duration_ns = 0;
    const bool absurd = __builtin_sub_overflow(work.end_ns, work.start_ns, &duration_ns);
    return absurd ? longest_launch_ns + 1 : duration_ns;
  }

  // Of ranges with one name the first counts, but of a server's steps.
  void find_steps() {
    std::vector<StepMark> marks;
    std::set<std::string_view> known;
    for (const NvtxRange& range : tables_.ranges) {
      const bool serves = serving_step_of(range.text).has_value();
      if (serves || (names_a_step(range.text) && known.insert(range.text).second))
        marks.push_back({serves ? nsight::process_of(range.thread) : of_all, range.start_ns,
                         range.end_ns, range.text});
    }
    steps_ = add_steps(std::move(marks), builder_.capture());
  }

  [[nodiscard]] std::optional<std::uint32_t> step_of(const Work& work) const {
    auto own = steps_.find(of_all);
    if (own == steps_.end() && work.thread) own = steps_.find(nsight::process_of(*work.thread));
    if (own == steps_.end() || !work.launch_ns) return std::nullopt;
    return own->second.at(*work.launch_ns);
  }

  static constexpr std::int64_t of_all = -1;  ///< no process
  Tables tables_;
  CaptureBuilder& builder_;
  std::map<std::int64_t, StepFinder> steps_;  ///< by process
};

}  // namespace

Capture import_nsight_systems(const std::filesystem::path& path, const ImportOptions& options) {
  CaptureBuilder builder(path.filename().string());
  try {
    NsightLinker(nsight::read_tables(path, options, builder), builder).run();
  } catch (const UsageError& error) {
    // The file's tables are not those of any version known.
    throw DataError(fmt::format("{}: {}", printable(path.string()), error.what()),
                    {.in = {}, .hint = "export again with a current 'nsys export --type sqlite'"});
  }
  return std::move(builder).finish();
}

}  // namespace rubato
