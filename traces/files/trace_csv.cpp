#include "traces/files/trace_csv.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <span>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "common/csv.hpp"
#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/suggest.hpp"
#include "traces/plausible.hpp"

namespace rubato {

namespace {

// Cells of one row by column name; problems go to one list.
class Row {
 public:
  Row(const CsvTable& table, std::size_t row, ErrorList& errors)
      : table_(table), row_(row), errors_(errors) {}

  [[nodiscard]] std::string text(std::string_view name) const {
    const auto column = table_.find_column(name);
    return column ? table_.cell(row_, *column) : "";
  }
  [[nodiscard]] std::optional<double> number(std::string_view name, Range range) const {
    const auto column = table_.find_column(name);
    return column ? table_.optional_number(row_, *column, range, errors_) : std::nullopt;
  }
  // Without a fallback the cell may not be empty.
  [[nodiscard]] std::uint64_t count(std::string_view name,
                                    std::optional<std::uint64_t> fallback = {}) const {
    const std::string cell = text(name);
    if (cell.empty() && fallback) return *fallback;
    const auto value = parse_count(cell);
    if (value && *value > 0) return *value;
    fail(fmt::format("{} is '{}'; expected a whole number > 0", name, cell));
    return fallback.value_or(1);
  }
  // A number > 0 that may not be left out.
  [[nodiscard]] double needed(std::string_view name, std::string_view what) const {
    if (text(name).empty()) fail(fmt::format("{} is missing; expected {}", name, what));
    return number(name, Range::positive).value_or(1.0);
  }
  [[nodiscard]] bool has_any(std::span<const std::string_view> names) const {
    return std::ranges::any_of(names, [&](std::string_view name) { return !text(name).empty(); });
  }
  [[nodiscard]] std::uint32_t small(std::string_view name, std::uint32_t fallback) const {
    constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
    const std::uint64_t value = count(name, fallback);
    if (value <= most) return static_cast<std::uint32_t>(value);
    fail(fmt::format("{} is '{}'; expected at most {}", name, value, most));
    return fallback;
  }
  template <class Enum>
  [[nodiscard]] Enum named(std::string_view name, Enum fallback) const {
    const std::string cell = text(name);
    if (cell.empty()) return fallback;
    if (const auto value = from_name<Enum>(cell)) return *value;
    fail(fmt::format("{} '{}' is not known{}", name, cell, did_you_mean(cell, all_names<Enum>())));
    return fallback;
  }
  [[nodiscard]] bool flag(std::string_view name) const {
    const std::string cell = text(name);
    if (cell == "true" || cell == "false") return cell == "true";
    fail(fmt::format("{} is '{}'; expected true or false", name, cell));
    return false;
  }
  void fail(const std::string& what) const {
    errors_.add(fmt::format("{}: {}", table_.where(row_), what));
  }

