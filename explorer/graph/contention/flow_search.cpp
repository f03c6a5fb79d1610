#include "explorer/graph/contention/flow_search.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace rubato {

namespace {

constexpr std::size_t most_flow_moves = 60;              // rounds
constexpr std::size_t most_evaluations = 200'000'000;    // launches x clocks, all rounds together
constexpr double first_move = 0.25, move_decay = 0.93;   // shares of the price, of the step before
constexpr double longer_step = 1.5, shorter_step = 0.5;  // after a step that helped, or did not

class FlowSearch {
 public:
  FlowSearch(const LaunchCosts& costs, PaidGraph& paid, const ContendedDeadline& deadline,
             const LaunchUnits* units, const RunContext& context)
      : costs_(costs),
        graph_(costs.model().graph()),
        paid_(paid),
        deadline_(deadline),
        units_(units),
        context_(context) {
    const std::size_t evaluations = (paid.looked_at() + graph_.size()) * costs.clocks();
    rounds_ = std::clamp<std::size_t>(most_evaluations / evaluations, 3, most_flow_moves);
    for (const GpuLanes& lanes : paid.lanes()) {
      if (lanes.side.empty()) continue;
      rows_.push_back(row_of(lanes.main.back()));
      if (takes_half(lanes)) rows_.push_back(row_of(lanes.side.back().activity));
    }
  }

  double run(ArcFlow flow) {
    best_ = flow;
    // Where hardly any plan ends in time, prices begin far too high and give no bound above 0.
    while (!raises(flow) && round_ < most_flow_moves && !context_.stop_requested()) {
      scale(flow, 0.25);
      rounds_ = std::max(rounds_, round_ + 2);
    }
    if (best_j_ > 0.0) scale_all(best_.price_w);
    const bool many = rows_.size() > 1;
    move_late_paths(many ? (round_ + rounds_) / 2 : rounds_);
    if (many) {
      begin_along_rows();
      move_rows();
    }
    return best_j_;
  }

 private:
  // A stream of a GPU: the main one, or one beside it that is at least half as full.
  struct Row {
    LatestPath path;
    std::set<std::uint32_t> gpus;  // that its path passes
    bool others = false;           // the path passes activities that are in PaidGraph::others_j
    double step_w = 0.0;
  };

  [[nodiscard]] bool stopped(std::size_t rounds) const {
    return round_ >= rounds || context_.stop_requested();
  }

  // Whether launches beside the main stream take at least half as long as its own: then each stream
  // waits for the other.
  [[nodiscard]] bool takes_half(const GpuLanes& lanes) const {
    const auto least_s = [&](std::uint32_t launch) {
      return costs_.time_s(launch, costs_.useful_clocks(launch).front());
    };
    double main_s = 0.0, side_s = 0.0;
    for (const std::uint32_t launch : lanes.main) main_s += least_s(launch);
    for (const SideActivity& side : lanes.side)
      if (!side.holds) side_s += least_s(side.activity);
    return 2.0 * side_s >= main_s;
  }

  // A path back from the last launch of a stream, along the stream. Before its first launch: along
  // what came last in the capture.
  [[nodiscard]] Row row_of(std::uint32_t last) const {
    Row row{{last, {}}, {}};
    for (std::uint32_t at = row.path.last; !graph_.arcs_into(ActivityId{at}).empty();) {
      if (const auto gpu = graph_.gpu_of(graph_.activities()[at])) row.gpus.insert(gpu->value);
      row.others |= paid_.is_other(at);
      const auto arcs = graph_.arcs_into(ActivityId{at});
      const auto rank = [&](const GraphArc& arc) {
        const Activity& from = graph_[arc.from];
        const bool same = from.stream && from.stream == graph_.activities()[at].stream;
        return std::pair(same, from.end_s() + arc.lag_s);
      };
      row.path.waits.push_back(&*std::ranges::max_element(arcs, {}, rank));
      at = row.path.waits.back()->from.value;
    }
    return row;
  }

  bool raises(const ArcFlow& tried) {
    if (stopped(rounds_)) return false;
    ++round_;
    paid_.pay(tried);
    const double found_j = paid_.bound_j(deadline_, units_);
    if (found_j <= best_j_) return false;
    best_j_ = found_j;
    best_ = tried;
    return true;
  }

