-- Each view answers a natural question with one simple SELECT. A row of a plan says which run it is of, what was asked, and whether it is the
-- answer (is_answer: of all plans of the run that want the same; is_headline: the one that the run is known by). Changes are against the
-- default clocks of the same run, in percent, as applied; planned_...: as the planner saw it. Views start from small tables, so that a
-- condition on a run, plan or experiment finds its rows by index; `+` keeps SQLite from an index that would find too many.

-- What was planned, and what it takes at the default clocks.
CREATE VIEW v_runs AS
SELECT r.*, r.default_energy_j / r.default_time_s AS default_power_w,
       (SELECT CASE count(*) WHEN 1 THEN min(label) ELSE 'the highest clocks' END FROM clocks c WHERE c.run_id = r.run_id AND c.is_default) AS default_clock,
       (SELECT group_concat(kind, ', ') FROM caveats c WHERE c.run_id = r.run_id AND +c.plan_id IS NULL) AS caveats
FROM runs r;

-- Every plan: what was asked of what, and what it gives.
CREATE VIEW v_plans AS
SELECT r.kind, p.run_id, p.plan_id, r.work, r.gpu, p.is_answer, ifnull(p.is_answer AND p.want = r.headline_want, 0) AS is_headline, p.goal,
       p.slack_pct, p.granularity, p.aggregation, p.status, p.clocks,
       (SELECT label FROM clocks c WHERE c.run_id = p.run_id AND c.clock_id = p.clock_id) AS clock,
       p.clock_changes, p.clock_changes / p.applied_time_s AS clock_changes_per_s,
       p.applied_energy_change_pct AS energy_change_pct, p.energy_change_low_pct, p.energy_change_high_pct, p.energy_change_expected_pct,
       p.applied_time_change_pct AS time_change_pct, p.time_change_low_pct, p.time_change_high_pct, p.time_change_expected_pct,
       p.in_time, p.odds_pct, p.odds_in_time_pct, p.applicable, p.not_applicable_because,
       p.energy_change_pct AS planned_energy_change_pct, p.time_change_pct AS planned_time_change_pct,
       p.time_s AS planned_time_s, p.energy_j AS planned_energy_j,
       CASE WHEN p.goal LIKE '%_waste' OR p.goal IN ('least_energy', 'straggler') THEN p.lower_bound END AS lower_bound_j, p.gap_pct, p.applied_gap_pct,
       p.applied_time_s AS time_s, p.applied_energy_j AS energy_j, p.applied_energy_j / p.applied_time_s AS power_w,
       r.default_time_s, r.default_energy_j + CASE p.goal WHEN 'straggler' THEN r.blocked_power_w * r.gpus * (p.deadline_s - r.default_time_s) ELSE 0.0 END
         AS default_energy_j,  -- of one that waits until the deadline, too
       100.0 * ((p.applied_energy_j - r.gpus * r.host_power_w * p.applied_time_s)
         / (r.default_energy_j - r.gpus * r.host_power_w * r.default_time_s) - 1) AS boards_energy_change_pct,
       (SELECT group_concat(kind, ', ') FROM (SELECT kind FROM caveats WHERE plan_id = p.plan_id
          UNION SELECT kind FROM caveats WHERE run_id = p.run_id AND +plan_id IS NULL)) AS caveats,
       p.want, p.keeps_default, r.asked, p.deadline_s, p.tolerance_pct, p.energy_budget_j, p.power_budget_w, p.price_per_kwh,
       p.price_per_gpu_hour, p.pue, p.comm_sms, r.power_limit_w, r.host_power_w, r.clock_grid, r.gpus, r.gpu_calibrated, r.captured_clock,
       r.model, r.batch, r.sequence, r.tensor_parallel, r.data_parallel, r.stages, r.microbatches, r.schedule, r.seed,
       1e6 * (r.switch_lead_s + r.switch_stall_s) AS switch_latency_us, 1e6 * r.switch_stall_s AS switch_stall_us, r.switch_energy_j,
       1e6 * r.switch_dwell_s AS switch_dwell_us, r.measured_pct, r.anchored_pct, r.scaled_pct, r.derived_pct, r.guessed_pct, r.fixed_pct,
       r.guessed_split_pct, p.late_launches, p.solve_time_s, p.wall_time_s, p.finished_utc, p.question_hash, p.result_hash, r.created_utc,
       r.program_version, r.host, r.command
