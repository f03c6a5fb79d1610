#include "explorer/graph/sequences/sequence_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "explorer/graph/sequences/gpu_sequence.hpp"

namespace rubato {

namespace {

constexpr double never_ends = std::numeric_limits<double>::infinity();
constexpr double end_tolerance = 1e-9;      // of the deadline: sums differ in the last digits
constexpr double least_search_gain = 1e-9;  // of the energy: below it sums are noise
constexpr int scalings = 9;                 // replays to find a factor on all prices
// How much is replayed while single runs are improved: activities in all, least and most replays.
constexpr std::size_t replayed_activities = 4'000'000, least_tries = 60, most_tries = 1'500;

// Positions in a GPU's sequence.
struct Range {
  std::size_t first = 0, end = 0;

  friend bool operator==(const Range&, const Range&) = default;
};

// A run of launches at one clock.
struct Stretch {
  std::size_t gpu = 0;
  Range positions;

  friend bool operator==(const Stretch&, const Stretch&) = default;
};

class SequenceSearch {
 public:
  SequenceSearch(const SequenceTask& task, GraphSimulator& simulator,
                 std::optional<SequencePlan> start)
      : task_(task), graph_(task.costs.model().graph()), simulator_(simulator) {
    best_ = std::move(start);
    for (LeadingLaunches& launches : leading_launches(task.costs, task.repeats)) {
      if (launches.launches.empty()) continue;
      std::vector<double> length_s = run_lengths(launches);
      gpus_.emplace_back(task.costs, task.grid, std::move(launches), std::move(length_s));
    }
    tries_ = std::clamp(replayed_activities / graph_.size(), least_tries, most_tries);
  }

  std::optional<SequencePlan> run(const LaunchPrices& prices, const RunContext& context) {
    scale_prices(prices, context);
    improve(context);
    if (best_) name_clocks_beside();
    return std::move(best_);
  }

 private:
  // How long a position lasts, at each clock: from its start to that of the next at the default
  // clocks, or its own time if that is longer. Of all steps the shortest counts.
  [[nodiscard]] std::vector<double> run_lengths(const LeadingLaunches& leading) const {
    const std::vector<std::uint32_t>& launches = leading.launches;
    const std::size_t clocks = task_.grid.size();
    std::vector<double> length_s(leading.positions() * clocks, never_ends);
    for (std::size_t k = 0, next = 0; k < launches.size(); k = next) {
      while (next < launches.size() && leading.position[next] == leading.position[k]) ++next;
      const double next_s =
          next < launches.size() ? task_.baseline.start_s[launches[next]] : task_.baseline.span_s;
      const double until_next_s = next_s - task_.baseline.start_s[launches[k]];
      for (std::size_t c = 0; c < clocks; ++c) {
        double& length = length_s[leading.position[k] * clocks + c];
        const double own_s = task_.costs.time_s(launches[k], id_at<ClockId>(c));
        length = std::min(length, std::max(until_next_s, own_s));
      }
    }
    return length_s;
  }

  [[nodiscard]] GraphPlan cheapest(const LaunchPrices& prices) const {
    GraphPlan plan = uniform_plan(graph_, task_.grid.default_clock());
    plan.only_main_streams_ask = true;
    for (const GpuSequence& gpu : gpus_) {
      std::vector<ClockId> clock_of_position;
      for (const ClockRun& run : gpu.cheapest(prices.flow_w, task_.switching))
        clock_of_position.insert(clock_of_position.end(), run.launches, ClockId{run.clock});
      const LeadingLaunches& leading = gpu.launches();
      for (std::size_t k = 0; k < leading.launches.size(); ++k)
        plan.clock_of_activity[leading.launches[k]] = clock_of_position[leading.position[k]];
    }
    return plan;
  }

  // @return whether any launch has another clock than before
  static bool set_clock(GraphPlan& plan, const GpuSequence& gpu, const Range& positions,
                        ClockId clock) {
    const LeadingLaunches& leading = gpu.launches();
    bool other = false;
    for (std::size_t k = 0; k < leading.launches.size(); ++k) {
      const std::uint32_t position = leading.position[k];
      if (position < positions.first || position >= positions.end) continue;
      ClockId& now = plan.clock_of_activity[leading.launches[k]];
      other |= now != clock;
      now = clock;
    }
    return other;
  }

