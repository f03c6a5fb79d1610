#include "explorer/results/plan_file.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/numbers.hpp"
#include "common/text.hpp"
#include "common/version.hpp"
#include "explorer/plan/defaults.hpp"
#include "explorer/results/first_row.hpp"
#include "explorer/results/graph_store.hpp"
#include "explorer/results/plan_choice.hpp"
#include "explorer/results/provenance.hpp"
#include "models/gpu/clock_grid.hpp"
#include "models/gpu/spec.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

Json json(const SqlValue& value) {
  if (std::holds_alternative<std::monostate>(value)) return nullptr;
  if (const auto* words = std::get_if<std::string>(&value)) return *words;
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  return value_as<double>(value);
}

Json expected_of(const PlanCandidate& plan) {
  const auto fraction = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  return {{"time_s", plan.time_s},
          {"energy_j", plan.energy_j},
          {"time_change_frac", plan.time_change.value},
          {"time_change_low_frac", fraction(plan.time_change.low)},
          {"time_change_high_frac", fraction(plan.time_change.high)},
          {"energy_change_frac", plan.energy_change.value},
          {"energy_change_low_frac", fraction(plan.energy_change.low)},
          {"energy_change_high_frac", fraction(plan.energy_change.high)},
          {"lower_bound_j", fraction(plan.lower_bound_j)},
          {"gap_frac", fraction(plan.gap_frac)},
          {"clock_changes", plan.clock_changes ? Json(*plan.clock_changes) : Json(nullptr)}};
}

/// Clock pairs by label, numbered as they are met.
class Clocks {
 public:
  explicit Clocks(const GpuSpec* spec) : spec_(spec) {}

  std::size_t id(const std::string& label) {
    const auto known = std::ranges::find(labels_, label);
    if (known != labels_.end()) return static_cast<std::size_t>(known - labels_.begin());
    labels_.push_back(label);
    const std::size_t slash = label.find('/');
    list_.push_back({{"label", label},
                     {"mem_mhz", memory_mhz(label.substr(0, slash))},
                     {"core_mhz", number_or_null(label.substr(slash + 1))}});
    return labels_.size() - 1;
  }

  [[nodiscard]] const Json& list() const { return list_; }

 private:
  static Json number_or_null(const std::string& word) {
    const auto value = parse_number(word);
    return value ? Json(*value) : Json(nullptr);
  }
  [[nodiscard]] Json memory_mhz(const std::string& state) const {
    if (spec_ != nullptr && state != "auto") {
      for (const MemState& one : spec_->mem_states) {
        if (one.name == state) return one.mem_mhz;
      }
    }
    return number_or_null(state);
  }

  const GpuSpec* spec_;
  std::vector<std::string> labels_;
  Json list_ = Json::array();
};

/// The launch that begins a segment: the index-th of its kernel in the pass, from 0.
struct FirstLaunch {
  std::string kernel;
  std::int64_t index = 0;
};

/// Launches in a row that share pass and clock.
class Segments {
 public:
  void add(const std::string& pass, std::size_t clock, std::int64_t launches, double time_s,
           double energy_j, const FirstLaunch& first) {
    if (list_.empty() || list_.back()["pass"] != pass || list_.back()["clock"] != clock) {
      list_.push_back({{"pass", pass},
                       {"clock", clock},
                       {"launches", 0},
                       {"time_s", 0.0},
                       {"energy_j", 0.0},
                       {"first", {{"kernel", first.kernel}, {"index", first.index}}}});
    }
    Json& last = list_.back();
    last["launches"] = last["launches"].get<std::int64_t>() + launches;
    last["time_s"] = last["time_s"].get<double>() + time_s;
    last["energy_j"] = last["energy_j"].get<double>() + energy_j;
  }
  [[nodiscard]] Json take() { return std::move(list_); }

 private:
  Json list_ = Json::array();
};

// Launch by launch as the step runs: repeated blocks are written out.
Json trace_segments(const ResultStore& store, std::int64_t plan_id, const Trace& trace,
                    Clocks& clocks) {
  const auto rows = store
                        .query(
                            "SELECT segment, repeat, pass, clock, time_s, energy_j, kernel FROM "
                            "v_plan_clocks WHERE plan_id = ? ORDER BY site_id",
                            {plan_id})
                        .rows;
  Segments segments;
  std::map<std::string, std::int64_t> seen;  // launches of a kernel in this pass
  std::string pass;
  for (std::size_t begin = 0; begin < rows.size();) {
    const auto block = std::ranges::find(trace.segments, text(rows[begin][0]), &Segment::name);
    const std::size_t length = block == trace.segments.end() ? 1 : block->launches.size();
    const std::size_t end = std::min(begin + length, rows.size());
    for (std::int64_t repeat = 0; repeat < whole(rows[begin][1]); ++repeat) {
      for (std::size_t i = begin; i < end; ++i) {
        if (text(rows[i][2]) != pass) seen.clear();
        pass = text(rows[i][2]);
        const std::string kernel = text(rows[i][6]);
        segments.add(pass, clocks.id(text(rows[i][3])), 1, real(rows[i][4]), real(rows[i][5]),
                     {kernel, seen[kernel]++});
      }
    }
    begin = end;
  }
  return Json::array({{{"rank", 0}, {"device", 0}, {"segments", segments.take()}}});
}

