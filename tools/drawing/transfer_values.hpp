#pragma once
// What pictures and pages show of a transfer, in percent against the default clocks of its trace.

#include <optional>

#include "explorer/transfer.hpp"

namespace rubato {

/// Savings and changes of time; nothing where no such plan was found.
[[nodiscard]] std::optional<double> plan_saving_pct(const Transfer& t);
[[nodiscard]] std::optional<double> own_saving_pct(const Transfer& t);
[[nodiscard]] std::optional<double> in_time_saving_pct(const Transfer& t);
[[nodiscard]] std::optional<double> regret_points(const Transfer& t);
[[nodiscard]] std::optional<double> plan_time_pct(const Transfer& t);
[[nodiscard]] std::optional<double> own_time_pct(const Transfer& t);

}  // namespace rubato
