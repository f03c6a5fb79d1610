#include "sim/simulator.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "sim/repeated_sum.hpp"
#include "traces/graph/ordered_graph.hpp"
#include "traces/launch_limit.hpp"

namespace rubato {

namespace {

// Totals under construction: long sums are compensated.
struct Tally {
  CompensatedSum time_s;
  CompensatedSum energy_j;
  std::uint64_t launches = 0;
  std::uint64_t power_limited = 0;

  void add(const OperatingPoint& point, std::uint64_t count = 1) {
    add_times(time_s, point.time_s, count);
    add_times(energy_j, point.energy_j, count);
    launches += count;
    if (point.power_limited) power_limited += count;
  }
  [[nodiscard]] Totals totals() const {
    return {.time_s = time_s.value(),
            .energy_j = energy_j.value(),
            .launches = launches,
            .clock_switches = 0,
            .power_limited_launches = power_limited};
  }
};

std::vector<Totals> totals_of(const std::vector<Tally>& tallies) {
  std::vector<Totals> list;
  for (const Tally& tally : tallies) list.push_back(tally.totals());
  return list;
}

// Launches one after the other, repeats expanded, without a list of them.
class LaunchCursor {
 public:
  explicit LaunchCursor(std::span<const Segment> segments) : segments_(segments) {}

  [[nodiscard]] bool at_end() const { return segments_.empty(); }
  [[nodiscard]] KernelId next() {
    const Segment& segment = segments_.front();
    const KernelId kernel = segment.launches[position_];
    if (++position_ == segment.launches.size()) {
      position_ = 0;
      if (++repeat_ == segment.repeat) {
        repeat_ = 0;
        segments_ = segments_.subspan(1);
      }
    }
    return kernel;
  }

 private:
  std::span<const Segment> segments_;
  std::size_t position_ = 0;
  std::uint32_t repeat_ = 0;
};

bool same_launches(std::span<const Segment> a, std::span<const Segment> b) {
  LaunchCursor of_a(a), of_b(b);
  while (!of_a.at_end() && !of_b.at_end()) {
    if (of_a.next() != of_b.next()) return false;
  }
  return of_a.at_end() && of_b.at_end();
}

// Changes of clock in steady state: from the last launch to the first one, too.
std::uint64_t clock_changes(const Trace& trace, const Plan& plan) {
  std::uint64_t changes = 0;
  std::size_t first = 0;
  const std::vector<ClockId>& clocks = plan.clock_of_site;
  for (const Segment& segment : plan.segments_of(trace)) {
    const std::size_t last = first + segment.launches.size() - 1;
    for (std::size_t i = first; i < last; ++i)
      changes += clocks[i] == clocks[i + 1] ? 0U : segment.repeat;
    changes += clocks[last] == clocks[first] ? 0U : segment.repeat - 1;
    changes += clocks[last] == clocks[last + 1 < clocks.size() ? last + 1 : 0] ? 0U : 1U;
    first = last + 1;
  }
  return changes;
}

void check_plan(const Trace& trace, const ClockGrid& grid, const Plan& plan) {
  const std::size_t expected = sites(trace, plan).size();
  if (plan.clock_of_site.size() != expected) {
    throw DataError(
        fmt::format("the plan has {} entries; expected {}, one per launch of the compact trace",
                    plan.clock_of_site.size(), expected));
  }
  for (const ClockId clock : plan.clock_of_site) {
    if (index(clock) < grid.size()) continue;
    throw DataError(
        fmt::format("the plan asks for clock {}; the grid has {}", index(clock), grid.size()));
  }
  if (!plan.segments.empty() && !same_launches(plan.segments, trace.segments))
    throw DataError("the launches of the plan are not those of the trace");
}

}  // namespace

void add_power(Totals& totals, double power_w) noexcept {
  totals.energy_j += power_w * totals.time_s;
}

void add_power(SimResult& result, double power_w) noexcept {
  add_power(result.total, power_w);
  add_power(result.switching, power_w);
  for (Totals& pass : result.by_pass) add_power(pass, power_w);
  for (Totals& kernel : result.by_kernel) add_power(kernel, power_w);
}

// Time and energy of launches: given, or from the model, each evaluated once.
class TraceSimulator::Cells final : public LaunchCells {
 public:
  Cells(const GpuModel& model, const ClockGrid& grid, std::span<const OperatingPoint> cells)
      : model_(model), grid_(grid), given_(cells), found_(grid.size()) {}

  void use_graph(const ExecutionGraph& graph) { graph_ = &graph; }

