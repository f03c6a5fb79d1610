#pragma once
// Which column of a power log holds what, and of which GPU a row says to be.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/log_fields.hpp"

namespace rubato {

/// The columns under one header of a power log.
struct PowerColumns {
  std::vector<LogField> header;
  char separator = ',';  ///< ' ': any number of blanks
  bool entity = false;   ///< rows begin with "GPU 0", perhaps a date before: dcgmi dmon
  std::optional<std::size_t> date, time, core, mem;
  std::vector<std::size_t> powers;  ///< of the same GPU, best first
  /// Powers of several GPUs in one row, where there are no others: column, index of its GPU.
  std::vector<std::pair<std::size_t, std::string>> side_by_side;
  std::vector<std::pair<std::size_t, std::string_view>> identity;  ///< column, "index", "UUID" ...
};

/// @param header  not empty
[[nodiscard]] PowerColumns power_columns(std::vector<LogField> header, char separator);

/// The header that a line is, if it is one: it names a power and, unless it begins with '#' or has
/// a separator, a time.
[[nodiscard]] std::optional<PowerColumns> power_header(std::string_view line);

[[nodiscard]] bool has_column(const std::vector<LogField>& header, std::string_view name);

/// The cells of a line, without blanks and quotes around them.
[[nodiscard]] std::vector<std::string_view> log_cells(std::string_view line, char separator);

/// A GPU as the rows say it: label and value, such as "index" and "0".
using LoggedGpu = std::vector<std::pair<std::string_view, std::string>>;

/// "index 0, bus id 00000000:07:00.0"
[[nodiscard]] std::string text_of(const LoggedGpu& gpu);

/// Whether a GPU is what --power-gpu asks for: see PowerLogOptions.
[[nodiscard]] bool is_gpu(const LoggedGpu& gpu, std::string_view wanted);

/// Whether nothing that both say differs.
[[nodiscard]] bool may_be_one(const LoggedGpu& a, const LoggedGpu& b);

}  // namespace rubato
