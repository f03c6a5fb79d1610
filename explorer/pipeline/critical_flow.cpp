#include "explorer/pipeline/critical_flow.hpp"

#include <algorithm>
#include <cassert>

namespace rubato {

CriticalFlow::CriticalFlow(const IntegerGraph& graph)
    : curves_(graph.curves), curve_of_(graph.curve_of_activity), arcs_(graph.arcs) {
  add_terminals(graph);
  index_arcs();
  links_.resize(curve_of_.size());
  turns_.resize(curve_of_.size());
  when_.resize(2 * curve_of_.size());
  for (Search* search : {&from_source_, &from_sink_}) {
    search->order.assign(when_.size(), unseen);
    search->reach.resize(when_.size());
    for (Pile<Node>* nodes : {&search->stack, &search->reached, &search->found})
      nodes->make_room(when_.size());
    search->steps.make_room(when_.size());
  }
  least_horizon_ = longest(false);
  horizon_ = longest(true);
  for (std::uint32_t a = 0; a < curve_of_.size(); ++a) {
    links_[a].level = static_cast<std::uint32_t>(curves_[curve_of_[a]].time.size()) - 1;
    refresh(a);
  }
  find<true>(source_, source_, along);
  find<false>(sink_, sink_, along);
}

// Adds two activities without a duration: the source before all others, the sink after them.
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

// Longest path with every activity at its slowest or at its fastest. Sets when_ to the earliest
// times of the nodes.
std::int64_t CriticalFlow::longest(bool slowest) {
  std::vector<std::uint32_t> waiting_for(curve_of_.size());
  for (const IntegerArc& arc : arcs_) ++waiting_for[arc.to];
  std::ranges::fill(when_, 0);
  std::vector<std::uint32_t> ready{source_ / 2};
  for (std::size_t next = 0; next < ready.size(); ++next) {
    const std::uint32_t a = ready[next];
    const IntegerCurve& curve = curves_[curve_of_[a]];
    const std::int64_t end = when_[2 * a] + (slowest ? curve.time.back() : curve.time.front());
    when_[2 * a + 1] = end;
    for (std::uint32_t e = first_out_[a]; e < first_out_[a + 1]; ++e) {
      const Arc& arc = out_[e];
      when_[arc.node] = std::max(when_[arc.node], end + arc.lag);
      if (--waiting_for[arc.node / 2] == 0) ready.push_back(arc.node / 2);
    }
  }
  assert(ready.size() == curve_of_.size());  // acyclic, by the promise of IntegerGraph
  return when_[sink_];
}

// At level k the duration is time[k], for flows from saving[k + 1] to saving[k]. At either end of
// that interval it may also be anything from there to the neighbouring time.
void CriticalFlow::refresh(std::uint32_t activity) {
  const IntegerCurve& curve = curves_[curve_of_[activity]];
  Link& link = links_[activity];
  std::uint32_t k = link.level;
  while (link.flow > curve.saving[k]) --k;
  while (link.flow < curve.saving[k + 1]) ++k;
  link.level = k;
  link.up_room = link.down_room = 0;
  Turns& turns = turns_[activity];
  turns.up_time = turns.down_time = no_room;
  if (link.flow < curve.saving[k]) {
    turns.up_time = curve.time[k];
    link.up_room = curve.saving[k] - link.flow;
  } else if (k > 0) {
    turns.up_time = curve.time[k - 1];
    link.up_room = curve.saving[k - 1] - link.flow;
  }
  if (link.flow > curve.saving[k + 1]) {
    turns.down_time = curve.time[k];
    link.down_room = link.flow - curve.saving[k + 1];
  } else if (k + 1 < curve.time.size()) {
    turns.down_time = curve.time[k + 1];
    link.down_room = link.flow - curve.saving[k + 2];
  }
}

std::int64_t CriticalFlow::duration(std::uint32_t activity) const {
  const std::int64_t span = when_[2 * activity + 1] - when_[2 * activity];
  return std::min(span, curves_[curve_of_[activity]].time.back());
}

// Visits the residual arcs out of a node (forward) or into it whose other node this search has not
// found. The last one visited is searched first. It leads along the stage's own order, which
// reaches the end soonest.
template <bool forward, class Visit>
void CriticalFlow::for_each_unseen(Node node, Visit visit) const {
  const std::vector<std::uint32_t>& order = search_of<forward>().order;
  const std::uint32_t a = node / 2;
  const bool at_end = (node & 1) != 0;
  const Node other = node ^ 1;
  const std::int64_t span = when_[2 * a + 1] - when_[2 * a];
  if (at_end == forward) {  // arcs of the graph along this direction, the activity against
    const std::int64_t down_time = turns_[a].down_time;
    if (down_time != no_room && order[other] == unseen) visit(other, down_time - span, against);
    const auto& first = forward ? first_out_ : first_in_;
    const auto& list = forward ? out_ : in_;
    for (std::uint32_t e = first[a]; e < first[a + 1]; ++e) {
      const Arc& arc = list[e];
      if (order[arc.node] != unseen) continue;
      const std::int64_t apart = when_[arc.node] - when_[node];
      const std::int64_t wait = (forward ? apart : -apart) - arc.lag;
      visit(arc.node, wait, static_cast<std::int32_t>(arc.arc));
    }
  } else {
    const auto& first = forward ? first_in_ : first_out_;
    const auto& list = forward ? in_ : out_;
    for (std::uint32_t e = first[a]; e < first[a + 1]; ++e) {
      const Arc& arc = list[e];
      if (order[arc.node] == unseen && flow_of_arc_[arc.arc] > 0)
        visit(arc.node, std::int64_t{0}, -3 - static_cast<std::int32_t>(arc.arc));
    }
    const std::int64_t up_time = turns_[a].up_time;
    if (up_time != no_room && order[other] == unseen) visit(other, span - up_time, along);
  }
}

template <bool forward>
void CriticalFlow::find(Node node, Node parent, std::int32_t via) {
  Search& mine = search_of<forward>();
  mine.order[node] = waiting;
  mine.reach[node] = {parent, via};
  mine.stack.add(node);
  mine.found.add(node);
}

// Undoes all but the first steps of a search.
template <bool forward>
void CriticalFlow::go_back(std::uint32_t steps) {
  Search& mine = search_of<forward>();
  if (steps >= mine.reached.size()) return;
  for (std::size_t i = mine.reached.size(); i-- > steps;) {
    mine.stack.shrink(mine.steps[i].stack);
    mine.stack.add(mine.reached[i]);
    mine.order[mine.reached[i]] = waiting;
  }
  for (std::size_t i = mine.steps[steps].found; i < mine.found.size(); ++i)
    mine.order[mine.found[i]] = unseen;
  mine.found.shrink(mine.steps[steps].found);
  mine.reached.shrink(steps);
  mine.steps.shrink(steps);
}

// Takes one node off the stack and finds those that it leads to without cost.
// Returns whether the other search was met.
template <bool forward>
bool CriticalFlow::grow_at_no_cost() {
  Search& mine = search_of<forward>();
  const Node node = mine.stack.take_last();
  mine.order[node] = mine.reached.size();
  mine.reached.add(node);
  mine.steps.add({mine.stack.size(), mine.found.size()});
  bool met = false;
  for_each_unseen<forward>(node, [&](Node next, std::int64_t cost, std::int32_t via) {
    if (cost != 0) return;
    find<forward>(next, node, via);
    if (search_of<!forward>().order[next] == unseen) return;
    meeting_ = next;
    met = true;
  });
  return met;
}

// Notes an arc that has no slack once the horizon has fallen. A search from the start would take
// it, so the next search goes back to before it.
template <bool forward>
void CriticalFlow::note_opened(const Entry& entry) {
  const std::uint32_t here = search_of<forward>().order[entry.parent];
  const std::uint32_t there = search_of<!forward>().order[entry.node];
  if (here < reached_free_) same_steps_ = std::min(same_steps_, here);
  if (there < waiting) same_steps_ = std::min(same_steps_, there);
}

// Dijkstra's algorithm from all nodes reached so far, until the other search is met. Returns the
// distance. Above the least horizon there is always a path.
template <bool forward>
std::int64_t CriticalFlow::grow_by_cost() {
  Search& mine = search_of<forward>();
  const auto later = [](const Entry& a, const Entry& b) { return a.distance > b.distance; };
  reached_free_ = mine.reached.size();
  distance_.clear();
  heap_.clear();
  const auto pop = [&] {
    std::ranges::pop_heap(heap_, later);
    heap_.pop_back();
  };
  std::int64_t distance = 0;
  bool met = false;
  for (std::size_t scanned = 0; !met;) {
    for (; scanned < mine.reached.size(); ++scanned) {
      const Node node = mine.reached[scanned];
      const std::int64_t so_far = scanned < reached_free_ ? 0 : distance_[scanned - reached_free_];
      for_each_unseen<forward>(node, [&](Node next, std::int64_t cost, std::int32_t via) {
        heap_.push_back({so_far + cost, next, node, via});
        std::ranges::push_heap(heap_, later);
      });
    }
    assert(!heap_.empty());  // the horizon is above the least one, so a path exists
    const Entry entry = heap_.front();
    if (const std::uint32_t order = mine.order[entry.node]; order != unseen) {
      if (distance_[order - reached_free_] == entry.distance) note_opened<forward>(entry);
      pop();
      continue;
    }
    distance = entry.distance;
    meeting_ = entry.node;
    met = search_of<!forward>().order[entry.node] != unseen;
    find<forward>(entry.node, entry.parent, entry.via);
    while (!met && !mine.stack.empty()) met = grow_at_no_cost<forward>();
    distance_.resize(mine.reached.size() - reached_free_, distance);
  }
  for (; !heap_.empty() && heap_.front().distance == distance; pop())
    note_opened<forward>(heap_.front());
  return distance;
}

// Bidirectional search: one node from each side in turn, so the work is twice that of the smaller
// side. Returns whether a path without cost was found.
bool CriticalFlow::search() {
  go_back<true>(same_steps_);
  go_back<false>(same_steps_);
  bool met = false;
  while (!met && !from_source_.stack.empty() && !from_sink_.stack.empty()) {
    met = grow_at_no_cost<true>() || grow_at_no_cost<false>();
    node_visits_ += 2;
  }
  source_side_moves_ = from_source_.stack.empty();
  same_steps_ = waiting;
  return met;
}

void CriticalFlow::collect_path(const Search& search) {
  for (Node node = meeting_; search.reach[node].parent != node; node = search.reach[node].parent) {
    const auto [parent, via] = search.reach[node];
    path_.push_back({node / 2, via, search.order[parent]});
  }
}

std::int64_t CriticalFlow::room_of(const PathArc& at) const {
  if (at.via == along) return links_[at.activity].up_room;
  if (at.via == against) return links_[at.activity].down_room;
  if (at.via < against) return flow_of_arc_[static_cast<std::size_t>(-3 - at.via)];
  return flow_without_limit;
}

// Augments the flow along the path through the meeting node by as much as fits.
void CriticalFlow::augment() {
  path_.clear();
  collect_path(from_source_);
  collect_path(from_sink_);
  std::int64_t room = flow_without_limit;
  for (const PathArc& at : path_) room = std::min(room, room_of(at));
  for (const PathArc& at : path_) {
    if (room_of(at) == room) same_steps_ = std::min(same_steps_, at.step);  // it is full then
    const auto [activity, via, step] = at;
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
  for (std::size_t i = 0; i < side.reached.size(); ++i) {
    const std::int64_t distance = i < reached_free_ ? 0 : distance_[i - reached_free_];
    const std::int64_t shift =
        std::max<std::int64_t>(0, total - distance) - std::max<std::int64_t>(0, fallen_ - distance);
    if (shift == 0) continue;
    when_[side.reached[i]] += source_side_moves_ ? shift : -shift;
    moved_.push_back(side.reached[i] / 2);
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
