// A block of kernels beside a collective: by hand, and against what was measured.

#include "sim/sharing/fit.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/error.hpp"
#include "models/gpu/clock_grid.hpp"
#include "tests/expect_error.hpp"
#include "tests/paths.hpp"

namespace rubato {
namespace {

const std::vector<OverlapRow>& measured() {
  static const std::vector<OverlapRow> rows =
      read_overlap_rows(source_dir() / "models/data/measured/kareus_a100_overlap/overlap.csv");
  return rows;
}

const GpuSpec& a100() {
  // Windows drew up to 348 W; what is shipped was fitted with a limit that does not bind, 500 W.
  static const GpuSpec spec = [] {
    GpuSpec measured_at = load_gpu_spec("a100-sxm4-80gb");
    measured_at.power_limit.limit_w = 500.0;
    return measured_at;
  }();
  return spec;
}

const OverlapBlock& fitted() {
  static const OverlapBlock block = fit_overlap(a100(), measured());
  return block;
}

// Errors of rows that `left_out` chooses, by a fit to the others.
template <class LeftOut>
OverlapErrors errors_without(LeftOut left_out) {
  std::vector<OverlapRow> others, held;
  for (const OverlapRow& row : measured()) (left_out(row) ? held : others).push_back(row);
  EXPECT_FALSE(held.empty());
  return overlap_errors(a100(), fit_overlap(a100(), others), held);
}

void expect_errors(const OverlapErrors& errors, double mean_time, double worst_time,
                   double mean_energy, double worst_energy) {
  EXPECT_LT(OverlapErrors::mean_magnitude(errors.time), mean_time);
  EXPECT_LT(OverlapErrors::worst_magnitude(errors.time), worst_time);
  EXPECT_LT(OverlapErrors::mean_magnitude(errors.energy), mean_energy);
  EXPECT_LT(OverlapErrors::worst_magnitude(errors.energy), worst_energy);
}

// docs/contention.md has these numbers.
TEST(OverlapFit, FollowsTheMeasurements) {
  ASSERT_EQ(measured().size(), 528U);
  expect_errors(overlap_errors(a100(), fitted(), measured()), 0.010, 0.03, 0.008, 0.035);
}

TEST(OverlapFit, PredictsSmCountsItHasNotSeen) {
  expect_errors(
      errors_without([](const OverlapRow& row) { return static_cast<int>(row.comm_sms) % 3 == 1; }),
      0.015, 0.04, 0.012, 0.05);
}

TEST(OverlapFit, PredictsWindowsItHasNotSeen) {
  expect_errors(errors_without([](const OverlapRow& row) {
                  return (row.first_op == 3 && row.last_op == 4) ||
                         (row.first_op == 2 && row.last_op == 5);
                }),
                0.015, 0.04, 0.012, 0.04);
}

// One clock says nothing of the voltage: the shipped spec's is used, of another card.
TEST(OverlapFit, PredictsAClockItHasNotSeen) {
  expect_errors(errors_without([](const OverlapRow& row) { return row.core_mhz.has_value(); }),
                0.03, 0.09, 0.05, 0.11);
}

TEST(OverlapFit, IsWhatTheModelShips) {
  const CollectiveSharing found = fitted().sharing(), shipped;
  EXPECT_NEAR(found.sm_gbs / shipped.sm_gbs, 1.0, 0.01);
  EXPECT_NEAR(found.threads_exponent / shipped.threads_exponent, 1.0, 0.01);
  EXPECT_NEAR(found.core_share / shipped.core_share, 1.0, 0.01);
  EXPECT_NEAR(found.load_slowdown / shipped.load_slowdown, 1.0, 0.01);
  EXPECT_NEAR(found.dram_weight / shipped.dram_weight, 1.0, 0.01);
  EXPECT_NEAR(found.sm_w / shipped.sm_w, 1.0, 0.01);
}

// The choice of SMs, block size and clock for a deadline, in each window: what the model's choice
// took when measured, against the least energy measured within that time.
TEST(OverlapFit, ChoosesWhatWasMeasuredBest) {
  const GpuSpec card = fitted().card(a100());
  std::map<std::pair<int, int>, std::vector<OverlapRow>> windows;
  for (const OverlapRow& row : measured()) windows[{row.first_op, row.last_op}].push_back(row);
  std::vector<double> late, regret;
  for (const auto& [window, rows] : windows) {
    std::vector<OverlapCost> predicted;
    for (const OverlapRow& row : rows) predicted.push_back(fitted().predict(card, row));
    const double fastest_s = std::ranges::min_element(predicted, {}, &OverlapCost::time_s)->time_s;
    for (const double slack : {0.0, 0.01, 0.02, 0.05, 0.10, 0.15, 0.30}) {
      const double deadline_s = fastest_s * (1.0 + slack);
      std::optional<std::size_t> chosen;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (predicted[i].time_s > deadline_s) continue;
        if (!chosen || predicted[i].energy_j < predicted[*chosen].energy_j) chosen = i;
      }
      ASSERT_TRUE(chosen);
      double best_j = rows[*chosen].energy_j;
      for (const OverlapRow& row : rows)
        if (row.time_s <= rows[*chosen].time_s) best_j = std::min(best_j, row.energy_j);
      late.push_back(std::max(rows[*chosen].time_s / deadline_s - 1.0, 0.0));
      regret.push_back(rows[*chosen].energy_j / best_j - 1.0);
    }
  }
  EXPECT_EQ(regret.size(), 14U * 7U);
  EXPECT_LT(OverlapErrors::mean_magnitude(regret), 0.01);
  EXPECT_LT(OverlapErrors::worst_magnitude(regret), 0.02);
  EXPECT_LT(OverlapErrors::worst_magnitude(late), 0.03);
  RecordProperty("mean_regret", fmt::format("{}", OverlapErrors::mean_magnitude(regret)));
  RecordProperty("worst_regret", fmt::format("{}", OverlapErrors::worst_magnitude(regret)));
  RecordProperty("worst_late", fmt::format("{}", OverlapErrors::worst_magnitude(late)));
}

TEST(OverlapRows, SayWhatIsWrong) {
  OverlapRow row = measured().front();
  row.first_op = 1;
  expect_error<UsageError>([&] { (void)fitted().predict(a100(), row); },
                           "no window of the measurements starts at part 1");
}

struct ByHand {
  GpuSpec spec = a100();
  ClockPair clock = parse_clock_pair(spec, "1593/1410");
  CollectiveSharing sharing;
  OverlappedSequence sequence;
  HeldCollective collective;

