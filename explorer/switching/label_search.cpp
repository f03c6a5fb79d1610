#include "explorer/switching/label_search.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace rubato {

namespace {

struct Label {
  double time_s;
  double energy_j;
  double run_s;  ///< time of its last run, at most the longest that any change asks for
  std::uint32_t node;
};

// A run that labels are in, and the run before it: the way back to the first launch.
struct Node {
  std::uint32_t parent;
  std::uint32_t clock;
  std::uint32_t position;  ///< first launch
};

bool before(const Label& a, const Label& b) {
  if (a.time_s != b.time_s) return a.time_s < b.time_s;
  return std::tuple(a.energy_j, -a.run_s, a.node) < std::tuple(b.energy_j, -b.run_s, b.node);
}

// Sorts a list that consists of sorted stretches by merging them. The labels that went on from the
// launch before are one stretch, those that came from each other clock another.
void sort_stretches(std::vector<Label>& list) {
  std::vector<std::ptrdiff_t> ends{0};
  while (ends.back() < std::ssize(list)) {
    const auto sorted = std::is_sorted_until(list.begin() + ends.back(), list.end(), before);
    ends.push_back(sorted - list.begin());
  }
  while (ends.size() > 2) {
    std::vector<std::ptrdiff_t> merged{0};
    for (std::size_t i = 0; i + 1 < ends.size(); i += 2) {
      const std::ptrdiff_t end = ends[std::min(i + 2, ends.size() - 1)];
      std::inplace_merge(list.begin() + ends[i], list.begin() + ends[i + 1], list.begin() + end,
                         before);
      merged.push_back(end);
    }
    ends = std::move(merged);
  }
}

// Puts labels in order of time. A label stays if none before it has as little energy and as long a
// run.
void keep_undominated(std::vector<Label>& list) {
  sort_stretches(list);
  struct Best {
    double energy_j, run_s;
  };
  std::vector<Best> bests;  // of the labels that stay so far, both numbers ascending
  const auto dominated = [&](const Label& label) {
    const auto above = std::ranges::upper_bound(bests, label.energy_j, {}, &Best::energy_j);
    if (above != bests.begin() && std::prev(above)->run_s >= label.run_s) return true;
    const auto longer = std::find_if(above, bests.end(),
                                     [&](const Best& best) { return best.run_s > label.run_s; });
    const bool as_cheap = above != bests.begin() && std::prev(above)->energy_j == label.energy_j;
    const auto from = bests.erase(as_cheap ? std::prev(above) : above, longer);
    bests.insert(from, {label.energy_j, label.run_s});
    return false;
  };
  std::erase_if(list, dominated);
}

class Search {
 public:
  Search(const PricedSequence& priced, std::size_t first, const LabelLimits& limits)
      : priced_(priced),
        sequence_(priced.sequence()),
        first_(first),
        limits_(limits),
        to_go_(cost_to_go(priced, first)),
        clocks_(sequence_.clocks()),
        labels_(clocks_) {
    for (const ChangeKind& kind : sequence_.kinds()) {
      longest_run_s_ = std::max(longest_run_s_, kind.least_run_s);
      leaving_.resize(leaving_.size() + kind.groups);
    }
    least_value_.resize(leaving_.size());
  }

  LabelResult run() {
    LabelResult result;
    begin_run(0, first_, {0.0, 0.0, 0.0, no_node});
    for (std::size_t position = 0; position < sequence_.size(); ++position) {
      if (position > 0) change_clocks(position);
      launch(position);
      result.labels = followed_;
      if (followed_ > limits_.labels || nodes_.size() >= no_node) return result;
    }
    finish(result);
    result.complete = true;
    return result;
  }

 private:
  static constexpr double rounding = 1e-10;
  static constexpr std::uint32_t no_node = std::numeric_limits<std::uint32_t>::max();

  // A plan counts as better only if it saves more than the share `rounding` of the energy.
  [[nodiscard]] bool worth_following(double value) const {
    return value - priced_.price().time_w * limits_.budget_s < limits_.energy_j * (1.0 - rounding);
  }

  // Whether a plan that goes on from here, at this clock, may beat the best one.
  [[nodiscard]] bool worth_following(std::size_t position, std::size_t clock,
                                     const Label& label) const {
    return worth_following(label.energy_j + priced_.price().time_w * label.time_s +
                           to_go_[position * clocks_ + clock]);
  }

  void begin_run(std::size_t position, std::size_t clock, Label label) {
    if (!worth_following(position, clock, label)) return;
    nodes_.push_back(
        {label.node, static_cast<std::uint32_t>(clock), static_cast<std::uint32_t>(position)});
    label.node = static_cast<std::uint32_t>(nodes_.size() - 1);
    labels_[clock].push_back(label);
  }