  [[nodiscard]] bool in_time(const GraphRun& run) const {
    return run.span_s <= task_.deadline_s * (1.0 + end_tolerance);
  }

  GraphRun replay(const GraphPlan& plan) {
    return simulator_.run(plan, {.switching = task_.switching});
  }

  // A plan must take less than this to count as better.
  [[nodiscard]] double most_energy_j() const {
    return best_->run.total_energy_j * (1.0 - least_search_gain);
  }

  // @return whether the plan ends in time and takes less than any before it
  bool keep_if_better(const GraphPlan& plan, GraphRun run) {
    if (!in_time(run)) return false;
    if (best_ && run.total_energy_j >= most_energy_j()) return false;
    best_ = SequencePlan{plan, std::move(run)};
    return true;
  }

  // Plans at prices times factors, down to nearly the least with which they end in time. A little
  // less may be the step to a plan that is far too late: then both are mixed.
  void scale_prices(const LaunchPrices& prices, const RunContext& context) {
    double factor = 1.0, low = 0.0, high = never_ends;
    GraphPlan early, late;  // on both sides of the deadline
    for (int i = 0; i < scalings && !context.stop_requested(); ++i) {
      LaunchPrices tried = prices;
      scale(tried, factor);
      const GraphPlan plan = cheapest(tried);
      GraphRun run = replay(plan);
      (in_time(run) ? high : low) = factor;
      (in_time(run) ? early : late) = plan;
      keep_if_better(plan, std::move(run));
      factor = high == never_ends ? 2.0 * low : low == 0.0 ? 0.5 * high : std::sqrt(low * high);
    }
    if (low > 0.0 && high < never_ends) mix(early, late, context);
  }

  // Each step begins with one plan and goes on with the other, split so that as much as possible of
  // the late plan still ends in time. Both orders are tried.
  void mix(const GraphPlan& early, const GraphPlan& late, const RunContext& context) {
    constexpr int splits = 7;
    for (const bool late_first : {true, false}) {
      double low = 0.0, high = 1.0;  // shares of the late one
      for (int i = 0; i < splits && !context.stop_requested(); ++i) {
        const double share = 0.5 * (low + high);
        const GraphPlan plan =
            late_first ? joined(late, early, share) : joined(early, late, 1.0 - share);
        GraphRun run = replay(plan);
        (in_time(run) ? low : high) = share;
        keep_if_better(plan, std::move(run));
      }
    }
  }

  // Plan `first` for a share of each step's time (as at the default clocks), plan `then` after it.
  [[nodiscard]] GraphPlan joined(const GraphPlan& first, const GraphPlan& then,
                                 double share) const {
    GraphPlan plan = first;
    plan.only_main_streams_ask = true;
    for (const GpuSequence& gpu : gpus_) {
      const LeadingLaunches& leading = gpu.launches();
      const double begin_s = task_.baseline.start_s[leading.played.front()];
      const double end_s = task_.baseline.end_s[leading.played.back()];
      const double split_s = begin_s + share * (end_s - begin_s);
      for (std::size_t k = 0; k < leading.launches.size(); ++k) {
        const std::uint32_t launch = leading.launches[k];
        if (task_.baseline.start_s[leading.played[leading.position[k]]] >= split_s)
          plan.clock_of_activity[launch] = then.clock_of_activity[launch];
      }
    }
    return plan;
  }

  [[nodiscard]] std::vector<Stretch> stretches(const GraphPlan& plan) const {
    std::vector<Stretch> found;
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      const std::vector<std::uint32_t>& played = gpus_[g].launches().played;
      for (std::size_t p = 0; p < played.size(); ++p) {
        const bool goes_on =
            p > 0 && plan.clock_of_activity[played[p]] == plan.clock_of_activity[played[p - 1]];
        if (!goes_on) found.push_back({g, {p, p}});
        found.back().positions.end = p + 1;
      }
    }
    return found;
  }

