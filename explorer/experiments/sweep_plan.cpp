#include "explorer/experiments/sweep_plan.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/error.hpp"
#include "common/hash.hpp"
#include "common/numbers.hpp"
#include "common/suggest.hpp"
#include "common/text.hpp"
#include "common/version.hpp"
#include "traces/files/trace_json.hpp"
#include "traces/gpt.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

constexpr double percent = 100.0, us_per_s = 1e6;

// Seconds on one core of the machine the estimates were made on (AMD EPYC, November 2026, release
// build, GPT-3-xl with 67 and 763 clocks); only their ratios matter once a sweep has run.
constexpr double store_s_per_cell = 3e-6;
constexpr double evaluate_s_per_cell = 0.5e-6;
constexpr double kernel_solve_s_per_cell = 2.5e-6;
constexpr double coarse_solve_s_per_cell = 0.5e-6;
constexpr double pipeline_s_per_pass = 5e-4;
constexpr double automatic_s_per_site_and_clock_pair = 1.2e-6;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string program_text() { return fmt::format("{} {}", program_version(), source_revision()); }

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

template <class T>
T named(std::optional<T> value, std::string_view axis, const std::string& name,
        const std::vector<std::string>& known) {
  if (value) return *value;
  throw UsageError(fmt::format("{} '{}' is not known{}", axis, name, did_you_mean(name, known)));
}