// Nothing is known of the order in rows that older programs wrote.
Json graph_devices(const ResultStore& store, std::int64_t plan_id, Clocks& clocks) {
  Json devices = Json::array();
  for (const auto& gpu : store
                             .query("SELECT DISTINCT rank, device FROM graph_plan_clocks WHERE "
                                    "graph_plan_id = ? ORDER BY rank, device",
                                    {plan_id})
                             .rows) {
    Segments segments;
    const auto stored = stored_segments(store, plan_id, whole(gpu[0]), whole(gpu[1]));
    for (const StoredSegment& one : stored) {
      segments.add(one.pass, clocks.id(one.clock), one.launches, one.time_s, one.energy_j,
                   {one.first_kernel, one.first_index});
    }
    devices.push_back({{"rank", whole(gpu[0])},
                       {"device", whole(gpu[1])},
                       {"segments", stored.empty() ? Json(nullptr) : segments.take()}});
  }
  return devices;
}

// From kernel_key(): the name as captured, then "x,y,z x,y,z" of grid and block where it has them.
Json launched_as(const std::string& key) {
  const std::vector<std::string_view> lines = split(key, '\n');
  Json sides = Json::array();
  if (lines.size() > 1) {
    for (const std::string_view size : split(lines[1], ' ')) {
      Json& list = sides.emplace_back(Json::array());
      for (const std::string_view number : split(size, ',')) {
        if (const auto value = parse_count(number)) list.push_back(*value);
      }
    }
  }
  const bool known = sides.size() == 2 && sides[0].size() == 3 && sides[1].size() == 3;
  return {{"name", std::string(lines.front())},
          {"grid", known ? sides[0] : Json(nullptr)},
          {"block", known ? sides[1] : Json(nullptr)}};
}

Json kernels_of(const ResultStore& store, StoredRun run, std::int64_t plan_id, Clocks& clocks) {
  const char* sql =
      run.captured ? "SELECT rank, device, pass, kernel, clock, launches, time_s, kernel_key FROM "
                     "graph_plan_clocks WHERE graph_plan_id = ? ORDER BY row_id"
                   : "SELECT 0, 0, pass, kernel, clock, sum(repeat), sum(repeat * time_s), '' FROM "
                     "v_plan_clocks WHERE plan_id = ? GROUP BY pass, kernel, clock ORDER BY "
                     "min(site_id)";
  Json list = Json::array();
  for (const auto& row : store.query(sql, {plan_id}).rows) {
    list.push_back(
        {{"rank", json(row[0])},
         {"device", json(row[1])},
         {"pass", json(row[2])},
         {"name", json(row[3])},
         {"clock", clocks.id(text(row[4]))},
         {"launches", json(row[5])},
         {"time_s", json(row[6])},
         {"launched_as", text(row[7]).empty() ? Json(nullptr) : launched_as(text(row[7]))}});
  }
  return list;
}

Json gpu_of(const std::string& name, const GpuSpec* spec, double power_limit_w) {
  Json gpu{{"spec", name},
           {"title", nullptr},
           {"default_clock", nullptr},
           {"power_limit_w", power_limit_w}};
  if (spec == nullptr) return gpu;
  const ClockGrid defaults(*spec, {spec->default_clock});
  gpu["title"] = spec->title;
  gpu["default_clock"] = defaults.label(defaults.default_clock());
  return gpu;
}

// What changes of clock take, as plans of the run were judged by it.
Json switching_of(const SwitchModel& model, const GpuSpec* spec) {
  const auto source = spec == nullptr ? std::map<std::string, std::string>::const_iterator{}
                                      : spec->sources.find("switching");
  const bool known = spec != nullptr && source != spec->sources.end();
  return {{"core_s", model.core.latency_s()},
          {"mem_s", model.mem ? Json(model.mem->latency_s()) : Json(nullptr)},
          {"core_stall_s", model.core.stall_s},
          {"mem_stall_s", model.mem ? model.mem->stall_s : 0.0},
          {"dwell_s", model.dwell_s},
          {"guess", model.guess.empty() ? Json(nullptr) : Json(model.guess)},
          {"source", known ? Json(source->second) : Json(nullptr)}};
}

// What applicable() said of a plan when it was made; empty: GPUs can be set to it.
std::string why_not_applicable(const ResultStore& store, StoredRun run, std::int64_t plan_id) {
  return text(first_row(store.query(
      run.captured
          ? "SELECT ifnull(not_applicable_because, '') FROM graph_plans WHERE graph_plan_id = ?"
          : "SELECT ifnull(not_applicable_because, '') FROM plans WHERE plan_id = ?",
      {plan_id}))[0]);
}

std::optional<GpuSpec> shipped(const std::string& name) {
  const std::vector<std::string> known = shipped_gpu_specs();
  if (std::ranges::find(known, name) == known.end()) return std::nullopt;
  return load_gpu_spec(name);
}