FROM plans p JOIN runs r ON r.run_id = p.run_id;

-- What to set: for each run and each want the one plan that every command names, or the default clocks where nothing saves.
CREATE VIEW v_answer AS
SELECT v.kind, v.run_id, CASE answered WHEN 1 THEN plan_id END AS plan_id, v.asked, ifnull(want = r.headline_want, 0) AS is_headline, v.work, v.gpu,
       v.power_limit_w, goal, slack_pct, CASE answered WHEN 1 THEN granularity ELSE 'run' END AS granularity,
       CASE answered WHEN 0 THEN r.default_clock ELSE ifnull(clock,
         (SELECT group_concat(gpus || set_to, '; ') FROM (  -- 'rank 0: forward 1593/1110, backward 1593/1410; rank 1, rank 2: 1593/1410'
            SELECT CASE (SELECT count(*) FROM gpus g WHERE g.run_id = v.run_id) WHEN 1 THEN '' ELSE group_concat(label, ', ') || ': ' END AS gpus,
                   set_to, min(gpu_id) AS at FROM (
              SELECT gpu_id, label, CASE WHEN count(*) = 1 THEN min(clock) WHEN sum(several) > 0 THEN count(*) || ' clocks'
                                    ELSE group_concat(passes || ' ' || clock, ', ') END AS set_to FROM (
                SELECT gpu_id, label, clock, group_concat(pass, '+') AS passes, max(several) AS several, min(at) AS at FROM (
                  SELECT s.gpu_id, g.label, s.pass, c.label AS clock, min(s.segment_id) AS at,
                         count(*) OVER (PARTITION BY s.gpu_id, s.pass) > 1 AS several
                  FROM plan_segments s JOIN gpus g ON g.run_id = v.run_id AND g.gpu_id = s.gpu_id
                  JOIN clocks c ON c.run_id = v.run_id AND c.clock_id = s.clock_id
                  WHERE s.plan_id = v.plan_id GROUP BY s.gpu_id, s.pass, s.clock_id ORDER BY at)
                GROUP BY gpu_id, clock ORDER BY min(at))
              GROUP BY gpu_id)
            GROUP BY set_to ORDER BY at))) END AS set_to,
       CASE answered WHEN 1 THEN energy_change_pct ELSE 0.0 END AS energy_change_pct, CASE answered WHEN 1 THEN energy_change_low_pct ELSE 0.0 END AS energy_change_low_pct,
       CASE answered WHEN 1 THEN energy_change_high_pct ELSE 0.0 END AS energy_change_high_pct, CASE answered WHEN 1 THEN time_change_pct ELSE 0.0 END AS time_change_pct,
       CASE answered WHEN 1 THEN time_change_low_pct ELSE 0.0 END AS time_change_low_pct, CASE answered WHEN 1 THEN time_change_high_pct ELSE 0.0 END AS time_change_high_pct,
       odds_pct, CASE answered WHEN 1 THEN odds_in_time_pct ELSE 100.0 END AS odds_in_time_pct,
       CASE WHEN answered AND (goal LIKE '%_waste' OR goal = 'straggler') THEN ifnull(energy_change_low_pct >= 0.0 OR energy_change_high_pct < 0.0, 1) ELSE 1 END AS known,
       CASE answered WHEN 1 THEN clocks ELSE 1 END AS clocks, CASE answered WHEN 1 THEN clock_changes_per_s ELSE 0.0 END AS clock_changes_per_s,
       CASE answered WHEN 1 THEN time_s ELSE v.default_time_s END AS time_s, CASE answered WHEN 1 THEN energy_j ELSE v.default_energy_j END AS energy_j,
       v.default_time_s, v.default_energy_j, CASE answered WHEN 1 THEN gap_pct END AS gap_pct, CASE answered WHEN 1 THEN v.caveats END AS caveats,
       v.gpu_calibrated, v.measured_pct, v.anchored_pct, v.scaled_pct, v.derived_pct, v.guessed_pct, want, v.created_utc, v.command
