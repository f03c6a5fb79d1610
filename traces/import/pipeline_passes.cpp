// Start and end of every pass of one pipeline stage, as Primus writes them for its pictures of
// schedules (pp_rank_N.json): AMD-AGI/Primus, primus/backends/megatron/core/pipeline_parallel.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/algorithms/sort_by.hpp"
#include "common/byte_source.hpp"
#include "common/error.hpp"
#include "common/json.hpp"
#include "traces/import/builder.hpp"
#include "traces/import/readers.hpp"

namespace rubato {

namespace {

constexpr double ns_per_ms = 1e6;
constexpr double longest_iteration_ms = 86'400e3;

// A pass as the file has it; times count from where the iteration began on this rank.
struct PassTimes {
  bool forward = true;
  std::int64_t start_ns = 0, end_ns = 0;
};

// The number at the end of a file's name, before its first dot.
std::optional<std::uint32_t> rank_in_name(const std::filesystem::path& path) {
  const std::string file = path.filename().string();
  const std::string stem = file.substr(0, file.find('.'));
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto first = std::find_if_not(stem.rbegin(), stem.rend(), digit).base();
  constexpr std::ptrdiff_t most_digits = 7;
  if (first == stem.end() || stem.end() - first > most_digits) return std::nullopt;
  return static_cast<std::uint32_t>(std::stoul(std::string(first, stem.end())));
}

void read_list(const JsonNode& iteration, std::string_view start, std::string_view end,
               std::vector<PassTimes>& passes) {
  const std::vector<double> starts = iteration.at(start).numbers(Range::non_negative);
  const std::vector<double> ends = iteration.at(end).numbers(Range::non_negative);
  if (starts.size() != ends.size()) {
    throw DataError(fmt::format("{}: {} has {} times and {} has {}; expected as many",
                                iteration.where(), start, starts.size(), end, ends.size()));
  }
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (ends[i] < starts[i]) {
      throw DataError(
          fmt::format("{}: {}[{}] is {} ms, before {} ms in {}; a pass ends after its "
                      "start",
                      iteration.where(), end, i, ends[i], starts[i], start));
    }
    if (ends[i] > longest_iteration_ms) {
      throw DataError(fmt::format("{}: {}[{}] is {} ms; expected at most a day", iteration.where(),
                                  end, i, ends[i]));
    }
    passes.push_back({start.starts_with("fwd"), clamped_ns(starts[i] * ns_per_ms),
                      clamped_ns(ends[i] * ns_per_ms)});
  }
}

// Passes of an iteration in the order they ran.
std::vector<PassTimes> passes_of(const JsonNode& iteration) {
  std::vector<PassTimes> passes;
  read_list(iteration, "fwd_start", "fwd_end", passes);
  const std::size_t forwards = passes.size();
  read_list(iteration, "bwd_start", "bwd_end", passes);
  if (passes.size() != 2 * forwards || forwards == 0) {
    throw DataError(fmt::format("{}: {} forward and {} backward passes; expected as many of both",
                                iteration.where(), forwards, passes.size() - forwards));
  }
  sort_by(passes, &PassTimes::start_ns);
  return passes;
}

class PassReader {
 public:
  PassReader(const std::filesystem::path& path, std::optional<std::uint32_t> rank)
      : builder_(path.string()), rank_(rank) {
    Capture& capture = builder_.capture();
    capture.rank = rank;
    capture.step_source = StepSource::annotation;
    stream_ = builder_.stream(0, 0);
    forward_ = add_kernel("forward pass", KernelClass::other, Pass::forward);
    backward_ = add_kernel("backward pass", KernelClass::other, Pass::backward);
    transfer_ = add_kernel("transfer between stages", KernelClass::communication, Pass::unknown);
  }

