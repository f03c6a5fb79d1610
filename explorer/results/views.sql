-- Change is relative to the default clocks of the same run, in percent; negative
-- energy change is a saving. Views start from small tables, so that a condition on
-- a run, plan, unit or experiment finds its rows by index.

CREATE VIEW v_plans AS
SELECT p.plan_id, p.run_id, r.gpu, r.trace_name, r.clock_grid, p.granularity, p.aggregation, p.goal,
       100.0 * p.slack_frac AS slack_pct, 100.0 * p.tolerance_frac AS tolerance_pct, p.status, p.time_s, p.energy_j,
       100.0 * (p.time_s / b.time_s - 1) AS time_change_pct,
       100.0 * (p.energy_j / b.energy_j - 1) AS energy_change_pct,
       p.time_change_low_pct, p.time_change_high_pct, p.energy_change_low_pct, p.energy_change_high_pct,
       p.time_change_expected_pct, p.energy_change_expected_pct,
       p.energy_j / p.time_s AS average_power_w,
       p.clock_switches, p.clock_switches / p.time_s AS clock_switches_per_s,
       100.0 * (p.counted_time_s / b.time_s - 1) AS counted_time_change_pct,
       100.0 * (p.counted_energy_j / b.energy_j - 1) AS counted_energy_change_pct,
       (SELECT group_concat(kind, ', ') FROM plan_marks m WHERE m.plan_id = p.plan_id) AS notes,
       100.0 * p.gap_frac AS gap_pct, p.solve_time_s
FROM plans p
JOIN runs r ON r.run_id = p.run_id
CROSS JOIN plans b ON b.run_id = p.run_id AND b.goal = 'default';  -- CROSS: looked up last

-- What an explored run's numbers rest on: shares of the default time by where the kernels' times come from.
CREATE VIEW v_trust AS
SELECT r.run_id, r.gpu, r.gpu_calibrated, r.power_limit_w, r.trace_name,
       100.0 * sum(CASE k.coefficients WHEN 'measured' THEN pk.time_s ELSE 0.0 END) / sum(pk.time_s) AS measured_pct,
       100.0 * sum(CASE k.coefficients WHEN 'anchored' THEN pk.time_s ELSE 0.0 END) / sum(pk.time_s) AS anchored_pct,
       100.0 * sum(CASE k.coefficients WHEN 'scaled' THEN pk.time_s ELSE 0.0 END) / sum(pk.time_s) AS scaled_pct,
       100.0 * sum(CASE k.coefficients WHEN 'derived' THEN pk.time_s ELSE 0.0 END) / sum(pk.time_s) AS derived_pct,
       100.0 * sum(CASE k.coefficients WHEN 'guessed' THEN pk.time_s ELSE 0.0 END) / sum(pk.time_s) AS guessed_pct
FROM runs r
CROSS JOIN plans b ON b.run_id = r.run_id AND b.goal = 'default'  -- CROSS: runs first
CROSS JOIN plan_kernels pk ON pk.plan_id = b.plan_id
CROSS JOIN kernels k ON k.run_id = r.run_id AND k.kernel_id = pk.kernel_id
GROUP BY r.run_id;

-- The least energy per run among the plans no slower than the default clocks allow; beside it what to set, where it is one clock,
-- and what it rests on.
CREATE VIEW v_best_plan AS
SELECT v.*, r.power_limit_w,
       (SELECT count(DISTINCT clock_id) FROM plan_entries e WHERE e.plan_id = v.plan_id) AS clocks,
       (SELECT CASE WHEN count(DISTINCT e.clock_id) = 1 THEN min(c.label) END
        FROM plan_entries e JOIN clocks c ON c.run_id = e.run_id AND c.clock_id = e.clock_id
        WHERE e.plan_id = v.plan_id) AS clock,
       (SELECT 100.0 * sum(CASE k.coefficients WHEN 'measured' THEN pk.time_s ELSE 0.0 END) / sum(pk.time_s)
        FROM plans b JOIN plan_kernels pk ON pk.plan_id = b.plan_id JOIN kernels k ON k.run_id = b.run_id AND k.kernel_id = pk.kernel_id
        WHERE b.run_id = r.run_id AND b.goal = 'default') AS measured_pct,  -- of the default time, as in v_trust
       (SELECT 100.0 * sum(CASE k.coefficients WHEN 'guessed' THEN pk.time_s ELSE 0.0 END) / sum(pk.time_s)
        FROM plans b JOIN plan_kernels pk ON pk.plan_id = b.plan_id JOIN kernels k ON k.run_id = b.run_id AND k.kernel_id = pk.kernel_id
        WHERE b.run_id = r.run_id AND b.goal = 'default') AS guessed_pct
