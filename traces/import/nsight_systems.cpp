// SQLite exports of Nsight Systems. Tables and columns exist only if there was something to say.

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/sqlite.hpp"
#include "common/text.hpp"
#include "traces/import/builder.hpp"
#include "traces/import/operator_work.hpp"
#include "traces/import/readers.hpp"

namespace rubato {

namespace {

constexpr std::int64_t most_devices = 1'000'000;
constexpr int push_pop_range = 59, start_end_range = 60;

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

class NsightReader {
 public:
  NsightReader(const std::filesystem::path& path, const ImportOptions& options)
      : path_(path),
        options_(options),
        connection_(path, SqlConnection::Mode::foreign),
        builder_(path.filename().string()) {
    refuse_computed_columns();
    connection_.forbid_writes();
  }

  Capture run() {
    if (!has_table("StringIds") || !has_table("CUPTI_ACTIVITY_KIND_KERNEL")) {
      const bool graphs = has_table("CUDA_GRAPH_TRACE");
      throw DataError(
          fmt::format("{}: there is no table {}", printable(path_.string()),
                      has_table("StringIds") ? "CUPTI_ACTIVITY_KIND_KERNEL" : "StringIds"),
          {.in = {},
           .hint = graphs ? "kernels are inside CUDA graphs; record with --cuda-graph-trace=node"
                          : "expected an export of 'nsys export --type sqlite' of a run with "
                            "--trace=cuda"});
    }
    read_session();
    kernels();
    copies("CUPTI_ACTIVITY_KIND_MEMCPY", "copyKind");
    copies("CUPTI_ACTIVITY_KIND_MEMSET", "");
    if (work_.empty())
      throw DataError(fmt::format("{}: there are no kernels in it", printable(path_.string())));
    ranges();
    link();
    if (has_table("CUDA_GRAPH_TRACE"))
      builder_.capture().left_out.emplace_back(
          "kernels inside CUDA graphs; record with --cuda-graph-trace=node");
    return std::move(builder_).finish();
  }

 private:
  struct Work {
    Kernel kernel;
    std::uint32_t device = 0;
    std::int64_t stream = 0, start_ns = 0, end_ns = 0;
    std::optional<std::int64_t> launch_ns, thread;
  };
  struct Range {
    std::int64_t thread, start_ns, end_ns;
    std::string text;
  };

  // No export has them, and a short schema may ask for hours of work.
  void refuse_computed_columns() const {
    SqlStatement found(connection_,
                       "SELECT m.name FROM sqlite_schema m, pragma_table_xinfo(m.name) c "
                       "WHERE m.type = 'table' AND c.hidden <> 0");
    if (found.next())
      throw DataError(fmt::format("{}: table {} has computed columns", printable(path_.string()),
                                  text(found, 0)),
                      {.in = {}, .hint = "expected an export of 'nsys export --type sqlite'"});
  }

  [[nodiscard]] bool has_table(std::string_view name) const {
    SqlStatement found(connection_,
                       "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?");
    return found.first(name);
  }
  std::int64_t integer(const SqlStatement& row, int column) {
    const SqlValue value = row.value(column);
    if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
    throw DataError(
        fmt::format("{}: column '{}' holds {}; expected a whole number", printable(path_.string()),
                    row.column_name(column),
                    std::holds_alternative<std::monostate>(value) ? "nothing" : "another type"));
  }
  // A time that may be added to another one.
  std::int64_t time(const SqlStatement& row, int column) {
    const std::int64_t time_ns = integer(row, column);
    if (is_time(time_ns)) return time_ns;
    throw DataError(fmt::format("{}: column '{}' holds {}; expected ns, less than 63 years",
                                printable(path_.string()), row.column_name(column), time_ns));
  }
  static bool is_time(std::int64_t time_ns) {
    return time_ns >= -max_time_ns && time_ns <= max_time_ns;
  }
  // Sizes: of grids, of copies.
  std::int64_t size(const SqlStatement& row, int column, std::int64_t most) {
    const std::int64_t value = integer(row, column);
    if (value < 0 || value > most)
      throw DataError(fmt::format("{}: column '{}' holds {}; expected 0 to {}",
                                  printable(path_.string()), row.column_name(column), value, most));
    return value;
  }
  static std::optional<std::int64_t> optional_integer(const SqlStatement& row, int column) {
    const SqlValue value = row.value(column);
    const auto* number = std::get_if<std::int64_t>(&value);
    return number != nullptr ? std::optional(*number) : std::nullopt;
  }
  static std::string text(const SqlStatement& row, int column) {
    const SqlValue value = row.value(column);
    const auto* found = std::get_if<std::string>(&value);
    return found != nullptr ? *found : std::string();
  }