/// What a run says of itself, of either kind.
struct RunFacts {
  Json source;
  std::string gpu;
  double power_limit_w = 0.0;
  SwitchModel switching = {};  ///< as asked for; free: the spec's
  std::optional<GpuSpec> spec;
  std::optional<Trace> trace;
};

RunFacts facts_of_trace(const ResultStore& store, std::int64_t id) {
  const auto row = first_row(
      store.query("SELECT r.command, r.trace_name, r.gpu, r.power_limit_w, t.text, "
                  "s.text, r.switch_stall_s, r.switch_lead_s, r.switch_dwell_s FROM runs r "
                  "JOIN inputs t ON t.input_hash = r.trace_hash "
                  "JOIN inputs s ON s.input_hash = r.spec_hash "
                  "WHERE r.run_id = ?",
                  {id}));
  return {.source = {{"kind", "trace"},
                     {"run_id", id},
                     {"name", text(row[1])},
                     {"command", text(row[0])}},
          .gpu = text(row[2]),
          .power_limit_w = real(row[3]),
          .switching = {.core = {.stall_s = real(row[6]), .lead_s = real(row[7])},
                        .mem = {},
                        .dwell_s = real(row[8])},
          .spec = parse_gpu_spec(text(row[5]), text(row[2])),
          .trace = parse_trace_json(text(row[4]), text(row[1]))};
}

RunFacts facts_of_graph(const ResultStore& store, std::int64_t id, std::optional<GpuSpec> spec) {
  const auto row =
      first_row(store.query("SELECT command, captures, gpu, power_limit_w FROM graph_runs WHERE "
                            "graph_run_id = ?",
                            {id}));
  RunFacts facts{.source = {{"kind", "captured run"},
                            {"run_id", id},
                            {"name", text(row[1])},
                            {"command", text(row[0])}},
                 .gpu = text(row[2]),
                 .power_limit_w = real(row[3]),
                 .switching = {},
                 .spec = std::move(spec),
                 .trace = std::nullopt};
  if (!facts.spec) facts.spec = shipped(facts.gpu);
  return facts;
}

}  // namespace

nlohmann::ordered_json plan_file(const ResultStore& store, const PlanFileRequest& request) {
  const StoredRun run = find_stored_run(store, request.run);
  RunFacts facts =
      run.captured ? facts_of_graph(store, run.id, request.spec) : facts_of_trace(store, run.id);
  PlanChoice chosen = choose_plans(store, run, request.granularity, request.goal, request.plan_id);
  chosen.plans.front().require_in_time();
  const auto cannot_be_set = [&](const PlanCandidate& one) {
    return !why_not_applicable(store, run, one.id).empty();
  };
  chosen.plans.erase(std::remove_if(chosen.plans.begin() + 1, chosen.plans.end(), cannot_be_set),
                     chosen.plans.end());
  std::erase_if(chosen.slower, cannot_be_set);
  const StoredBaseline baseline = stored_baseline(store, run);
  for (auto* list : {&chosen.plans, &chosen.slower}) {
    for (PlanCandidate& one : *list) one.energy_change = change_of_boards(one, baseline);
  }
  const GpuSpec* spec = facts.spec ? &*facts.spec : nullptr;
  Clocks clocks(spec);
  const auto plans_of = [&](const std::vector<PlanCandidate>& list) {
    Json plans = Json::array();
    for (const PlanCandidate& one : list) {
      const std::string because = why_not_applicable(store, run, one.id);
      plans.push_back(
          {{"plan_id", one.id},
           {"granularity", one.granularity},
           {"goal", one.goal},
           {"slack_frac", one.slack_frac},
           {"comm_sms", one.comm_sms ? Json(*one.comm_sms) : Json(nullptr)},
           {"applicable", because.empty()},
           {"because", because.empty() ? Json(nullptr) : Json(because)},
           {"expected", expected_of(one)},
           {"devices", run.captured ? graph_devices(store, one.id, clocks)
                                    : trace_segments(store, one.id, *facts.trace, clocks)}});
    }
    return plans;
  };
  Json plans = plans_of(chosen.plans), slower = plans_of(chosen.slower);
  Json kernels = kernels_of(store, run, chosen.plans.front().id, clocks);
  return {{"format", "rubato-plan"},
          {"schema", plan_file_schema},
          {"program_version", program_version()},
          {"created_utc", now_utc()},
          {"source", std::move(facts.source)},
          {"gpu", gpu_of(facts.gpu, spec, facts.power_limit_w)},
          {"switching",
           switching_of(switching_in_earnest(facts.switching, spec != nullptr ? *spec : GpuSpec{}),
                        spec)},
          {"host_power_w", baseline.host_power_w},
          {"baseline", {{"time_s", baseline.time_s}, {"energy_j", baseline.energy_j}}},
          {"clocks", clocks.list()},
          {"plans", std::move(plans)},
          {"slower", std::move(slower)},
          {"kernels", std::move(kernels)}};
}

}  // namespace rubato