FROM runs r
CROSS JOIN v_plans v ON v.run_id = r.run_id AND v.plan_id = (
  SELECT plan_id FROM plans
  WHERE run_id = r.run_id AND goal = 'strict_waste' AND status IN ('optimal', 'feasible')
  ORDER BY energy_j, plan_id LIMIT 1);

CREATE VIEW v_kernel_savings AS
SELECT p.plan_id, p.run_id, k.kernel_id, k.name, k.label, k.class, k.pass, pk.launches,
       pk.time_s, pk.energy_j, bk.time_s AS default_time_s, bk.energy_j AS default_energy_j,
       100.0 * (pk.time_s / bk.time_s - 1) AS time_change_pct,
       100.0 * (pk.energy_j / bk.energy_j - 1) AS energy_change_pct,
       bk.energy_j - pk.energy_j AS saved_j
FROM plans p
JOIN plan_kernels pk ON pk.plan_id = p.plan_id
JOIN kernels k ON k.run_id = p.run_id AND k.kernel_id = pk.kernel_id
JOIN plans b ON b.run_id = p.run_id AND b.goal = 'default'
JOIN plan_kernels bk ON bk.plan_id = b.plan_id AND bk.kernel_id = pk.kernel_id;

-- Every cell by run, kernel and clock.
CREATE VIEW profile_cells AS
SELECT k.run_id, k.kernel_id, c.clock_id, x.time_s, x.energy_j, x.effective_core_mhz, x.power_limited
FROM kernels k
JOIN clocks c ON c.run_id = k.run_id
JOIN cells x ON x.cell_id = k.first_cell + c.clock_id;

CREATE VIEW v_plan_clocks AS
SELECT p.plan_id, p.run_id, e.site_id, e.segment, e.repeat, k.name AS kernel, k.label, k.class, k.pass,
       c.label AS clock, c.mem_state, c.core_mhz, x.time_s, x.energy_j, x.effective_core_mhz,
       x.power_limited
FROM plans p
JOIN plan_entries e ON e.plan_id = p.plan_id
JOIN kernels k ON k.run_id = e.run_id AND k.kernel_id = e.kernel_id
JOIN clocks c ON c.run_id = e.run_id AND c.clock_id = e.clock_id
JOIN cells x ON x.cell_id = k.first_cell + e.clock_id;

CREATE VIEW v_pass_grid AS
SELECT k.run_id, k.pass, c.clock_id, c.label AS clock, c.mem_state, c.core_mhz,
       sum(x.time_s * k.launches) AS time_s, sum(x.energy_j * k.launches) AS energy_j
FROM kernels k
JOIN clocks c ON c.run_id = k.run_id
JOIN cells x ON x.cell_id = k.first_cell + c.clock_id
GROUP BY k.run_id, k.pass, c.clock_id;

CREATE VIEW v_front AS
SELECT f.run_id, f.granularity, f.point_id, f.time_s, f.energy_j,
       100.0 * (f.time_s / b.time_s - 1) AS time_change_pct,
       100.0 * (f.energy_j / b.energy_j - 1) AS energy_change_pct
FROM front_points f
JOIN plans b ON b.run_id = f.run_id AND b.goal = 'default';

-- The same question in two runs.
CREATE VIEW v_compare AS
SELECT a.run_id AS run_a, b.run_id AS run_b, a.granularity, a.aggregation, a.goal, a.slack_pct,
       a.time_s AS time_a_s, b.time_s AS time_b_s, a.energy_j AS energy_a_j, b.energy_j AS energy_b_j,
       a.time_change_pct AS time_change_a_pct, b.time_change_pct AS time_change_b_pct,
       a.energy_change_pct AS energy_change_a_pct, b.energy_change_pct AS energy_change_b_pct
FROM v_plans a
JOIN v_plans b ON b.granularity = a.granularity AND b.aggregation = a.aggregation AND b.goal = a.goal
  AND b.slack_pct IS a.slack_pct AND b.tolerance_pct IS a.tolerance_pct;

