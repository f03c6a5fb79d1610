#pragma once
// Numbers of a sweep's table, in our units and checked, row by row.

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/csv.hpp"
#include "common/error.hpp"
#include "common/ids.hpp"
#include "models/calibration/sweep.hpp"
#include "models/gpu/spec.hpp"
#include "traces/plausible.hpp"

namespace rubato {

/// A column of the file under the name and in the unit it has here.
struct SweepSource {
  std::size_t column;
  double scale = 1.0;
  std::string name = {};
};

/// Reads what a table holds under the names and units that SweepColumns gives. Problems are
/// collected (errors).
class SweepReader {
 public:
  SweepReader(CsvTable table, const std::string& name, const GpuSpec& spec,
              const SweepColumns& columns);

  [[nodiscard]] std::optional<SweepSource> find(const std::string& name) const;

  /// The first of `names` that the file has.
  [[nodiscard]] std::optional<SweepSource> find_any(
      std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (auto found = find(name)) return found;
    }
    return std::nullopt;
  }

  [[nodiscard]] SweepSource require(std::initializer_list<const char*> names) const {
    if (const auto found = find_any(names)) return *found;
    return {table_.column(*names.begin()), 1.0, *names.begin()};  // throws, with the nearest name
  }

  [[nodiscard]] std::optional<double> number(std::size_t row,
                                             const std::optional<SweepSource>& source,
                                             Range range = Range::positive);

  /// A number that was computed: absurd numbers of a file may give infinity or 0, which is an
  /// error.
  [[nodiscard]] std::optional<double> checked(std::size_t row, std::string_view what, double value,
                                              Range range = Range::positive);

  /// A number out of bounds is an error that names the unit which would make sense.
  /// @param from  columns it was read from, or computed from: the first divided by the second
  /// @return whether it is within
  bool expect_plausible(std::size_t row, double value, std::string_view unit, const Bounds& bounds,
                        std::initializer_list<const std::optional<SweepSource>*> from);

  [[nodiscard]] ReadColumn read_column(const SweepSource& source, bool divides = false) const;

  [[nodiscard]] const std::string& text(std::size_t row, const SweepSource& source) const {
    return table_.cell(row, source.column);
  }

  [[nodiscard]] std::optional<std::optional<double>> core_mhz(std::size_t row,
                                                              const SweepSource& source);

  /// A memory clock that the table does not have is the default one.
  [[nodiscard]] std::optional<MemStateId> mem_state(std::size_t row,
                                                    const std::optional<SweepSource>& source);

  /// Says that the memory clock was assumed, where it was.
  void note_memory(std::vector<std::string>& notes) const;

  /// Whether a row is to be read: it passes --where, and is no copy of an earlier one, which would
  /// count as another measurement.
  [[nodiscard]] bool kept(std::size_t row) const { return kept_[row] && !copies_[row]; }

  void note_copies(std::vector<std::string>& notes) const;

  [[nodiscard]] const CsvTable& table() const { return table_; }
  [[nodiscard]] ErrorList& errors() { return errors_; }
  void throw_if_any() const {
    errors_.throw_if_any(
        {.in = {}, .hint = foreign_ ? "measured on another GPU? --gpu names its spec" : ""});
  }

 private:
  [[nodiscard]] bool passes(std::size_t row) const {
    return std::ranges::all_of(filters_, [&](const auto& filter) {
      return table_.cell(row, filter.first) == filter.second;
    });
  }

  [[nodiscard]] bool any_text(const SweepSource& source) const;

  [[nodiscard]] std::optional<MemStateId> state_of(const std::string& name,
                                                   const std::optional<double>& mhz,
                                                   double scale) const;

  CsvTable table_;
  const GpuSpec& spec_;
  const SweepColumns& columns_;
  ErrorList errors_;
  bool foreign_ = false;  // a memory clock that the GPU does not have
  std::vector<std::pair<std::size_t, std::string>> filters_;
  std::vector<bool> kept_, copies_ = table_.copies();
  std::optional<bool> mem_given_;  // whether some row has a memory clock
};

}  // namespace rubato
