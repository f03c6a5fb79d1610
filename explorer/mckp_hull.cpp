#include <algorithm>
#include <functional>
#include <numeric>

#include <tbb/parallel_for.h>
#include <tbb/parallel_sort.h>

#include "explorer/mckp.hpp"
#include "explorer/pareto.hpp"

namespace rubato {

namespace {

// Rows of one block are worked on by one thread: long enough to pay for a task.
constexpr std::size_t block_cells = std::size_t{1} << 15;

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

}  // namespace

HullPath row_hulls(const MckpProblem& problem) {
  // Blocks of equal length, so that two threads finish together.
  const std::size_t wanted = problem.rows * problem.items / block_cells + 1;
  const std::size_t block_rows = std::max<std::size_t>((problem.rows + wanted - 1) / wanted, 1);
  const std::size_t blocks = std::max<std::size_t>((problem.rows + block_rows - 1) / block_rows, 1);
  std::vector<HullPath> parts(blocks);
  const auto work = [&](std::size_t block) {
    parts[block] =
        hulls_of(problem, block * block_rows, std::min((block + 1) * block_rows, problem.rows));
  };
  if (blocks == 1) {
    work(0);
    return std::move(parts[0]);
  }
  tbb::parallel_for(std::size_t{0}, blocks, work);
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
