#include "models/calibration/sweep_reader.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "common/text.hpp"

namespace rubato {

namespace {

// By the name that a column has here.
Quantity quantity_of(std::string_view name) {
  if (name.starts_with("core_mhz") || name == "mem_mhz" || name == "frequency")
    return Quantity::clock;
  if (name.starts_with("time")) return Quantity::time;
  if (name.starts_with("energy")) return Quantity::energy;
  if (name.starts_with("power")) return Quantity::power;
  return name == "dram_bytes" ? Quantity::bytes : Quantity::number;
}

}  // namespace

SweepReader::SweepReader(CsvTable table, const std::string& name, const GpuSpec& spec,
                         const SweepColumns& columns)
    : table_(std::move(table)), spec_(spec), columns_(columns) {
  for (const auto& [column, value] : columns_.where)
    filters_.emplace_back(table_.column(column), value);
  if (table_.rows() == 0) throw DataError(fmt::format("{}: there are no rows", name));
  for (std::size_t row = 0; row < table_.rows(); ++row) kept_.push_back(passes(row));
}

std::optional<SweepSource> SweepReader::find(const std::string& name) const {
  const auto renamed = columns_.renamed.find(name);
  if (renamed == columns_.renamed.end()) {
    const auto column = table_.find_column(name);
    return column ? std::optional(SweepSource{*column, 1.0, name}) : std::nullopt;
  }
  const auto colon = renamed->second.rfind(':');
  SweepSource source{table_.column(renamed->second.substr(0, colon)), 1.0, name};
  if (colon == std::string::npos) return source;
  const std::string unit = renamed->second.substr(colon + 1);
  const MeasuredUnit* known = find_unit(unit);
  if (known == nullptr)
    throw UsageError(fmt::format("unit '{}' of column {} is not known", unit, name),
                     {.in = {}, .hint = unit_names()});
  const Quantity quantity = quantity_of(name);
  if (known->quantity != quantity && known->quantity != Quantity::number)
    throw UsageError(fmt::format("unit '{}' of column {} is of another quantity", unit, name),
                     {.in = {}, .hint = unit_names(quantity)});
  source.scale = known->scale;
  return source;
}

std::optional<double> SweepReader::number(std::size_t row, const std::optional<SweepSource>& source,
                                          Range range) {
  if (!source) return std::nullopt;
  const auto value = table_.optional_number(row, source->column, range, errors_);
  return value ? checked(row, table_.header()[source->column], *value * source->scale, range)
               : std::nullopt;
}

std::optional<double> SweepReader::checked(std::size_t row, std::string_view what, double value,
                                           Range range) {
  if (std::isfinite(value) && in_range(value, range)) return value;
  errors_.add(fmt::format("{}: {} comes to {}; expected {}", table_.where(row), what, value,
                          expected_text(range)));
  return std::nullopt;
}

bool SweepReader::expect_plausible(std::size_t row, double value, std::string_view unit,
                                   const Bounds& bounds,
                                   std::initializer_list<const std::optional<SweepSource>*> from) {
  std::vector<ReadColumn> columns;
  std::string what;
  for (const std::optional<SweepSource>* source : from) {
    what += (what.empty() ? "" : " over ") + table_.header()[(*source)->column];
    columns.push_back(read_column(**source, !columns.empty()));
  }
  const auto wrong = implausible(what, value, unit, bounds, columns);
  if (wrong) errors_.add(fmt::format("{}: {}", table_.where(row), *wrong));
  return !wrong;
}

ReadColumn SweepReader::read_column(const SweepSource& source, bool divides) const {
  const std::string& header = table_.header()[source.column];
  return {.name = header,
          .quantity = quantity_of(source.name),
          .scale = source.scale,
          .divides = divides,
          .option = fmt::format("--column {}={}:", source.name, shell_word(header))};
}

std::optional<std::optional<double>> SweepReader::core_mhz(std::size_t row,
                                                           const SweepSource& source) {
  if (text(row, source) == "auto") return std::optional<double>{};
  const auto value = table_.number(row, source.column, Range::positive, errors_);
  if (!value) return std::nullopt;
  const auto scaled = checked(row, "core_mhz", *value * source.scale, Range::positive);
  const std::optional<SweepSource> from = source;
  if (!scaled || !expect_plausible(row, *scaled, "MHz", core_clock_mhz, {&from}))
    return std::nullopt;
  return std::optional(scaled);
}

std::optional<MemStateId> SweepReader::mem_state(std::size_t row,
                                                 const std::optional<SweepSource>& source) {
  if (!mem_given_) mem_given_ = source && any_text(*source);
  const std::string name = *mem_given_ ? text(row, *source) : std::string{};
  if (name.empty() && (spec_.mem_states.size() == 1 || !*mem_given_))
    return spec_.mem_states.size() == 1 ? MemStateId{0} : spec_.default_clock.mem;
  const auto mhz = parse_number(name);
  if (const auto state = state_of(name, mhz, source->scale)) return state;
  std::string hint;
  for (const char* unit : {"Hz", "kHz", "GHz"}) {
    if (mhz && state_of({}, mhz, find_unit(unit)->scale))
      hint = fmt::format("; it would be in {}: {}{}", unit, read_column(*source).option, unit);
  }
  errors_.add(fmt::format("{}: mem_mhz '{}' is no memory state of {}{}", table_.where(row), name,
                          spec_.name, hint));
  foreign_ = hint.empty();
  return std::nullopt;
}

void SweepReader::note_memory(std::vector<std::string>& notes) const {
  if (!mem_given_ || *mem_given_ || spec_.mem_states.size() == 1) return;
  notes.push_back(fmt::format("no memory clock in the table: taken as the GPU's default, {}",
                              spec_.mem_states[index(spec_.default_clock.mem)].name));
}

void SweepReader::note_copies(std::vector<std::string>& notes) const {
  std::size_t all = 0, copied = 0;
  for (std::size_t row = 0; row < table_.rows(); ++row) {
    all += kept_[row] ? 1U : 0U;
    copied += kept_[row] && copies_[row] ? 1U : 0U;
  }
  if (copied > 0)
    notes.push_back(
        fmt::format("{} of {} rows are copies of earlier ones and count once", copied, all));
}

bool SweepReader::any_text(const SweepSource& source) const {
  for (std::size_t row = 0; row < table_.rows(); ++row)
    if (kept_[row] && !text(row, source).empty()) return true;
  return false;
}

std::optional<MemStateId> SweepReader::state_of(const std::string& name,
                                                const std::optional<double>& mhz,
                                                double scale) const {
  for (std::size_t i = 0; i < spec_.mem_states.size(); ++i) {
    const MemState& state = spec_.mem_states[i];
    if (state.name == name || (mhz && parse_number(state.name) == *mhz * scale))
      return id_at<MemStateId>(i);
  }
  return std::nullopt;
}

}  // namespace rubato