std::optional<double> optional_number(const Point& point, AxisId id) {
  const auto* value = std::get_if<double>(&point[id]);
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

Goal goal_of(const Point& point) {
  const std::string& name = point.text(AxisId::goal);
  if (name == "waste") {
    return LeastWaste{point.number(AxisId::slack_pct) / percent,
                      point.number(AxisId::tolerance_pct) / percent};
  }
  if (name == "edp") return LeastEdp{};
  if (name == "ed2p") return LeastEd2p{};
  if (name == "energy") return LeastEnergy{};
  if (name != "time") {
    throw UsageError(fmt::format(
        "goal '{}' is not known{}", name,
        did_you_mean(name, std::vector<std::string>{"waste", "edp", "ed2p", "energy", "time"})));
  }
  const LeastTime goal{optional_number(point, AxisId::energy_budget_j),
                       optional_number(point, AxisId::power_budget_w)};
  if (goal.max_energy_j.has_value() == goal.max_average_power_w.has_value())
    throw UsageError("goal 'time' needs either energy_budget_j or power_budget_w");
  return goal;
}

Question question_of(const Point& point) {
  const std::string& granularity = point.text(AxisId::granularity);
  const std::string& aggregation = point.text(AxisId::aggregation);
  const Question question{
      named(granularity_named(granularity), "granularity", granularity,
            {"iteration", "pass", "kernel", "auto"}),
      named(aggregation_named(aggregation), "aggregation", aggregation, {"local", "global"}),
      goal_of(point)};
  if (question.granularity == Granularity::automatic &&
      (question.aggregation != Aggregation::global ||
       !std::holds_alternative<LeastWaste>(question.goal)))
    throw UsageError("granularity 'auto' plans for goal 'waste' with global aggregation only");
  return question;
}

Json question_json(const Question& question) {
  Json json{{"granularity", name_of(question.granularity)},
            {"aggregation", name_of(question.aggregation)},
            {"goal", name_of(question.goal)}};
  if (const auto* waste = std::get_if<LeastWaste>(&question.goal)) {
    json["slack_frac"] = waste->slack_frac;
    json["tolerance_frac"] = waste->tolerance_frac;
  }
  if (const auto* time = std::get_if<LeastTime>(&question.goal)) {
    json["max_energy_j"] = or_null(time->max_energy_j);
    json["max_average_power_w"] = or_null(time->max_average_power_w);
  }
  return json;
}

// A value with the hash of its text, made once however many points use it.
template <class T>
struct Hashed {
  std::shared_ptr<const T> value;
  std::string hash;
};

class Planner {
 public:
  explicit Planner(Experiment experiment) { plan_.experiment = std::move(experiment); }

  SweepPlan plan() && {
    for (const ExperimentPoint& point : plan_.experiment.points) {
      try {
        add(point);
      } catch (const IoError&) {
        throw;
      } catch (const Error& error) {
        complain(point, error);
      }
    }
    errors_.throw_if_any({.in = fmt::format("experiment '{}'", printable(plan_.experiment.name)),
                          .hint = "leave impossible combinations out with a [[drop]] table"});
    sort_by_setting();
    return std::move(plan_);
  }

 private:
  void complain(const ExperimentPoint& point, const Error& error) {
    // One message for all points that fail for the same reason.
    if (!complaints_.insert(error.what()).second) return;
    const bool axes_point = point.scenario.empty();
    errors_.add(fmt::format(
        "{}: {}", axes_point ? "axes" : fmt::format("scenario '{}'", printable(point.scenario)),
        error.what()));
  }

  // Names of files are relative to the experiment's folder.
  [[nodiscard]] std::string located(const std::string& name) const {
    const std::filesystem::path beside = plan_.experiment.folder / name;
    return std::filesystem::exists(beside) ? beside.string() : name;
  }

  const Hashed<GpuSpec>& spec(const std::string& name) {
    auto& kept = specs_[name];
    if (!kept.value) {
      kept.value = std::make_shared<GpuSpec>(load_gpu_spec(located(name)));
      kept.hash = content_hash(to_json(*kept.value));
    }
    return kept;
  }

  const Hashed<Trace>& work(const Point& point) {
    const bool fixed = std::holds_alternative<std::string>(point[AxisId::trace]);
    std::string key = fixed ? "trace" : "model";
    for (const AxisId id :
         {AxisId::trace, AxisId::model, AxisId::batch, AxisId::sequence, AxisId::tensor_parallel,
          AxisId::data_parallel, AxisId::pipeline_parallel, AxisId::microbatches})
      key += '\n' + shown(point[id]);
    auto& kept = traces_[key];
    if (!kept.value) {
      kept.value = std::make_shared<Trace>(fixed ? load_trace(located(point.text(AxisId::trace)))
                                                 : generated(point));
      kept.hash = content_hash(to_json(*kept.value));
    }
    return kept;
  }

  static Trace generated(const Point& point) {
    const std::optional<PipelineSplit> pipeline = pipeline_split(point);
    return pipeline ? microbatch_trace(*pipeline) : generate_gpt_trace(gpt_shape(point));
  }

  // One stage with several microbatches accumulates gradients.
  static std::optional<PipelineSplit> pipeline_split(const Point& point) {
    if (std::holds_alternative<std::monostate>(point[AxisId::model])) return std::nullopt;
    const auto stages = static_cast<std::uint32_t>(point.count(AxisId::pipeline_parallel)),
               microbatches = static_cast<std::uint32_t>(point.count(AxisId::microbatches));
    if (stages == 1 && microbatches == 1) return std::nullopt;
    const ScheduleKind schedule = schedule_from_name(point.text(AxisId::schedule));
    if (schedule == ScheduleKind::interleaved)
      throw UsageError("schedule 'interleaved' needs chunks; only 'rubato pipeline' has them");
    return PipelineSplit{gpt_shape(point), stages, microbatches, schedule};
  }

  static GptShape gpt_shape(const Point& point) {
    GptShape shape = gpt_preset(point.text(AxisId::model));
    shape.batch = point.count(AxisId::batch);
    shape.seq = point.count(AxisId::sequence);
    shape.tensor_parallel = point.count(AxisId::tensor_parallel);
    shape.data_parallel = point.count(AxisId::data_parallel);
    return shape;
  }

  static SwitchModel switching(const Point& point) {
    const double stall_s = point.number(AxisId::switch_stall_us) / us_per_s;
    const double latency_s = point.number(AxisId::switch_latency_us) / us_per_s;
    SwitchModel model{.core = {.stall_s = stall_s,
                               .energy_j = point.number(AxisId::switch_energy_j),
                               .lead_s = std::max(latency_s - stall_s, 0.0)},
                      .mem = {},
                      .dwell_s = point.number(AxisId::switch_dwell_us) / us_per_s};
    if (model.may_delay() && pipeline_split(point)) {
      throw UsageError(
          "switch_latency_us beyond the stall and switch_dwell_us are not modelled for pipelines; "
          "expected 0, or pipeline_parallel = 1");
    }
    return model;
  }

  static std::optional<WorkShape> work_shape(const Point& point) {
    if (std::holds_alternative<std::monostate>(point[AxisId::model])) return std::nullopt;
    return WorkShape{point.text(AxisId::model),          point.count(AxisId::batch),
                     point.count(AxisId::sequence),      point.count(AxisId::tensor_parallel),
                     point.count(AxisId::data_parallel), point.count(AxisId::pipeline_parallel),
                     point.count(AxisId::microbatches)};
  }

  void add(const ExperimentPoint& asked) {
    const Point& point = asked.point;
    const Question question = question_of(point);
    const std::size_t setting = setting_of(point);
    if (plan_.settings[setting].pipeline) check_pipeline_question(question);
    Json json = Json::parse(plan_.settings[setting].options_json);
    json["question"] = question_json(question);
    Unit unit{.id = {},
              .question_id = content_hash(dump(json)),
              .setting = setting,
              .question = question,
              .scenarios = {asked.scenario},
              .estimated_s = estimate(setting, question)};
    unit.id = content_hash(unit.question_id + program_text());
    const auto [found, fresh] = unit_by_id_.emplace(unit.id, plan_.units.size());
    if (fresh) {
      plan_.units.push_back(std::move(unit));
      return;
    }
    ++plan_.repeated;
    auto& scenarios = plan_.units[found->second].scenarios;
    if (std::ranges::find(scenarios, asked.scenario) == scenarios.end())
      scenarios.push_back(asked.scenario);
  }

  std::size_t setting_of(const Point& point) {
    const Hashed<GpuSpec>& gpu = spec(point.text(AxisId::gpu));
    const Hashed<Trace>& trace = work(point);
    Setting setting{
        .id = {},
        .trace = trace.value,
        .spec = gpu.value,
        .power_limit_w =
            optional_number(point, AxisId::power_limit_w).value_or(gpu.value->power_limit.limit_w),
        .clocks = point.text(AxisId::clocks),
        .switching = switching(point),
        .seed = point.count(AxisId::seed),
        .shape = work_shape(point),
        .pipeline = pipeline_split(point),
        .options_json = {},
        .estimated_store_s = 0.0};
    Json options{{"trace_hash", trace.hash},
                 {"spec_hash", gpu.hash},
                 {"power_limit_w", setting.power_limit_w},
                 {"clocks", setting.clocks},
                 {"switch_stall_s", setting.switching.core.stall_s},
                 {"switch_energy_j", setting.switching.core.energy_j},
                 {"seed", setting.seed}};
    if (setting.switching.may_delay()) {
      options["switch_lead_s"] = setting.switching.core.lead_s;
      options["switch_dwell_s"] = setting.switching.dwell_s;
    }
    if (setting.pipeline) {
      options["pipeline_parallel"] = setting.pipeline->stages;
      options["microbatches"] = setting.pipeline->microbatches;
      options["schedule"] = name_of(setting.pipeline->schedule);
      (void)make_schedule({.kind = setting.pipeline->schedule,
                           .stages = setting.pipeline->stages,
                           .microbatches = setting.pipeline->microbatches});
    }
    setting.options_json = dump(options);
    setting.id = content_hash(setting.options_json + program_text());
    const auto found = setting_by_id_.find(setting.id);
    if (found != setting_by_id_.end()) return found->second;
    // Whatever cannot be run is better known before the first unit than in the night.
    (void)GpuModel(*setting.spec, *setting.trace, setting.power_limit_w);
    const double cells = static_cast<double>(setting.trace->kernels.size() * clocks_of(setting));
    setting.estimated_store_s = cells * store_s_per_cell;
    setting_by_id_.emplace(setting.id, plan_.settings.size());
    plan_.settings.push_back(std::move(setting));
    return plan_.settings.size() - 1;
  }

  std::size_t clocks_of(const Setting& setting) {
    auto& clocks = clocks_[{setting.spec.get(), setting.clocks}];
    if (clocks == 0) clocks = make_clock_grid(*setting.spec, setting.clocks).size();
    return clocks;
  }

  double estimate(std::size_t index, const Question& question) {
    const Setting& setting = plan_.settings[index];
    const double clocks = static_cast<double>(clocks_of(setting));
    const double cells = static_cast<double>(setting.trace->kernels.size()) * clocks;
    if (const auto& pipeline = setting.pipeline) {
      return cells * evaluate_s_per_cell * pipeline->stages +
             static_cast<double>(pipeline->stages) * pipeline->microbatches * pipeline_s_per_pass;
    }
    switch (question.granularity) {
      case Granularity::kernel: return cells * (evaluate_s_per_cell + kernel_solve_s_per_cell);
      case Granularity::automatic:
        return cells * evaluate_s_per_cell + static_cast<double>(sites(*setting.trace).size()) *
                                                 clocks * clocks *
                                                 automatic_s_per_site_and_clock_pair;
      default: return cells * (evaluate_s_per_cell + coarse_solve_s_per_cell);
    }
  }

  void sort_by_setting() { std::ranges::stable_sort(plan_.units, {}, &Unit::setting); }

  SweepPlan plan_;
  ErrorList errors_;
  std::set<std::string> complaints_;
  std::map<std::string, Hashed<GpuSpec>> specs_;
  std::map<std::string, Hashed<Trace>> traces_;
  std::map<std::pair<const GpuSpec*, std::string>, std::size_t> clocks_;
  std::map<std::string, std::size_t> setting_by_id_, unit_by_id_;
};

// The units of each setting, as ranges of positions.
struct Group {
  std::size_t first = 0, last = 0;  ///< [first, last)
  double estimated_s = 0.0;
};

std::vector<Group> groups_of(const SweepPlan& plan) {
  std::vector<Group> groups;
  for (std::size_t u = 0; u < plan.units.size(); ++u) {
    const std::size_t setting = plan.units[u].setting;
    if (u == 0 || plan.units[u - 1].setting != setting)
      groups.push_back({u, u, plan.settings[setting].estimated_store_s});
    groups.back().last = u + 1;
    groups.back().estimated_s += plan.units[u].estimated_s;
  }
  return groups;
}

}  // namespace

