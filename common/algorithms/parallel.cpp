#include "common/algorithms/parallel.hpp"

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

namespace rubato {

void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body,
                  LoopTasks tasks) {
  if (tasks == LoopTasks::singly) {
    tbb::parallel_for(std::size_t{0}, count, body, tbb::simple_partitioner());
  } else {
    tbb::parallel_for(std::size_t{0}, count, body);
  }
}

std::size_t threads_at_hand() {
  return static_cast<std::size_t>(tbb::this_task_arena::max_concurrency());
}

}  // namespace rubato
