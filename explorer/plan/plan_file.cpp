#include "explorer/plan/plan_file.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/json.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "common/version.hpp"
#include "models/gpu/clock_grid.hpp"

namespace rubato {

namespace {

using FileJson = nlohmann::ordered_json;

template <typename Value>
FileJson or_null(const std::optional<Value>& value) {
  return value ? FileJson(*value) : FileJson(nullptr);
}

FileJson run_json(const PlanFileRun& run) {
  return {{"kind", run.kind},
          {"run_id", or_null(run.run_id)},
          {"work", run.work},
          {"command", run.command},
          {"gpus", run.gpus},
          {"default_time_s", run.default_time_s},
          {"default_energy_j", run.default_energy_j},
          {"host_power_w", run.host_power_w},
          {"schedule", or_null(run.schedule)},
          {"stages", or_null(run.stages)},
          {"tensor_parallel", or_null(run.tensor_parallel)},
          {"data_parallel", or_null(run.data_parallel)}};
}

FileJson spec_json(const std::optional<PlanFileSpec>& gpu) {
  if (!gpu) return nullptr;
  return {{"spec", gpu->spec},
          {"title", or_null(gpu->title)},
          {"default_clock", or_null(gpu->default_clock)},
          {"power_limit_w", or_null(gpu->power_limit_w)}};
}

FileJson change_json(const SwitchCost& cost) {
  return {{"latency_s", cost.latency_s()}, {"stall_s", cost.stall_s}, {"energy_j", cost.energy_j}};
}

// Of the longest change.
double shortest_stretch_s(const SwitchModel& model) {
  const double mem_s = model.mem ? model.change(true, true).latency_s() : 0.0;
  return shortest_latencies * std::max(model.core.latency_s(), mem_s);
}

FileJson switching_json(const PlanFileSwitching& switching) {
  const SwitchModel& model = switching.model;
  return {{"source", switching.source},
          {"note", or_null(switching.note)},
          {"core", change_json(model.core)},
          {"mem", model.mem ? change_json(*model.mem) : FileJson(nullptr)},
          {"dwell_s", model.dwell_s},
          {"shortest_stretch_s", shortest_stretch_s(model)}};
}

FileJson segment_json(const PlanFileSegment& one) {
  FileJson json{{"pass", one.pass},
                {"microbatch", or_null(one.microbatch)},
                {"chunk", or_null(one.chunk)},
                {"begins_pass", one.begins_pass},
                {"clock", or_null(one.clock)},
                {"launches", one.launches},
                {"time_s", one.time_s},
                {"energy_j", one.energy_j},
                {"first", nullptr}};
  if (one.choice) json["choice"] = *one.choice;
  if (one.first) json["first"] = {{"kernel", one.first->kernel}, {"index", one.first->index}};
  return json;
}

FileJson gpu_json(const PlanFileGpu& gpu) {
  FileJson segments = FileJson::array();
  for (const PlanFileSegment& one : gpu.segments) segments.push_back(segment_json(one));
  return {{"label", gpu.label},
          {"rank", or_null(gpu.rank)},
          {"device", or_null(gpu.device)},
          {"stage", or_null(gpu.stage)},
          {"segments", std::move(segments)}};
}

FileJson promise_json(const PlanFilePromise& promise) {
  return {{"time_s", promise.time_s},
          {"energy_j", promise.energy_j},
          {"time_change_pct", promise.time.value_pct},
          {"time_change_low_pct", or_null(promise.time.low_pct)},
          {"time_change_high_pct", or_null(promise.time.high_pct)},
          {"energy_change_pct", promise.energy.value_pct},
          {"energy_change_low_pct", or_null(promise.energy.low_pct)},
          {"energy_change_high_pct", or_null(promise.energy.high_pct)},
          {"odds_in_time_pct", or_null(promise.odds_in_time_pct)},
          {"lower_bound_j", or_null(promise.lower_bound_j)},
          {"gap_pct", or_null(promise.gap_pct)},
          {"clock_changes", or_null(promise.clock_changes)}};
}

FileJson plan_json(const PlanFilePlan& plan) {
  FileJson gpus = FileJson::array();
  for (const PlanFileGpu& gpu : plan.gpus) gpus.push_back(gpu_json(gpu));
  return {{"role", name_of(plan.role)},
          {"plan_id", or_null(plan.plan_id)},
          {"granularity", plan.granularity},
          {"goal", plan.goal},
          {"slack_pct", or_null(plan.slack_pct)},
          {"odds_pct", or_null(plan.odds_pct)},
          {"applicable", plan.verdict.applicable},
          {"because", plan.verdict.applicable ? FileJson(nullptr) : FileJson(plan.verdict.because)},
          {"comm_sms", or_null(plan.comm_sms)},
          {"by_hand", plan.by_hand.empty() ? FileJson(nullptr) : FileJson(plan.by_hand)},
          {"promise", promise_json(plan.promise)},
          {"gpus", std::move(gpus)}};
}

// From kernel_key(): the name as captured, then "x,y,z x,y,z" of grid and block where it has them.
FileJson launched_as_json(const std::string& key) {
  if (key.empty()) return nullptr;
  const std::vector<std::string_view> lines = split(key, '\n');
  FileJson sides = FileJson::array();
  if (lines.size() > 1) {
    for (const std::string_view size : split(lines[1], ' ')) {
      FileJson& list = sides.emplace_back(FileJson::array());
      for (const std::string_view number : split(size, ',')) {
        if (const auto value = parse_count(number)) list.push_back(*value);
      }
    }
  }
  const bool known = sides.size() == 2 && sides[0].size() == 3 && sides[1].size() == 3;
  return {{"name", std::string(lines.front())},
          {"grid", known ? sides[0] : FileJson(nullptr)},
          {"block", known ? sides[1] : FileJson(nullptr)}};
}

FileJson kernel_json(const PlanFileKernel& kernel) {
  FileJson json{{"gpu", kernel.gpu},
                {"pass", kernel.pass},
                {"name", kernel.name},
                {"clock", or_null(kernel.clock)},
                {"launches", or_null(kernel.launches)},
                {"time_s", or_null(kernel.time_s)},
                {"launched_as", launched_as_json(kernel.launched_as)}};
  if (kernel.choice) json["choice"] = *kernel.choice;
  return json;
}

template <typename List, typename ToJson>
FileJson list_json(const List& list, const ToJson& to_json) {
  FileJson json = FileJson::array();
  for (const auto& one : list) json.push_back(to_json(one));
  return json;
}

bool same_cost(const SwitchCost& a, const SwitchCost& b) {
  return a.lead_s == b.lead_s && a.stall_s == b.stall_s && a.energy_j == b.energy_j;
}

// Whether a change takes the same, however long clocks are held.
bool same_costs(const SwitchModel& a, const SwitchModel& b) {
  return same_cost(a.core, b.core) && a.mem.has_value() == b.mem.has_value() &&
         (!a.mem || same_cost(*a.mem, *b.mem));
}

}  // namespace

PlanFileClock plan_file_clock(std::string_view label, const GpuSpec* spec) {
  const std::size_t slash = std::min(label.find('/'), label.size());
  const std::string_view state = label.substr(0, slash);
  PlanFileClock clock{
      .label = std::string(label), .core_mhz = {}, .mem_mhz = {}, .power_limit_w = {}};
  const std::size_t comma = std::min(label.find(", "), label.size());  // "auto/1200, 250 W"
  if (slash < comma) clock.core_mhz = parse_number(label.substr(slash + 1, comma - slash - 1));
  if (comma < label.size() && label.ends_with(" W"))
    clock.power_limit_w = parse_number(label.substr(comma + 2, label.size() - comma - 4));
  clock.mem_mhz = parse_number(state);
  if (spec == nullptr || state == "auto") return clock;
  const auto known = std::ranges::find(spec->mem_states, state, &MemState::name);
  if (known != spec->mem_states.end()) clock.mem_mhz = known->mem_mhz;
  return clock;
}

PlanFileSpec plan_file_spec(std::string name, const GpuSpec* spec,
                            std::optional<double> power_limit_w) {
  PlanFileSpec gpu{.spec = std::move(name), .power_limit_w = power_limit_w};
  if (spec == nullptr) return gpu;
  gpu.known = *spec;
  const ClockGrid defaults(*spec, {spec->default_clock});
  gpu.title = spec->title;
  gpu.default_clock = defaults.label(defaults.default_clock());
  return gpu;
}

PlanFileSwitching plan_file_switching(SwitchModel model, const GpuSpec* spec) {
  PlanFileSwitching switching{.model = std::move(model)};
  if (switching.model.is_free()) return switching;
  const SwitchModel known = spec == nullptr ? SwitchModel{} : switch_model(*spec);
  if (spec == nullptr || !same_costs(switching.model, known)) {
    switching.source = "given";
    return switching;
  }
  const bool recalled = known.guess.find("recalled") != std::string::npos;
  switching.source = known.guess.empty() ? "measured" : recalled ? "recalled" : "assumed";
  const auto source = spec->sources.find("switching");
  if (source != spec->sources.end()) switching.note = source->second;
  return switching;
}

std::size_t PlanFile::clock_id(const PlanFileClock& clock) {
  const auto known = std::ranges::find(clocks, clock);
  if (known != clocks.end()) return static_cast<std::size_t>(known - clocks.begin());
  clocks.push_back(clock);
  return clocks.size() - 1;
}

void add_launches(std::vector<PlanFileSegment>& step, PlanFileSegment launches) {
  if (!step.empty() && !launches.begins_pass && step.back().pass == launches.pass &&
      step.back().clock == launches.clock) {
    step.back().launches += launches.launches;
    step.back().time_s += launches.time_s;
    step.back().energy_j += launches.energy_j;
    return;
  }
  step.push_back(std::move(launches));
}

std::string plan_file_goal(std::string_view goal) {
  if (goal.ends_with("waste")) return "energy";
  constexpr std::string_view least = "least_";
  return std::string(goal.starts_with(least) ? goal.substr(least.size()) : goal);
}

std::string_view name_of(PlanRole value) noexcept {
  switch (value) {
    case PlanRole::answer: return "answer";
    case PlanRole::coarser: return "coarser";
    case PlanRole::slower: break;
  }
  return "slower";
}

std::string plan_file_json(const PlanFile& file) {
  const auto clock_json = [](const PlanFileClock& clock) {
    return FileJson{{"label", clock.label},
                    {"core_mhz", or_null(clock.core_mhz)},
                    {"mem_mhz", or_null(clock.mem_mhz)},
                    {"power_limit_w", or_null(clock.power_limit_w)}};
  };
  const FileJson json{{"format", "rubato-plan"},
                      {"schema", plan_file_schema},
                      {"program_version", program_version()},
                      {"created_utc", file.created_utc},
                      {"run", run_json(file.run)},
                      {"gpu", spec_json(file.gpu)},
                      {"switching", switching_json(file.switching)},
                      {"clocks", list_json(file.clocks, clock_json)},
                      {"plans", list_json(file.plans, plan_json)},
                      {"kernels", list_json(file.kernels, kernel_json)}};
  return json_text(json, 1) + '\n';
}

}  // namespace rubato
