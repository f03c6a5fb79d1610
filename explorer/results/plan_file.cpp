#include "explorer/results/plan_file.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "explorer/plan/defaults.hpp"
#include "explorer/results/first_row.hpp"
#include "explorer/results/plan_choice.hpp"
#include "explorer/results/provenance.hpp"
#include "models/gpu/spec.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {

namespace {

/// A run whose plans are written.
struct WrittenRun {
  StoredRun run;
  std::optional<GpuSpec> spec = {};
  std::optional<Trace> trace = {};  ///< whose step the plans are of
};

// What the run says of itself. Fills spec and trace of `written`.
PlanFile file_of_run(const ResultStore& store, WrittenRun& written,
                     const PlanFileRequest& request) {
  const std::int64_t id = written.run.id;
  const auto row = first_row(store.query(
      "SELECT command, work, gpu, power_limit_w, schedule, stages, tensor_parallel, data_parallel "
      "FROM v_runs WHERE run_id = ?",
      {id}));
  written.spec = request.spec ? request.spec : stored_spec(store, id);
  if (written.run.kind == "trace") {
    const auto trace = first_row(
        store.query("SELECT text FROM v_inputs WHERE run_id = ? AND kind = 'trace'", {id}));
    written.trace = parse_trace_json(text(trace[0]), text(row[1]));
  }
  const GpuSpec* spec = written.spec ? &*written.spec : nullptr;
  const StoredBaseline baseline = stored_baseline(store, id);
  std::string work = text(row[1]);
  std::ranges::replace(work, '\n', ' ');
  PlanFile file{
      .created_utc = now_utc(),
      .run = {.kind = written.run.kind,
              .run_id = id,
              .work = std::move(work),
              .command = text(row[0]),
              .gpus = static_cast<std::int64_t>(baseline.gpus),
              .default_time_s = baseline.time_s,
              .default_energy_j = baseline.boards_j(),
              .host_power_w = baseline.host_power_w},
      .switching = plan_file_switching(
          switching_in_earnest(stored_switching(store, id), spec ? *spec : GpuSpec{}), spec)};
  if (!std::holds_alternative<std::monostate>(row[2]))
    file.gpu = plan_file_spec(text(row[2]), spec, real_or_none(row[3]));
  if (written.run.kind == "pipeline") {
    file.run.schedule = text(row[4]);
    file.run.stages = whole(row[5]);
    file.run.tensor_parallel = whole(row[6]);
    file.run.data_parallel = whole(row[7]);
  }
  return file;
}

// What applicable() said of a plan when it was made.
PlanVerdict stored_verdict(const ResultStore& store, std::int64_t plan_id) {
  const std::string because = text(first_row(store.query(
      "SELECT ifnull(not_applicable_because, '') FROM v_plans WHERE plan_id = ?", {plan_id}))[0]);
  return {because.empty(), because};
}

// As the step runs: repeated blocks are written out.
std::vector<PlanFileGpu> gpus_of_trace(const ResultStore& store, const WrittenRun& written,
                                       std::int64_t plan_id, PlanFile& file) {
  const auto rows = store
                        .query(
                            "SELECT block, repeats, pass, clock, time_s, energy_j, launches FROM "
                            "v_segments WHERE plan_id = ? ORDER BY segment_id",
                            {plan_id})
                        .rows;
  PlanFileGpu gpu{.label = "every GPU"};
  std::map<std::string, std::int64_t> seen;  // launches of a kernel in this pass
  std::string pass;
  for (std::size_t begin = 0; begin < rows.size();) {
    // The stretches of a block have all its launches.
    const auto block =
        std::ranges::find(written.trace->segments, text(rows[begin][0]), &Segment::name);
    if (block == written.trace->segments.end()) {
      throw DataError(fmt::format("the trace has no segment '{}'", text(rows[begin][0])),
                      {.in = {}, .hint = "the database is damaged; restore a copy"});
    }
    std::size_t end = begin;
    for (std::size_t launches = 0; end < rows.size() && launches < block->launches.size(); ++end)
      launches += static_cast<std::size_t>(whole(rows[end][6]));
    for (std::int64_t repeat = 0; repeat < whole(rows[begin][1]); ++repeat) {
      std::size_t launch = 0;
      const auto kernel = [&] {
        return written.trace->kernels[index(block->launches.at(launch))].name;
      };
      for (std::size_t i = begin; i < end; ++i) {
        const bool begins = text(rows[i][2]) != pass;
        if (begins) seen.clear();
        pass = text(rows[i][2]);
        add_launches(gpu.segments, {.pass = pass,
                                    .begins_pass = begins,
                                    .clock = file.clock_id(plan_file_clock(
                                        text(rows[i][3]), written.spec ? &*written.spec : nullptr)),
                                    .launches = whole(rows[i][6]),
                                    .time_s = real(rows[i][4]),
                                    .energy_j = real(rows[i][5]),
                                    .first = PlanFileLaunch{kernel(), seen[kernel()]}});
        for (std::int64_t n = 0; n < whole(rows[i][6]); ++n, ++launch) ++seen[kernel()];
      }
    }
    begin = end;
  }
  return {gpu};
}

std::vector<PlanFileGpu> gpus_of_capture(const ResultStore& store, const WrittenRun& written,
                                         std::int64_t plan_id, PlanFile& file) {
  std::vector<PlanFileGpu> gpus;
  for (const auto& row :
       store
           .query("SELECT DISTINCT rank, device FROM v_segments WHERE plan_id = ? "
                  "ORDER BY gpu_id",
                  {plan_id})
           .rows) {
    PlanFileGpu& gpu = gpus.emplace_back();
    gpu.rank = whole(row[0]);
    gpu.device = whole(row[1]);
    std::string pass;
    for (const StoredSegment& one : stored_segments(store, plan_id, *gpu.rank, *gpu.device)) {
      const bool begins = one.pass != pass;
      pass = one.pass;
      add_launches(gpu.segments, {.pass = pass,
                                  .begins_pass = begins,
                                  .clock = file.clock_id(plan_file_clock(
                                      one.clock, written.spec ? &*written.spec : nullptr)),
                                  .launches = one.launches,
                                  .time_s = one.time_s,
                                  .energy_j = one.energy_j,
                                  .first = PlanFileLaunch{one.first_kernel, one.first_index}});
    }
  }
  const bool by_device = std::ranges::adjacent_find(gpus, {}, &PlanFileGpu::rank) != gpus.end();
  for (PlanFileGpu& gpu : gpus) {
    gpu.label = by_device ? fmt::format("rank {}, device {}", *gpu.rank, *gpu.device)
                          : fmt::format("rank {}", *gpu.rank);
  }
  return gpus;
}

// Stages: each pass is a segment, until the next one of the stage begins. In between it waits.
std::vector<PlanFileGpu> gpus_of_stages(const ResultStore& store, std::int64_t plan_id,
                                        PlanFile& file) {
  const auto run = first_row(store.query(
      "SELECT blocked_power_w, host_power_w, (SELECT planned_time_s FROM v_plans WHERE plan_id = "
      "?2) FROM v_runs WHERE run_id = ?1",
      {*file.run.run_id, plan_id}));
  const double blocked_w = real(run[0]), host_w = real(run[1]), end_s = real(run[2]);
  std::vector<PlanFileGpu> gpus;
  for (const auto& row :
       store
           .query(
               "SELECT stage, pass, microbatch, chunk, core_mhz, mem_mhz, power_limit_w, "
               "time_s, energy_j, coalesce(lead(start_s) OVER of_stage, ?2 + first_value(start_s) "
               "OVER of_stage) - start_s FROM v_segments WHERE plan_id = ?1 WINDOW of_stage AS "
               "(PARTITION BY stage ORDER BY segment_id) ORDER BY segment_id",
               {plan_id, end_s})
           .rows) {
    const std::int64_t stage = whole(row[0]);
    if (gpus.empty() || gpus.back().stage != stage)
      gpus.push_back({.label = fmt::format("stage {}", stage), .stage = stage});
    const auto mhz = [](const SqlValue& value) {
      constexpr double digits = 1e6;  // steps of a clock are not exact
      const std::optional<double> stored = real_or_none(value);
      return stored ? std::optional(std::round(digits * *stored) / digits) : std::nullopt;
    };
    PlanFileClock clock{.label = {},
                        .core_mhz = mhz(row[4]),
                        .mem_mhz = mhz(row[5]),
                        .power_limit_w = real_or_none(row[6])};
    const auto shown = [](const std::optional<double>& value) {
      return value ? format_number(*value) : std::string("auto");
    };
    clock.label = fmt::format("{}/{}", shown(clock.mem_mhz), shown(clock.core_mhz));
    if (clock.power_limit_w)
      clock.label += fmt::format(", {} W", format_number(*clock.power_limit_w));
    const double until_next_s = real(row[9]);
    gpus.back().segments.push_back(
        {.pass = text(row[1]),
         .microbatch = whole(row[2]),
         .chunk = whole(row[3]),
         .clock = file.clock_id(clock),
         .time_s = until_next_s,
         .energy_j =
             real(row[8]) + blocked_w * (until_next_s - real(row[7])) - host_w * until_next_s});
  }
  return gpus;
}

void add_kernels(const ResultStore& store, const WrittenRun& written, PlanFile& file) {
  if (written.run.kind == "pipeline") return;  // passes are recognised as a whole
  const PlanFilePlan& answer = file.plans.front();
  for (const auto& row :
       store
           .query("SELECT ifnull(rank, 0), ifnull(device, 0), pass, name, clock, launches, time_s, "
                  "ifnull(kernel_key, '') FROM v_kernel_clocks WHERE plan_id = ? ORDER BY unit_id, "
                  "clock_id",
                  {*answer.plan_id})
           .rows) {
    const auto gpu = std::ranges::find_if(answer.gpus, [&](const PlanFileGpu& one) {
      return !one.rank || (*one.rank == whole(row[0]) && *one.device == whole(row[1]));
    });
    file.kernels.push_back({.gpu = static_cast<std::size_t>(gpu - answer.gpus.begin()),
                            .pass = text(row[2]),
                            .name = text(row[3]),
                            .clock = file.clock_id(plan_file_clock(
                                text(row[4]), written.spec ? &*written.spec : nullptr)),
                            .launches = whole(row[5]),
                            .time_s = real(row[6]),
                            .launched_as = text(row[7])});
  }
}

std::vector<PlanFileGpu> gpus_of(const ResultStore& store, const WrittenRun& written,
                                 std::int64_t plan_id, PlanFile& file) {
  if (written.run.kind == "pipeline") return gpus_of_stages(store, plan_id, file);
  return written.run.captured() ? gpus_of_capture(store, written, plan_id, file)
                                : gpus_of_trace(store, written, plan_id, file);
}

PlanFileChange change_pct_of(const StoredChange& change) {
  const auto pct = [](const std::optional<double>& frac) {
    return frac ? std::optional(percent * *frac) : std::nullopt;
  };
  return {percent * change.value, pct(change.low), pct(change.high)};
}

PlanFilePlan plan_of(const ResultStore& store, const WrittenRun& written,
                     const PlanCandidate& stored, const StoredBaseline& baseline, PlanRole role,
                     PlanFile& file) {
  const StoredChange boards = change_of_boards(stored, baseline);
  const bool hosts = baseline.host_power_w > 0.0;
  PlanFilePlan plan{
      .role = role,
      .plan_id = stored.id,
      .granularity = stored.granularity,
      .goal = plan_file_goal(stored.goal),
      .verdict = stored_verdict(store, stored.id),
      .comm_sms = stored.comm_sms,
      .promise = {.time_s = baseline.time_s * (1.0 + stored.time_change.value),
                  .energy_j = baseline.boards_j() * (1.0 + boards.value),
                  .time = change_pct_of(stored.time_change),
                  .energy = change_pct_of(boards),
                  .lower_bound_j = hosts ? std::nullopt : stored.lower_bound_j,
                  .gap_pct =
                      stored.gap_frac ? std::optional(percent * *stored.gap_frac) : std::nullopt,
                  .clock_changes = stored.clock_changes},
      .gpus = gpus_of(store, written, stored.id, file)};
  if (stored.goal.ends_with("waste")) plan.slack_pct = percent * stored.slack_frac;
  return plan;
}

}  // namespace

