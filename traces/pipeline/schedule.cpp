#include "traces/pipeline/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <queue>
#include <set>
#include <span>

#include <fmt/format.h>

#include "common/csv.hpp"
#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/suggest.hpp"
#include "traces/pipeline/orders.hpp"
#include "traces/plausible.hpp"

namespace rubato {

namespace {

void check_shape(const PipelineShape& shape) {
  const auto at_least_one = [](const char* what, std::uint32_t value) {
    if (value == 0) throw UsageError(fmt::format("{} is 0; expected at least 1", what));
  };
  at_least_one("stages", shape.stages);
  at_least_one("microbatches", shape.microbatches);
  at_least_one("chunks", shape.chunks);
  if (shape.chunks > 1 && shape.kind != ScheduleKind::interleaved) {
    throw UsageError(fmt::format("{} chunks need the schedule 'interleaved'; found '{}'",
                                 shape.chunks, name_of(shape.kind)));
  }
  if (shape.kind == ScheduleKind::interleaved && shape.chunks > 1 &&
      shape.microbatches % shape.stages != 0) {
    throw UsageError(
        fmt::format("interleaved: {} microbatches; expected a multiple of the {} stages",
                    shape.microbatches, shape.stages));
  }
  const auto expect_time = [](std::string_view what, double time_s) {
    if (!(time_s >= 0.0) || !std::isfinite(time_s))
      throw UsageError(fmt::format("{} time is {} s; expected a number >= 0", what, time_s));
  };
  expect_time("transfer", shape.transfer_s);
  expect_time("hold", shape.hold_s);
  // Up to three passes per stage, chunk and microbatch.
  const double passes = 3.0 * shape.stages * shape.chunks * shape.microbatches;
  if (passes > static_cast<double>(max_pipeline_passes)) {
    throw UsageError(
        fmt::format("{} stages x {} chunks x {} microbatches is too much; at most {} "
                    "passes are planned",
                    shape.stages, shape.chunks, shape.microbatches, max_pipeline_passes));
  }
}

// Finds the pass of a virtual stage, for the dependencies between stages.
class PassIndex {
 public:
  explicit PassIndex(const PipelineSchedule& schedule) : shape_(schedule.shape) {
    const std::size_t kinds = pass_kind_names().size();
    at_.resize(kinds * shape_.stages * shape_.chunks * shape_.microbatches);
    for (std::size_t i = 0; i < schedule.passes.size(); ++i) {
      const PipelinePass& pass = schedule.passes[i];
      at_[slot(pass.kind, pass.chunk * shape_.stages + pass.stage, pass.microbatch)] =
          id_at<PassId>(i);
    }
  }
  [[nodiscard]] PassId find(PassKind kind, std::uint32_t virtual_stage,
                            std::uint32_t microbatch) const {
    return at_[slot(kind, virtual_stage, microbatch)];
  }

 private:
  [[nodiscard]] std::size_t slot(PassKind kind, std::uint32_t virtual_stage,
                                 std::uint32_t microbatch) const {
    const std::size_t stages = std::size_t{shape_.stages} * shape_.chunks;
    return (static_cast<std::size_t>(kind) * stages + virtual_stage) * shape_.microbatches +
           microbatch;
  }