-- Sweeps: one row per unit, with the value of every axis and with how far the model can be trusted.
-- Of captured runs (g, q) time and energy are those of the plan as it is played, with its changes of clock counted. Status and gap are
-- those of the played plan, the gap where it is in time. Its interval is assumed to be the 90 % interval of the plan as it was made,
-- shifted by as much. v_graph_plans has the plan as it was made.
-- One SELECT, which SQLite can flatten: a UNION would be read whole.
CREATE VIEW v_units AS
SELECT u.unit_id, u.question_id, u.run_id, u.plan_id, u.graph_run_id, u.graph_plan_id, u.program_version,
       coalesce(r.gpu, g.gpu) AS gpu, coalesce(r.trace_name, h.capture) AS trace_name, g.captured_clock,
       s.model, s.batch, s.sequence, s.tensor_parallel, s.data_parallel,
       s.pipeline_parallel, s.microbatches, s.schedule,
       coalesce(r.power_limit_w, g.power_limit_w) AS power_limit_w,
       coalesce((SELECT CAST(reason AS REAL) FROM plan_marks WHERE plan_id = b.plan_id AND kind = 'host power counted'),
                (SELECT CAST(reason AS REAL) FROM graph_run_marks WHERE graph_run_id = g.graph_run_id AND kind = 'host power counted'),
                0.0) AS host_power_w,  -- the number that the reason begins with
       coalesce(r.clock_grid, h.clock_grid) AS clock_grid,
       1e6 * coalesce(r.switch_stall_s, h.switch_stall_s) AS switch_stall_us,
       coalesce(r.switch_energy_j, h.switch_energy_j) AS switch_energy_j,
       1e6 * coalesce(r.switch_lead_s + r.switch_stall_s, h.switch_lead_s + h.switch_stall_s) AS switch_latency_us,
       1e6 * coalesce(r.switch_dwell_s, h.switch_dwell_s) AS switch_dwell_us,
       coalesce(s.seed, h.seed) AS seed, coalesce(p.granularity, q.granularity) AS granularity,
       coalesce(p.aggregation, 'global') AS aggregation,
       coalesce(p.goal, CASE q.slack_frac WHEN 0 THEN 'strict_waste' ELSE 'relaxed_waste' END) AS goal,
       100.0 * coalesce(p.slack_frac, q.slack_frac) AS slack_pct,
       100.0 * coalesce(p.tolerance_frac, CASE WHEN q.graph_plan_id IS NOT NULL THEN 0.0 END) AS tolerance_pct,
       coalesce(p.status, CASE WHEN q.status = 'optimal' AND abs(q.counted_energy_change_frac - q.energy_change_frac) > 1e-9
                               THEN 'feasible' ELSE q.status END) AS status,
       coalesce(p.time_s, g.default_s * (1 + q.counted_time_change_frac)) AS time_s,
       coalesce(p.energy_j, g.default_j * (1 + q.counted_energy_change_frac)) AS energy_j, q.counted_in_time AS in_time,
       q.counted_in_time IS NOT 0 AND NOT EXISTS (SELECT 1 FROM plan_marks m WHERE m.plan_id = p.plan_id AND m.kind = 'slack missed')
         AS keeps_slack,  -- as played
       coalesce(b.time_s, g.default_s) AS default_time_s, coalesce(b.energy_j, g.default_j) AS default_energy_j,
       100.0 * coalesce(p.time_s / b.time_s - 1, q.counted_time_change_frac) AS time_change_pct,
       100.0 * coalesce(p.energy_j / b.energy_j - 1, q.counted_energy_change_frac) AS energy_change_pct,
       coalesce(p.time_change_low_pct, 100.0 * (q.time_change_low_frac + q.counted_time_change_frac - q.time_change_frac))
         AS time_change_low_pct,
       coalesce(p.time_change_high_pct, 100.0 * (q.time_change_high_frac + q.counted_time_change_frac - q.time_change_frac))
         AS time_change_high_pct,
       coalesce(p.energy_change_low_pct,
                100.0 * (q.energy_change_low_frac + q.counted_energy_change_frac - q.energy_change_frac)) AS energy_change_low_pct,
       coalesce(p.energy_change_high_pct,
                100.0 * (q.energy_change_high_frac + q.counted_energy_change_frac - q.energy_change_frac)) AS energy_change_high_pct,
       p.time_change_expected_pct, p.energy_change_expected_pct,
       (SELECT group_concat(kind, ', ') FROM (  -- its own and those of the default clocks
          SELECT kind FROM plan_marks WHERE plan_id IN (p.plan_id, b.plan_id)
          UNION SELECT kind FROM graph_plan_marks WHERE graph_plan_id = u.graph_plan_id
          UNION SELECT kind FROM graph_run_marks WHERE graph_run_id = u.graph_run_id)) AS notes,
       coalesce(p.clock_switches, q.counted_clock_changes) AS clock_switches, 100.0 * coalesce(p.gap_frac, CASE WHEN q.counted_in_time
         THEN max(0.0, 1 - q.lower_bound_j / (g.default_j * (1 + q.counted_energy_change_frac))) END) AS gap_pct,
       coalesce(r.gpu_calibrated, h.gpu_calibrated) AS gpu_calibrated,
       100.0 * coalesce(s.measured_time_frac, g.source_measured_s / (g.source_measured_s + g.source_anchored_s + g.source_fixed_s))
         AS measured_pct,
       100.0 * coalesce(s.anchored_time_frac, (g.source_anchored_s + g.source_fixed_s)
         / (g.source_measured_s + g.source_anchored_s + g.source_fixed_s)) AS anchored_pct,  -- what no clock changes, too
       100.0 * coalesce(s.scaled_time_frac, 0.0) AS scaled_pct, 100.0 * coalesce(s.derived_time_frac, 0.0) AS derived_pct,
       100.0 * coalesce(s.guessed_time_frac, 0.0) AS guessed_pct,
       100.0 * coalesce(g.source_guessed_split_s / (g.source_measured_s + g.source_anchored_s + g.source_fixed_s), 0.0)
         AS guessed_split_pct,  -- part of anchored_pct
       u.wall_time_s, u.finished_utc, u.host
