#include "explorer/pipeline/critical_flow.hpp"

#include <algorithm>
#include <cassert>

namespace rubato {

namespace {

struct LaterFirst {
  template <class Entry>
  bool operator()(const Entry& a, const Entry& b) const {
    return a.distance > b.distance;
  }
};

}  // namespace

CriticalFlow::CriticalFlow(const IntegerGraph& graph)
    : curves_(graph.curves), curve_of_(graph.curve_of_activity), arcs_(graph.arcs) {
  add_terminals(graph);
  index_arcs();
  links_.resize(curve_of_.size());
  nodes_.resize(2 * curve_of_.size());
  least_horizon_ = longest(false);
  horizon_ = longest(true);
  for (std::uint32_t a = 0; a < curve_of_.size(); ++a) {
    links_[a].level = static_cast<std::uint32_t>(curves_[curve_of_[a]].time.size()) - 1;
    refresh(a);
  }
}

// Two activities of no duration, before everything and after everything.
void CriticalFlow::add_terminals(const IntegerGraph& graph) {
  const auto activities = static_cast<std::uint32_t>(graph.curve_of_activity.size());
  const auto nothing = static_cast<std::uint32_t>(curves_.size());
  curves_.push_back({{0}, {flow_without_limit, 0}});
  curve_of_.insert(curve_of_.end(), {nothing, nothing});
  source_ = 2 * activities;
  sink_ = 2 * (activities + 1) + 1;
  std::vector<char> has_before(activities), has_after(activities);
  for (const IntegerArc& arc : graph.arcs) has_after[arc.from] = has_before[arc.to] = 1;
  for (std::uint32_t a = 0; a < activities; ++a) {
    if (!has_before[a]) arcs_.push_back({activities, a, 0});
    if (!has_after[a]) arcs_.push_back({a, activities + 1, 0});
  }
}

void CriticalFlow::index_arcs() {
  const std::size_t activities = curve_of_.size();
  first_out_.assign(activities + 1, 0);
  first_in_.assign(activities + 1, 0);
  for (const IntegerArc& arc : arcs_) {
    ++first_out_[arc.from + 1];
    ++first_in_[arc.to + 1];
  }
  for (std::size_t a = 0; a < activities; ++a) {
    first_out_[a + 1] += first_out_[a];
    first_in_[a + 1] += first_in_[a];
  }
  out_.resize(arcs_.size());
  in_.resize(arcs_.size());
  auto next_out = first_out_, next_in = first_in_;
  for (std::uint32_t i = 0; i < arcs_.size(); ++i) {
    out_[next_out[arcs_[i].from]++] = {2 * arcs_[i].to, i, arcs_[i].lag};
    in_[next_in[arcs_[i].to]++] = {2 * arcs_[i].from + 1, i, arcs_[i].lag};
  }
  flow_of_arc_.assign(arcs_.size(), 0);
}

// Longest path with every activity at its slowest or fastest; leaves the
// earliest times in the nodes.
std::int64_t CriticalFlow::longest(bool slowest) {
  std::vector<std::uint32_t> waiting_for(curve_of_.size());
  for (const IntegerArc& arc : arcs_) ++waiting_for[arc.to];
  for (NodeState& node : nodes_) node.when = 0;
  std::vector<std::uint32_t> ready{source_ / 2};
  for (std::size_t next = 0; next < ready.size(); ++next) {
    const std::uint32_t a = ready[next];
    const IntegerCurve& curve = curves_[curve_of_[a]];
    const std::int64_t end =
        nodes_[2 * a].when + (slowest ? curve.time.back() : curve.time.front());
    nodes_[2 * a + 1].when = end;
    for (std::uint32_t e = first_out_[a]; e < first_out_[a + 1]; ++e) {
      const Arc& arc = out_[e];
      nodes_[arc.node].when = std::max(nodes_[arc.node].when, end + arc.lag);
      if (--waiting_for[arc.node / 2] == 0) ready.push_back(arc.node / 2);
    }
  }
  assert(ready.size() == curve_of_.size());  // acyclic, by the promise of IntegerGraph
  return nodes_[sink_].when;
}

// At level k the duration is time[k] for flows from saving[k + 1] to saving[k];
// at either end of that interval it may also be a neighbouring time.
void CriticalFlow::refresh(std::uint32_t activity) {
  const IntegerCurve& curve = curves_[curve_of_[activity]];
  Link& link = links_[activity];
  std::uint32_t k = link.level;
  while (link.flow > curve.saving[k]) --k;
  while (link.flow < curve.saving[k + 1]) ++k;
  link.level = k;
  link.up_room = link.down_room = 0;
  if (link.flow < curve.saving[k]) {
    link.up_time = curve.time[k];
    link.up_room = curve.saving[k] - link.flow;
  } else if (k > 0) {
    link.up_time = curve.time[k - 1];
    link.up_room = curve.saving[k - 1] - link.flow;
  }
  if (link.flow > curve.saving[k + 1]) {
    link.down_time = curve.time[k];
    link.down_room = link.flow - curve.saving[k + 1];
  } else if (k + 1 < curve.time.size()) {
    link.down_time = curve.time[k + 1];
    link.down_room = link.flow - curve.saving[k + 2];
  }
}

std::int64_t CriticalFlow::duration(std::uint32_t activity) const {
  const std::int64_t span = nodes_[2 * activity + 1].when - nodes_[2 * activity].when;
  return std::min(span, curves_[curve_of_[activity]].time.back());
}

// Residual arcs out of a node (forward) or into it. The last one visited is
// searched first: along the stage's own order, which reaches the end soonest.
template <bool forward, class Visit>
void CriticalFlow::for_each_residual(Node node, Visit visit) const {
  const std::uint32_t a = node / 2;
  const Link& link = links_[a];
  const bool at_end = (node & 1) != 0;
  const Node other = node ^ 1;
  const std::int64_t span = nodes_[2 * a + 1].when - nodes_[2 * a].when;
  if (at_end == forward) {  // arcs of the graph along this direction, the activity against
    if (link.down_room > 0) visit(other, link.down_time - span, against);
    const auto& first = forward ? first_out_ : first_in_;
    const auto& list = forward ? out_ : in_;
    for (std::uint32_t e = first[a]; e < first[a + 1]; ++e) {
      const Arc& arc = list[e];
      const std::int64_t apart = nodes_[arc.node].when - nodes_[node].when;
      const std::int64_t wait = (forward ? apart : -apart) - arc.lag;
      visit(arc.node, wait, static_cast<std::int32_t>(arc.arc));
    }
  } else {
    const auto& first = forward ? first_in_ : first_out_;
    const auto& list = forward ? in_ : out_;
    for (std::uint32_t e = first[a]; e < first[a + 1]; ++e) {
      const Arc& arc = list[e];
      if (flow_of_arc_[arc.arc] > 0)
        visit(arc.node, std::int64_t{0}, -3 - static_cast<std::int32_t>(arc.arc));
    }
    if (link.up_room > 0) visit(other, span - link.up_time, along);
  }
}

// Takes one node off the stack and reaches its neighbours without cost.
// Returns whether the other search was met.
template <bool forward>
bool CriticalFlow::grow_at_no_cost() {
  Search& mine = search_of<forward>();
  const Node node = mine.stack.back();
  mine.stack.pop_back();
  mine.reached.push_back(node);
  const std::int64_t distance = nodes_[node].distance;
  bool met = false;
  for_each_residual<forward>(node, [&](Node next, std::int64_t cost, std::int32_t via) {
    if (cost != 0 || reach<forward>(next).mark == round_) return;
    reach<forward>(next) = {round_, node, via};
    nodes_[next].distance = distance;
    mine.stack.push_back(next);
    if (reach<!forward>(next).mark == round_) {
      meeting_ = next;
      met = true;
    }
  });
  return met;
}

// Dijkstra from all nodes reached so far until the other search is met.
// Returns the distance; no path at all means unlimited flow, at the least horizon.
template <bool forward>
std::int64_t CriticalFlow::grow_by_cost() {
  Search& mine = search_of<forward>();
  heap_.clear();
  std::size_t scanned = 0;
  while (true) {
    for (; scanned < mine.reached.size(); ++scanned) {
      const Node node = mine.reached[scanned];
      const std::int64_t distance = nodes_[node].distance;
      for_each_residual<forward>(node, [&](Node next, std::int64_t cost, std::int32_t via) {
        if (reach<forward>(next).mark == round_) return;
        heap_.push_back({distance + cost, next, node, via});
        std::ranges::push_heap(heap_, LaterFirst{});
      });
    }
    while (!heap_.empty() && reach<forward>(heap_.front().node).mark == round_) {
      std::ranges::pop_heap(heap_, LaterFirst{});
      heap_.pop_back();
    }
    assert(!heap_.empty());  // the horizon is above the least one, so a path exists
    const Entry entry = heap_.front();
    reach<forward>(entry.node) = {round_, entry.parent, entry.via};
    nodes_[entry.node].distance = entry.distance;
    meeting_ = entry.node;
    if (reach<!forward>(entry.node).mark == round_) return entry.distance;
    mine.stack.assign(1, entry.node);
    while (!mine.stack.empty()) {
      if (grow_at_no_cost<forward>()) return entry.distance;
    }
  }
}

template <bool forward>
void CriticalFlow::begin_search(Node root) {
  search_of<forward>().reached.clear();
  search_of<forward>().stack.assign(1, root);
  reach<forward>(root) = {round_, root, along};
  nodes_[root].distance = 0;
}

// One node from each side in turn, so the work is twice that of the smaller
// side. Returns whether a path without cost was found.
bool CriticalFlow::search() {
  ++round_;
  begin_search<true>(source_);
  begin_search<false>(sink_);
  bool met = false;
  while (!met && !from_source_.stack.empty() && !from_sink_.stack.empty()) {
    met = grow_at_no_cost<true>() || grow_at_no_cost<false>();
  }
  source_side_moves_ = from_source_.stack.empty();
  node_visits_ += from_source_.reached.size() + from_sink_.reached.size();
  return met;
}

void CriticalFlow::collect_path(std::size_t side) {
  for (Node node = meeting_; nodes_[node].reach[side].parent != node;
       node = nodes_[node].reach[side].parent) {
    path_.emplace_back(node / 2, nodes_[node].reach[side].via);
  }
}

// Pushes as much flow as fits along the path through the meeting node.
void CriticalFlow::augment() {
  path_.clear();
  collect_path(0);
  collect_path(1);
  std::int64_t room = flow_without_limit;
  for (const auto& [activity, via] : path_) {
    if (via == along) {
      room = std::min(room, links_[activity].up_room);
    } else if (via == against) {
      room = std::min(room, links_[activity].down_room);
    } else if (via < against) {
      room = std::min(room, flow_of_arc_[static_cast<std::size_t>(-3 - via)]);
    }
  }
  for (const auto& [activity, via] : path_) {
    if (via == along || via == against) {
      links_[activity].flow += via == along ? room : -room;
      refresh(activity);
      changed_.push_back(activity);
    } else {
      const auto arc = static_cast<std::size_t>(via >= 0 ? via : -3 - via);
      const std::int64_t change = via >= 0 ? room : -room;
      flow_of_arc_[arc] += change;
      lag_value_ += static_cast<double>(change) * static_cast<double>(arcs_[arc].lag);
    }
  }
  price_ += room;
  ++augmentations_;
}

std::int64_t CriticalFlow::maximise() {
  if (met_by_cost_ && horizon_ > least_horizon_) augment();
  met_by_cost_ = false;
  fallen_ = 0;
  if (horizon_ <= least_horizon_) return 0;
  while (search()) augment();
  met_by_cost_ = true;
  const std::int64_t distance = source_side_moves_ ? grow_by_cost<true>() : grow_by_cost<false>();
  return std::min(distance, horizon_ - least_horizon_);
}

void CriticalFlow::fall(std::int64_t by) {
  const Search& side = source_side_moves_ ? from_source_ : from_sink_;
  const std::int64_t total = fallen_ + by;
  moved_.clear();
  for (const Node node : side.reached) {
    NodeState& state = nodes_[node];
    const std::int64_t shift = std::max<std::int64_t>(0, total - state.distance) -
                               std::max<std::int64_t>(0, fallen_ - state.distance);
    if (shift == 0) continue;
    state.when += source_side_moves_ ? shift : -shift;
    moved_.push_back(node / 2);
  }
  fallen_ = total;
  horizon_ -= by;
}

std::vector<std::uint32_t> CriticalFlow::take_changed_flows() {
  std::vector<std::uint32_t> changed;
  changed.swap(changed_);
  return changed;
}

}  // namespace rubato