  void read_session() {
    builder_.capture().provenance.generator = "Nsight Systems";
    if (has_table("TARGET_INFO_SESSION_START_TIME")) {
      SqlStatement start(connection_, "SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME");
      if (start.next()) builder_.capture().epoch_ns = optional_integer(start, 0);
    }
    // deviceId is the ordinal in its process; the GPU behind it is said here, if at all.
    if (has_table("TARGET_INFO_CUDA_DEVICE")) {
      SqlStatement device(connection_, "SELECT pid, cudaId, gpuId FROM TARGET_INFO_CUDA_DEVICE");
      while (device.next()) {
        const auto pid = optional_integer(device, 0), cuda = optional_integer(device, 1),
                   gpu = optional_integer(device, 2);
        if (pid && cuda && gpu && *gpu >= 0 && *gpu <= most_devices)
          gpus_[{*pid, *cuda}] = static_cast<std::uint32_t>(*gpu);
      }
    }
    if (has_table("TARGET_INFO_GPU")) {
      SqlStatement gpu(connection_, "SELECT id, name FROM TARGET_INFO_GPU");
      while (gpu.next()) {
        const auto id = optional_integer(gpu, 0);
        if (id && *id >= 0 && *id <= most_devices)
          gpu_names_[static_cast<std::uint32_t>(*id)] = text(gpu, 1);
      }
    }
  }

  [[nodiscard]] std::uint32_t gpu_of(std::optional<std::int64_t> global_pid, std::int64_t device) {
    if (device < 0 || device > most_devices)
      throw DataError(fmt::format("{}: device {} is absurd", printable(path_.string()), device));
    if (!global_pid) return static_cast<std::uint32_t>(device);
    const std::int64_t pid = (*global_pid >> 24) & 0xffffff;
    const auto found = gpus_.find({pid, device});
    return found != gpus_.end() ? found->second : static_cast<std::uint32_t>(device);
  }

  // Processes share correlation ids, so the process is part of the key.
  [[nodiscard]] std::string launch_join(std::string_view table) const {
    if (!has_table("CUPTI_ACTIVITY_KIND_RUNTIME") || !is_column(table, "correlationId") ||
        !is_column(table, "globalPid"))
      return "";
    return "LEFT JOIN (SELECT correlationId, globalTid & ~16777215 AS process, globalTid, "
           "min(start) AS start FROM CUPTI_ACTIVITY_KIND_RUNTIME GROUP BY 1, 2) r "
           "ON r.correlationId = k.correlationId AND r.process = (k.globalPid & ~16777215) ";
  }

  // Pragmas are forbidden, so a query without rows is asked.
  [[nodiscard]] bool is_column(std::string_view table, std::string_view column) const {
    SqlStatement all(connection_, fmt::format("SELECT * FROM {} LIMIT 0", table));
    for (int c = 0; c < all.columns(); ++c) {
      if (all.column_name(c) == column) return true;
    }
    return false;
  }

  // Common columns: start, end, device, stream, process, launch, thread.
  [[nodiscard]] std::string select(std::string_view table, std::string_view more) const {
    const std::string join = launch_join(table);
    return fmt::format("SELECT k.start, k.end, k.deviceId, k.streamId, {}, {}, {}{} FROM {} k {}",
                       is_column(table, "globalPid") ? "k.globalPid" : "NULL",
                       join.empty() ? "NULL" : "r.start", join.empty() ? "NULL" : "r.globalTid",
                       more, table, join);
  }

  Work read(const SqlStatement& row) {
    Work work;
    work.start_ns = time(row, 0);
    work.end_ns = time(row, 1);
    work.device = gpu_of(optional_integer(row, 4), integer(row, 2));
    work.stream = integer(row, 3);
    work.launch_ns = optional_integer(row, 5);
    if (work.launch_ns && !is_time(*work.launch_ns)) work.launch_ns.reset();
    work.thread = optional_integer(row, 6);
    return work;
  }

  template <class Fill>
  void rows(const std::string& sql, const Fill& fill) {
    SqlStatement row(connection_, sql);
    while (row.next()) {
      try {
        Work work = read(row);
        fill(row, work);
        work_.push_back(std::move(work));
      } catch (const DataError&) {
        if (!options_.partial) throw;
        builder_.leave_out("rows with values of a wrong type or size");
      }
    }
  }