  // Two kernels of 1 and 2 ms that nothing slows down, and a collective of 1.5 ms.
  ByHand() {
    sharing.load_slowdown = 0.0;
    sequence.kernels = {wire(1e-3), wire(2e-3)};
    sequence.sm_share = {1.0, 1.0};
    collective = {wire(1.5e-3), 8.0};
  }
  static KernelCoefficients wire(double time_s) {
    return {.core_cycles = 1.0, .dram_bytes = 1.0, .fixed_s = time_s, .core_j = 1e-3};
  }
  [[nodiscard]] OverlapCost cost(std::size_t first, std::size_t end) {
    sequence.first = first;
    sequence.end = end;
    return overlap_cost(spec, sharing, sequence, collective, clock, 500.0);
  }
};

TEST(Overlap, ByHand) {
  ByHand made;
  EXPECT_NEAR(made.cost(0, 0).time_s, 4.5e-3, 1e-7);  // one after the other
  EXPECT_NEAR(made.cost(0, 1).time_s, 3.5e-3, 1e-7);  // the second waits for the collective
  EXPECT_NEAR(made.cost(0, 2).time_s, 3.0e-3, 1e-7);  // hidden
  EXPECT_NEAR(made.cost(1, 2).time_s, 3.0e-3, 1e-7);
  // 1 mJ a kernel at the voltage floor, and idle power for as long as it takes.
  const ClockState state = clock_state(made.spec, made.clock, false);
  EXPECT_NEAR(made.cost(0, 1).energy_j, 3e-3 * state.squared_voltage + 3.5e-3 * state.idle_w, 1e-6);
  made.sequence.host_s = 1e-3;
  EXPECT_NEAR(made.cost(0, 2).time_s, 4.0e-3, 1e-7);
}

TEST(Overlap, TheGridIsOneChoiceAfterTheOther) {
  ByHand made;
  made.sequence.end = 2;
  const std::vector<HeldCollective> collectives{{ByHand::wire(5e-3), 2.0},
                                                {ByHand::wire(1e-3), 20.0}};
  const std::vector<ClockPair> clocks{made.clock, parse_clock_pair(made.spec, "1593/705")};
  const std::vector<OverlapPoint> grid =
      overlap_grid(made.spec, made.sharing, made.sequence, collectives, clocks, 500.0);
  ASSERT_EQ(grid.size(), 4U);
  EXPECT_EQ(grid[1].comm_sms, 20.0);
  EXPECT_NEAR(grid[0].cost.time_s, 5e-3, 1e-7);
  EXPECT_NEAR(grid[1].cost.time_s, 3e-3, 1e-7);
  EXPECT_LT(grid[3].cost.energy_j, grid[1].cost.energy_j);  // nothing here follows the clock
}

TEST(Overlap, RejectsWhatDoesNotFit) {
  ByHand made;
  expect_error<UsageError>([&] { (void)made.cost(2, 1); }, "expected first <= end <= 2");
  made.sequence.sm_share.pop_back();
  expect_error<UsageError>([&] { (void)made.cost(0, 1); }, "2 kernels and 1 SM shares");
}

}  // namespace
}  // namespace rubato