FROM units u
LEFT JOIN plans p ON p.plan_id = u.plan_id
LEFT JOIN runs r ON r.run_id = u.run_id
LEFT JOIN settings s ON s.run_id = u.run_id
LEFT JOIN plans b ON b.run_id = u.run_id AND b.goal = 'default'
LEFT JOIN graph_plans q ON q.graph_plan_id = u.graph_plan_id
LEFT JOIN graph_runs g ON g.graph_run_id = u.graph_run_id
LEFT JOIN graph_settings h ON h.graph_run_id = u.graph_run_id;

CREATE VIEW v_experiment_units AS
SELECT eu.experiment_id, eu.scenario, u.*
FROM experiment_units eu
JOIN v_units u ON u.unit_id = eu.unit_id;

CREATE VIEW v_experiments AS
SELECT e.experiment_id, e.name, e.first_run_utc, e.planned_units,
       (SELECT count(DISTINCT unit_id) FROM experiment_units eu
        WHERE eu.experiment_id = e.experiment_id) AS finished_units
FROM experiments e;

-- Per experiment, setting, goal and slack: the answer that uses the least energy, of those in time with their changes of clock.
CREATE VIEW v_best_unit AS
SELECT * FROM (
  SELECT v.*, row_number() OVER (PARTITION BY experiment_id, run_id, graph_run_id, goal, slack_pct
                                 ORDER BY energy_j, plan_id, graph_plan_id) AS rank
  FROM v_experiment_units v WHERE status IN ('optimal', 'feasible') AND keeps_slack)
WHERE rank = 1;

CREATE VIEW v_class_savings AS
SELECT plan_id, run_id, class, pass, sum(launches) AS launches, sum(default_energy_j) AS default_energy_j,
       sum(saved_j) AS saved_j, 100.0 * (sum(time_s) / sum(default_time_s) - 1) AS time_change_pct,
       100.0 * (sum(energy_j) / sum(default_energy_j) - 1) AS energy_change_pct
FROM v_kernel_savings
GROUP BY plan_id, run_id, class, pass;

-- Per axis and value: what the units of the product of the axes with that value save.
CREATE VIEW v_sensitivity AS
SELECT experiment_id, 'gpu' AS axis, CAST(gpu AS TEXT) AS value, count(*) AS units,
       avg(energy_change_pct) AS mean_energy_change_pct, min(energy_change_pct) AS best_energy_change_pct,
       max(energy_change_pct) AS worst_energy_change_pct, avg(time_change_pct) AS mean_time_change_pct
FROM v_experiment_units WHERE gpu IS NOT NULL AND scenario = '' GROUP BY experiment_id, gpu
UNION ALL
SELECT experiment_id, 'trace_name' AS axis, CAST(trace_name AS TEXT) AS value, count(*) AS units,
       avg(energy_change_pct) AS mean_energy_change_pct, min(energy_change_pct) AS best_energy_change_pct,
       max(energy_change_pct) AS worst_energy_change_pct, avg(time_change_pct) AS mean_time_change_pct
FROM v_experiment_units WHERE trace_name IS NOT NULL AND scenario = '' GROUP BY experiment_id, trace_name
UNION ALL
SELECT experiment_id, 'captured_clock' AS axis, CAST(captured_clock AS TEXT) AS value, count(*) AS units,
       avg(energy_change_pct) AS mean_energy_change_pct, min(energy_change_pct) AS best_energy_change_pct,
       max(energy_change_pct) AS worst_energy_change_pct, avg(time_change_pct) AS mean_time_change_pct
FROM v_experiment_units WHERE captured_clock IS NOT NULL AND scenario = '' GROUP BY experiment_id, captured_clock
UNION ALL
SELECT experiment_id, 'model' AS axis, CAST(model AS TEXT) AS value, count(*) AS units,
       avg(energy_change_pct) AS mean_energy_change_pct, min(energy_change_pct) AS best_energy_change_pct,
       max(energy_change_pct) AS worst_energy_change_pct, avg(time_change_pct) AS mean_time_change_pct