  void kernels() {
    std::map<std::int64_t, std::string> names;
    SqlStatement strings(connection_, "SELECT id, value FROM StringIds");
    while (strings.next()) names[integer(strings, 0)] = text(strings, 1);
    const auto name = [&](std::int64_t id) {
      const auto found = names.find(id);
      if (found == names.end())
        throw DataError(fmt::format("{}: StringIds has no id {}", printable(path_.string()), id));
      return found->second;
    };
    constexpr int label = 7, first_size = 8;
    constexpr std::int64_t most_blocks = std::numeric_limits<std::uint32_t>::max();
    rows(select("CUPTI_ACTIVITY_KIND_KERNEL",
                ", k.demangledName, k.gridX, k.gridY, k.gridZ, k.blockX, k.blockY, k.blockZ"),
         [&](const SqlStatement& row, Work& work) {
           work.kernel.label = name(integer(row, label));
           work.kernel.kind = kernel_class_of(work.kernel.label);
           LaunchShape shape;
           for (int i = 0; i < 3; ++i) {
             shape.grid[static_cast<std::size_t>(i)] =
                 static_cast<std::uint32_t>(size(row, first_size + i, most_blocks));
             shape.block[static_cast<std::size_t>(i)] =
                 static_cast<std::uint32_t>(size(row, first_size + 3 + i, most_blocks));
           }
           work.kernel.launch = shape;
         });
  }

  void copies(std::string_view table, std::string_view kind_column) {
    if (!has_table(table)) return;
    const bool copy = !kind_column.empty();
    rows(select(table, copy ? ", k.bytes, k.copyKind" : ", k.bytes"),
         [&](const SqlStatement& row, Work& work) {
           static const std::map<std::int64_t, std::string> directions{
               {1, "HtoD"}, {2, "DtoH"}, {8, "DtoD"}, {10, "PtoP"}};
           constexpr std::int64_t within = 8;
           const double bytes = static_cast<double>(size(row, 7, std::int64_t{1} << 60));
           Kernel& kernel = work.kernel;
           kernel.kind = copy ? KernelClass::memcpy : KernelClass::memset;
           kernel.label = "Memset";
           kernel.flops = 0.0;
           kernel.dram_bytes = bytes;
           kernel.work_source = WorkSource::derived;
           if (!copy) return;
           const std::int64_t kind = integer(row, 8);
           const auto found = directions.find(kind);
           kernel.label = found != directions.end() ? "Memcpy " + found->second : "Memcpy";
           if (kind == within) kernel.dram_bytes = 2.0 * bytes;
         });
  }

  void ranges() {
    if (!has_table("NVTX_EVENTS")) return;
    const std::string shared =
        is_column("NVTX_EVENTS", "textId")
            ? "coalesce(n.text, (SELECT value FROM StringIds WHERE id = n.textId))"
            : "n.text";
    SqlStatement row(connection_,
                     fmt::format("SELECT n.globalTid, n.start, n.end, {} FROM NVTX_EVENTS n "
                                 "WHERE n.end IS NOT NULL AND n.eventType IN ({}, {})",
                                 shared, push_pop_range, start_end_range));
    while (row.next()) {
      const auto thread = optional_integer(row, 0), start = optional_integer(row, 1),
                 end = optional_integer(row, 2);
      if (thread && start && end && is_time(*start) && is_time(*end))
        ranges_.push_back({*thread, *start, *end, text(row, 3)});
    }
    std::ranges::stable_sort(ranges_, [](const Range& a, const Range& b) {
      return std::tuple(a.thread, a.start_ns, -a.end_ns) <
             std::tuple(b.thread, b.start_ns, -b.end_ns);
    });
  }

  // The innermost range with shapes, and whether autograd runs, by launch.
  struct Around {
    std::optional<OperatorCall> call;
    bool autograd = false;
  };
  std::vector<Around> surroundings() const {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < work_.size(); ++i) {
      if (work_[i].launch_ns && work_[i].thread) order.push_back(i);
    }
    std::ranges::sort(
        order, {}, [&](std::size_t i) { return std::pair(*work_[i].thread, *work_[i].launch_ns); });
    std::vector<Around> out(work_.size());
    std::vector<const Range*> open;
    auto next = ranges_.begin();
    for (const std::size_t i : order) {
      const std::pair at{*work_[i].thread, *work_[i].launch_ns};
      for (; next != ranges_.end() && std::pair(next->thread, next->start_ns) <= at; ++next)
        open.push_back(&*next);
      std::erase_if(open,
                    [&](const Range* r) { return r->thread != at.first || r->end_ns < at.second; });
      for (const Range* range : open) {
        if (range->text.starts_with("autograd::engine")) out[i].autograd = true;
        if (auto call = call_of_label(range->text)) out[i].call = std::move(call);
      }
    }
    return out;
  }