FROM (SELECT *, is_answer AS answered, row_number() OVER (PARTITION BY run_id, want ORDER BY plan_id) AS position FROM v_plans
      WHERE is_answer = 1 OR keeps_default = 1) v
JOIN v_runs r ON r.run_id = v.run_id
WHERE position = 1;

-- The five lines of a run, as explore printed them; of a run that an experiment made, what its answer says.
CREATE VIEW v_lines AS
SELECT r.run_id, ifnull((SELECT text FROM screens s WHERE s.run_id = r.run_id AND label = 'Planned'), r.work || ifnull(' on ' || r.gpu, '') ||
         printf(': %.4g s and %.4g J a step at the default clocks', r.default_time_s / r.steps, r.default_energy_j / r.steps)) AS planned,
       ifnull((SELECT text FROM screens s WHERE s.run_id = r.run_id AND label = 'Set'), CASE WHEN a.plan_id IS NULL THEN 'nothing: keep the default clocks' WHEN a.clocks = 1 THEN
         (SELECT label FROM clocks c WHERE c.run_id = r.run_id AND c.clock_id = a.clock_id) ELSE a.clocks || ' clocks, one for each ' || a.granularity END) AS "set",
       ifnull((SELECT text FROM screens s WHERE s.run_id = r.run_id AND label = 'Saves'), CASE WHEN a.plan_id IS NULL THEN 'nothing' ELSE printf('%.1f %% energy', -a.applied_energy_change_pct) ||
         CASE WHEN a.energy_change_low_pct IS NULL THEN '' ELSE printf(' (90 %%: %.1f to %.1f)', -a.energy_change_high_pct, -a.energy_change_low_pct) END ||
         printf(', time %+.1f %%', a.applied_time_change_pct) END) AS saves,
       ifnull((SELECT text FROM screens s WHERE s.run_id = r.run_id AND label = 'Rests on'), ifnull('times of kernels: ' || CAST(round(r.measured_pct) AS INTEGER) || ' % measured, ' ||
         CAST(round(100.0 - r.measured_pct) AS INTEGER) || ' % modelled or guessed', 'passes as the profile has them')) AS rests_on,
       ifnull((SELECT text FROM screens s WHERE s.run_id = r.run_id AND label = 'Next'), 'rubato explore of this run alone says what to measure') AS next
FROM runs r LEFT JOIN plans a ON a.plan_id = (SELECT p.plan_id FROM plans p JOIN runs o ON o.run_id = p.run_id WHERE p.run_id = r.run_id AND p.is_answer = 1
                                              ORDER BY p.want = o.headline_want DESC, p.applied_energy_change_pct LIMIT 1);

-- What a run's numbers rest on: shares of the time by where times of kernels come from.
CREATE VIEW v_trust AS
SELECT run_id, kind, asked, work, gpu, gpu_calibrated, power_limit_w, measured_pct, anchored_pct, scaled_pct, derived_pct, guessed_pct, fixed_pct,
       guessed_split_pct, arcs_read, arcs_inferred FROM runs;

-- The files that a run was made from; text where it is kept.
CREATE VIEW v_inputs AS
SELECT x.run_id, x.position, i.kind, i.name, i.input_hash, i.text FROM run_inputs x JOIN inputs i ON i.input_hash = x.input_hash;

CREATE VIEW v_model_errors AS
SELECT x.run_id, r.gpu, e.name, e.value FROM runs r JOIN run_inputs x ON x.run_id = r.run_id JOIN model_errors e ON e.spec_hash = x.input_hash;

CREATE VIEW v_caveats AS
SELECT c.run_id, c.plan_id, c.kind, c.reason FROM caveats c;