PlanFile plan_file(const ResultStore& store, const PlanFileRequest& request) {
  WrittenRun written{find_stored_run(store, request.run)};
  PlanFile file = file_of_run(store, written, request);
  const PlanChoice chosen =
      choose_plans(store, written.run.id, request.granularity, request.goal, request.plan_id);
  chosen.plans.front().require_in_time();
  if (written.run.kind == "pipeline" && chosen.plans.front().granularity == "kernel") {
    throw UsageError("clocks of the kernels in a pass are not in the database",
                     {.in = {}, .hint = "'rubato explore --plan-file' writes them"});
  }
  const StoredBaseline baseline = stored_baseline(store, written.run.id);
  const auto add = [&](const PlanCandidate& stored, PlanRole role) {
    PlanFilePlan plan = plan_of(store, written, stored, baseline, role, file);
    if (role == PlanRole::answer || plan.verdict.applicable) file.plans.push_back(std::move(plan));
  };
  for (std::size_t i = 0; i < chosen.plans.size(); ++i)
    add(chosen.plans[i], i == 0 ? PlanRole::answer : PlanRole::coarser);
  for (const PlanCandidate& one : chosen.slower) add(one, PlanRole::slower);
  add_kernels(store, written, file);
  return file;
}

}  // namespace rubato