SweepPlan plan_sweep(Experiment experiment) { return Planner(std::move(experiment)).plan(); }

Shard parse_shard(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    const auto index = parse_count(text.substr(0, slash)),
               count = parse_count(text.substr(slash + 1));
    if (index && count && *index >= 1 && *index <= *count) return {*index, *count};
  }
  throw UsageError(
      fmt::format("--shard '{}'; expected i/n with 1 <= i <= n, e.g. 3/8", printable(text)));
}

std::vector<std::size_t> units_of(const SweepPlan& plan, const Shard& shard) {
  std::vector<Group> groups = groups_of(plan);
  double total_s = 0.0;
  for (const Group& group : groups) total_s += group.estimated_s;
  const double fair_s = total_s / static_cast<double>(shard.count);
  // Position in the plan decides between equals.
  std::ranges::stable_sort(groups, std::ranges::greater{}, &Group::estimated_s);
  std::vector<double> load_s(shard.count, 0.0);
  std::vector<std::size_t> mine;
  const auto assign = [&](std::size_t first, std::size_t last, double cost_s) {
    const auto least = std::ranges::min_element(load_s);
    *least += cost_s;
    if (static_cast<std::size_t>(least - load_s.begin()) + 1 != shard.index) return;
    for (std::size_t u = first; u < last; ++u) mine.push_back(u);
  };
  for (const Group& group : groups) {
    if (group.estimated_s <= fair_s) {
      assign(group.first, group.last, group.estimated_s);
      continue;
    }
    // Too long for one shard: unit by unit, each each storing the profile it needs.
    std::vector<std::size_t> units(group.last - group.first);
    std::iota(units.begin(), units.end(), group.first);
    std::ranges::stable_sort(units, std::ranges::greater{},
                             [&](std::size_t u) { return plan.units[u].estimated_s; });
    const double store_s = plan.settings[plan.units[group.first].setting].estimated_store_s;
    for (const std::size_t u : units) assign(u, u + 1, store_s + plan.units[u].estimated_s);
  }
  std::ranges::sort(mine);
  return mine;
}

double estimated_time_s(const SweepPlan& plan, std::span<const std::size_t> units) {
  double time_s = 0.0;
  std::optional<std::size_t> setting;
  for (const std::size_t u : units) {
    const Unit& unit = plan.units[u];
    if (setting != unit.setting) time_s += plan.settings[unit.setting].estimated_store_s;
    setting = unit.setting;
    time_s += unit.estimated_s;
  }
  return time_s;
}

}  // namespace rubato
