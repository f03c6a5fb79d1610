// The window against its definition.

#include "explorer/switching/dwell_window.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace rubato {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

enum class Kinds { alike, two };

// Launches, and what was best before each. Whole numbers, so that sums are exact in any order.
class Launches {
 public:
  Launches(std::size_t count, std::size_t clocks, int longest, Kinds kinds = Kinds::alike)
      : clocks_(clocks),
        count_(count),
        kinds_(kinds == Kinds::alike ? 1 : 2),
        groups_(kinds == Kinds::alike ? 1 : 4),
        rows_(count) {
    std::iota(rows_.rbegin(), rows_.rend(), 0U);
    for (std::size_t i = 0; i < count; ++i) {
      add_row(times_, 1, longest);
      add_row(costs_, 0, 20);
      for (std::size_t g = 0; g < groups_; ++g) best_.push_back(number(-1000, 1000));
    }
    for (std::size_t kind = 0; kind < kinds_; ++kind) {
      add_row(into_, 0, 100);
      for (std::size_t c = 0; c < clocks; ++c)
        group_.push_back(kind == 0 ? 0U : static_cast<std::uint32_t>(1 + c % 3));
    }
    add_row(initial_, -1000, 1000);
  }

  [[nodiscard]] std::size_t clocks() const { return clocks_; }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] double& time(std::size_t i, std::size_t c) { return times_[at(i, c)]; }
  [[nodiscard]] double time(std::size_t i, std::size_t c) const { return times_[at(i, c)]; }
  [[nodiscard]] double cost(std::size_t i, std::size_t c) const { return costs_[at(i, c)]; }
  void begin_with(std::vector<double> values) { initial_ = std::move(values); }

  // The last row is that of the first launch.
  [[nodiscard]] LaunchList list() const {
    return {
        .first = rows_.data(), .costs = costs_.data(), .times_s = times_.data(), .clocks = clocks_};
  }
  [[nodiscard]] RunBegins begins() const {
    return {.initial = initial_.data(),
            .best = best_.data(),
            .first_step = 0,
            .into = into_.data(),
            .group = group_.data(),
            .clocks = clocks_,
            .kinds = static_cast<std::int64_t>(kinds_),
            .groups = groups_};
  }

  // What a run that begins with a launch has behind it, and its label.
  [[nodiscard]] std::pair<double, std::int64_t> begun(std::size_t i, std::size_t c) const {
    if (i == 0) return {initial_[c], 0};
    std::pair<double, std::int64_t> least{infinity, 0};
    for (std::size_t kind = 0; kind < kinds_; ++kind) {
      const std::size_t group = kind == 0 ? 0 : 1 + c % 3;
      const double value = best_[i * groups_ + group] + into_[kind * clocks_ + c];
      if (value < least.first) least = {value, static_cast<std::int64_t>(i * kinds_ + kind)};
    }
    return least;
  }

  // Value and label of the best run that ends behind `last` and is long enough; the first of
  // equals.
  [[nodiscard]] std::pair<double, std::int64_t> best_run(std::size_t last, std::size_t clock,
                                                         double least_s) const {
    std::pair<double, std::int64_t> best{infinity, 0};
    double time_s = 0.0, sum = 0.0;
    for (std::size_t i = last + 1; i-- > 0;) {
      time_s += time(i, clock);
      sum += cost(i, clock);
      const auto [before, label] = begun(i, clock);
      if (time_s >= least_s && before + sum <= best.first) best = {before + sum, label};
    }
    return best;
  }

 private:
  [[nodiscard]] double number(int from, int to) {
    return std::uniform_int_distribution(from, to)(random_);
  }
  void add_row(std::vector<double>& rows, int from, int to) {
    for (std::size_t c = 0; c < clocks_; ++c) rows.push_back(number(from, to));
  }
  [[nodiscard]] std::size_t at(std::size_t i, std::size_t c) const {
    return rows_[i] * clocks_ + c;
  }

  std::mt19937_64 random_{11};
  std::size_t clocks_, count_, kinds_, groups_;
  std::vector<std::uint32_t> rows_;
  std::vector<double> times_, costs_, best_, into_, initial_;
  std::vector<std::uint32_t> group_;
};

LeastValue least_of(const std::vector<double>& values) {
  LeastValue least;
  for (std::size_t c = 0; c < values.size(); ++c) {
    if (values[c] < least.value) least = {values[c], c};
  }
  return least;
}

void expect_by_definition(const Launches& l, double least_s) {
  DwellWindow window(least_s, std::vector<double>(l.clocks(), infinity));
  std::vector<double> open(l.clocks());
  std::vector<std::int64_t> open_begin(l.clocks());
  for (std::size_t i = 0; i < l.count(); ++i) {
    const auto step = static_cast<std::int64_t>(i);
    const LeastValue found = window.step(l.list(), l.begins(), step);
    if (i % 97 != 0 && i + 1 != l.count()) continue;
    window.open_runs(l.list(), l.begins(), step + 1, open, open_begin);
    std::vector<double> values;
    for (std::size_t c = 0; c < l.clocks(); ++c) {
      const auto [value, label] = l.best_run(i, c, least_s);
      ASSERT_EQ(window.value(c), value) << "launch " << i << " clock " << c;
      ASSERT_EQ(window.begin(c), label) << "launch " << i << " clock " << c;
      const auto [any_value, any_label] = l.best_run(i, c, 0.0);
      ASSERT_EQ(open[c], any_value) << "launch " << i << " clock " << c;
      ASSERT_EQ(open_begin[c], any_label) << "launch " << i << " clock " << c;
      values.push_back(value);
    }
    const LeastValue expected = least_of(values);
    ASSERT_EQ(found.value, expected.value) << "launch " << i;
    ASSERT_EQ(found.clock, expected.clock) << "launch " << i;
  }
}

TEST(DwellWindow, KeepsTheBestOfRunsLongEnough) {
  for (const Kinds kinds : {Kinds::alike, Kinds::two}) {
    const Launches launches(1500, 131, 9, kinds);
    for (const double least_s : {1.0, 9.0, 40.0, 700.0, 1e6})
      expect_by_definition(launches, least_s);
  }
}

TEST(DwellWindow, ClocksMayComeOfAgeFarApart) {
  for (const Kinds kinds : {Kinds::alike, Kinds::two}) {
    Launches launches(1500, 3, 4, kinds);
    for (std::size_t i = 0; i < launches.count(); ++i) launches.time(i, 1) *= 50.0;
    expect_by_definition(launches, 200.0);
  }
}

TEST(DwellWindow, BeginsWithTheValuesGiven) {
  Launches launches(1, 2, 1);
  launches.begin_with({1.0, 1.0});
  launches.time(0, 0) = 4.0;
  launches.time(0, 1) = 12.0;
  std::vector<double> values(2, infinity);
  values[0] = 5.0;
  DwellWindow window(10.0, values);
  (void)window.step(launches.list(), launches.begins(), 0);
  EXPECT_EQ(window.value(0), 5.0 + launches.cost(0, 0));  // not yet long enough itself
  EXPECT_EQ(window.value(1), 1.0 + launches.cost(0, 1));
  EXPECT_EQ(window.begin(1), 0);
}

}  // namespace
}  // namespace rubato