-- Each unit (a kernel; of pipelines a kind of pass) under a plan, a row for each of its clocks.
CREATE VIEW v_kernel_clocks AS
SELECT r.kind, p.run_id, p.plan_id, p.is_answer, ifnull(p.is_answer AND p.want = r.headline_want, 0) AS is_headline, p.goal, p.slack_pct, p.granularity, g.label AS gpu_label,
       g.rank, g.device, g.stage, u.unit_id, u.name, u.label, u.class, u.pass, u.source, u.kernel_key, k.launches, k.clock_id, c.label AS clock, c.mem_mhz,
       c.core_mhz, c.power_limit_w, k.time_s, k.energy_j, x.effective_core_mhz, x.power_limited
FROM plans p JOIN runs r ON r.run_id = p.run_id JOIN plan_units k ON k.plan_id = p.plan_id
JOIN units u ON u.run_id = p.run_id AND u.unit_id = k.unit_id JOIN gpus g ON g.run_id = p.run_id AND g.gpu_id = u.gpu_id
JOIN clocks c ON c.run_id = p.run_id AND c.clock_id = k.clock_id LEFT JOIN cells x ON x.cell_id = u.first_cell + k.clock_id;

-- One row a unit, beside the default clocks. clock: the one of all its launches.
CREATE VIEW v_kernels AS
SELECT r.kind, p.run_id, p.plan_id, p.is_answer, ifnull(p.is_answer AND p.want = r.headline_want, 0) AS is_headline, p.goal, p.slack_pct, p.granularity, g.label AS gpu_label,
       u.unit_id, u.name, u.label, u.class, u.pass, u.source, sum(k.launches) AS launches,
       CASE count(*) WHEN 1 THEN (SELECT label FROM clocks c WHERE c.run_id = p.run_id AND c.clock_id = k.clock_id) END AS clock, count(*) AS clocks,
       sum(k.time_s) AS time_s, sum(k.energy_j) AS energy_j, u.default_time_s, u.default_energy_j,
       100.0 * (sum(k.time_s) / u.default_time_s - 1) AS time_change_pct, 100.0 * (sum(k.energy_j) / u.default_energy_j - 1) AS energy_change_pct,
       u.default_energy_j - sum(k.energy_j) AS saved_j, 100.0 * u.default_time_s / (r.default_time_s * r.gpus) AS time_share_pct,
       100.0 * u.default_energy_j / r.default_energy_j AS energy_share_pct
FROM plans p CROSS JOIN plan_units k ON k.plan_id = p.plan_id CROSS JOIN units u ON u.run_id = p.run_id AND u.unit_id = k.unit_id
JOIN runs r ON r.run_id = p.run_id JOIN gpus g ON g.run_id = p.run_id AND g.gpu_id = u.gpu_id
GROUP BY p.run_id, p.plan_id, u.unit_id;

-- What each pass and each class of kernels contributes to a plan. A unit of several clocks has a part of its default time and energy at each.
CREATE VIEW v_passes AS
SELECT r.kind, p.run_id, p.plan_id, p.is_answer, ifnull(p.is_answer AND p.want = r.headline_want, 0) AS is_headline, p.goal, p.slack_pct, p.granularity, u.pass,
       sum(k.launches) AS launches, sum(k.time_s) AS time_s, sum(u.default_time_s * k.launches / u.launches) AS default_time_s,
       sum(k.energy_j) AS energy_j, sum(u.default_energy_j * k.launches / u.launches) AS default_energy_j,
       sum(u.default_energy_j * k.launches / u.launches) - sum(k.energy_j) AS saved_j,
       100.0 * (sum(k.time_s) / sum(u.default_time_s * k.launches / u.launches) - 1) AS time_change_pct,
       100.0 * (sum(k.energy_j) / sum(u.default_energy_j * k.launches / u.launches) - 1) AS energy_change_pct