FROM v_experiment_units WHERE model IS NOT NULL AND scenario = '' GROUP BY experiment_id, model
UNION ALL
SELECT experiment_id, 'batch' AS axis, CAST(batch AS TEXT) AS value, count(*) AS units,
       avg(energy_change_pct) AS mean_energy_change_pct, min(energy_change_pct) AS best_energy_change_pct,
       max(energy_change_pct) AS worst_energy_change_pct, avg(time_change_pct) AS mean_time_change_pct
FROM v_experiment_units WHERE batch IS NOT NULL AND scenario = '' GROUP BY experiment_id, batch
UNION ALL
SELECT experiment_id, 'sequence' AS axis, CAST(sequence AS TEXT) AS value, count(*) AS units,
       avg(energy_change_pct) AS mean_energy_change_pct, min(energy_change_pct) AS best_energy_change_pct,
       max(energy_change_pct) AS worst_energy_change_pct, avg(time_change_pct) AS mean_time_change_pct
FROM v_experiment_units WHERE sequence IS NOT NULL AND scenario = '' GROUP BY experiment_id, sequence
UNION ALL
SELECT experiment_id, 'tensor_parallel' AS axis, CAST(tensor_parallel AS TEXT) AS value, count(*) AS units,
       avg(energy_change_pct) AS mean_energy_change_pct, min(energy_change_pct) AS best_energy_change_pct,
       max(energy_change_pct) AS worst_energy_change_pct, avg(time_change_pct) AS mean_time_change_pct
FROM v_experiment_units WHERE tensor_parallel IS NOT NULL AND scenario = '' GROUP BY experiment_id, tensor_parallel
UNION ALL
SELECT experiment_id, 'data_parallel' AS axis, CAST(data_parallel AS TEXT) AS value, count(*) AS units,
       avg(energy_change_pct) AS mean_energy_change_pct, min(energy_change_pct) AS best_energy_change_pct,
       max(energy_change_pct) AS worst_energy_change_pct, avg(time_change_pct) AS mean_time_change_pct
FROM v_experiment_units WHERE data_parallel IS NOT NULL AND scenario = '' GROUP BY experiment_id, data_parallel
UNION ALL
SELECT experiment_id, 'pipeline_parallel' AS axis, CAST(pipeline_parallel AS TEXT) AS value, count(*) AS units,
       avg(energy_change_pct) AS mean_energy_change_pct, min(energy_change_pct) AS best_energy_change_pct,
       max(energy_change_pct) AS worst_energy_change_pct, avg(time_change_pct) AS mean_time_change_pct
FROM v_experiment_units WHERE pipeline_parallel IS NOT NULL AND scenario = '' GROUP BY experiment_id, pipeline_parallel
UNION ALL
SELECT experiment_id, 'microbatches' AS axis, CAST(microbatches AS TEXT) AS value, count(*) AS units,
       avg(energy_change_pct) AS mean_energy_change_pct, min(energy_change_pct) AS best_energy_change_pct,
       max(energy_change_pct) AS worst_energy_change_pct, avg(time_change_pct) AS mean_time_change_pct
FROM v_experiment_units WHERE microbatches IS NOT NULL AND scenario = '' GROUP BY experiment_id, microbatches
UNION ALL
SELECT experiment_id, 'schedule' AS axis, CAST(schedule AS TEXT) AS value, count(*) AS units,
       avg(energy_change_pct) AS mean_energy_change_pct, min(energy_change_pct) AS best_energy_change_pct,
       max(energy_change_pct) AS worst_energy_change_pct, avg(time_change_pct) AS mean_time_change_pct
FROM v_experiment_units WHERE schedule IS NOT NULL AND scenario = '' GROUP BY experiment_id, schedule
UNION ALL
SELECT experiment_id, 'power_limit_w' AS axis, CAST(power_limit_w AS TEXT) AS value, count(*) AS units,
       avg(energy_change_pct) AS mean_energy_change_pct, min(energy_change_pct) AS best_energy_change_pct,
       max(energy_change_pct) AS worst_energy_change_pct, avg(time_change_pct) AS mean_time_change_pct
FROM v_experiment_units WHERE power_limit_w IS NOT NULL AND scenario = '' GROUP BY experiment_id, power_limit_w
UNION ALL
SELECT experiment_id, 'clock_grid' AS axis, CAST(clock_grid AS TEXT) AS value, count(*) AS units,
       avg(energy_change_pct) AS mean_energy_change_pct, min(energy_change_pct) AS best_energy_change_pct,
       max(energy_change_pct) AS worst_energy_change_pct, avg(time_change_pct) AS mean_time_change_pct
