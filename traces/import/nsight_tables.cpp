#include "traces/import/nsight_tables.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/text.hpp"
#include "traces/import/kernel_names.hpp"
#include "traces/import/nsight_database.hpp"

namespace rubato::nsight {

namespace {

constexpr std::int64_t most_devices = 1'000'000;
constexpr int push_pop_range = 59, start_end_range = 60;
constexpr std::string_view graphs_hint =
    "kernels are inside CUDA graphs; record with --cuda-graph-trace=node";
constexpr int first_own = 9;  // first column behind those that all device work has

class TableReader {
 public:
  TableReader(const std::filesystem::path& path, const ImportOptions& options,
              CaptureBuilder& builder)
      : path_(path), options_(options), builder_(builder), export_(path, options) {}

  Tables run() {
    expect_kernels();
    read_session();
    kernels();
    copies("CUPTI_ACTIVITY_KIND_MEMCPY", "copyKind");
    copies("CUPTI_ACTIVITY_KIND_MEMSET", "");
    if (tables_.work.empty() && untimed_ > 0)
      throw DataError(fmt::format("{}: none of its {} launches has a time",
                                  printable(path_.string()), untimed_));
    if (tables_.work.empty())
      throw DataError(
          fmt::format("{}: there are no kernels in it", printable(path_.string())),
          {.in = {}, .hint = whole_graphs() > 0 ? std::string(graphs_hint) : std::string()});
    ranges();
    calls();
    synchronizations();
    priorities();
    if (const std::uint64_t graphs = whole_graphs(); graphs > 0)
      builder_.capture().left_out.push_back(
          fmt::format("{} launches of whole CUDA graphs, whose kernels are not in the file; record "
                      "with --cuda-graph-trace=node",
                      graphs));
    return std::move(tables_);
  }

 private:
  void expect_kernels() const {
    const bool has_strings = export_.has_table("StringIds");
    if (has_strings && export_.has_table("CUPTI_ACTIVITY_KIND_KERNEL")) return;
    if (export_.has_table("runs") && export_.has_table("plan_segments")) {
      throw DataError(fmt::format("{}: a result database of Rubato's, not a capture",
                                  printable(path_.string())),
                      {.in = {}, .hint = "'rubato show --db FILE' says what is in it"});
    }
    throw DataError(
        fmt::format("{}: there is no table {}", printable(path_.string()),
                    has_strings ? "CUPTI_ACTIVITY_KIND_KERNEL" : "StringIds"),
        {.in = {},
         .hint = has_graph_table()
                     ? std::string(graphs_hint)
                     : "expected an export of 'nsys export --type sqlite' of a run with "
                       "--trace=cuda"});
  }

  static constexpr std::array graph_tables{"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "CUDA_GRAPH_TRACE"};
  [[nodiscard]] bool has_graph_table() const {
    return export_.has_table(graph_tables[0]) || export_.has_table(graph_tables[1]);
  }
  // With --cuda-graph-trace=graph, the default, a graph is one row and its kernels have none.
  [[nodiscard]] std::uint64_t whole_graphs() const {
    std::uint64_t sum = 0;
    for (const char* table : graph_tables) {
      if (!export_.has_table(table)) continue;
      SqlStatement count(export_.connection(), fmt::format("SELECT count(*) FROM {}", table));
      if (count.next()) sum += static_cast<std::uint64_t>(optional_integer(count, 0).value_or(0));
    }
    return sum;
  }

  void read_session() {
    each("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"}, [&](const SqlStatement& start) {
      if (!tables_.epoch_ns) tables_.epoch_ns = optional_integer(start, 0);
    });
    // deviceId is the ordinal in its process; the GPU behind it is said here, if at all.
    each("TARGET_INFO_CUDA_DEVICE", {"pid", "cudaId", "gpuId"}, [&](const SqlStatement& device) {
      const auto cuda = optional_integer(device, 1), gpu = optional_integer(device, 2);
      if (cuda && gpu && *gpu >= 0 && *gpu <= most_devices)
        gpus_[{optional_integer(device, 0).value_or(-1), *cuda}] = static_cast<std::uint32_t>(*gpu);
    });
    for (const char* table : {"TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU"}) {  // the latter till 2021
      each(table, {"id", "name", "computeMajor", "computeMinor", "smCount"},
           [&](const SqlStatement& gpu) {
             NamedDevice& one = tables_.gpus.emplace_back(
                 NamedDevice{.id = {},
                             .name = text(gpu, 1),
                             .compute_capability =
                                 capability_of(optional_integer(gpu, 2), optional_integer(gpu, 3)),
                             .sm_count = sms_of(optional_integer(gpu, 4))});
             const auto id = optional_integer(gpu, 0);
             if (id && *id >= 0 && *id <= most_devices) one.id = static_cast<std::uint32_t>(*id);
           });
    }
  }