  [[nodiscard]] const GpuModel& model() const { return model_; }
  [[nodiscard]] std::span<const OperatingPoint> given() const { return given_; }
  [[nodiscard]] std::size_t clocks() const override { return grid_.size(); }
  [[nodiscard]] OperatingPoint at(std::size_t activity, ClockId clock) const override {
    return of(graph_->activities()[activity].kernel, clock);
  }
  [[nodiscard]] OperatingPoint of(KernelId kernel, ClockId clock) const {
    if (!given_.empty()) return given_[index(kernel) * grid_.size() + index(clock)];
    std::vector<OperatingPoint>& found = found_[index(clock)];
    if (found.empty()) found.resize(model_.kernels());
    OperatingPoint& cell = found[index(kernel)];
    if (cell.time_s == 0.0) cell = model_.evaluate(kernel, grid_[clock]);
    return cell;
  }
  [[nodiscard]] double idle_power_w(ClockId clock) const override {
    return model_.idle_power_w(grid_[clock]);
  }
  [[nodiscard]] std::optional<SwitchCost> change(const SwitchModel& switching, ClockId from,
                                                 ClockId to) const override {
    return switching.change(grid_[from], grid_[to]);
  }

 private:
  const ExecutionGraph* graph_ = nullptr;
  const GpuModel& model_;
  const ClockGrid& grid_;
  std::span<const OperatingPoint> given_;                   // shape [kernels x clocks], or none
  mutable std::vector<std::vector<OperatingPoint>> found_;  // shape [clocks][kernels or none]
};

struct TraceSimulator::Unfolded {
  Unfolded(const Trace& trace, Cells& cells) : graph(graph_of(trace)), simulator(graph, cells) {
    cells.use_graph(graph);
  }

  ExecutionGraph graph;
  GraphSimulator simulator;
};

TraceSimulator::TraceSimulator(const Trace& trace, const GpuModel& model, const ClockGrid& grid,
                               std::span<const OperatingPoint> cells)
    : trace_(trace), grid_(grid), cells_(std::make_unique<Cells>(model, grid, cells)) {}

TraceSimulator::~TraceSimulator() = default;

TraceSimulator::Unfolded& TraceSimulator::unfolded() {
  if (!unfolded_) unfolded_ = std::make_unique<Unfolded>(trace_, *cells_);
  return *unfolded_;
}

const ExecutionGraph& TraceSimulator::graph() { return unfolded().graph; }

GraphRun TraceSimulator::replay(const Plan& plan, const GraphRunOptions& options) {
  check_plan(trace_, grid_, plan);
  GraphPlan of_launches;
  of_launches.clock_of_activity.reserve(graph().size());
  of_launches.clock_of_activity.emplace_back();  // the origin's
  auto first = plan.clock_of_site.begin();
  for (const Segment& segment : plan.segments_of(trace_)) {
    const auto last = first + static_cast<std::ptrdiff_t>(segment.launches.size());
    for (std::uint32_t r = 0; r < segment.repeat; ++r)
      of_launches.clock_of_activity.insert(of_launches.clock_of_activity.end(), first, last);
    first = last;
  }
  return unfolded().simulator.run(of_launches, options);
}

namespace {

std::uint64_t scaled(std::uint64_t more, std::uint64_t less, double factor) {
  return static_cast<std::uint64_t>(
      std::llround(factor * (static_cast<double>(more) - static_cast<double>(less))));
}

// Adds what `more` has and `less` has not, `factor` times.
void add(Totals& to, const Totals& more, const Totals& less, double factor) {
  to.time_s += factor * (more.time_s - less.time_s);
  to.energy_j += factor * (more.energy_j - less.energy_j);
  to.launches += scaled(more.launches, less.launches, factor);
  to.clock_switches += scaled(more.clock_switches, less.clock_switches, factor);
  to.power_limited_launches +=
      scaled(more.power_limited_launches, less.power_limited_launches, factor);
}

void add(SimResult& to, const SimResult& more, const SimResult& less, double factor) {
  add(to.total, more.total, less.total, factor);
  add(to.switching, more.switching, less.switching, factor);
  for (std::size_t p = 0; p < to.by_pass.size(); ++p)
    add(to.by_pass[p], more.by_pass[p], less.by_pass[p], factor);
  for (std::size_t k = 0; k < to.by_kernel.size(); ++k)
    add(to.by_kernel[k], more.by_kernel[k], less.by_kernel[k], factor);
  to.late_launches += scaled(more.late_launches, less.late_launches, factor);
}

}  // namespace

// What each repeat of a block adds is the same once the changes of clock at its begin are over. A
// block is replayed so often that they are; of one that runs at one clock the others are counted,
// of another one they take what as many repeats more take in a replay.
SimResult TraceSimulator::totals_in_parts(const Plan& plan, const SwitchModel& switching) const {
  constexpr double settled = 4.0;          // latencies and dwells, at both ends and once more
  constexpr double least_launches = 50e3;  // of a block of several clocks: its pattern may be long
  const double latency_s =
      switching.core.latency_s() + (switching.mem ? switching.mem->latency_s() : 0.0);
  const std::span<const Segment> all = plan.segments_of(trace_);
  Trace part = trace_;
  part.segments.assign(all.begin(), all.end());
  std::vector<std::uint32_t> counted_repeats(all.size(), 0);
  std::vector<std::size_t> of_several_clocks;  // with repeats that are not replayed
  auto first = plan.clock_of_site.begin();
  for (std::size_t s = 0; s < all.size(); ++s) {
    const auto size = static_cast<std::ptrdiff_t>(all[s].launches.size());
    const bool one_clock =
        std::adjacent_find(first, first + size, std::not_equal_to<>{}) == first + size;
    double once_s = 0.0;
    for (std::ptrdiff_t i = 0; i < size; ++i)
      once_s += cells_->of(all[s].launches[static_cast<std::size_t>(i)], first[i]).time_s;
    first += size;
    double replayed = std::ceil(settled * (latency_s + switching.dwell_s) / once_s) + 2.0;
    if (!one_clock) replayed += std::ceil(least_launches / static_cast<double>(size));
    if (2.0 * replayed > static_cast<double>(all[s].repeat)) continue;
    part.segments[s].repeat = static_cast<std::uint32_t>(replayed);
    if (one_clock)
      counted_repeats[s] = all[s].repeat - part.segments[s].repeat;
    else
      of_several_clocks.push_back(s);
  }
  refuse_to_list_too_many(part.segments);
  const Plan same_clocks{.clock_of_site = plan.clock_of_site};
  const auto replayed = [&] {
    return TraceSimulator(part, cells_->model(), grid_, cells_->given())
        .totals(same_clocks, switching);
  };
  const SimResult base = replayed();
  SimResult sum = base;
  for (const std::size_t s : of_several_clocks) {
    const std::uint32_t repeats = part.segments[s].repeat;
    part.segments[s].repeat = 2 * repeats;
    add(sum, replayed(), base,
        static_cast<double>(all[s].repeat - repeats) / static_cast<double>(repeats));
    part.segments[s].repeat = repeats;
  }
  const SimResult none = counted(plan, 0, std::vector<std::uint32_t>(all.size(), 0));
  add(sum, counted(plan, 0, counted_repeats), none, 1.0);
  return sum;
}

// @param repeats  of each segment; none: as often as the plan says
SimResult TraceSimulator::counted(const Plan& plan, std::uint64_t changes,
                                  std::span<const std::uint32_t> repeats) const {
  Tally total;
  std::vector<Tally> by_pass(all_names<Pass>().size()), by_kernel(trace_.kernels.size());
  const std::vector<Site> launches = sites(trace_, plan);
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const auto& [kernel, segment, often] = launches[i];
    const std::uint64_t repeat = repeats.empty() ? often : repeats[segment];
    if (repeat == 0) continue;
    const OperatingPoint point = cells_->of(kernel, plan.clock_of_site[i]);
    total.add(point, repeat);
    by_pass[static_cast<std::size_t>(trace_.kernels[index(kernel)].pass)].add(point, repeat);
    by_kernel[index(kernel)].add(point, repeat);
  }
  SimResult result{.total = total.totals(),
                   .switching = {},
                   .by_pass = totals_of(by_pass),
                   .by_kernel = totals_of(by_kernel)};
  result.total.clock_switches = result.switching.clock_switches = changes;
  return result;
}