  const PipelineShape& shape_;
  std::vector<PassId> at_;
};

// Order within each stage, then data from stage to stage. What a stage's own
// order already says (forward before backward) is not repeated.
void add_dependencies(PipelineSchedule& schedule) {
  const PipelineShape& shape = schedule.shape;
  for (std::size_t i = 1; i < schedule.passes.size(); ++i) {
    if (schedule.passes[i].stage != schedule.passes[i - 1].stage) continue;
    schedule.dependencies.push_back({id_at<PassId>(i - 1), id_at<PassId>(i), shape.hold_s});
  }
  const PassIndex at(schedule);
  const PassKind gradient =
      shape.kind == ScheduleKind::zb_h1 ? PassKind::input_gradient : PassKind::backward;
  // A chunk hands on to the next chunk on the same stage when there is only one stage.
  const double lag_s = shape.stages > 1 ? shape.transfer_s : 0.0;
  for (std::uint32_t v = 1; v < shape.stages * shape.chunks; ++v) {
    for (std::uint32_t m = 0; m < shape.microbatches; ++m) {
      schedule.dependencies.push_back(
          {at.find(PassKind::forward, v - 1, m), at.find(PassKind::forward, v, m), lag_s});
      schedule.dependencies.push_back(
          {at.find(gradient, v, m), at.find(gradient, v - 1, m), lag_s});
    }
  }
}

// A stage runs one pass at a time, so neighbours in its order depend on each other.
void add_stage_order(PipelineSchedule& schedule) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> known;
  for (const Dependency& d : schedule.dependencies) known.emplace(d.from.value, d.to.value);
  for (const auto& row : schedule.rows()) {
    for (std::size_t i = 1; i < row.size(); ++i) {
      if (!known.contains({row[i - 1].value, row[i].value})) {
        schedule.dependencies.push_back({row[i - 1], row[i], 0.0});
      }
    }
  }
}

struct Successors {
  std::vector<std::vector<std::uint32_t>> of;
  std::vector<std::uint32_t> waiting_for;
};

Successors successors(const PipelineSchedule& schedule) {
  Successors found{std::vector<std::vector<std::uint32_t>>(schedule.passes.size()),
                   std::vector<std::uint32_t>(schedule.passes.size())};
  for (const Dependency& d : schedule.dependencies) {
    found.of[index(d.from)].push_back(d.to.value);
    ++found.waiting_for[index(d.to)];
  }
  return found;
}

// A pass on a cycle: from any pass left over by the topological order, walking
// back along passes left over must come round.
std::string cycle_text(const PipelineSchedule& schedule, const std::vector<PassId>& order) {
  std::vector<char> done(schedule.passes.size());
  for (const PassId id : order) done[index(id)] = 1;
  std::vector<std::uint32_t> before(schedule.passes.size());
  std::uint32_t at = 0;
  for (const Dependency& d : schedule.dependencies) {
    if (done[index(d.from)] || done[index(d.to)]) continue;
    before[index(d.to)] = d.from.value;
    at = d.to.value;
  }
  for (std::size_t i = 0; i < schedule.passes.size(); ++i) at = before[at];
  std::string text = describe(schedule.passes[at]);
  std::size_t shown = 1;
  for (std::uint32_t i = before[at]; i != at && shown < 4; i = before[i], ++shown) {
    text += " waits for " + describe(schedule.passes[i]);
  }
  return text + " waits for ...";
}

std::string cut_off_text(const PipelineSchedule& schedule) {
  std::vector<std::vector<std::uint32_t>> neighbours(schedule.passes.size());
  for (const Dependency& d : schedule.dependencies) {
    neighbours[index(d.from)].push_back(d.to.value);
    neighbours[index(d.to)].push_back(d.from.value);
  }
  std::vector<char> seen(schedule.passes.size());
  std::vector<std::uint32_t> stack{0};
  seen[0] = 1;
  while (!stack.empty()) {
    const std::uint32_t i = stack.back();
    stack.pop_back();
    for (const std::uint32_t j : neighbours[i]) {
      if (!seen[j]) {
        seen[j] = 1;
        stack.push_back(j);
      }
    }
  }
  const auto lost = std::ranges::find(seen, 0);
  return lost == seen.end()
             ? ""
             : describe(schedule.passes[static_cast<std::size_t>(lost - seen.begin())]);
}

PassKind read_kind(const std::string& name, const std::string& where, ErrorList& errors) {
  const auto& names = pass_kind_names();
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<PassKind>(found - names.begin());
  errors.add(fmt::format("{}: kind '{}' is not known{}", where, name, did_you_mean(name, names)));
  return PassKind::forward;
}

// Place of each op in its stage; without a column, ops run in the order of the file.
std::vector<std::size_t> read_positions(const CsvTable& ops, ErrorList& errors) {
  const auto column = ops.find_column("pos");
  std::vector<std::size_t> positions;
  for (std::size_t row = 0; row < ops.rows(); ++row) {
    const auto value = column ? parse_count(ops.cell(row, *column)) : std::optional(row);
    if (!value) {
      errors.add(
          fmt::format("{}: pos is '{}'; expected a whole number, the op's place in its stage",
                      ops.where(row), ops.cell(row, *column)));
    }
    positions.push_back(value.value_or(row));
  }
  return positions;
}

// Stage after stage, each by position. Returns where each op has gone.
std::vector<PassId> sort_by_position(PipelineSchedule& schedule,
                                     const std::vector<std::size_t>& positions, ErrorList& errors) {
  std::vector<std::size_t> order(schedule.passes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto key = [&](std::size_t op) {
    return std::pair(schedule.passes[op].stage, positions[op]);
  };
  std::ranges::stable_sort(order, {}, key);
  std::vector<PipelinePass> sorted;
  std::vector<PassId> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && key(order[i]) == key(order[i - 1])) {
      errors.add(fmt::format("ops {} and {} are both at pos {} of stage {}", order[i - 1], order[i],
                             positions[order[i]], schedule.passes[order[i]].stage));
    }
    place[order[i]] = id_at<PassId>(i);
    sorted.push_back(schedule.passes[order[i]]);
  }
  schedule.passes = std::move(sorted);
  return place;
}

}  // namespace