  // A first replay follows the best plan's run. Most tries fail there already. Only a try that
  // looks better is replayed in steady state, which may take two replays.
  bool try_clock(std::size_t gpu, const Range& positions, ClockId clock) {
    GraphPlan plan = best_->plan;
    const bool other = set_clock(plan, gpus_[gpu], positions, clock);
    if (!other || tries_ == 0) return false;
    --tries_;
    const GraphRun first =
        simulator_.run(plan, {.switching = task_.switching, .after = &best_->run});
    if (!in_time(first) || first.total_energy_j >= most_energy_j()) return false;
    return keep_if_better(plan, replay(plan));
  }

  // Run by run: another clock for all of it, or its neighbour's clock for a part at one end.
  void improve(const RunContext& context) {
    if (!best_) return;
    best_->plan.only_main_streams_ask = true;
    best_->run = replay(best_->plan);
    for (bool better = true; better && tries_ > 0;) {
      better = false;
      for (const Stretch& stretch : stretches(best_->plan)) {
        if (context.stop_requested()) return;
        // Runs move while they are improved; those that are no longer there are left for later.
        const auto now = stretches(best_->plan);
        if (std::ranges::find(now, stretch) != now.end()) better |= improve(stretch);
      }
    }
  }

  bool improve(const Stretch& stretch) {
    constexpr std::array<int, 6> steps{-1, 1, -2, 2, -4, 4};
    const auto& [first, end] = stretch.positions;
    const std::vector<std::uint32_t>& played = gpus_[stretch.gpu].launches().played;
    const auto clock_at = [&](std::size_t p) { return best_->plan.clock_of_activity[played[p]]; };
    const ClockId own = clock_at(first);
    const auto clocks = static_cast<int>(task_.grid.size());
    for (const int step : steps) {
      const int to = static_cast<int>(own.value) + step;
      if (to < 0 || to >= clocks) continue;
      const auto clock = id_at<ClockId>(static_cast<std::size_t>(to));
      if (try_clock(stretch.gpu, stretch.positions, clock)) return true;
    }
    for (std::size_t part = end - first; part > 0; part /= 4) {
      if (first > 0 && try_clock(stretch.gpu, {first, first + part}, clock_at(first - 1)))
        return true;
      if (end < played.size() && try_clock(stretch.gpu, {end - part, end}, clock_at(end)))
        return true;
    }
    return false;
  }

  // Names the clocks that launches on other streams ran at: what the last main-stream launch that
  // had begun by then asked for.
  void name_clocks_beside() {
    GraphPlan& plan = best_->plan;
    const GraphRun& run = best_->run;
    for (const GpuSequence& gpu : gpus_) {
      const std::vector<std::uint32_t>& launches = gpu.launches().launches;
      const auto stream = graph_.activities()[launches.front()].stream;
      const GpuId of = *graph_.gpu_of(graph_.activities()[launches.front()]);
      for (std::uint32_t i = 0; i < graph_.size(); ++i) {
        const Activity& activity = graph_.activities()[i];
        if (graph_.gpu_of(activity) != of || activity.stream == stream) continue;
        const auto after = std::ranges::upper_bound(
            launches, run.start_s[i], {}, [&](std::uint32_t l) { return run.start_s[l]; });
        const std::uint32_t leads = after == launches.begin() ? launches.back() : *(after - 1);
        plan.clock_of_activity[i] = plan.clock_of_activity[leads];
      }
    }
  }

  const SequenceTask& task_;
  const ExecutionGraph& graph_;
  GraphSimulator& simulator_;
  std::vector<GpuSequence> gpus_;
  std::optional<SequencePlan> best_;
  std::size_t tries_ = 0;
};

}  // namespace

std::optional<SequencePlan> sequence_plan(const SequenceTask& task, GraphSimulator& simulator,
                                          const LaunchPrices& prices,
                                          std::optional<SequencePlan> start,
                                          const RunContext& context) {
  return SequenceSearch(task, simulator, std::move(start)).run(prices, context);
}

}  // namespace rubato
