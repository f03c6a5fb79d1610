#pragma once
// Replays of one graph on several threads.

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "sim/graph/simulator.hpp"

namespace rubato {

/// Simulators of one model, one for each thread that replays at the time.
class GraphSimulators {
 public:
  /// @param model  must outlive the simulators
  GraphSimulators(const GraphModel& model, ClockGrid grid)
      : model_(&model), grid_(std::move(grid)) {}

  /// @param use  called with a simulator that no other thread has meanwhile
  template <class Use>
  auto with(const Use& use) {
    std::unique_ptr<GraphSimulator> simulator = take();
    auto result = use(*simulator);
    const std::scoped_lock lock(mutex_);
    free_.push_back(std::move(simulator));
    return result;
  }

  /// As GraphSimulator::run.
  [[nodiscard]] GraphRun run(const GraphPlan& plan, const GraphRunOptions& options = {}) {
    return with([&](GraphSimulator& simulator) { return simulator.run(plan, options); });
  }

 private:
  [[nodiscard]] std::unique_ptr<GraphSimulator> take() {
    {
      const std::scoped_lock lock(mutex_);
      if (!free_.empty()) {
        std::unique_ptr<GraphSimulator> simulator = std::move(free_.back());
        free_.pop_back();
        return simulator;
      }
    }
    return std::make_unique<GraphSimulator>(*model_, grid_);
  }

  const GraphModel* model_;
  ClockGrid grid_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<GraphSimulator>> free_;
};

}  // namespace rubato