FROM v_experiment_units WHERE clock_grid IS NOT NULL AND scenario = '' GROUP BY experiment_id, clock_grid
UNION ALL
SELECT experiment_id, 'switch_stall_us' AS axis, CAST(switch_stall_us AS TEXT) AS value, count(*) AS units,
       avg(energy_change_pct) AS mean_energy_change_pct, min(energy_change_pct) AS best_energy_change_pct,
       max(energy_change_pct) AS worst_energy_change_pct, avg(time_change_pct) AS mean_time_change_pct
FROM v_experiment_units WHERE switch_stall_us IS NOT NULL AND scenario = '' GROUP BY experiment_id, switch_stall_us
UNION ALL
SELECT experiment_id, 'switch_energy_j' AS axis, CAST(switch_energy_j AS TEXT) AS value, count(*) AS units,
       avg(energy_change_pct) AS mean_energy_change_pct, min(energy_change_pct) AS best_energy_change_pct,
       max(energy_change_pct) AS worst_energy_change_pct, avg(time_change_pct) AS mean_time_change_pct
FROM v_experiment_units WHERE switch_energy_j IS NOT NULL AND scenario = '' GROUP BY experiment_id, switch_energy_j
UNION ALL
SELECT experiment_id, 'switch_latency_us' AS axis, CAST(switch_latency_us AS TEXT) AS value, count(*) AS units,
       avg(energy_change_pct) AS mean_energy_change_pct, min(energy_change_pct) AS best_energy_change_pct,
       max(energy_change_pct) AS worst_energy_change_pct, avg(time_change_pct) AS mean_time_change_pct
FROM v_experiment_units WHERE switch_latency_us IS NOT NULL AND scenario = '' GROUP BY experiment_id, switch_latency_us
UNION ALL
SELECT experiment_id, 'switch_dwell_us' AS axis, CAST(switch_dwell_us AS TEXT) AS value, count(*) AS units,
       avg(energy_change_pct) AS mean_energy_change_pct, min(energy_change_pct) AS best_energy_change_pct,
       max(energy_change_pct) AS worst_energy_change_pct, avg(time_change_pct) AS mean_time_change_pct
FROM v_experiment_units WHERE switch_dwell_us IS NOT NULL AND scenario = '' GROUP BY experiment_id, switch_dwell_us
UNION ALL
SELECT experiment_id, 'granularity' AS axis, CAST(granularity AS TEXT) AS value, count(*) AS units,
       avg(energy_change_pct) AS mean_energy_change_pct, min(energy_change_pct) AS best_energy_change_pct,
       max(energy_change_pct) AS worst_energy_change_pct, avg(time_change_pct) AS mean_time_change_pct
FROM v_experiment_units WHERE granularity IS NOT NULL AND scenario = '' GROUP BY experiment_id, granularity
UNION ALL
SELECT experiment_id, 'aggregation' AS axis, CAST(aggregation AS TEXT) AS value, count(*) AS units,
       avg(energy_change_pct) AS mean_energy_change_pct, min(energy_change_pct) AS best_energy_change_pct,
       max(energy_change_pct) AS worst_energy_change_pct, avg(time_change_pct) AS mean_time_change_pct
FROM v_experiment_units WHERE aggregation IS NOT NULL AND scenario = '' GROUP BY experiment_id, aggregation
UNION ALL
SELECT experiment_id, 'goal' AS axis, CAST(goal AS TEXT) AS value, count(*) AS units,
       avg(energy_change_pct) AS mean_energy_change_pct, min(energy_change_pct) AS best_energy_change_pct,
       max(energy_change_pct) AS worst_energy_change_pct, avg(time_change_pct) AS mean_time_change_pct
FROM v_experiment_units WHERE goal IS NOT NULL AND scenario = '' GROUP BY experiment_id, goal
UNION ALL
SELECT experiment_id, 'slack_pct' AS axis, CAST(slack_pct AS TEXT) AS value, count(*) AS units,
       avg(energy_change_pct) AS mean_energy_change_pct, min(energy_change_pct) AS best_energy_change_pct,
       max(energy_change_pct) AS worst_energy_change_pct, avg(time_change_pct) AS mean_time_change_pct
FROM v_experiment_units WHERE slack_pct IS NOT NULL AND scenario = '' GROUP BY experiment_id, slack_pct
UNION ALL
SELECT experiment_id, 'seed' AS axis, CAST(seed AS TEXT) AS value, count(*) AS units,
       avg(energy_change_pct) AS mean_energy_change_pct, min(energy_change_pct) AS best_energy_change_pct,
       max(energy_change_pct) AS worst_energy_change_pct, avg(time_change_pct) AS mean_time_change_pct
FROM v_experiment_units WHERE seed IS NOT NULL AND scenario = '' GROUP BY experiment_id, seed;