std::vector<std::vector<PassId>> PipelineSchedule::rows() const {
  std::vector<std::vector<PassId>> rows(shape.stages);
  for (std::size_t i = 0; i < passes.size(); ++i) {
    rows[passes[i].stage].push_back(id_at<PassId>(i));
  }
  return rows;
}

PipelineSchedule make_schedule(const PipelineShape& shape) {
  check_shape(shape);
  PipelineSchedule schedule{shape, {}, {}};
  for (std::uint32_t stage = 0; stage < shape.stages; ++stage) {
    const std::vector<PipelinePass> row = stage_order(shape, stage);
    schedule.passes.insert(schedule.passes.end(), row.begin(), row.end());
  }
  add_dependencies(schedule);
  check(schedule, name_of(shape.kind));
  return schedule;
}

PipelineSchedule read_schedule(const std::filesystem::path& ops_csv,
                               const std::filesystem::path& edges_csv) {
  const CsvTable ops = CsvTable::read(ops_csv);
  ops.expect_columns({"op", "stage", "kind", "mb"}, {"pos"});
  ErrorList errors;
  PipelineSchedule schedule;
  schedule.shape.kind = ScheduleKind::one_f_one_b;
  const auto count = [&](const CsvTable& table, std::size_t row, std::string_view name,
                         std::size_t below) {
    const std::string& cell = table.cell(row, table.column(name));
    const auto value = parse_count(cell);
    if (value && *value < below) return static_cast<std::uint32_t>(*value);
    errors.add(fmt::format("{}: {} is '{}'; expected a whole number below {}", table.where(row),
                           name, cell, below));
    return std::uint32_t{0};
  };
  for (std::size_t row = 0; row < ops.rows(); ++row) {
    const std::string where = ops.where(row);
    if (count(ops, row, "op", ops.rows()) != row) {
      errors.add(fmt::format("{}: op is '{}'; expected {}, without gaps and in order", where,
                             ops.cell(row, ops.column("op")), row));
    }
    const std::uint32_t stage = count(ops, row, "stage", max_pipeline_passes);
    const std::uint32_t microbatch = count(ops, row, "mb", max_pipeline_passes);
    const PassKind kind = read_kind(ops.cell(row, ops.column("kind")), where, errors);
    schedule.passes.push_back({stage, 0, microbatch, kind});
    schedule.shape.stages = std::max(schedule.shape.stages, stage + 1);
    schedule.shape.microbatches = std::max(schedule.shape.microbatches, microbatch + 1);
  }
  const std::vector<PassId> place = sort_by_position(schedule, read_positions(ops, errors), errors);
  const CsvTable edges = CsvTable::read(edges_csv);
  edges.expect_columns({"src", "dst"}, {"lag_s"});
  const auto lag = edges.find_column("lag_s");
  for (std::size_t row = 0; row < edges.rows(); ++row) {
    const double lag_s =
        lag ? edges.number(row, *lag, Range::non_negative, errors).value_or(0.0) : 0.0;
    const ReadColumn column{.name = "lag_s", .quantity = Quantity::time};
    const auto wrong =
        implausible("lag_s", lag_s, "s", {0.0, run_time_s.high}, std::span(&column, 1));
    if (wrong) errors.add(fmt::format("{}: {}", edges.where(row), *wrong));
    schedule.dependencies.push_back({place[count(edges, row, "src", ops.rows())],
                                     place[count(edges, row, "dst", ops.rows())], lag_s});
  }
  errors.throw_if_any();
  add_stage_order(schedule);
  check(schedule, edges_csv.string());
  return schedule;
}