  /// Iterations follow one another as if nothing lay between them.
  void add(std::string_view name, const std::vector<PassTimes>& passes) {
    const auto warm_up = static_cast<std::uint32_t>(
        std::ranges::find(passes, false, &PassTimes::forward) - passes.begin());
    if (rank_ && !group_) find_stage(warm_up, passes.size() / 2);
    const std::int64_t begin_ns = end_ns_;
    const auto step = static_cast<std::uint32_t>(builder_.capture().steps.size());
    for (const PassTimes& pass : passes) {
      const auto next = rank_ && !is_last_ ? std::optional(*rank_ + 1) : std::nullopt;
      const auto before = rank_ && *rank_ > 0 ? std::optional(*rank_ - 1) : std::nullopt;
      const auto& from = pass.forward ? before : next;
      const auto& to = pass.forward ? next : before;
      if (from) add_transfer(begin_ns + pass.start_ns, step, pass.forward, *from, *rank_);
      add_launch(pass.forward ? forward_ : backward_, begin_ns + pass.start_ns,
                 pass.end_ns - pass.start_ns, step, pass.forward);
      if (to) add_transfer(begin_ns + pass.end_ns, step, pass.forward, *rank_, *to);
      end_ns_ = std::max(end_ns_, begin_ns + pass.end_ns);
    }
    builder_.capture().steps.push_back({std::string(name), begin_ns, end_ns_});
  }

  Capture finish() && {
    if (!rank_)
      builder_.leave_out(
          "file without its rank at the end of its name: what stages send each other");
    return std::move(builder_).finish();
  }

 private:
  KernelId add_kernel(const char* name, KernelClass kind, Pass pass) {
    Kernel kernel;
    kernel.label = name;
    kernel.kind = kind;
    kernel.pass = pass;
    return builder_.kernel(kernel, name);
  }

  // Under 1F1B stage s of P begins with P - s forward passes, or with all there are.
  void find_stage(std::uint32_t warm_up, std::size_t microbatches) {
    is_last_ = warm_up == 1 && microbatches > 1;
    CaptureGroup group{
        .name = "pipeline", .description = "pipeline stages", .size = {}, .ranks = {}};
    if (warm_up < microbatches) {
      group.size = *rank_ + warm_up;
      builder_.capture().world_size = group.size;
    }
    group_ = builder_.group(group);
  }

  // A moment: the file does not say how long a transfer took, only when passes began.
  void add_transfer(std::int64_t at_ns, std::uint32_t step, bool forward, std::uint32_t from,
                    std::uint32_t to) {
    Capture& capture = builder_.capture();
    const auto collective = static_cast<std::uint32_t>(capture.collectives.size());
    capture.collectives.push_back({.kind = CollectiveKind::send_recv,
                                   .group = group_,
                                   .source_rank = from,
                                   .target_rank = to});
    add_launch(transfer_, at_ns, 0, step, forward, collective);
  }

  void add_launch(KernelId kernel, std::int64_t start_ns, std::int64_t duration_ns,
                  std::uint32_t step, bool forward, std::optional<std::uint32_t> collective = {}) {
    CapturedLaunch launch;
    launch.kernel = kernel;
    launch.stream = stream_;
    launch.start_ns = start_ns;
    launch.duration_ns = duration_ns;
    launch.step = step;
    launch.pass = forward ? Pass::forward : Pass::backward;
    launch.collective = collective;
    builder_.launch(launch);
  }

  CaptureBuilder builder_;
  std::optional<std::uint32_t> rank_, group_;
  bool is_last_ = false;
  std::uint32_t stream_ = 0;
  KernelId forward_, backward_, transfer_;
  std::int64_t end_ns_ = 0;
};

}  // namespace

Capture import_pipeline_passes(const std::filesystem::path& path, const ImportOptions& options) {
  const JsonDocument document =
      JsonDocument::parse(read_expanded(path, options.max_expanded_bytes), path.string());
  const JsonNode root = document.root();
  PassReader reader(path, rank_in_name(path));
  for (const std::string& name : root.keys()) reader.add(name, passes_of(root.at(name)));
  return std::move(reader).finish();
}

}  // namespace rubato