 private:
  const CsvTable& table_;
  std::size_t row_;
  ErrorList& errors_;
};

constexpr std::array<std::string_view, 7> attention_columns{
    "attention_batch", "q_tokens", "kv_tokens", "heads", "kv_heads", "head_dim", "causal"};

Kernel read_kernel(const Row& row) {
  Kernel kernel;
  kernel.name = row.text("kernel");
  kernel.label = row.text("label").empty() ? kernel.name : row.text("label");
  kernel.kind = row.named("class", KernelClass::other);
  kernel.pass = row.named("pass", Pass::unknown);
  kernel.dtype = row.named("dtype", Dtype::unknown);
  kernel.flops = row.number("flops", Range::non_negative);
  kernel.dram_bytes = row.number("dram_bytes", Range::non_negative);
  kernel.measured_time_s = row.number("measured_time_s", Range::positive);
  if (const auto wrong = implausible_launch_time(kernel.measured_time_s)) row.fail(*wrong);
  const bool known = kernel.flops || kernel.dram_bytes;
  kernel.work_source = row.named("work_source", known ? WorkSource::derived : WorkSource::unknown);
  if (!row.text("m").empty()) {
    kernel.gemm =
        GemmShape{row.count("m"), row.count("n"), row.count("k"), row.count("gemm_batch", 1)};
  }
  if (row.has_any(attention_columns)) {
    kernel.attention = AttentionShape{row.count("attention_batch"),
                                      row.count("q_tokens"),
                                      row.count("kv_tokens"),
                                      row.count("heads"),
                                      row.count("kv_heads"),
                                      row.count("head_dim"),
                                      row.flag("causal")};
  }
  if (!row.text("collective").empty()) {
    kernel.collective = Collective{row.named("collective", CollectiveKind::other),
                                   row.needed("message_bytes", "the bytes of the collective"),
                                   row.small("group_size", 1), row.small("stride", 1)};
  }
  return kernel;
}

const std::initializer_list<std::string_view> columns{"segment",
                                                      "repeat",
                                                      "kernel",
                                                      "label",
                                                      "class",
                                                      "pass",
                                                      "dtype",
                                                      "flops",
                                                      "dram_bytes",
                                                      "m",
                                                      "n",
                                                      "k",
                                                      "gemm_batch",
                                                      "attention_batch",
                                                      "q_tokens",
                                                      "kv_tokens",
                                                      "heads",
                                                      "kv_heads",
                                                      "head_dim",
                                                      "causal",
                                                      "collective",
                                                      "message_bytes",
                                                      "group_size",
                                                      "stride",
                                                      "measured_time_s",
                                                      "work_source"};

}  // namespace

Trace parse_trace_csv(std::string_view text, const std::string& name) {
  Trace trace;
  trace.name = std::filesystem::path(name).stem().string();
  trace.provenance = {"csv", name, ""};
  const CsvTable table = CsvTable::parse(text, name);
  table.expect_columns({"segment", "repeat", "kernel", "class", "pass"}, columns);
  ErrorList errors;
  std::unordered_map<std::string, KernelId> ids;
  for (std::size_t r = 0; r < table.rows(); ++r) {
    const Row row(table, r, errors);
    Kernel kernel = read_kernel(row);
    const auto [entry, is_new] = ids.emplace(kernel.name, id_at<KernelId>(trace.kernels.size()));
    if (is_new) {
      trace.kernels.push_back(std::move(kernel));
    } else if (kernel != trace.kernels[index(entry->second)]) {
      row.fail(fmt::format("kernel '{}' has other figures in an earlier row", kernel.name));
    }
    const auto repeat = row.small("repeat", 1);
    const std::string segment = row.text("segment");
    if (trace.segments.empty() || trace.segments.back().name != segment) {
      trace.segments.push_back({.name = segment, .repeat = repeat, .launches = {}});
    } else if (trace.segments.back().repeat != repeat) {
      row.fail(fmt::format("repeat is {}, but segment '{}' began with {}", repeat, segment,
                           trace.segments.back().repeat));
    }
    trace.segments.back().launches.push_back(entry->second);
  }
  errors.throw_if_any(
      {.in = {},
       .hint = "a time is in seconds and a size in bytes; leave a cell empty if it is unknown"});
  validate(trace, name);
  return trace;
}

std::string to_csv(const Trace& trace) {
  const auto number = [](const std::optional<double>& value) {
    return value ? format_number(*value) : "";
  };
  std::string text = csv_line(std::vector<std::string>(columns.begin(), columns.end()));
  for (const Segment& segment : trace.segments) {
    for (const KernelId id : segment.launches) {
      const Kernel& k = trace.kernels[index(id)];
      const auto dim = [&](std::uint64_t GemmShape::*member) {
        return k.gemm ? fmt::format("{}", (*k.gemm).*member) : "";
      };
      const auto side = [&](std::uint64_t AttentionShape::*member) {
        return k.attention ? fmt::format("{}", (*k.attention).*member) : "";
      };
      const std::vector<std::string> cells{
          segment.name,
          fmt::format("{}", segment.repeat),
          k.name,
          k.label,
          std::string(name_of(k.kind)),
          std::string(name_of(k.pass)),
          std::string(name_of(k.dtype)),
          number(k.flops),
          number(k.dram_bytes),
          dim(&GemmShape::m),
          dim(&GemmShape::n),
          dim(&GemmShape::k),
          dim(&GemmShape::batch),
          side(&AttentionShape::batch),
          side(&AttentionShape::q_tokens),
          side(&AttentionShape::kv_tokens),
          side(&AttentionShape::heads),
          side(&AttentionShape::kv_heads),
          side(&AttentionShape::head_dim),
          k.attention ? fmt::format("{}", k.attention->causal) : "",
          k.collective ? std::string(name_of(k.collective->kind)) : "",
          k.collective ? format_number(k.collective->message_bytes) : "",
          k.collective ? fmt::format("{}", k.collective->group_size) : "",
          k.collective ? fmt::format("{}", k.collective->stride) : "",
          number(k.measured_time_s),
          std::string(name_of(k.work_source))};
      text += csv_line(cells);
    }
  }
  return text;
}

}  // namespace rubato