SimResult TraceSimulator::totals(const Plan& plan, const SwitchModel& switching) {
  check_plan(trace_, grid_, plan);
  validate(switching);
  const std::uint64_t changes = clock_changes(trace_, plan);
  if (changes == 0 || switching.is_free()) return counted(plan, changes);
  if (count_launches(plan.segments_of(trace_)) > most_listed_launches)
    return totals_in_parts(plan, switching);
  GraphRun run = replay(plan, {.switching = switching});
  Tally total, stalls;
  std::vector<Tally> by_pass(all_names<Pass>().size()), by_kernel(trace_.kernels.size());
  for (std::size_t i = 1; i < run.launches.size(); ++i) {
    const OperatingPoint& point = run.launches[i].point;
    const Activity& launch = graph().activities()[i];
    total.add(point);
    by_pass[static_cast<std::size_t>(launch.pass)].add(point);
    by_kernel[index(launch.kernel)].add(point);
  }
  for (const ClockChange& change : run.changes) {
    stalls.time_s.add(change.effect_s - change.stall_from_s);
    stalls.energy_j.add(change.energy_j);
  }
  SimResult result{.total = total.totals(),
                   .switching = stalls.totals(),
                   .by_pass = totals_of(by_pass),
                   .by_kernel = totals_of(by_kernel),
                   .late_launches = run.gpus.front().late_launches};
  result.switching.clock_switches = run.changes.size();
  result.total.clock_switches = run.changes.size();
  result.total.time_s += result.switching.time_s;
  result.total.energy_j += result.switching.energy_j;
  unfolded().simulator.take_back(std::move(run));
  return result;
}

SimResult simulate(const Trace& trace, const GpuModel& model, const ClockGrid& grid,
                   const Plan& plan, const SwitchModel& switching,
                   std::span<const OperatingPoint> cells) {
  return TraceSimulator(trace, model, grid, cells).totals(plan, switching);
}

}  // namespace rubato