  // Doubles or halves all prices while that helps: where time is short they may be far too low.
  void scale_all(double begun_w) {
    for (const double factor : {2.0, 0.5}) {
      ArcFlow scaled = best_;
      do scale(scaled, factor);
      while (raises(scaled));
      if (best_.price_w != begun_w) break;
    }
  }

  // One subgradient step: prices rise where the clocks they choose end late, else all fall.
  void move(double step, ArcFlow& flow) const {
    const std::vector<double> duration_s = paid_.durations_s();
    std::vector<double> start_s(graph_.size());
    const double span_s = earliest_starts(graph_, duration_s, start_s);
    if (span_s <= deadline_.time_s) return scale(flow, 1.0 - 0.5 * step);
    for (std::size_t i = 0; i < graph_.size(); ++i) start_s[i] += duration_s[i];
    const double raise_w = step * std::max(flow.price_w, costs_.least_idle_w());
    raise_latest_path(graph_, start_s, raise_w, flow);
  }

  void move_late_paths(std::size_t rounds) {
    ArcFlow flow;
    const auto back = [&] {
      flow = best_;
      paid_.pay(flow);
    };
    double step = first_move;
    for (back(); !stopped(rounds); step *= move_decay) {
      move(step, flow);
      if (raises(flow) || 2 * round_ <= rounds) continue;
      back();
      step *= 0.5;
    }
  }

  // Tries the same price along each of the full streams, and nowhere else.
  void begin_along_rows() {
    const double row_w = best_.price_w / static_cast<double>(rows_.size());
    ArcFlow flow = best_;
    scale(flow, 0.0);
    for (const Row& row : rows_) raise_along(graph_, row.path, row_w, flow);
    const double begun_w = flow.price_w;
    if (raises(flow)) scale_all(begun_w);
  }

  // Pays again the GPUs that a row's path passes: before its first launch it may pass others too.
  void pay_along(const Row& row, const ArcFlow& flow, std::vector<double>& of_gpu_j) {
    for (std::uint32_t g = 0; g < of_gpu_j.size(); ++g) {
      if (!row.gpus.contains(g)) continue;
      paid_.pay(flow, g);
      of_gpu_j[g] = paid_.of_gpu_j(g, units_);
    }
  }

  // Moves the price along one full stream after the other, up or down.
  void move_rows() {
    ArcFlow flow = best_;
    paid_.pay(flow);
    std::vector<double> of_gpu_j;
    for (std::uint32_t g = 0; g < paid_.lanes().size(); ++g)
      of_gpu_j.push_back(paid_.of_gpu_j(g, units_));
    double others_j = paid_.others_j();
    const double share_w = flow.price_w / static_cast<double>(rows_.size());
    for (Row& row : rows_) row.step_w = first_move * share_w;
    for (; !stopped(rounds_); ++round_) {
      for (Row& row : rows_) {
        const double least_w = -least_along(graph_, row.path, flow);
        const double step_w = std::max(row.step_w, least_w);
        if (step_w == 0.0) {
          row.step_w = shorter_step * first_move * share_w;
          continue;
        }
        raise_along(graph_, row.path, step_w, flow);
        std::vector<double> found_j = of_gpu_j;
        pay_along(row, flow, found_j);
        const double sum_j = std::accumulate(found_j.begin(), found_j.end(), 0.0) +
                             (row.others ? paid_.others_j() : others_j) +
                             paid_.of_time_j(deadline_);
        if (sum_j > best_j_) {
          best_j_ = sum_j;
          best_ = flow;
          of_gpu_j = std::move(found_j);
          if (row.others) others_j = paid_.others_j();
          row.step_w *= longer_step;
          continue;
        }
        raise_along(graph_, row.path, -step_w, flow);
        row.step_w *= -shorter_step;
      }
    }
  }

  const LaunchCosts& costs_;
  const ExecutionGraph& graph_;
  PaidGraph& paid_;
  const ContendedDeadline& deadline_;
  const LaunchUnits* units_;
  const RunContext& context_;
  std::vector<Row> rows_;
  std::size_t rounds_ = 0, round_ = 0;
  double best_j_ = 0.0;  // stopped before the first: no bound
  ArcFlow best_;
};

}  // namespace

double best_bound_j(const LaunchCosts& costs, PaidGraph& paid, const ContendedDeadline& deadline,
                    ArcFlow start, const LaunchUnits* units, const RunContext& context) {
  return FlowSearch(costs, paid, deadline, units, context).run(std::move(start));
}

}  // namespace rubato