  // Calls use(row) for each row of a table, if there is one, with NULL for columns that it lacks.
  template <class Use>
  void each(std::string_view table, std::initializer_list<std::string_view> names, const Use& use,
            std::string_view behind = "") const {
    if (!export_.has_table(table)) return;
    SqlStatement row(
        export_.connection(),
        fmt::format("SELECT {} FROM {} {}", export_.columns(table, names), table, behind));
    while (row.next()) use(row);
  }

  [[nodiscard]] std::uint32_t gpu_of(std::optional<std::int64_t> global_pid, std::int64_t device) {
    if (device < 0 || device > most_devices)
      throw DataError(fmt::format("{}: device {} is absurd", printable(path_.string()), device));
    if (!global_pid) return static_cast<std::uint32_t>(device);
    const std::int64_t pid = (*global_pid >> 24) & 0xffffff;
    if (const auto found = gpus_.find({pid, device}); found != gpus_.end()) return found->second;
    // In a container processes have other ids there: what all of them say of an ordinal counts.
    std::set<std::uint32_t> meant;
    for (const auto& [process_ordinal, gpu] : gpus_) {
      if (process_ordinal.second == device) meant.insert(gpu);
    }
    const std::uint32_t gpu =
        meant.size() == 1 ? *meant.begin() : static_cast<std::uint32_t>(device);
    gpus_[{pid, device}] = gpu;
    return gpu;
  }

  // Processes share correlation ids, so the process is part of the key.
  [[nodiscard]] std::string launch_join(std::string_view table) const {
    if (!export_.has_table("CUPTI_ACTIVITY_KIND_RUNTIME") ||
        !export_.has_column(table, "correlationId") || !export_.has_column(table, "globalPid"))
      return "";
    return "LEFT JOIN (SELECT correlationId, globalTid & ~16777215 AS process, globalTid, "
           "min(start) AS start FROM CUPTI_ACTIVITY_KIND_RUNTIME GROUP BY 1, 2) r "
           "ON r.correlationId = k.correlationId AND r.process = (k.globalPid & ~16777215) ";
  }

  // Common columns: start, end, device, stream, process, launch, thread, correlation, context.
  [[nodiscard]] std::string select(std::string_view table,
                                   std::initializer_list<std::string_view> more) const {
    const std::string join = launch_join(table);
    return fmt::format("SELECT k.start, k.end, k.deviceId, k.streamId, {}, {}, {}, {} FROM {} k {}",
                       export_.columns(table, {"globalPid"}, "k."),
                       join.empty() ? "NULL, NULL, NULL" : "r.start, r.globalTid, k.correlationId",
                       export_.columns(table, {"contextId"}, "k."),
                       export_.columns(table, more, "k."), table, join);
  }

  [[nodiscard]] static bool is_null(const SqlStatement& row, int column) {
    return row.value(column) == SqlValue(std::monostate{});
  }

  // A start or an end that is not there, or is no time: work still running when recording ended.
  [[nodiscard]] bool is_untimed(const SqlStatement& row) const {
    for (const int column : {0, 1}) {
      if (is_null(row, column)) return true;
      if (!is_time(export_.integer(row, column))) return true;
    }
    return false;
  }

