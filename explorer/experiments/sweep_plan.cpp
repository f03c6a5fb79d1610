#include "explorer/experiments/sweep_plan.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/algorithms/sort_by.hpp"
#include "common/error.hpp"
#include "common/hash.hpp"
#include "common/json.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "explorer/experiments/point_values.hpp"
#include "explorer/results/provenance.hpp"
#include "traces/files/trace_json.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

// Seconds on one core of the machine the estimates were made on (AMD EPYC of family 26, November
// 2026, release build, GPT-3-xl with 67 and 763 clocks); only their ratios matter once a sweep has
// run. What units of a setting share is counted once: storing, and the tables of all models.
constexpr double store_s_per_setting = 3e-3;
constexpr double store_s_per_cell = 0.4e-6;
constexpr double evaluate_s_per_setting = 4e-3;
constexpr double evaluate_s_per_cell = 0.5e-6;
constexpr double answer_s_per_unit = 0.5e-3;
constexpr double kernel_solve_s_per_cell = 0.1e-6;
constexpr double automatic_s_per_unit = 4e-2;
constexpr double automatic_s_per_cell = 4e-6;
constexpr double pipeline_s_per_pass = 5e-4;
// Of captured runs, whose units share nothing. Timed on the example of 942 launches.
constexpr double replay_s_per_launch_and_clock = 0.2e-6;
constexpr double made_ready_s_per_launch = 5e-5;
constexpr double solve_s_per_captured_launch = 5e-5;
constexpr double automatic_s_per_captured_launch = 1e-3;
constexpr double goal_searches = 8.0;  // plans for a goal other than a slack

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json question_json(const Question& question) {
  Json json{{"granularity", name_of(question.granularity)},
            {"aggregation", name_of(question.aggregation)},
            {"goal", name_of(question.goal)}};
  if (const auto* waste = std::get_if<LeastWaste>(&question.goal)) {
    json["slack_frac"] = waste->slack_frac;
    json["tolerance_frac"] = waste->tolerance_frac;
  }
  if (question.counts_changes) json["counts_changes"] = true;
  if (const auto* time = std::get_if<LeastTime>(&question.goal)) {
    json["max_energy_j"] = or_null(time->max_energy_j);
    json["max_average_power_w"] = or_null(time->max_average_power_w);
  }
  if (const auto* cost = std::get_if<LeastCost>(&question.goal)) {
    json["price_per_kwh"] = cost->prices.per_kwh;
    json["price_per_gpu_hour"] = cost->prices.per_gpu_hour;
    json["pue"] = cost->prices.pue;
  }
  return json;
}

