#pragma once
// Bounds for the search in mckp_core.cpp: linear relaxations of some rows, told in
// the integer units of the search.

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

  /// Difference of the largest and least weight, the base's 0 included.
  [[nodiscard]] std::int64_t spread() const noexcept;
};

/// Least cost change some rows together can reach, as a function of the weight change
/// they may make: the vertices of a falling convex curve.
struct Vertex {
  double weight = 0.0;
  double cost = 0.0;
};
using Relaxation = std::vector<Vertex>;

/// Starts and steps of all rows, steps by falling saving: the relaxation of any run of
/// rows is a selection from them.
class RowHulls {
 public:
  explicit RowHulls(const std::vector<IntegerRow>& rows);

  /// Of the rows [first, last), into `curve`.
  void relax(std::size_t first, std::size_t last, Relaxation& curve) const;

 private:
  struct Step {
    Vertex change;
    std::size_t row = 0;
  };

  std::vector<Vertex> starts_;  ///< of each row: its least weight
  std::vector<Step> steps_;
};

/// Relaxation of a run of rows that shrinks from call to call, made anew only when it
/// has lost `stride` rows. That of more rows is a valid bound, only weaker.
class RunRelaxation {
 public:
  RunRelaxation(const RowHulls& hulls, std::size_t stride) : hulls_(hulls), stride_(stride) {}

  /// Of the rows [first, last) and perhaps a few more.
  [[nodiscard]] const Relaxation& at_least(std::size_t first, std::size_t last);

 private:
  const RowHulls& hulls_;
  std::size_t stride_;
  std::size_t rows_ = 0;
  Relaxation curve_;
};

/// Evaluates a relaxation at falling weights, in constant time where they lie close.
class RelaxationCursor {
 public:
  explicit RelaxationCursor(const Relaxation& relaxation)
      : curve_(relaxation), at_(relaxation.size() - 1) {}

  /// Infinity below the least weight.
  [[nodiscard]] double least_cost(double weight) noexcept {
    constexpr int near = 8;
    for (int i = 0; at_ > 0 && curve_[at_].weight > weight; ++i) {
      if (i == near) {
        jump_to(weight);
        break;
      }
      --at_;
    }
    const Vertex& left = curve_[at_];
    if (left.weight > weight) return std::numeric_limits<double>::infinity();
    if (at_ + 1 == curve_.size()) return left.cost;
    const Vertex& right = curve_[at_ + 1];
    return left.cost +
           (weight - left.weight) / (right.weight - left.weight) * (right.cost - left.cost);
  }

 private:
  /// To the last vertex not beyond `weight`, or the first.
  void jump_to(double weight) noexcept {
    const auto end = curve_.begin() + static_cast<std::ptrdiff_t>(at_);
    const auto after = std::ranges::upper_bound(curve_.begin(), end, weight, {}, &Vertex::weight);
    at_ = after == curve_.begin() ? 0 : static_cast<std::size_t>(after - curve_.begin()) - 1;
  }

  const Relaxation& curve_;
  std::size_t at_;
};

}  // namespace rubato