  Work read(const SqlStatement& row) {
    Work work;
    work.start_ns = export_.integer(row, 0);
    work.end_ns = export_.integer(row, 1);
    work.device = gpu_of(optional_integer(row, 4), export_.integer(row, 2));
    work.stream = export_.integer(row, 3);
    work.launch_ns = optional_integer(row, 5);
    if (work.launch_ns && !is_time(*work.launch_ns)) work.launch_ns.reset();
    work.thread = optional_integer(row, 6);
    work.process = optional_integer(row, 4);
    work.correlation = optional_integer(row, 7);
    work.context = optional_integer(row, 8).value_or(0);
    return work;
  }

  template <class Fill>
  void rows(const std::string& sql, const Fill& fill) {
    SqlStatement row(export_.connection(), sql);
    while (row.next()) {
      try {
        if (is_untimed(row)) {
          ++untimed_;
          builder_.leave_out_untimed_launch();
          continue;
        }
        Work work = read(row);
        fill(row, work);
        tables_.work.push_back(std::move(work));
      } catch (const DataError&) {
        if (!options_.partial) throw;
        builder_.leave_out("rows with values of a wrong type or size");
      }
    }
  }

  void kernels() {
    each("StringIds", {"id", "value"},
         [&](const SqlStatement& row) { strings_[export_.integer(row, 0)] = text(row, 1); });
    const auto name = [&](std::int64_t id) {
      const auto found = strings_.find(id);
      if (found == strings_.end())
        throw DataError(fmt::format("{}: StringIds has no id {}", printable(path_.string()), id));
      return found->second;
    };
    constexpr int first_size = first_own + 2;
    constexpr std::int64_t most_blocks = std::numeric_limits<std::uint32_t>::max();
    rows(select("CUPTI_ACTIVITY_KIND_KERNEL", {"demangledName", "shortName", "gridX", "gridY",
                                               "gridZ", "blockX", "blockY", "blockZ"}),
         [&](const SqlStatement& row, Work& work) {
           auto label = optional_integer(row, first_own);
           if (!label) label = optional_integer(row, first_own + 1);
           work.kernel.label = label ? name(*label) : "a kernel without a name";
           work.kernel.kind = kernel_class_of(work.kernel.label);
           if (is_null(row, first_size)) return;
           LaunchShape shape;
           for (int i = 0; i < 3; ++i) {
             shape.grid[static_cast<std::size_t>(i)] =
                 static_cast<std::uint32_t>(export_.size(row, first_size + i, most_blocks));
             shape.block[static_cast<std::size_t>(i)] =
                 static_cast<std::uint32_t>(export_.size(row, first_size + 3 + i, most_blocks));
           }
           work.kernel.launch = shape;
         });
  }

  void copies(std::string_view table, std::string_view kind_column) {
    if (!export_.has_table(table)) return;
    const bool copy = !kind_column.empty();
    rows(copy ? select(table, {"bytes", "copyKind", "dstKind"}) : select(table, {"bytes"}),
         [&](const SqlStatement& row, Work& work) {
           static const std::map<std::int64_t, std::string> directions{
               {1, "HtoD"}, {2, "DtoH"}, {8, "DtoD"}, {10, "PtoP"}};
           constexpr std::int64_t to_host = 2, within = 8, pageable = 0;
           const double bytes =
               static_cast<double>(export_.size(row, first_own, std::int64_t{1} << 60));
           Kernel& kernel = work.kernel;
           kernel.kind = copy ? KernelClass::memcpy : KernelClass::memset;
           kernel.label = "Memset";
           kernel.flops = 0.0;
           kernel.dram_bytes = bytes;
           kernel.work_source = WorkSource::derived;
           if (!copy) return;
           const std::int64_t kind = export_.integer(row, first_own + 1);
           work.ends = {.within_device = kind == within,
                        .to_pageable = kind == to_host &&  // by ENUM_CUDA_MEM_KIND, where said
                                       optional_integer(row, first_own + 2) == pageable};
           const auto found = directions.find(kind);
           kernel.label = found != directions.end() ? "Memcpy " + found->second : "Memcpy";
           if (kind == within) kernel.dram_bytes = 2.0 * bytes;
         });
  }