// The options in which settings of the same work differ. Ids are hashes of this text, so the order
// of its keys stays.
Json options_json(const Setting& setting, const std::string& spec_hash) {
  const SwitchModel& switching = setting.switching;
  Json json;
  if (const CapturedWork* captured = setting.captured())
    json["captured_clock"] = captured->clock_label;
  json.update({{"spec_hash", spec_hash},
               {"power_limit_w", setting.power_limit_w},
               {"clocks", setting.clocks},
               {"switch_stall_s", switching.core.stall_s},
               {"switch_energy_j", switching.core.energy_j},
               {"seed", setting.seed}});
  if (switching.may_delay()) {
    json["switch_lead_s"] = switching.core.lead_s;
    json["switch_dwell_s"] = switching.dwell_s;
  }
  if (switching.mem) {
    json["mem_switch_s"] = {switching.mem->lead_s, switching.mem->stall_s, switching.mem->energy_j};
  }
  if (setting.host_power_w > 0.0) json["host_power_w"] = setting.host_power_w;
  if (setting.odds_frac != usual_odds_frac) json["odds_pct"] = percent * setting.odds_frac;
  if (const PipelineSplit* pipeline = setting.pipeline()) {
    json["pipeline_parallel"] = pipeline->stages;
    json["microbatches"] = pipeline->microbatches;
    json["schedule"] = name_of(pipeline->schedule);
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
    plan_.experiment.points = {};  // a kilobyte each, and all are in units by now
    sort_by_setting();
    share_tables();
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

  // A file of that name beside the experiment if there is one, else the name as it is.
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

  const Hashed<Trace>& trace(const Point& point) {
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
    const std::optional<PipelineSplit> pipeline = pipeline_of(point);
    return pipeline ? microbatch_trace(*pipeline)
                    : generate_training_step(gpt_shape_of(point)).trace;
  }

  const std::shared_ptr<const CapturedFiles>& captured_run(const std::string& name) {
    auto& kept = captured_runs_[name];
    if (!kept) {
      kept = std::make_shared<CapturedFiles>(read_captured_files(name, plan_.experiment.folder));
    }
    return kept;
  }

  void add(const ExperimentPoint& asked) {
    const Point& point = asked.point;
    const Question question = question_of(point);
    const std::size_t setting = setting_of(point);
    Json json = Json::parse(plan_.settings[setting].options_json);
    json["question"] = question_json(question);
    Unit unit{.id = {},
              .question_id = content_hash(json_text(json)),
              .setting = setting,
              .question = question,
              .scenarios = {asked.scenario},
              .estimated_s = estimate(setting, question)};
    unit.id = content_hash(unit.question_id + program_with_revision());
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

  // A trace or a captured run, its hash, and the key that the hash has in options_json.
  struct Work {
    std::variant<TraceWork, CapturedWork> value;
    std::string key, hash;
  };

  Work work_of(const Point& point, const GpuSpec& gpu) {
    if (const auto* name = std::get_if<std::string>(&point[AxisId::capture])) {
      CapturedWork work = captured_work(captured_run(*name), gpu, point);
      std::string hash = work.run->hash;
      return {std::move(work), "capture_hash", std::move(hash)};
    }
    const Hashed<Trace>& trace = this->trace(point);
    return {TraceWork{trace.value, work_shape_of(point), pipeline_of(point)}, "trace_hash",
            trace.hash};
  }

  std::size_t setting_of(const Point& point) {
    const Hashed<GpuSpec>& gpu = spec(point.text(AxisId::gpu));
    Work work = work_of(point, *gpu.value);
    const bool captured = std::holds_alternative<CapturedWork>(work.value);
    Setting setting{
        .id = {},
        .work = std::move(work.value),
        .spec = gpu.value,
        .power_limit_w =
            point.optional_number(AxisId::power_limit_w).value_or(gpu.value->power_limit.limit_w),
        .clocks = clocks_of(point, *gpu.value),
        // Of traces and pipelines each question says whether it counts what the spec knows.
        .switching =
            switching_of(point).value_or(captured ? switch_model(*gpu.value) : SwitchModel{}),
        .host_power_w = point.number(AxisId::host_power_w),
        .odds_frac = odds_of(point),
        .seed = point.count(AxisId::seed),
        .options_json = {},
        .estimated_store_s = 0.0};
    Json options{{work.key, work.hash}};
    options.update(options_json(setting, gpu.hash));
    setting.options_json = json_text(options);
    setting.id = content_hash(setting.options_json + program_with_revision());
    const auto found = setting_by_id_.find(setting.id);
    if (found != setting_by_id_.end()) return found->second;
    check(setting);
    if (setting.traced() != nullptr)
      setting.estimated_store_s = store_s_per_setting + cells_of(setting) * store_s_per_cell;
    setting_by_id_.emplace(setting.id, plan_.settings.size());
    plan_.settings.push_back(std::move(setting));
    return plan_.settings.size() - 1;
  }

  // "all" becomes the grid's own name: a point with that name asks for the same setting.
  static std::string clocks_of(const Point& point, const GpuSpec& spec) {
    const std::string& clocks = point.text(AxisId::clocks);
    return grid_name(spec, clocks == all_clocks ? "" : clocks);
  }

  // Refuses what cannot be run before the first unit starts.
  void check(const Setting& setting) {
    if (const PipelineSplit* pipeline = setting.pipeline()) {
      (void)make_schedule({.kind = pipeline->schedule,
                           .stages = pipeline->stages,
                           .microbatches = pipeline->microbatches});
    }
    if (const TraceWork* traced = setting.traced()) {
      (void)GpuModel(*setting.spec, *traced->trace, setting.power_limit_w);
    } else {
      (void)accepted_power_limit_w(*setting.spec, setting.power_limit_w);
      validate(setting.switching);
    }
    (void)clocks_of(setting);
  }

  std::size_t clocks_of(const Setting& setting) {
    auto& clocks = clocks_[{setting.spec.get(), setting.clocks}];
    if (clocks == 0) clocks = make_clock_grid(*setting.spec, setting.clocks).size();
    return clocks;
  }

  double cells_of(const Setting& setting) {
    return static_cast<double>(setting.traced()->trace->kernels.size() * clocks_of(setting));
  }

  double estimate(std::size_t index, const Question& question) {
    const Setting& setting = plan_.settings[index];
    if (const CapturedWork* captured = setting.captured())
      return estimate(setting, *captured, question);
    return estimate(setting, *setting.traced(), question);
  }

  double estimate(const Setting& setting, const CapturedWork& work, const Question& question) {
    const double launches = static_cast<double>(work.run->launches());
    const double clocks = static_cast<double>(clocks_of(setting));
    double time_s = launches * (made_ready_s_per_launch + clocks * replay_s_per_launch_and_clock);
    if (question.granularity != Granularity::run) time_s += launches * solve_s_per_captured_launch;
    if (question.granularity == Granularity::segment)
      time_s += launches * automatic_s_per_captured_launch;
    return allowed_frac(question) ? time_s : goal_searches * time_s;
  }

  double estimate(const Setting& setting, const TraceWork& work, const Question& question) {
    const double cells = cells_of(setting);
    if (const auto& pipeline = work.pipeline) {
      return cells * evaluate_s_per_cell * pipeline->stages +
             static_cast<double>(pipeline->stages) * pipeline->microbatches * pipeline_s_per_pass;
    }
    switch (question.granularity) {
      case Granularity::kernel: return answer_s_per_unit + cells * kernel_solve_s_per_cell;
      case Granularity::segment: return automatic_s_per_unit + cells * automatic_s_per_cell;
      default: return answer_s_per_unit;
    }
  }

  // Units of one setting of a trace are explored together: each bears an equal part of its tables.
  void share_tables() {
    std::vector<double> units(plan_.settings.size());
    for (const Unit& unit : plan_.units) ++units[unit.setting];
    for (Unit& unit : plan_.units) {
      const Setting& setting = plan_.settings[unit.setting];
      if (setting.traced() == nullptr || setting.pipeline() != nullptr) continue;
      unit.estimated_s +=
          (evaluate_s_per_setting + cells_of(setting) * evaluate_s_per_cell) / units[unit.setting];
    }
  }

  void sort_by_setting() { sort_by(plan_.units, &Unit::setting); }

  SweepPlan plan_;
  ErrorList errors_;
  std::set<std::string> complaints_;
  std::map<std::string, Hashed<GpuSpec>> specs_;
  std::map<std::string, Hashed<Trace>> traces_;
  std::map<std::string, std::shared_ptr<const CapturedFiles>> captured_runs_;
  std::map<std::pair<const GpuSpec*, std::string>, std::size_t> clocks_;
  std::map<std::string, std::size_t> setting_by_id_, unit_by_id_;
};

}  // namespace

SweepPlan plan_sweep(Experiment experiment) { return Planner(std::move(experiment)).plan(); }

}  // namespace rubato
