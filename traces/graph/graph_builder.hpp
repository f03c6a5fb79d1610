#pragma once
// Makes execution graphs: add in any order, then freeze.

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "traces/graph/execution_graph.hpp"

namespace rubato {

/// Number of an activity while its graph is built, by the order of add().
using DraftId = Id<struct DraftActivityTag>;

/// A graph under construction; the origin is there from the start.
class GraphBuilder {
 public:
  static constexpr DraftId origin{0};

  GraphBuilder();

  GpuId add_gpu(GraphGpu gpu);
  std::uint32_t add_stream(GraphStream stream);
  /// A kernel that is there already, by its name, is not added again.
  KernelId add_kernel(const Kernel& kernel);
  DraftId add(Activity activity);

  /// `to` starts no earlier than `lag_s` after the end of `from`.
  /// @pre both were added and differ, lag_s is finite and >= 0
  void add_arc(DraftId from, DraftId to, double lag_s, ArcKind kind, bool inferred = false);

  [[nodiscard]] std::size_t size() const noexcept { return activities_.size(); }
  [[nodiscard]] const Activity& operator[](DraftId id) const { return activities_[index(id)]; }

  /// A graph and where its activities come from.
  struct Built {
    ExecutionGraph graph;
    /// Shape [drafts]; nothing for host calls that nothing waits for, which are left out.
    std::vector<std::optional<ActivityId>> id_of_draft;
  };

  /// Sorts the activities topologically, and by captured start where arcs leave the order open.
  /// Activities that nothing precedes wait for the origin, until their captured start.
  /// @param where  prefix of messages
  /// @throws DataError naming activities of a cycle
  [[nodiscard]] Built build(std::string_view where) &&;

 private:
  struct Draft {
    DraftId from, to;
    double lag_s;
    ArcKind kind;
    bool inferred;
  };

  [[nodiscard]] std::vector<DraftId> topological_order(std::string_view where) const;
  [[noreturn]] void throw_cycle(std::string_view where, const std::vector<bool>& sorted) const;
  void release_first_activities();
  void leave_out_idle_hosts(std::vector<DraftId>& order);

  std::vector<Activity> activities_;
  std::vector<GraphGpu> gpus_;
  std::vector<GraphStream> streams_;
  std::vector<Kernel> kernels_;
  std::unordered_map<std::string, KernelId> kernel_of_name_;
  std::vector<Draft> arcs_;
};

}  // namespace rubato