  void calls() {
    const char* table = "CUPTI_ACTIVITY_KIND_RUNTIME";
    if (!export_.has_table(table) || !export_.has_column(table, "nameId")) return;
    std::map<std::int64_t, std::optional<CallKind>> kinds;
    for (const auto& [id, value] : strings_) kinds[id] = call_kind_of(value);
    each(
        table, {"globalTid", "correlationId", "start", "end", "nameId"},
        [&](const SqlStatement& row) {
          const auto thread = optional_integer(row, 0), correlation = optional_integer(row, 1),
                     start = optional_integer(row, 2), end = optional_integer(row, 3);
          if (!thread || !correlation) return;
          if (!start || !end || !is_time(*start) || !is_time(*end))
            return builder_.leave_out("host calls without a time");
          const auto kind = kinds.find(optional_integer(row, 4).value_or(-1));
          tables_.calls.push_back({*thread, *correlation, *start, *end,
                                   kind == kinds.end() ? std::nullopt : kind->second});
        },
        "ORDER BY start");
  }

  // deviceId of these rows is 0 whatever the device; the context tells it.
  void synchronizations() {
    const std::initializer_list<std::string_view> columns{"globalPid", "correlationId", "contextId",
                                                          "streamId", "eventSyncId"};
    each("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", columns, [&](const SqlStatement& row) {
      if (const auto numbers = all_integers<4>(row))
        tables_.synchronizations.push_back({(*numbers)[0], (*numbers)[1], (*numbers)[2],
                                            (*numbers)[3], optional_integer(row, 4).value_or(0)});
    });
    each("CUPTI_ACTIVITY_KIND_CUDA_EVENT", columns, [&](const SqlStatement& row) {
      if (const auto numbers = all_integers<5>(row))
        tables_.records.push_back(
            {(*numbers)[0], (*numbers)[1], (*numbers)[2], (*numbers)[3], (*numbers)[4]});
    });
  }

  // Process ids of this table are those within a container, so they cannot be compared.
  void priorities() {
    each("TARGET_INFO_CUDA_STREAM", {"contextId", "streamId", "priority"},
         [&](const SqlStatement& row) {
           const auto numbers = all_integers<3>(row);
           if (!numbers) return;
           const auto priority = static_cast<std::int32_t>((*numbers)[2]);  // written as unsigned
           const auto [found, fresh] =
               tables_.priorities.emplace(std::pair{(*numbers)[0], (*numbers)[1]}, priority);
           if (!fresh && found->second != priority) found->second.reset();
         });
  }

  void ranges() {
    each("NVTX_EVENTS", {"globalTid", "start", "end", "text", "textId", "eventType"},
         [&](const SqlStatement& row) {
           const auto thread = optional_integer(row, 0), start = optional_integer(row, 1),
                      end = optional_integer(row, 2);
           const std::int64_t type = optional_integer(row, 5).value_or(0);
           if (!thread || (type != push_pop_range && type != start_end_range)) return;
           if (!start || !end || !is_time(*start) || !is_time(*end))
             return builder_.leave_out("ranges without a start or an end");
           const auto shared = strings_.find(optional_integer(row, 4).value_or(-1));
           const bool own = !is_null(row, 3) || shared == strings_.end();
           tables_.ranges.push_back({*thread, *start, *end, own ? text(row, 3) : shared->second});
         });
    std::ranges::stable_sort(tables_.ranges, [](const NvtxRange& a, const NvtxRange& b) {
      return std::tuple(a.thread, a.start_ns, -a.end_ns) <
             std::tuple(b.thread, b.start_ns, -b.end_ns);
    });
  }

  const std::filesystem::path& path_;
  const ImportOptions& options_;
  CaptureBuilder& builder_;
  Database export_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> gpus_;  ///< by process, ordinal
  std::map<std::int64_t, std::string> strings_;                          ///< StringIds
  Tables tables_;
  std::uint64_t untimed_ = 0;  ///< launches
};

}  // namespace

Tables read_tables(const std::filesystem::path& path, const ImportOptions& options,
                   CaptureBuilder& builder) {
  return TableReader(path, options, builder).run();
}

}  // namespace rubato::nsight
