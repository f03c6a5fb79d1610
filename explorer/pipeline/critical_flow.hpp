#pragma once
// Parametric minimum-cost flow on an activity graph, in integers. It is the dual of project
// crashing (choosing durations at least cost). docs/pipeline.md has the mathematics.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace rubato {

/// A convex falling cost in integers.
struct IntegerCurve {
  std::vector<std::int64_t> time;  ///< of each vertex, rising
  /// saving[k], k >= 1, is the cost saved per unit of time between time[k - 1] and time[k]:
  /// strictly falling, > 0. saving[0] is flow_without_limit. A 0 follows the last one.
  std::vector<std::int64_t> saving;
};

inline constexpr std::int64_t flow_without_limit = std::int64_t{1} << 62;

/// `to` starts at least `lag` after `from` has ended.
struct IntegerArc {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::int64_t lag = 0;
};

/// An acyclic activity graph. The sum of times along any path and the sum of savings along any cut
/// stay below 2^61.
struct IntegerGraph {
  std::vector<IntegerCurve> curves;
  std::vector<std::uint32_t> curve_of_activity;
  std::vector<IntegerArc> arcs;
};

/// Optimal durations for a falling horizon T, the makespan: the time from first start to last end.
/// The value of the flow is the price of time, the Lagrange multiplier of T: what one unit less of
/// T costs. It only rises.
///
/// Every activity is an arc from its start node to its end node. At a given horizon flow runs only
/// along arcs without slack, those of critical paths. maximise() augments it until a cut blocks it.
/// fall() then lowers the horizon: it moves the nodes on the smaller side of the cut, by shortest
/// residual paths, until a new path opens. A search resumes the one before it, from the first step
/// at which a search from the start would differ; so it finds the same. Memory: O(activities +
/// arcs).
/// Source: primal-dual project crashing, Fulkerson, Management Science 7(2), 1961, and Kelley,
/// Operations Research 9(3), 1961; shortest residual paths as in Ahuja, Magnanti, Orlin,
/// "Network Flows", 1993, section 9.8.
class CriticalFlow {
 public:
  /// Starts with every activity at its slowest: optimal at price 0.
  explicit CriticalFlow(const IntegerGraph& graph);

  [[nodiscard]] std::int64_t horizon() const noexcept { return horizon_; }
  [[nodiscard]] std::int64_t least_horizon() const noexcept { return least_horizon_; }
  [[nodiscard]] std::int64_t price() const noexcept { return price_; }

  /// Duration of an activity at the present horizon.
  [[nodiscard]] std::int64_t duration(std::uint32_t activity) const;
  [[nodiscard]] std::int64_t flow(std::uint32_t activity) const { return links_[activity].flow; }

  /// Flow along an arc of the graph.
  [[nodiscard]] std::int64_t flow_of_arc(std::uint32_t arc) const { return flow_of_arc_[arc]; }

  /// Augments the flow, and so raises the price, as far as the present horizon allows.
  /// @return how far the horizon can fall at the price reached; 0 at the least horizon
  std::int64_t maximise();

  /// Lowers the horizon at the present price, by at most what maximise() returned in total.
  void fall(std::int64_t by);

  /// Activities whose flow changed since the last call, with repeats.
  [[nodiscard]] std::vector<std::uint32_t> take_changed_flows();

  /// Activities whose duration may have changed in the last fall(), with repeats.
  [[nodiscard]] const std::vector<std::uint32_t>& moved() const noexcept { return moved_; }

  /// Sum of flow x lag over the arcs, in units of price x time.
  [[nodiscard]] double lag_value() const noexcept { return lag_value_; }

  [[nodiscard]] std::uint64_t augmentations() const noexcept { return augmentations_; }

  /// Nodes that searches for paths without slack looked at, a measure of the work.
  [[nodiscard]] std::uint64_t node_visits() const noexcept { return node_visits_; }

 private:
  using Node = std::uint32_t;  // 2 a is the start of activity a, 2 a + 1 its end

