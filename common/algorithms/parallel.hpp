#pragma once
// Loops on all threads, by oneTBB. They are compiled in one place: every source file that uses
// oneTBB's loops itself costs the compiler a second.

#include <cstddef>
#include <functional>

namespace rubato {

/// How the calls of a loop are handed to threads.
enum class LoopTasks {
  in_ranges,  ///< neighbours together while all threads are busy
  singly      ///< one at a time: for few calls of unlike length
};

/// Calls body(i) for each i below `count`, on the threads at hand, in no order.
/// @throws what a call throws, once the calls under way have ended; others may then be left out
void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body,
                  LoopTasks tasks = LoopTasks::in_ranges);

/// Threads that a loop begun here can use, >= 1.
[[nodiscard]] std::size_t threads_at_hand();

}  // namespace rubato