FROM plans p CROSS JOIN plan_units k ON k.plan_id = p.plan_id CROSS JOIN units u ON u.run_id = p.run_id AND u.unit_id = k.unit_id
JOIN runs r ON r.run_id = p.run_id GROUP BY p.run_id, p.plan_id, u.pass;
CREATE VIEW v_classes AS
SELECT r.kind, p.run_id, p.plan_id, p.is_answer, ifnull(p.is_answer AND p.want = r.headline_want, 0) AS is_headline, p.goal, p.slack_pct, p.granularity, u.class, u.pass,
       sum(k.launches) AS launches, sum(k.time_s) AS time_s, sum(u.default_time_s * k.launches / u.launches) AS default_time_s,
       sum(k.energy_j) AS energy_j, sum(u.default_energy_j * k.launches / u.launches) AS default_energy_j,
       sum(u.default_energy_j * k.launches / u.launches) - sum(k.energy_j) AS saved_j,
       100.0 * (sum(k.time_s) / sum(u.default_time_s * k.launches / u.launches) - 1) AS time_change_pct,
       100.0 * (sum(k.energy_j) / sum(u.default_energy_j * k.launches / u.launches) - 1) AS energy_change_pct
FROM plans p CROSS JOIN plan_units k ON k.plan_id = p.plan_id CROSS JOIN units u ON u.run_id = p.run_id AND u.unit_id = k.unit_id
JOIN runs r ON r.run_id = p.run_id GROUP BY p.run_id, p.plan_id, u.class, u.pass;

-- A plan in the order in which it is set.
CREATE VIEW v_segments AS
SELECT r.kind, p.run_id, p.plan_id, p.is_answer, ifnull(p.is_answer AND p.want = r.headline_want, 0) AS is_headline, p.goal, p.slack_pct, p.granularity, s.segment_id, s.gpu_id,
       g.label AS gpu_label, g.rank, g.device, g.stage, u.chunk, s.block, s.repeats, s.pass, s.microbatch, u.name AS first_kernel, s.first_index, s.launches,
       c.label AS clock, c.mem_mhz, c.core_mhz, c.power_limit_w, s.start_s, s.time_s, s.energy_j, s.critical
FROM plans p CROSS JOIN plan_segments s ON s.plan_id = p.plan_id JOIN runs r ON r.run_id = p.run_id
JOIN gpus g ON g.run_id = p.run_id AND g.gpu_id = s.gpu_id JOIN clocks c ON c.run_id = p.run_id AND c.clock_id = s.clock_id
JOIN units u ON u.run_id = p.run_id AND u.unit_id = s.first_unit;

-- Which clock on which GPU, rank or stage, by pass, and for how long.
CREATE VIEW v_plan_gpus AS
SELECT kind, run_id, plan_id, is_answer, is_headline, goal, slack_pct, granularity, gpu_label, rank, device, stage, pass, clock, mem_mhz, core_mhz, power_limit_w,
       sum(launches * repeats) AS launches, sum(time_s * repeats) AS time_s, sum(energy_j * repeats) AS energy_j, sum(critical) AS critical_passes
FROM v_segments GROUP BY run_id, plan_id, gpu_id, pass, clock;

-- Clocks of each GPU, rank or stage, by pass.
CREATE VIEW v_stages AS
SELECT kind, run_id, plan_id, is_answer, is_headline, goal, slack_pct, granularity, gpu_label, rank, device, stage, pass, count(*) AS segments,
       min(core_mhz) AS least_core_mhz, sum(core_mhz * time_s * repeats) / sum(time_s * repeats) AS mean_core_mhz, max(core_mhz) AS most_core_mhz,
       min(power_limit_w) AS least_power_limit_w, sum(time_s * repeats) AS time_s, sum(energy_j * repeats) AS energy_j, sum(critical) AS critical_passes
FROM v_segments GROUP BY run_id, plan_id, gpu_id, pass;

-- One launch of a unit at each clock.
CREATE VIEW v_cells AS
SELECT r.kind, u.run_id, u.unit_id, g.label AS gpu_label, u.name, u.class, u.pass, u.launches, u.source, c.clock_id, c.label AS clock, c.mem_mhz, c.core_mhz,
       c.power_limit_w, x.time_s, x.energy_j, x.energy_j / x.time_s AS power_w, x.effective_core_mhz, x.power_limited
FROM runs r JOIN units u ON u.run_id = r.run_id JOIN gpus g ON g.run_id = u.run_id AND g.gpu_id = u.gpu_id JOIN clocks c ON c.run_id = u.run_id
JOIN cells x ON x.cell_id = u.first_cell + c.clock_id;