void check(const PipelineSchedule& schedule, std::string_view where) {
  if (schedule.passes.empty()) {
    throw DataError(fmt::format("{}: there is no pass; expected at least one", where));
  }
  for (const Dependency& d : schedule.dependencies) {
    if (index(d.from) >= schedule.passes.size() || index(d.to) >= schedule.passes.size()) {
      throw DataError(fmt::format("{}: a dependency names pass {}; there are {}", where,
                                  std::max(d.from.value, d.to.value), schedule.passes.size()));
    }
    if (!(d.lag_s >= 0.0) || !std::isfinite(d.lag_s)) {
      throw DataError(fmt::format("{}: lag after {} is {} s; expected a number >= 0", where,
                                  describe(schedule.passes[index(d.from)]), d.lag_s));
    }
  }
  const std::vector<PassId> order = topological_order(schedule);
  if (order.size() < schedule.passes.size()) {
    throw DataError(fmt::format("{}: passes wait for each other in a cycle: {}", where,
                                cycle_text(schedule, order)));
  }
  if (const std::string lost = cut_off_text(schedule); !lost.empty()) {
    throw DataError(
        fmt::format("{}: {} is cut off from the first pass; expected one connected graph", where,
                    lost),
        {.in = {}, .hint = "plan independent pipelines one by one"});
  }
}

std::vector<PassId> topological_order(const PipelineSchedule& schedule) {
  Successors next = successors(schedule);
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::size_t i = 0; i < schedule.passes.size(); ++i) {
    if (next.waiting_for[i] == 0) ready.push(static_cast<std::uint32_t>(i));
  }
  std::vector<PassId> order;
  order.reserve(schedule.passes.size());
  while (!ready.empty()) {
    const std::uint32_t i = ready.top();
    ready.pop();
    order.push_back(PassId{i});
    for (const std::uint32_t j : next.of[i]) {
      if (--next.waiting_for[j] == 0) ready.push(j);
    }
  }
  return order;
}

std::string describe(const PipelinePass& pass) {
  if (ends_step(pass.kind)) return fmt::format("{} of stage {}", name_of(pass.kind), pass.stage);
  return fmt::format("{} of microbatch {}, stage {}{}", name_of(pass.kind), pass.microbatch,
                     pass.stage, pass.chunk > 0 ? fmt::format(", chunk {}", pass.chunk) : "");
}

std::string_view name_of(PassKind value) noexcept {
  return pass_kind_names()[static_cast<std::size_t>(value)];
}

std::string_view name_of(ScheduleKind value) noexcept {
  return schedule_names()[static_cast<std::size_t>(value)];
}

ScheduleKind schedule_from_name(std::string_view name) {
  const auto& names = schedule_names();
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) {
    throw UsageError(fmt::format("schedule '{}' is not known{}", name, did_you_mean(name, names)));
  }
  return static_cast<ScheduleKind>(found - names.begin());
}

const std::vector<std::string>& pass_kind_names() {
  static const std::vector<std::string> names{"forward",
                                              "backward",
                                              "recompute",
                                              "input_gradient",
                                              "weight_gradient",
                                              "all_reduce",
                                              "embedding_all_reduce",
                                              "optimizer"};
  return names;
}

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> names{"gpipe", "1f1b", "interleaved", "early-recompute",
                                              "zb-h1"};
  return names;
}

}  // namespace rubato
