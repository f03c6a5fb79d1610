#include "tools/drawing/transfer_values.hpp"

#include "tools/terminal/exploration_tables.hpp"

namespace rubato {

namespace {

double saving_pct(const Transfer& t, const Totals& plan) {
  return -change_pct(plan.energy_j, t.baseline.energy_j);
}

}  // namespace

std::optional<double> plan_saving_pct(const Transfer& t) { return saving_pct(t, t.transferred); }
std::optional<double> own_saving_pct(const Transfer& t) {
  return t.own_found ? std::optional(saving_pct(t, t.own)) : std::nullopt;
}
std::optional<double> in_time_saving_pct(const Transfer& t) {
  return t.own_in_time_found ? std::optional(saving_pct(t, t.own_in_time)) : std::nullopt;
}
std::optional<double> regret_points(const Transfer& t) {
  return t.own_in_time_found ? std::optional(100.0 * t.equal_time_regret_frac()) : std::nullopt;
}
std::optional<double> plan_time_pct(const Transfer& t) {
  return change_pct(t.transferred.time_s, t.baseline.time_s);
}
std::optional<double> own_time_pct(const Transfer& t) {
  return t.own_found ? std::optional(change_pct(t.own.time_s, t.baseline.time_s)) : std::nullopt;
}

}  // namespace rubato