-- Each pass at every clock, all its launches as if alone.
CREATE VIEW v_pass_grid AS
SELECT r.kind, u.run_id, u.pass, c.clock_id, c.label AS clock, c.mem_mhz, c.core_mhz, c.power_limit_w, c.is_default,
       sum(x.time_s * u.launches) AS time_s, sum(x.energy_j * u.launches) AS energy_j, sum(x.power_limited) AS limited_kernels, count(*) AS kernels
FROM runs r JOIN units u ON u.run_id = r.run_id JOIN clocks c ON c.run_id = u.run_id JOIN cells x ON x.cell_id = u.first_cell + c.clock_id
GROUP BY u.run_id, u.pass, c.clock_id;

-- The whole run at each single clock.
CREATE VIEW v_clocks AS
SELECT r.kind, c.run_id, c.clock_id, c.label AS clock, c.mem_mhz, c.core_mhz, c.power_limit_w, c.is_default, c.time_s, c.energy_j,
       100.0 * (c.time_s / r.default_time_s - 1) AS time_change_pct, 100.0 * (c.energy_j / r.default_energy_j - 1) AS energy_change_pct
FROM runs r JOIN clocks c ON c.run_id = r.run_id;

-- Least energy over time. bound_j: no plan takes less by then; of captures it is what there is.
CREATE VIEW v_front AS
SELECT r.kind, f.run_id, f.granularity, f.point_id, f.time_s, f.energy_j, f.bound_j, f.price_w, 100.0 * (f.time_s / r.default_time_s - 1) AS time_change_pct,
       100.0 * (f.energy_j / r.default_energy_j - 1) AS energy_change_pct, 100.0 * (f.bound_j / r.default_energy_j - 1) AS bound_change_pct
FROM runs r JOIN fronts f ON f.run_id = r.run_id;

CREATE VIEW v_collectives AS
SELECT run_id, collective_id, name, kind AS collective, process_group, ranks, last_rank, start_skew_s, end_spread_s, transfer_s FROM collectives;

-- The same question in two runs of one kind. same_inputs: also of the same work, GPU and options, by another program.
CREATE VIEW v_compare AS
SELECT ra.kind, a.run_id AS run_a, b.run_id AS run_b, a.plan_id AS plan_a, b.plan_id AS plan_b, ra.work AS work_a, rb.work AS work_b, ra.gpu AS gpu_a,
       rb.gpu AS gpu_b, ra.power_limit_w AS power_limit_a_w, rb.power_limit_w AS power_limit_b_w, ra.program_version AS version_a,
       rb.program_version AS version_b, ifnull(a.question_hash = b.question_hash, 0) AS same_inputs, a.question_hash, a.granularity, a.aggregation, a.goal,
       a.slack_pct, a.is_answer AS is_answer_a, b.is_answer AS is_answer_b, a.applied_time_s AS time_a_s, b.applied_time_s AS time_b_s,
       a.applied_energy_j AS energy_a_j, b.applied_energy_j AS energy_b_j, a.applied_time_change_pct AS time_change_a_pct,
       b.applied_time_change_pct AS time_change_b_pct, a.applied_energy_change_pct AS energy_change_a_pct, b.applied_energy_change_pct AS energy_change_b_pct,
       100.0 * (b.applied_time_s / a.applied_time_s - 1) AS time_difference_pct, 100.0 * (b.applied_energy_j / a.applied_energy_j - 1) AS energy_difference_pct
FROM plans a JOIN runs ra ON ra.run_id = a.run_id
JOIN plans b ON b.want = a.want AND b.granularity = a.granularity AND b.aggregation = a.aggregation AND b.comm_sms IS a.comm_sms
JOIN runs rb ON rb.run_id = b.run_id AND rb.kind = ra.kind;

-- Experiments: every question with the value of every axis.
CREATE VIEW v_experiments AS
SELECT e.experiment_id, e.name, e.first_run_utc, e.planned_units,
       (SELECT count(DISTINCT plan_id) FROM experiment_plans x WHERE x.experiment_id = e.experiment_id) AS finished_units