  std::vector<std::optional<Pass>> labelled_passes() const {
    std::vector<PassLabel> labels;
    for (const Range& range : ranges_) {
      if (range.text.find("op_id = ") != std::string::npos ||
          range.text.find("seq = ") != std::string::npos)
        continue;  // an operator, not a label of the user
      if (const auto pass = pass_of_label(range.text))
        labels.push_back({range.start_ns, range.end_ns, *pass});
    }
    std::vector<LaunchCall> calls;
    for (std::size_t i = 0; i < work_.size(); ++i) {
      if (work_[i].launch_ns) calls.push_back({*work_[i].launch_ns, i});
    }
    return passes_by_label(std::move(labels), std::move(calls), work_.size());
  }

  // Times too far apart for a number are longer than a day anyway.
  static std::int64_t duration_ns(const Work& work) {
    std::int64_t duration_ns = 0;
    const bool absurd = __builtin_sub_overflow(work.end_ns, work.start_ns, &duration_ns);
    return absurd ? longest_launch_ns + 1 : duration_ns;
  }

  void find_steps() {
    std::vector<CapturedStep>& steps = builder_.capture().steps;
    for (const Range& range : ranges_) {
      if (!names_a_step(range.text)) continue;
      const bool known = std::ranges::find(steps, range.text, &CapturedStep::name) != steps.end();
      if (!known) steps.push_back({range.text, range.start_ns, range.end_ns});
    }
    std::ranges::sort(steps, {}, &CapturedStep::start_ns);
    if (!steps.empty()) builder_.capture().step_source = StepSource::annotation;
  }

  void link() {
    find_steps();
    std::vector<Around> around = surroundings();
    const std::vector<std::optional<Pass>> labelled = labelled_passes();
    const bool any_pass =
        std::ranges::any_of(labelled, [](const auto& pass) { return pass.has_value(); }) ||
        std::ranges::any_of(around, &Around::autograd);
    for (std::size_t i = 0; i < work_.size(); ++i) {
      Work& work = work_[i];
      const Pass by_thread = around[i].autograd ? Pass::backward : Pass::forward;
      const Pass pass =
          labelled[i].value_or(any_pass && work.launch_ns ? by_thread : Pass::unknown);
      work.kernel.pass = pass;
      if (around[i].call && work.kernel.work_source == WorkSource::unknown) {
        const OperatorWork known = operator_work(*around[i].call);
        const bool fits = !known.gemm || work.kernel.kind == KernelClass::gemm;
        if (fits && known.source == WorkSource::derived) {
          work.kernel.flops = known.flops;
          work.kernel.gemm = known.gemm;
          work.kernel.work_source = known.source;
        }
      }
      CapturedLaunch launch{.kernel = {},
                            .stream = builder_.stream(work.device, work.stream),
                            .start_ns = work.start_ns,
                            .duration_ns = duration_ns(work),
                            .launch_ns = work.launch_ns,
                            .step = {},
                            .pass = pass};
      const auto& steps = builder_.capture().steps;
      for (std::size_t s = 0; work.launch_ns && s < steps.size(); ++s) {
        if (steps[s].start_ns <= *work.launch_ns && *work.launch_ns < steps[s].end_ns)
          launch.step = static_cast<std::uint32_t>(s);
      }
      const std::string short_name = short_kernel_name(work.kernel.label);
      launch.kernel = builder_.kernel(std::move(work.kernel), short_name);
      builder_.launch(launch);
    }
    for (const CaptureDevice& device : std::vector(builder_.capture().devices)) {
      const auto name = gpu_names_.find(device.id);
      if (name != gpu_names_.end()) (void)builder_.device(device.id, name->second);
    }
  }

  std::filesystem::path path_;
  ImportOptions options_;
  SqlConnection connection_;
  CaptureBuilder builder_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> gpus_;
  std::map<std::uint32_t, std::string> gpu_names_;
  std::vector<Work> work_;
  std::vector<Range> ranges_;
};

}  // namespace

Capture import_nsight_systems(const std::filesystem::path& path, const ImportOptions& options) {
  try {
    return NsightReader(path, options).run();
  } catch (const UsageError& error) {
    // The file's tables are not those of any version known.
    throw DataError(fmt::format("{}: {}", printable(path.string()), error.what()),
                    {.in = {}, .hint = "export again with a current 'nsys export --type sqlite'"});
  }
}

}  // namespace rubato