  // Residual state of an activity: its flow may rise by up_room and fall by down_room.
  struct Link {
    std::int64_t flow = 0;
    std::int64_t up_room = 0, down_room = 0;
    std::uint32_t level = 0;
  };
  // How long an activity lasts where its flow rises or falls; no_room where it may not.
  struct Turns {
    std::int64_t up_time = 0, down_time = 0;
  };
  static constexpr std::int64_t no_room = std::numeric_limits<std::int64_t>::max();
  struct Arc {
    Node node;          // at the other end
    std::uint32_t arc;  // into arcs
    std::int64_t lag;
  };
  // How a search came to a node.
  struct Reach {
    Node parent = 0;
    std::int32_t via = 0;  // residual arc to the parent, coded as below
  };
  // Instead of a place in Search::reached:
  static constexpr std::uint32_t unseen = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t waiting = unseen - 1;  // on the stack
  // A list with room for all that it will ever hold: to add to it is one store.
  template <class T>
  class Pile {
   public:
    void make_room(std::size_t most) { values_.resize(most); }
    [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] const T& operator[](std::size_t i) const { return values_[i]; }
    void add(const T& value) { values_[size_++] = value; }
    [[nodiscard]] T take_last() { return values_[--size_]; }
    void shrink(std::uint32_t size) { size_ = size; }

   private:
    std::vector<T> values_;
    std::uint32_t size_ = 0;
  };
  // One of the two searches. Each of its steps takes one node off the stack. It keeps what is
  // needed to go back to any step. What is looked at most lies close together.
  struct Search {
    struct Step {
      std::uint32_t stack = 0, found = 0;  // their sizes when the node was taken off
    };
    std::vector<std::uint32_t> order;  // shape [nodes]: place in `reached`, unseen or waiting
    std::vector<Reach> reach;          // shape [nodes]
    Pile<Node> stack;
    Pile<Node> reached;  // taken off
    Pile<Step> steps;    // shape [reached]
    Pile<Node> found;    // put on the stack, ever
  };
  // An arc of an augmenting path, and the step in which its search came along it.
  struct PathArc {
    std::uint32_t activity = 0;
    std::int32_t via = 0;
    std::uint32_t step = 0;
  };
  struct Entry {
    std::int64_t distance;
    Node node, parent;
    std::int32_t via;
  };

  static constexpr std::int32_t along = -1;    // through an activity, start to end
  static constexpr std::int32_t against = -2;  // end to start
  // v >= 0: along arc v; v <= -3: against arc -3 - v.

  void add_terminals(const IntegerGraph& graph);
  void index_arcs();
  void set_slowest();
  void refresh(std::uint32_t activity);
  [[nodiscard]] std::int64_t longest(bool slowest);

  template <bool forward, class Visit>
  void for_each_unseen(Node node, Visit visit) const;
  // The forward search starts from the source, the other one from the sink.
  template <bool forward>
  [[nodiscard]] Search& search_of() {
    return forward ? from_source_ : from_sink_;
  }
  template <bool forward>
  [[nodiscard]] const Search& search_of() const {
    return forward ? from_source_ : from_sink_;
  }
  template <bool forward>
  void find(Node node, Node parent, std::int32_t via);
  template <bool forward>
  void go_back(std::uint32_t steps);
  template <bool forward>
  bool grow_at_no_cost();
  template <bool forward>
  std::int64_t grow_by_cost();
  template <bool forward>
  void note_opened(const Entry& entry);
  [[nodiscard]] bool search();
  void collect_path(const Search& search);
  [[nodiscard]] std::int64_t room_of(const PathArc& at) const;
  void augment();

  std::vector<IntegerCurve> curves_;
  std::vector<std::uint32_t> curve_of_;
  std::vector<IntegerArc> arcs_;
  std::vector<std::uint32_t> first_out_, first_in_;
  std::vector<Arc> out_, in_;
  std::vector<std::int64_t> flow_of_arc_;
  std::vector<Link> links_;
  std::vector<Turns> turns_;        // shape [activities]
  std::vector<std::int64_t> when_;  // shape [nodes]; only differences count
  Search from_source_, from_sink_;
  std::vector<Entry> heap_;
  std::vector<PathArc> path_;
  // Of the side that moves: how many nodes were reached without a fall, and the distances (falls)
  // at which the others are.
  std::size_t reached_free_ = 0;
  std::vector<std::int64_t> distance_;
  std::vector<std::uint32_t> changed_, moved_;
  Node source_ = 0, sink_ = 0, meeting_ = 0;
  std::uint32_t same_steps_ = 0;  // so many steps of both searches would be the same from the start
  std::int64_t horizon_ = 0, least_horizon_ = 0, price_ = 0;
  std::int64_t fallen_ = 0;  // since the last maximise()
  bool source_side_moves_ = true;
  bool met_by_cost_ = false;  // the last search ended with a path that fall() opens
  double lag_value_ = 0.0;
  std::uint64_t augmentations_ = 0, node_visits_ = 0;
};

}  // namespace rubato