  // The most that energy + price x time of a label may be for it to go on at a clock after a
  // change. It is worth_following() turned round, with room for rounding: one comparison is left
  // for each of millions of labels.
  [[nodiscard]] double most_value(std::size_t position, const ChangeKind& kind,
                                  std::size_t to) const {
    constexpr double room = 1e-12;
    const double allowed_j = limits_.energy_j + priced_.price().time_w * limits_.budget_s;
    return allowed_j * (1.0 + room) - kind.into[to].energy_j -
           priced_.price().time_w * kind.into[to].time_s - to_go_[position * clocks_ + to];
  }
  [[nodiscard]] double value(const Label& label) const {
    return label.energy_j + priced_.price().time_w * label.time_s;
  }

  // What a change of this kind costs does not depend on the clock that it comes from. So the labels
  // of a group of clocks compete in one pool before they are offered to each clock of the group.
  // Only those cheap enough for some clock are in it. Nothing is lost with a dominated label: where
  // the one that dominates it is too dear to go on, so is it.
  void gather(const ChangeKind& kind, std::uint32_t group, double most_value,
              std::vector<Label>& pool) {
    pool.clear();
    for (std::size_t c = 0; c < clocks_; ++c) {
      if (kind.group_of_clock[c] != group) continue;
      for (Label label : labels_[c]) {
        if (value(label) > most_value || label.run_s < kind.least_run_s * (1.0 - rounding))
          continue;
        label.run_s = 0.0;
        pool.push_back(label);
      }
    }
    keep_undominated(pool);
  }

  void change_clocks(std::size_t position) {
    std::size_t pool = 0;
    for (const ChangeKind& kind : sequence_.kinds()) {
      for (std::uint32_t group = 0; group < kind.groups; ++group) {
        double most = -std::numeric_limits<double>::infinity();
        for (std::size_t to = 0; to < clocks_; ++to) {
          if (kind.group_of_clock[to] == group)
            most = std::max(most, most_value(position, kind, to));
        }
        gather(kind, group, most, leaving_[pool]);
        least_value_[pool] = std::numeric_limits<double>::infinity();
        for (const Label& label : leaving_[pool])
          least_value_[pool] = std::min(least_value_[pool], value(label));
        ++pool;
      }
    }
    std::size_t first_pool = 0;
    for (const ChangeKind& kind : sequence_.kinds()) {
      for (std::size_t to = 0; to < clocks_; ++to) {
        const double most = most_value(position, kind, to);
        const std::size_t from = first_pool + kind.group_of_clock[to];
        if (least_value_[from] > most) continue;
        for (Label label : leaving_[from]) {
          if (value(label) > most || nodes_[label.node].clock == to) continue;
          label.time_s += kind.into[to].time_s;
          label.energy_j += kind.into[to].energy_j;
          begin_run(position, to, label);
        }
      }
      first_pool += kind.groups;
    }
  }

  void launch(std::size_t position) {
    for (std::size_t c = 0; c < clocks_; ++c) {
      if (labels_[c].empty()) continue;
      std::erase_if(labels_[c],
                    [&](const Label& label) { return !worth_following(position, c, label); });
      keep_undominated(labels_[c]);
      const Cost cost = sequence_.launch(position, c);
      for (Label& label : labels_[c]) {
        label.time_s += cost.time_s;
        label.energy_j += cost.energy_j;
        label.run_s = std::min(label.run_s + cost.time_s, longest_run_s_);
      }
      followed_ += labels_[c].size();
    }
  }

  void finish(LabelResult& result) const {
    double best_j = limits_.energy_j;
    for (std::size_t c = 0; c < clocks_; ++c) {
      for (const Label& label : labels_[c]) {
        Cost total{label.time_s, label.energy_j};
        if (c != first_) {
          const ChangeKind& kind = sequence_.kind(c, first_);
          if (label.run_s < kind.least_run_s * (1.0 - rounding)) continue;
          total.time_s += kind.into[first_].time_s;
          total.energy_j += kind.into[first_].energy_j;
        }
        if (total.time_s > limits_.budget_s || total.energy_j >= best_j) continue;
        best_j = total.energy_j;
        result.runs = runs_before(label.node);
      }
    }
  }

  [[nodiscard]] std::vector<ClockRun> runs_before(std::uint32_t node) const {
    std::vector<ClockRun> runs;
    for (std::size_t end = sequence_.size(); node != no_node; node = nodes_[node].parent) {
      runs.push_back({nodes_[node].clock, end - nodes_[node].position});
      end = nodes_[node].position;
    }
    std::ranges::reverse(runs);
    return runs;
  }

  const PricedSequence& priced_;
  const LaunchSequence& sequence_;
  std::size_t first_;
  LabelLimits limits_;
  std::vector<double> to_go_;
  std::size_t clocks_;
  double longest_run_s_ = 0.0;
  std::vector<std::vector<Label>> labels_;   ///< by clock
  std::vector<std::vector<Label>> leaving_;  ///< by kind of change and group of clocks
  std::vector<double> least_value_;          ///< of each list in leaving_
  std::vector<Node> nodes_;
  std::uint64_t followed_ = 0;
};

}  // namespace

LabelResult search_labels(const PricedSequence& priced, std::size_t first,
                          const LabelLimits& limits) {
  return Search(priced, first, limits).run();
}

}  // namespace rubato
