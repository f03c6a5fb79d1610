#pragma once
// Bounds for the search in core.cpp: linear relaxations of some rows, told in the integer units of
// the search. Costs and weights are changes against the base choice.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace rubato {

struct IntegerItem {
  std::int64_t weight = 0;  ///< changes against the base item
  std::int64_t cost = 0;
  std::uint32_t item = 0;
};

struct IntegerRow {
  std::uint32_t row = 0;
  std::vector<IntegerItem> items;  ///< without the base
  std::int64_t spread = 0;         ///< largest less least weight, the base's 0 included
};

/// A vertex of a curve: over the weight change that some rows together may make, the least cost
/// change that they reach if rows may be shared between items. The curve falls and is convex.
struct Vertex {
  double weight = 0.0;
  double cost = 0.0;
  double slope = 0.0;  ///< cost per weight up to the vertex on its right, <= 0
};

/// The steps of all rows' lower convex hulls, by falling saving. The relaxation of any run of rows
/// is a selection from them.
class RowHulls {
 public:
  explicit RowHulls(const std::vector<IntegerRow>& rows);

 private:
  friend class RestCurve;

  struct Step {
    double weight = 0.0;  ///< change, > 0
    double cost = 0.0;    ///< change, < 0
    double slope = 0.0;   ///< cost / weight
    std::size_t row = 0;
  };

  std::vector<Vertex> centres_;  ///< of each row: its place after its steps before `centre_`
  std::vector<Step> steps_;
  std::size_t centre_ = 0;  ///< the steps before it lead to the base choice or near it
};

/// The relaxation of a run of rows, which shrinks from call to call. The curve is made anew only
/// when the run has lost `stride` rows: until then that of more rows serves, a weaker bound, but a
/// valid one. Vertices are made as they are asked for, from the middle outwards.
class RestCurve {
 public:
  RestCurve(const RowHulls& hulls, std::size_t stride);

  /// The rows [first, last), and perhaps a few more.
  void shrink_to(std::size_t first, std::size_t last);

  /// The curve at a weight change; infinity where no choice is so light. Fast where weights asked
  /// for one after the other are close.
  [[nodiscard]] double least_cost(double weight) {
    while (curve_[at_].weight > weight) {
      if (at_ == low_ && !extend_left()) return std::numeric_limits<double>::infinity();
      --at_;
    }
    for (;; ++at_) {
      if (at_ == high_ && !extend_right()) return curve_[at_].cost;
      if (curve_[at_ + 1].weight > weight) break;
    }
    const Vertex& left = curve_[at_];
    return left.cost + (weight - left.weight) * left.slope;
  }

  /// Whether the curve is that of the rows asked for and no others.
  [[nodiscard]] bool exact() const noexcept { return exact_; }
  /// The vertex at or left of the weight that least_cost() was asked for last. If exact, it is a
  /// choice of one item of each row.
  [[nodiscard]] const Vertex& reached() const { return curve_[at_]; }

 private:
  [[nodiscard]] bool mine(const RowHulls::Step& step) const {
    return step.row >= first_ && step.row < last_;
  }
  bool extend_left();
  bool extend_right();

  const RowHulls& hulls_;
  std::size_t stride_;
  std::size_t first_ = 0, last_ = 0;  ///< rows
  bool exact_ = false;
  std::vector<Vertex> curve_;  ///< vertices [low_, high_], the first one at centre_
  std::size_t low_ = 0, high_ = 0, at_ = 0;
  std::size_t left_steps_ = 0, right_step_ = 0;  ///< not yet looked at: [0, left) and [right, end)
};

}  // namespace rubato
