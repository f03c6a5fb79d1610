#include <algorithm>
#include <functional>
#include <numeric>

#include <tbb/parallel_sort.h>

#include "explorer/knapsack/mckp.hpp"
#include "explorer/knapsack/row_blocks.hpp"
#include "explorer/pareto.hpp"

namespace rubato {

namespace {

HullPath hulls_of(const MckpProblem& problem, std::size_t first, std::size_t last) {
  HullPath path;
  path.start.reserve(last - first);
  LowerHull finder;
  for (std::size_t row = first; row < last; ++row) {
    const std::span<const HullPoint> hull =
        finder.of(problem.weight.subspan(row * problem.items, problem.items),
                  problem.cost.subspan(row * problem.items, problem.items));
    path.start.push_back(hull.front().position);
    for (std::size_t i = 1; i < hull.size(); ++i) {
      path.steps.push_back({static_cast<std::uint32_t>(row),
                            static_cast<std::uint32_t>(hull[i].position), hull[i].x - hull[i - 1].x,
                            hull[i].y - hull[i - 1].y});
    }
  }
  return path;
}

// Hulls of all rows: the start of a path, and the steps row by row, each row's by rising weight.
HullPath row_hulls(const MckpProblem& problem) {
  const RowBlocks blocks(problem.rows, problem.items);
  std::vector<HullPath> parts(blocks.count());
  blocks.for_each([&](std::size_t block, std::size_t first, std::size_t last) {
    parts[block] = hulls_of(problem, first, last);
  });
  if (parts.size() == 1) return std::move(parts[0]);
  HullPath path;
  path.start.reserve(problem.rows);
  path.steps.reserve(std::transform_reduce(parts.begin(), parts.end(), std::size_t{0}, std::plus{},
                                           [](const HullPath& part) { return part.steps.size(); }));
  for (HullPath& part : parts) {
    path.start.insert(path.start.end(), part.start.begin(), part.start.end());
    path.steps.insert(path.steps.end(), part.steps.begin(), part.steps.end());
    part = {};
  }
  return path;
}

}  // namespace

HullPath hull_path(const MckpProblem& problem) {
  HullPath path = row_hulls(problem);
  struct Key {
    double saving;
    std::size_t step;
  };
  std::vector<Key> order(path.steps.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = {path.steps[i].saving(), i};
  const auto before = [](const Key& a, const Key& b) {
    return a.saving != b.saving ? a.saving > b.saving : a.step < b.step;
  };
  // No two keys are equal: the order does not depend on the number of threads.
  constexpr std::size_t many = std::size_t{1} << 16;
  if (order.size() < many) {
    std::ranges::sort(order, before);
  } else {
    tbb::parallel_sort(order.begin(), order.end(), before);
  }
  std::vector<HullStep> sorted;
  sorted.reserve(order.size());
  for (const Key& key : order) sorted.push_back(path.steps[key.step]);
  path.steps = std::move(sorted);
  return path;
}

}  // namespace rubato