-- The same question answered by two program versions.
CREATE VIEW v_regressions AS
SELECT a.question_id, a.unit_id AS unit_a, b.unit_id AS unit_b, a.program_version AS version_a,
       b.program_version AS version_b, pa.granularity, pa.aggregation, pa.goal,
       pa.time_s AS time_a_s, pb.time_s AS time_b_s, pa.energy_j AS energy_a_j, pb.energy_j AS energy_b_j,
       100.0 * (pb.time_s / pa.time_s - 1) AS time_difference_pct,
       100.0 * (pb.energy_j / pa.energy_j - 1) AS energy_difference_pct
FROM units a
JOIN units b ON b.question_id = a.question_id AND b.program_version <> a.program_version
JOIN v_units pa ON pa.unit_id = a.unit_id
JOIN v_units pb ON pb.unit_id = b.unit_id;

-- Plans of captured runs, change against the default clocks.
CREATE VIEW v_graph_plans AS
SELECT p.graph_plan_id, r.graph_run_id, r.captures, r.gpu, r.captured_clock, r.captured_clock_source, r.ranks, r.gpus,
       p.granularity,
       CASE WHEN EXISTS (SELECT 1 FROM graph_plan_marks m WHERE m.graph_plan_id = p.graph_plan_id AND m.kind = 'least cost') THEN 'least_cost'
            WHEN p.slack_frac = 0 THEN 'strict_waste' ELSE 'relaxed_waste' END AS goal,
       100.0 * p.slack_frac AS slack_pct, p.status, p.time_s, p.energy_j,
       100.0 * p.time_change_frac AS time_change_pct, 100.0 * p.time_change_low_frac AS time_change_low_pct,
       100.0 * p.time_change_high_frac AS time_change_high_pct, 100.0 * p.energy_change_frac AS energy_change_pct,
       100.0 * p.energy_change_low_frac AS energy_change_low_pct,
       100.0 * p.energy_change_high_frac AS energy_change_high_pct,
       100.0 * (p.lower_bound_j / r.default_j - 1) AS bound_change_pct, 100.0 * p.gap_frac AS gap_pct,
       p.clock_changes / p.time_s AS clock_changes_per_s,
       100.0 * p.counted_time_change_frac AS counted_time_change_pct,
       100.0 * p.counted_energy_change_frac AS counted_energy_change_pct, p.counted_in_time, p.comm_sms,
       100.0 * r.source_guessed_split_s / (r.source_measured_s + r.source_anchored_s + r.source_fixed_s)
         AS guessed_split_pct,
       (SELECT group_concat(kind, ', ') FROM graph_plan_marks m WHERE m.graph_plan_id = p.graph_plan_id) AS notes
FROM graph_plans p JOIN graph_runs r USING (graph_run_id);

-- Verifications with the plan they are of, in either kind of run. The plan is found by its totals, which are equal to the last bit.
CREATE VIEW v_verifications AS
SELECT v.verification_id, v.created_utc, v.gpu, v.source, v.granularity, v.pairs,
       p.run_id, p.plan_id, g.graph_run_id, g.graph_plan_id,
       100.0 * v.promised_energy_change_frac AS promised_energy_change_pct,
       100.0 * v.promised_energy_change_low_frac AS promised_energy_change_low_pct,
       100.0 * v.promised_energy_change_high_frac AS promised_energy_change_high_pct,
       100.0 * v.measured_energy_change_frac AS measured_energy_change_pct,
       100.0 * v.measured_energy_change_low_frac AS measured_energy_change_low_pct,
       100.0 * v.measured_energy_change_high_frac AS measured_energy_change_high_pct,
       100.0 * v.promised_time_change_frac AS promised_time_change_pct,
       100.0 * v.promised_time_change_low_frac AS promised_time_change_low_pct,
       100.0 * v.promised_time_change_high_frac AS promised_time_change_high_pct,
       100.0 * v.measured_time_change_frac AS measured_time_change_pct,
       100.0 * v.measured_time_change_low_frac AS measured_time_change_low_pct,
       100.0 * v.measured_time_change_high_frac AS measured_time_change_high_pct,
       v.energy_verdict, v.time_verdict
FROM verifications v
LEFT JOIN plans p ON p.plan_id = (
  SELECT plan_id FROM plans WHERE granularity = v.granularity AND time_s = v.plan_time_s
    AND energy_j = v.plan_energy_j AND goal <> 'default' ORDER BY plan_id LIMIT 1)
LEFT JOIN graph_plans g ON g.graph_plan_id = (
  SELECT graph_plan_id FROM graph_plans WHERE granularity = v.granularity AND time_s = v.plan_time_s
    AND energy_j = v.plan_energy_j ORDER BY graph_plan_id LIMIT 1);

