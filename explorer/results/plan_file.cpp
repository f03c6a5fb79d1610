#include "explorer/results/plan_file.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "common/text.hpp"
#include "explorer/plan/defaults.hpp"
#include "explorer/results/first_row.hpp"
#include "explorer/results/graph_store.hpp"
#include "explorer/results/plan_choice.hpp"
#include "explorer/results/provenance.hpp"
#include "models/gpu/spec.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {

namespace {

std::optional<double> number_or_none(const SqlValue& value) {
  if (std::holds_alternative<std::monostate>(value)) return std::nullopt;
  return real(value);
}

std::optional<GpuSpec> shipped_spec(const std::string& name) {
  const std::vector<std::string> known = shipped_gpu_specs();
  if (std::ranges::find(known, name) == known.end()) return std::nullopt;
  return load_gpu_spec(name);
}

/// A run whose plans are written, of either kind.
struct WrittenRun {
  StoredRun run;
  std::optional<GpuSpec> spec = {};
  std::optional<Trace> trace = {};  ///< whose step the plans are of
};

// What changes take, as the run was asked for it.
SwitchModel switching_of(const std::vector<SqlValue>& row, std::size_t begin) {
  SwitchModel model{.core = {.stall_s = real(row[begin]),
                             .energy_j = real(row[begin + 1]),
                             .lead_s = real(row[begin + 2])},
                    .mem = {},
                    .dwell_s = real(row[begin + 3])};
  if (const auto mem_lead_s = number_or_none(row[begin + 4])) {
    model.mem = {
        .stall_s = real(row[begin + 5]), .energy_j = real(row[begin + 6]), .lead_s = *mem_lead_s};
  }
  return model;
}

constexpr std::string_view switch_columns =
    "switch_stall_s, switch_energy_j, switch_lead_s, switch_dwell_s, mem_switch_lead_s, "
    "mem_switch_stall_s, mem_switch_energy_j";

// What the run says of itself. Fills spec and trace of `written`.
PlanFile file_of_run(const ResultStore& store, WrittenRun& written,
                     const PlanFileRequest& request) {
  const std::int64_t id = written.run.id;
  const auto row = first_row(
      written.run.captured
          ? store.query(fmt::format("SELECT command, captures, gpu, power_limit_w, {} FROM "
                                    "graph_runs WHERE graph_run_id = ?",
                                    switch_columns),
                        {id})
          : store.query(fmt::format("SELECT r.command, r.trace_name, r.gpu, r.power_limit_w, {}, "
                                    "t.text, s.text FROM runs r "
                                    "JOIN inputs t ON t.input_hash = r.trace_hash "
                                    "JOIN inputs s ON s.input_hash = r.spec_hash WHERE run_id = ?",
                                    switch_columns),
                        {id}));
  constexpr std::size_t switching = 4, texts = switching + 7;
  const std::string gpu = text(row[2]);
  if (written.run.captured) {
    written.spec = request.spec ? request.spec : shipped_spec(gpu);
  } else {
    written.spec = parse_gpu_spec(text(row[texts + 1]), gpu);
    written.trace = parse_trace_json(text(row[texts]), text(row[1]));
  }
  const GpuSpec* spec = written.spec ? &*written.spec : nullptr;
  const StoredBaseline baseline = stored_baseline(store, written.run);
  std::string work = text(row[1]);
  std::ranges::replace(work, '\n', ' ');
  return {.created_utc = now_utc(),
          .run = {.kind = written.run.captured ? "capture" : "trace",
                  .run_id = id,
                  .work = std::move(work),
                  .command = text(row[0]),
                  .gpus = static_cast<std::int64_t>(baseline.gpus),
                  .default_time_s = baseline.time_s,
                  .default_energy_j = baseline.boards_j(),
                  .host_power_w = baseline.host_power_w},
          .gpu = plan_file_spec(gpu, spec, real(row[3])),
          .switching = plan_file_switching(
              switching_in_earnest(switching_of(row, switching), spec ? *spec : GpuSpec{}), spec)};
}

// What applicable() said of a plan when it was made.
PlanVerdict stored_verdict(const ResultStore& store, StoredRun run, std::int64_t plan_id) {
  const std::string because = text(first_row(store.query(
      run.captured
          ? "SELECT ifnull(not_applicable_because, '') FROM graph_plans WHERE graph_plan_id = ?"
          : "SELECT ifnull(not_applicable_because, '') FROM plans WHERE plan_id = ?",
      {plan_id}))[0]);
  return {because.empty(), because};
}

// Launch by launch as the step runs: repeated blocks are written out.
std::vector<PlanFileGpu> gpus_of_trace(const ResultStore& store, const WrittenRun& written,
                                       std::int64_t plan_id, PlanFile& file) {
  const auto rows = store
                        .query(
                            "SELECT segment, repeat, pass, clock, time_s, energy_j, kernel FROM "
                            "v_plan_clocks WHERE plan_id = ? ORDER BY site_id",
                            {plan_id})
                        .rows;
  PlanFileGpu gpu{.label = "every GPU"};
  std::map<std::string, std::int64_t> seen;  // launches of a kernel in this pass
  std::string pass;
  for (std::size_t begin = 0; begin < rows.size();) {
    const auto block =
        std::ranges::find(written.trace->segments, text(rows[begin][0]), &Segment::name);
    const std::size_t length = block == written.trace->segments.end() ? 1 : block->launches.size();
    const std::size_t end = std::min(begin + length, rows.size());
    for (std::int64_t repeat = 0; repeat < whole(rows[begin][1]); ++repeat) {
      for (std::size_t i = begin; i < end; ++i) {
        const bool begins = text(rows[i][2]) != pass;
        if (begins) seen.clear();
        pass = text(rows[i][2]);
        const std::string& kernel = text(rows[i][6]);
        add_launches(gpu.segments, {.pass = pass,
                                    .begins_pass = begins,
                                    .clock = file.clock_id(plan_file_clock(
                                        text(rows[i][3]), written.spec ? &*written.spec : nullptr)),
                                    .time_s = real(rows[i][4]),
                                    .energy_j = real(rows[i][5]),
                                    .first = PlanFileLaunch{kernel, seen[kernel]++}});
      }
    }
    begin = end;
  }
  return {gpu};
}

std::vector<PlanFileGpu> gpus_of_capture(const ResultStore& store, const WrittenRun& written,
                                         std::int64_t plan_id, PlanFile& file) {
  std::vector<PlanFileGpu> gpus;
  for (const auto& row : store
                             .query("SELECT DISTINCT rank, device FROM graph_plan_clocks WHERE "
                                    "graph_plan_id = ? ORDER BY rank, device",
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

void add_kernels(const ResultStore& store, const WrittenRun& written, PlanFile& file) {
  const PlanFilePlan& answer = file.plans.front();
  const char* sql =
      written.run.captured
          ? "SELECT rank, device, pass, kernel, clock, launches, time_s, kernel_key FROM "
            "graph_plan_clocks WHERE graph_plan_id = ? ORDER BY row_id"
          : "SELECT 0, 0, pass, kernel, clock, sum(repeat), sum(repeat * time_s), '' FROM "
            "v_plan_clocks WHERE plan_id = ? GROUP BY pass, kernel, clock ORDER BY min(site_id)";
  for (const auto& row : store.query(sql, {*answer.plan_id}).rows) {
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
      .verdict = stored_verdict(store, written.run, stored.id),
      .comm_sms = stored.comm_sms,
      .promise = {.time_s = baseline.time_s * (1.0 + stored.time_change.value),
                  .energy_j = baseline.boards_j() * (1.0 + boards.value),
                  .time = change_pct_of(stored.time_change),
                  .energy = change_pct_of(boards),
                  .lower_bound_j = hosts ? std::nullopt : stored.lower_bound_j,
                  .gap_pct =
                      stored.gap_frac ? std::optional(percent * *stored.gap_frac) : std::nullopt,
                  .clock_changes = stored.clock_changes},
      .gpus = written.run.captured ? gpus_of_capture(store, written, stored.id, file)
                                   : gpus_of_trace(store, written, stored.id, file)};
  if (stored.goal.ends_with("waste")) plan.slack_pct = percent * stored.slack_frac;
  return plan;
}

}  // namespace

PlanFile plan_file(const ResultStore& store, const PlanFileRequest& request) {
  WrittenRun written{find_stored_run(store, request.run)};
  PlanFile file = file_of_run(store, written, request);
  const PlanChoice chosen =
      choose_plans(store, written.run, request.granularity, request.goal, request.plan_id);
  chosen.plans.front().require_in_time();
  const StoredBaseline baseline = stored_baseline(store, written.run);
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