FROM experiments e;
CREATE VIEW v_experiment_plans AS
SELECT x.experiment_id, e.name AS experiment, x.scenario, v.*
FROM experiment_plans x JOIN experiments e ON e.experiment_id = x.experiment_id JOIN v_plans v ON v.plan_id = x.plan_id;

-- Per axis and value: what the plans of the product of the axes with that value save.
CREATE VIEW v_axes AS
SELECT v.experiment_id, v.experiment, a.key AS axis, CAST(a.value AS TEXT) AS value, count(*) AS plans,
       avg(v.energy_change_pct) AS mean_energy_change_pct, min(v.energy_change_pct) AS best_energy_change_pct,
       max(v.energy_change_pct) AS worst_energy_change_pct, avg(v.time_change_pct) AS mean_time_change_pct
FROM v_experiment_plans v, json_each(json_object('gpu', gpu, 'work', work, 'captured_clock', captured_clock, 'model', model, 'batch', batch,
  'sequence', sequence, 'tensor_parallel', tensor_parallel, 'data_parallel', data_parallel, 'stages', stages, 'microbatches', microbatches,
  'schedule', schedule, 'power_limit_w', power_limit_w, 'host_power_w', host_power_w, 'clock_grid', clock_grid, 'switch_stall_us', switch_stall_us,
  'switch_energy_j', switch_energy_j, 'switch_latency_us', switch_latency_us, 'switch_dwell_us', switch_dwell_us, 'granularity', granularity,
  'aggregation', aggregation, 'goal', goal, 'slack_pct', slack_pct, 'seed', seed)) a
WHERE v.scenario = '' AND a.value IS NOT NULL GROUP BY v.experiment_id, a.key, a.value;

-- Promised and measured: plans that were applied, with the plan in this database. It is found by its totals, which a plan file sums in another
-- order: of several the newest, of runs asked for first.
CREATE VIEW v_verified AS
SELECT m.measurement_id, m.created_utc, m.gpu, m.work, m.granularity, m.pairs, p.run_id, p.plan_id,
       m.promised_energy_change_pct, m.promised_energy_change_low_pct, m.promised_energy_change_high_pct,
       m.measured_energy_change_pct, m.measured_energy_change_low_pct, m.measured_energy_change_high_pct,
       m.promised_time_change_pct, m.promised_time_change_low_pct, m.promised_time_change_high_pct,
       m.measured_time_change_pct, m.measured_time_change_low_pct, m.measured_time_change_high_pct, m.energy_verdict, m.time_verdict
FROM measurements m LEFT JOIN plans p ON p.plan_id = (
  SELECT q.plan_id FROM plans q JOIN runs r ON r.run_id = q.run_id WHERE q.granularity = m.granularity
    AND abs(q.time_s - m.plan_time_s) <= 1e-9 * m.plan_time_s AND abs(q.energy_j - m.plan_energy_j) <= 1e-9 * m.plan_energy_j ORDER BY r.asked DESC, q.want IS r.headline_want DESC, q.plan_id DESC LIMIT 1)
WHERE m.kind = 'verify';

-- Errors of the model, per kernel or class: of replays and of points held out.
CREATE VIEW v_errors AS
SELECT m.measurement_id, m.kind, m.gpu, m.holdout, w.part, w.name, w.class, w.source, count(*) AS points, sum(w.launches) AS launches,
       100.0 * avg(abs(w.predicted_time_s / ifnull(w.compared_time_s, w.measured_time_s) - 1)) AS time_error_pct,
       100.0 * avg(abs(w.predicted_power_w / w.measured_power_w - 1)) AS power_error_pct,
       100.0 * avg(abs(w.predicted_time_s * w.predicted_power_w / (w.measured_time_s * w.measured_power_w) - 1)) AS energy_error_pct, min(w.verdict) AS verdict
FROM measurements m JOIN measurement_rows w ON w.measurement_id = m.measurement_id GROUP BY m.measurement_id, w.part, w.name;