-- As v_best_plan: per captured run and slack asked for, the plan with the least energy as played. (Plans of least cost are of no slack.)
CREATE VIEW v_best_graph_plan AS
SELECT v.*
FROM graph_plans b
CROSS JOIN v_graph_plans v ON v.graph_plan_id = b.graph_plan_id
WHERE b.graph_plan_id = (
  SELECT graph_plan_id FROM v_graph_plans
  WHERE graph_run_id = b.graph_run_id AND slack_pct = 100.0 * b.slack_frac AND status IN ('optimal', 'feasible') AND goal <> 'least_cost'
    AND counted_in_time IS NOT 0
  ORDER BY coalesce(counted_energy_change_pct, energy_change_pct), graph_plan_id LIMIT 1);

-- The same question answered for two captured runs, as v_compare.
CREATE VIEW v_compare_graphs AS
SELECT a.graph_run_id AS graph_run_a, b.graph_run_id AS graph_run_b, a.granularity, 100.0 * a.slack_frac AS slack_pct,
       a.time_s AS time_a_s, b.time_s AS time_b_s, a.energy_j AS energy_a_j, b.energy_j AS energy_b_j
FROM graph_plans a
JOIN graph_plans b ON b.granularity = a.granularity AND b.slack_frac = a.slack_frac;

-- Plans of pipelines, change against the baseline of the same run.
CREATE VIEW v_pipeline_plans AS
SELECT p.pipeline_plan_id, p.pipeline_run_id, r.profile, r.schedule, r.stages, r.microbatches,
       p.goal, p.status, p.deadline_s, p.time_s, p.energy_j, 100.0 * p.gap_frac AS gap_pct,
       100.0 * (p.time_s / b.time_s - 1) AS time_change_pct,
       100.0 * (p.energy_j / (b.energy_j + CASE p.goal WHEN 'straggler' THEN
         r.blocked_power_w * r.stages * (p.deadline_s - b.time_s) ELSE 0 END) - 1)
         AS energy_change_pct,
       p.time_change_low_pct, p.time_change_high_pct, p.time_change_expected_pct,
       p.energy_change_low_pct, p.energy_change_high_pct, p.energy_change_expected_pct,
       p.energy_j * r.tensor_parallel * r.data_parallel AS cluster_energy_j
FROM pipeline_plans p
JOIN pipeline_runs r ON r.pipeline_run_id = p.pipeline_run_id
JOIN pipeline_plans b ON b.pipeline_run_id = p.pipeline_run_id AND b.goal = 'baseline';

-- Plans of everything that can be planned, with what they all have: kind says in which family of tables run_id and plan_id are. Change
-- is against the default clocks or the baseline of the same run, slack the time allowed beyond those.
CREATE VIEW v_all_plans AS
SELECT 'trace' AS kind, v.run_id, v.plan_id, r.created_utc, v.trace_name AS work, v.gpu, v.granularity, v.goal, v.slack_pct,
       v.status, v.time_s, v.energy_j, v.time_change_pct, v.time_change_low_pct, v.time_change_high_pct,
       v.energy_change_pct, v.energy_change_low_pct, v.energy_change_high_pct, v.gap_pct,
       v.clock_switches AS clock_changes
FROM v_plans v JOIN runs r ON r.run_id = v.run_id
WHERE v.goal <> 'default'
UNION ALL
SELECT 'capture', v.graph_run_id, v.graph_plan_id, r.created_utc, v.captures, v.gpu, v.granularity, v.goal, v.slack_pct,
       v.status, v.time_s, v.energy_j, v.time_change_pct, v.time_change_low_pct, v.time_change_high_pct,
       v.energy_change_pct, v.energy_change_low_pct, v.energy_change_high_pct, v.gap_pct, p.clock_changes
FROM v_graph_plans v JOIN graph_plans p ON p.graph_plan_id = v.graph_plan_id JOIN graph_runs r ON r.graph_run_id = v.graph_run_id
UNION ALL
SELECT 'pipeline', v.pipeline_run_id, v.pipeline_plan_id, r.created_utc, v.profile, NULL, 'pass', v.goal,
       100.0 * (v.deadline_s / b.time_s - 1),
       v.status, v.time_s, v.energy_j, v.time_change_pct, v.time_change_low_pct, v.time_change_high_pct,
       v.energy_change_pct, v.energy_change_low_pct, v.energy_change_high_pct, v.gap_pct, p.clock_switches
FROM v_pipeline_plans v JOIN pipeline_plans p ON p.pipeline_plan_id = v.pipeline_plan_id
JOIN pipeline_runs r ON r.pipeline_run_id = v.pipeline_run_id
JOIN pipeline_plans b ON b.pipeline_run_id = v.pipeline_run_id AND b.goal = 'baseline'
WHERE v.goal <> 'baseline';
