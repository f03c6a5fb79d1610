-- Change is relative to the default clocks of the same run, in percent; negative
-- energy change is a saving. Views start from small tables, so that a condition on
-- a run, plan, unit or experiment finds its rows by index.

-- What was planned, of every kind (run_id is of the tables of its kind): what it is, and what it takes at the default clocks.
CREATE VIEW v_runs AS
SELECT 'trace' AS kind, r.run_id, r.asked, r.trace_name AS work, r.gpu, r.power_limit_w, r.clock_grid,
       (SELECT label FROM clocks c WHERE c.run_id = r.run_id AND c.is_default) AS default_clock, b.time_s AS default_time_s,
       b.energy_j AS default_energy_j, b.energy_j / b.time_s AS default_power_w, r.headline_want, r.created_utc, r.program_version, r.command
FROM runs r CROSS JOIN plans b ON b.run_id = r.run_id AND b.goal = 'default'
UNION ALL
SELECT 'capture', r.graph_run_id, r.asked, r.captures, r.gpu, r.power_limit_w, s.clock_grid,
       (SELECT clock FROM graph_clocks c WHERE c.graph_run_id = r.graph_run_id AND c.is_default), r.default_s,
       r.default_j, r.default_j / r.default_s, r.headline_want, r.created_utc, r.program_version, r.command
FROM graph_runs r LEFT JOIN graph_settings s ON s.graph_run_id = r.graph_run_id
UNION ALL
SELECT 'pipeline', r.pipeline_run_id, r.asked, r.profile, NULL, NULL, NULL, 'the highest clocks', b.time_s,
       b.energy_j, b.energy_j / b.time_s, r.headline_want, r.created_utc, r.program_version, r.command
FROM pipeline_runs r CROSS JOIN pipeline_plans b ON b.pipeline_run_id = r.pipeline_run_id AND b.goal = 'baseline';

-- Passes of pipelines with their clock as one says it: memory/core where memory is a choice, and the power limit.
CREATE VIEW v_pipeline_passes AS
SELECT q.*, p.pipeline_run_id,
       CASE WHEN o.mem_mhz IS NULL THEN '' ELSE printf('%g/', o.mem_mhz) END || printf('%g', q.core_mhz) ||
       CASE WHEN q.power_limit_w IS NULL THEN '' ELSE printf(' %gW', q.power_limit_w) END
         AS clock
FROM pipeline_passes q JOIN pipeline_plans p ON p.pipeline_plan_id = q.pipeline_plan_id
JOIN pipeline_options o ON o.pipeline_run_id = p.pipeline_run_id AND o.type_id = q.type_id AND o.option_id = q.option_id;

-- Every plan of every kind: what was asked, whether it is the answer (is_answer: of all plans of the run that want the same; is_headline:
-- the one that the run is known by), and what it gives as applied, changes of clock counted. planned_...: as the planner saw it.
CREATE VIEW v_plans AS
SELECT 'trace' AS kind, p.run_id, p.plan_id, r.trace_name AS work, r.gpu, p.is_answer,
       ifnull(p.is_answer AND p.want = r.headline_want, 0) AS is_headline, p.goal, 100.0 * p.slack_frac AS slack_pct, p.granularity,
       p.aggregation, p.status, p.clocks,
       CASE p.clocks WHEN 1 THEN (SELECT c.label FROM plan_entries e JOIN clocks c USING (run_id, clock_id) WHERE e.plan_id = p.plan_id LIMIT 1) END AS clock,
       p.applied_clock_changes AS clock_changes, p.applied_clock_changes / ifnull(p.counted_time_s, p.time_s) AS clock_changes_per_s,
       100.0 * (ifnull(p.counted_energy_j, p.energy_j) / b.energy_j - 1) AS energy_change_pct,
       p.energy_change_low_pct + 100.0 * ifnull(p.counted_energy_j - p.energy_j, 0) / b.energy_j AS energy_change_low_pct,
       p.energy_change_high_pct + 100.0 * ifnull(p.counted_energy_j - p.energy_j, 0) / b.energy_j AS energy_change_high_pct,
       100.0 * (ifnull(p.counted_time_s, p.time_s) / b.time_s - 1) AS time_change_pct,
       p.time_change_low_pct + 100.0 * ifnull(p.counted_time_s - p.time_s, 0) / b.time_s AS time_change_low_pct,
       p.time_change_high_pct + 100.0 * ifnull(p.counted_time_s - p.time_s, 0) / b.time_s AS time_change_high_pct, p.in_time, p.applicable,
       p.not_applicable_because, 100.0 * (p.energy_j / b.energy_j - 1) AS planned_energy_change_pct,
       100.0 * (p.time_s / b.time_s - 1) AS planned_time_change_pct, p.time_s AS planned_time_s, p.energy_j AS planned_energy_j,
       CASE WHEN p.goal LIKE '%_waste' OR p.goal = 'least_energy' THEN p.lower_bound END AS lower_bound_j, 100.0 * p.gap_frac AS gap_pct,
       ifnull(p.counted_time_s, p.time_s) AS time_s, ifnull(p.counted_energy_j, p.energy_j) AS energy_j,
       ifnull(p.counted_energy_j, p.energy_j) / ifnull(p.counted_time_s, p.time_s) AS power_w, b.time_s AS default_time_s,
       b.energy_j AS default_energy_j, NULL AS comm_sms,
       (SELECT group_concat(kind, ', ') FROM plan_marks m WHERE m.plan_id = p.plan_id) AS notes, p.want, p.keeps_default, r.asked,
       r.power_limit_w, p.solve_time_s, r.created_utc, r.command
FROM plans p JOIN runs r ON r.run_id = p.run_id
CROSS JOIN plans b ON b.run_id = p.run_id AND b.goal = 'default'  -- CROSS: looked up last
WHERE p.want IS NOT NULL
UNION ALL
SELECT 'capture', p.graph_run_id, p.graph_plan_id, r.captures, r.gpu, p.is_answer, ifnull(p.is_answer AND p.want = r.headline_want, 0),
       substr(p.want, 1, instr(p.want || ' ', ' ') - 1), CASE WHEN p.want NOT LIKE 'least%' THEN 100.0 * p.slack_frac END, p.granularity,
       'global', p.status, p.clocks,
       CASE p.clocks WHEN 1 THEN (SELECT c.clock FROM graph_plan_clocks c WHERE c.graph_plan_id = p.graph_plan_id LIMIT 1) END,
       p.applied_clock_changes, p.applied_clock_changes / (r.default_s * (1 + ifnull(p.counted_time_change_frac, p.time_change_frac))),
       100.0 * ifnull(p.counted_energy_change_frac, p.energy_change_frac),
       100.0 * (p.energy_change_low_frac + ifnull(p.counted_energy_change_frac - p.energy_change_frac, 0)),
       100.0 * (p.energy_change_high_frac + ifnull(p.counted_energy_change_frac - p.energy_change_frac, 0)),
       100.0 * ifnull(p.counted_time_change_frac, p.time_change_frac),
       100.0 * (p.time_change_low_frac + ifnull(p.counted_time_change_frac - p.time_change_frac, 0)),
       100.0 * (p.time_change_high_frac + ifnull(p.counted_time_change_frac - p.time_change_frac, 0)), p.in_time, p.applicable,
       p.not_applicable_because, 100.0 * p.energy_change_frac, 100.0 * p.time_change_frac, p.time_s, p.energy_j, p.lower_bound_j,
       100.0 * p.gap_frac, r.default_s * (1 + ifnull(p.counted_time_change_frac, p.time_change_frac)),
       r.default_j * (1 + ifnull(p.counted_energy_change_frac, p.energy_change_frac)),
       r.default_j * (1 + ifnull(p.counted_energy_change_frac, p.energy_change_frac)) / (r.default_s * (1 + ifnull(p.counted_time_change_frac, p.time_change_frac))),
       r.default_s, r.default_j, p.comm_sms,
       (SELECT group_concat(kind, ', ') FROM graph_plan_marks m WHERE m.graph_plan_id = p.graph_plan_id), p.want, p.keeps_default, r.asked,
       r.power_limit_w, NULL, r.created_utc, r.command
FROM graph_plans p JOIN graph_runs r ON r.graph_run_id = p.graph_run_id
UNION ALL
SELECT 'pipeline', p.pipeline_run_id, p.pipeline_plan_id, r.profile, NULL, p.is_answer,
       ifnull(p.is_answer AND p.want = r.headline_want, 0), substr(p.want, 1, instr(p.want || ' ', ' ') - 1),
       CASE WHEN p.want NOT LIKE 'least%' THEN round(100.0 * (p.deadline_s / b.time_s - 1), 9) END, 'microbatch', 'global', p.status,
       p.clocks,
       CASE p.clocks WHEN 1 THEN (SELECT clock FROM v_pipeline_passes c WHERE c.pipeline_plan_id = p.pipeline_plan_id LIMIT 1) END,
       p.applied_clock_changes, p.applied_clock_changes / p.time_s,
       100.0 * (p.energy_j / (b.energy_j + CASE p.goal WHEN 'straggler' THEN r.blocked_power_w * r.stages * (p.deadline_s - b.time_s) ELSE 0 END) - 1),
       p.energy_change_low_pct, p.energy_change_high_pct, 100.0 * (p.time_s / b.time_s - 1), p.time_change_low_pct, p.time_change_high_pct,
       p.in_time, p.applicable, p.not_applicable_because,
       100.0 * (p.energy_j / (b.energy_j + CASE p.goal WHEN 'straggler' THEN r.blocked_power_w * r.stages * (p.deadline_s - b.time_s) ELSE 0 END) - 1),
       100.0 * (p.time_s / b.time_s - 1), p.time_s, p.energy_j, p.lower_bound_j, 100.0 * p.gap_frac, p.time_s, p.energy_j,
       p.energy_j / p.time_s, b.time_s,
       (b.energy_j + CASE p.goal WHEN 'straggler' THEN r.blocked_power_w * r.stages * (p.deadline_s - b.time_s) ELSE 0 END), NULL,
       CASE p.fitted WHEN 0 THEN 'clocks not fitted' END, p.want, p.keeps_default, r.asked, NULL, NULL, r.created_utc, r.command
FROM pipeline_plans p JOIN pipeline_runs r ON r.pipeline_run_id = p.pipeline_run_id
CROSS JOIN pipeline_plans b ON b.pipeline_run_id = p.pipeline_run_id AND b.goal = 'baseline'
WHERE p.want IS NOT NULL;

-- What to set: for each run and each want the one plan that every command names, or the default clocks where nothing saves.
CREATE VIEW v_answer AS
SELECT kind, run_id, CASE answered WHEN 1 THEN plan_id END AS plan_id, asked, ifnull(want = headline_want, 0) AS is_headline, work, gpu, power_limit_w, goal,
       slack_pct, CASE answered WHEN 1 THEN granularity ELSE 'iteration' END AS granularity,
       CASE answered WHEN 0 THEN default_clock ELSE ifnull(clock,
         (SELECT group_concat(gpus || set_to, '; ') FROM (  -- 'rank 0: forward 1593/1110, backward 1593/1410; rank 1, rank 2: 1593/1410'
            SELECT CASE WHEN max(label) = '' THEN '' ELSE group_concat(label, ', ') || ': ' END AS gpus, set_to, min(gpu) AS at FROM (
              SELECT gpu, label, CASE WHEN count(*) = 1 THEN min(clock) WHEN sum(several) > 0 THEN count(*) || ' clocks'
                                 ELSE group_concat(passes || ' ' || clock, ', ') END AS set_to FROM (
                SELECT gpu, label, clock, group_concat(pass, '+') AS passes, max(several) AS several, min(at) AS at FROM (
                  SELECT 0 AS gpu, '' AS label, k.pass, c.label AS clock, min(e.site_id) AS at, count(*) OVER (PARTITION BY k.pass) > 1 AS several
                  FROM plan_entries e JOIN kernels k USING (run_id, kernel_id) JOIN clocks c USING (run_id, clock_id)
                  WHERE e.plan_id = v.plan_id AND v.kind = 'trace' GROUP BY k.pass, e.clock_id
                  UNION ALL
                  SELECT 1000 * c.rank + c.device, CASE WHEN (SELECT count(DISTINCT d.rank) FROM graph_plan_clocks d WHERE d.graph_plan_id = v.plan_id) > 1
                           THEN 'rank ' || c.rank ELSE 'GPU ' || c.device END, c.pass, c.clock, min(c.row_id), count(*) OVER (PARTITION BY c.rank, c.device, c.pass) > 1
                  FROM graph_plan_clocks c WHERE c.graph_plan_id = v.plan_id AND v.kind = 'capture' GROUP BY c.rank, c.device, c.pass, c.clock
                  UNION ALL
                  SELECT c.stage, 'stage ' || c.stage, c.kind, c.clock, min(c.pass_id), count(*) OVER (PARTITION BY c.stage, c.kind) > 1
                  FROM v_pipeline_passes c WHERE c.pipeline_plan_id = v.plan_id AND v.kind = 'pipeline' GROUP BY c.stage, c.kind, c.clock
                  ORDER BY at)
                GROUP BY gpu, clock ORDER BY min(at))
              GROUP BY gpu)
            GROUP BY set_to ORDER BY at))) END AS set_to,
       CASE answered WHEN 1 THEN energy_change_pct ELSE 0.0 END AS energy_change_pct, CASE answered WHEN 1 THEN energy_change_low_pct ELSE 0.0 END AS energy_change_low_pct,
       CASE answered WHEN 1 THEN energy_change_high_pct ELSE 0.0 END AS energy_change_high_pct, CASE answered WHEN 1 THEN time_change_pct ELSE 0.0 END AS time_change_pct,
       CASE answered WHEN 1 THEN time_change_low_pct ELSE 0.0 END AS time_change_low_pct, CASE answered WHEN 1 THEN time_change_high_pct ELSE 0.0 END AS time_change_high_pct,
       CASE answered WHEN 1 THEN clocks ELSE 1 END AS clocks, CASE answered WHEN 1 THEN clock_changes_per_s ELSE 0.0 END AS clock_changes_per_s,
       CASE answered WHEN 1 THEN time_s ELSE default_time_s END AS time_s, CASE answered WHEN 1 THEN energy_j ELSE default_energy_j END AS energy_j,
       default_time_s, default_energy_j, CASE answered WHEN 1 THEN gap_pct END AS gap_pct, CASE answered WHEN 1 THEN notes END AS notes, want, created_utc, command
FROM (SELECT *, is_answer AS answered, row_number() OVER (PARTITION BY kind, run_id, want ORDER BY plan_id) AS position FROM v_plans
      WHERE is_answer = 1 OR keeps_default = 1) v
JOIN (SELECT kind, run_id, default_clock, headline_want FROM v_runs) USING (kind, run_id)
WHERE position = 1;

-- Plans of traces with what only these have; goal 'default' is the run at the default clocks. Changes are as planned.
CREATE VIEW v_trace_plans AS
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
       100.0 * p.gap_frac AS gap_pct, p.solve_time_s, p.clocks, p.is_answer, ifnull(p.is_answer AND p.want = r.headline_want, 0) AS is_headline
FROM plans p
JOIN runs r ON r.run_id = p.run_id
CROSS JOIN plans b ON b.run_id = p.run_id AND b.goal = 'default';

-- What a run's numbers rest on: shares of the default time by where times of kernels come from. NULL: a profile does not say.
CREATE VIEW v_trust AS
SELECT 'trace' AS kind, r.run_id, r.asked, r.trace_name AS work, r.gpu, r.gpu_calibrated, r.power_limit_w,
       100.0 * sum(CASE k.coefficients WHEN 'measured' THEN pk.time_s ELSE 0.0 END) / sum(pk.time_s) AS measured_pct,
       100.0 * sum(CASE k.coefficients WHEN 'anchored' THEN pk.time_s ELSE 0.0 END) / sum(pk.time_s) AS anchored_pct,
       100.0 * sum(CASE k.coefficients WHEN 'scaled' THEN pk.time_s ELSE 0.0 END) / sum(pk.time_s) AS scaled_pct,
       100.0 * sum(CASE k.coefficients WHEN 'derived' THEN pk.time_s ELSE 0.0 END) / sum(pk.time_s) AS derived_pct,
       100.0 * sum(CASE k.coefficients WHEN 'guessed' THEN pk.time_s ELSE 0.0 END) / sum(pk.time_s) AS guessed_pct,
       0.0 AS fixed_pct, 0.0 AS guessed_split_pct
FROM runs r
CROSS JOIN plans b ON b.run_id = r.run_id AND b.goal = 'default'  -- CROSS: runs first
CROSS JOIN plan_kernels pk ON pk.plan_id = b.plan_id
CROSS JOIN kernels k ON k.run_id = r.run_id AND k.kernel_id = pk.kernel_id
GROUP BY r.run_id
UNION ALL
SELECT 'capture', graph_run_id, asked, captures, gpu, NULL, power_limit_w, 100.0 * source_measured_s / all_s, 100.0 * source_anchored_s / all_s,
       0.0, 0.0, 0.0, 100.0 * source_fixed_s / all_s, 100.0 * source_guessed_split_s / all_s
FROM (SELECT *, source_measured_s + source_anchored_s + source_fixed_s AS all_s FROM graph_runs)
UNION ALL
SELECT 'pipeline', pipeline_run_id, asked, profile, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM pipeline_runs;

-- Each kernel (of pipelines: kind of pass) on a GPU under a plan, beside the default clocks. clock: the one of all its launches.
CREATE VIEW v_kernels AS
SELECT 'trace' AS kind, p.run_id, p.plan_id, p.is_answer, ifnull(p.is_answer AND p.want = r.headline_want, 0) AS is_headline, p.granularity, 'GPU' AS gpu_label,
       k.kernel_id, k.name, k.label, k.class, k.pass, pk.launches,
       (SELECT c.label FROM clocks c WHERE c.run_id = p.run_id AND c.clock_id = pk.clock_id) AS clock,
       pk.time_s, pk.energy_j, bk.time_s AS default_time_s, bk.energy_j AS default_energy_j,
       100.0 * (pk.time_s / bk.time_s - 1) AS time_change_pct, 100.0 * (pk.energy_j / bk.energy_j - 1) AS energy_change_pct,
       bk.energy_j - pk.energy_j AS saved_j
FROM plans p
JOIN runs r ON r.run_id = p.run_id
JOIN plan_kernels pk ON pk.plan_id = p.plan_id
JOIN kernels k ON k.run_id = p.run_id AND k.kernel_id = pk.kernel_id
JOIN plans b ON b.run_id = p.run_id AND b.goal = 'default'
JOIN plan_kernels bk ON bk.plan_id = b.plan_id AND bk.kernel_id = pk.kernel_id
UNION ALL
SELECT 'capture', p.graph_run_id, p.graph_plan_id, p.is_answer, ifnull(p.is_answer AND p.want = r.headline_want, 0), p.granularity, 'rank ' || c.rank || ' GPU ' || c.device,
       b.row_id, b.kernel, '', b.class, b.pass, sum(c.launches), CASE WHEN count(DISTINCT c.clock) = 1 THEN min(c.clock) END, sum(c.time_s), sum(c.energy_j),
       b.time_s, b.energy_j, 100.0 * (sum(c.time_s) / b.time_s - 1), 100.0 * (sum(c.energy_j) / b.energy_j - 1), b.energy_j - sum(c.energy_j)
FROM graph_plans p
JOIN graph_runs r ON r.graph_run_id = p.graph_run_id
JOIN graph_kernels b ON b.graph_run_id = p.graph_run_id
JOIN graph_plan_clocks c ON c.graph_plan_id = p.graph_plan_id AND c.rank = b.rank AND c.device = b.device AND c.pass = b.pass AND c.kernel = b.kernel
GROUP BY p.graph_run_id, p.graph_plan_id, p.is_answer, p.want, r.headline_want, p.granularity, c.rank, c.device, b.row_id, b.kernel, b.class, b.pass, b.time_s, b.energy_j
UNION ALL
SELECT 'pipeline', p.pipeline_run_id, p.pipeline_plan_id, p.is_answer, ifnull(p.is_answer AND p.want = r.headline_want, 0), 'microbatch', 'stage ' || q.stage,
       q.type_id, q.kind, '', 'pass', q.kind, count(*), CASE WHEN count(DISTINCT q.clock) = 1 THEN min(q.clock) END, sum(q.end_s - q.start_s), sum(q.energy_j),
       sum(d.end_s - d.start_s), sum(d.energy_j), 100.0 * (sum(q.end_s - q.start_s) / sum(d.end_s - d.start_s) - 1),
       100.0 * (sum(q.energy_j) / sum(d.energy_j) - 1), sum(d.energy_j) - sum(q.energy_j)
FROM pipeline_plans p
JOIN pipeline_runs r ON r.pipeline_run_id = p.pipeline_run_id
JOIN v_pipeline_passes q ON q.pipeline_plan_id = p.pipeline_plan_id
JOIN pipeline_plans b ON b.pipeline_run_id = p.pipeline_run_id AND b.goal = 'baseline'
JOIN pipeline_passes d ON d.pipeline_plan_id = b.pipeline_plan_id AND d.pass_id = q.pass_id
WHERE p.want IS NOT NULL
GROUP BY p.pipeline_run_id, p.pipeline_plan_id, p.is_answer, p.want, r.headline_want, q.stage, q.type_id, q.kind;

-- What each pass and each class of kernels contributes to a plan.
CREATE VIEW v_passes AS
SELECT 'trace' AS kind, p.run_id, p.plan_id, p.is_answer, ifnull(p.is_answer AND p.want = r.headline_want, 0) AS is_headline, k.pass,
       sum(pk.launches) AS launches, sum(pk.time_s) AS time_s, sum(bk.time_s) AS default_time_s, sum(pk.energy_j) AS energy_j,
       sum(bk.energy_j) AS default_energy_j, sum(bk.energy_j - pk.energy_j) AS saved_j,
       100.0 * (sum(pk.time_s) / sum(bk.time_s) - 1) AS time_change_pct, 100.0 * (sum(pk.energy_j) / sum(bk.energy_j) - 1) AS energy_change_pct
FROM plans p
JOIN runs r ON r.run_id = p.run_id
JOIN plan_kernels pk ON pk.plan_id = p.plan_id
JOIN kernels k ON k.run_id = p.run_id AND k.kernel_id = pk.kernel_id
JOIN plans b ON b.run_id = p.run_id AND b.goal = 'default'
JOIN plan_kernels bk ON bk.plan_id = b.plan_id AND bk.kernel_id = pk.kernel_id
GROUP BY p.run_id, p.plan_id, p.is_answer, p.want, r.headline_want, k.pass
UNION ALL
SELECT kind, run_id, plan_id, is_answer, is_headline, pass, sum(launches), sum(time_s), sum(default_time_s), sum(energy_j), sum(default_energy_j),
       sum(saved_j), 100.0 * (sum(time_s) / sum(default_time_s) - 1), 100.0 * (sum(energy_j) / sum(default_energy_j) - 1)
FROM v_kernels WHERE kind <> 'trace' GROUP BY kind, run_id, plan_id, is_answer, is_headline, pass;
CREATE VIEW v_classes AS
SELECT 'trace' AS kind, p.run_id, p.plan_id, p.is_answer, ifnull(p.is_answer AND p.want = r.headline_want, 0) AS is_headline, k.class, k.pass,
       sum(pk.launches) AS launches, sum(bk.energy_j) AS default_energy_j, sum(bk.energy_j - pk.energy_j) AS saved_j,
       100.0 * (sum(pk.time_s) / sum(bk.time_s) - 1) AS time_change_pct, 100.0 * (sum(pk.energy_j) / sum(bk.energy_j) - 1) AS energy_change_pct
FROM plans p
JOIN runs r ON r.run_id = p.run_id
JOIN plan_kernels pk ON pk.plan_id = p.plan_id
JOIN kernels k ON k.run_id = p.run_id AND k.kernel_id = pk.kernel_id
JOIN plans b ON b.run_id = p.run_id AND b.goal = 'default'
JOIN plan_kernels bk ON bk.plan_id = b.plan_id AND bk.kernel_id = pk.kernel_id
GROUP BY p.run_id, p.plan_id, p.is_answer, p.want, r.headline_want, k.class, k.pass
UNION ALL
SELECT kind, run_id, plan_id, is_answer, is_headline, class, pass, sum(launches), sum(default_energy_j), sum(saved_j),
       100.0 * (sum(time_s) / sum(default_time_s) - 1), 100.0 * (sum(energy_j) / sum(default_energy_j) - 1)
FROM v_kernels WHERE kind <> 'trace' GROUP BY kind, run_id, plan_id, is_answer, is_headline, class, pass;

-- A plan in the order in which it is set. first_index: of captured runs the number of that launch among those of its kernel in step and pass.
CREATE VIEW v_segments AS
SELECT 'trace' AS kind, p.run_id, p.plan_id, p.is_answer, ifnull(p.is_answer AND p.want = r.headline_want, 0) AS is_headline, e.site_id AS segment_id,
       'GPU' AS gpu_label, NULL AS step, k.pass, k.name AS first_kernel, NULL AS first_index, 1 AS launches, e.repeat AS repeats, c.label AS clock,
       x.time_s, x.energy_j
FROM plans p
JOIN runs r ON r.run_id = p.run_id
JOIN plan_entries e ON e.plan_id = p.plan_id
JOIN kernels k ON k.run_id = e.run_id AND k.kernel_id = e.kernel_id
JOIN clocks c ON c.run_id = e.run_id AND c.clock_id = e.clock_id
JOIN cells x ON x.cell_id = k.first_cell + e.clock_id
UNION ALL
SELECT 'capture', p.graph_run_id, p.graph_plan_id, p.is_answer, ifnull(p.is_answer AND p.want = r.headline_want, 0), s.segment_id,
       'rank ' || s.rank || ' GPU ' || s.device, s.step, s.pass, s.first_kernel, s.first_index, s.launches, 1, s.clock, s.time_s, s.energy_j
FROM graph_plans p JOIN graph_runs r ON r.graph_run_id = p.graph_run_id JOIN graph_segments s ON s.graph_plan_id = p.graph_plan_id
UNION ALL
SELECT 'pipeline', p.pipeline_run_id, p.pipeline_plan_id, p.is_answer, ifnull(p.is_answer AND p.want = r.headline_want, 0), q.pass_id,
       'stage ' || q.stage, NULL, q.kind, q.kind, q.microbatch, 1, 1, q.clock, q.end_s - q.start_s, q.energy_j
FROM pipeline_plans p JOIN pipeline_runs r ON r.pipeline_run_id = p.pipeline_run_id JOIN v_pipeline_passes q ON q.pipeline_plan_id = p.pipeline_plan_id;

-- Which clock on which GPU, rank or stage, by pass, and for how long.
CREATE VIEW v_plan_gpus AS
SELECT kind, run_id, plan_id, is_answer, is_headline, gpu_label, pass, clock, sum(launches * repeats) AS launches, sum(time_s * repeats) AS time_s,
       sum(energy_j * repeats) AS energy_j
FROM v_segments GROUP BY kind, run_id, plan_id, is_answer, is_headline, gpu_label, pass, clock;

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

-- One launch of a kernel (of pipelines: a pass) at each clock. Captured runs keep no cells.
CREATE VIEW v_cells AS
SELECT 'trace' AS kind, k.run_id, k.kernel_id, k.name, k.class, k.pass, k.launches, c.label AS clock, c.mem_mhz, c.core_mhz, x.time_s, x.energy_j,
       x.energy_j / x.time_s AS power_w, x.effective_core_mhz, x.power_limited
FROM kernels k JOIN clocks c ON c.run_id = k.run_id JOIN cells x ON x.cell_id = k.first_cell + c.clock_id
UNION ALL
SELECT 'pipeline', pipeline_run_id, type_id, 'stage ' || stage || ' ' || kind, 'pass', kind, 1,
       CASE WHEN mem_mhz IS NULL THEN '' ELSE printf('%g/', mem_mhz) END || printf('%g', core_mhz) ||
       CASE WHEN power_limit_w IS NULL THEN '' ELSE printf(' %gW', power_limit_w) END,
       mem_mhz, core_mhz, time_s, energy_j, energy_j / time_s, core_mhz, 0
FROM pipeline_options;

-- Each pass at every clock; of pipelines one microbatch on all stages.
CREATE VIEW v_pass_grid AS
SELECT 'trace' AS kind, k.run_id, k.pass, c.clock_id, c.label AS clock, c.mem_state, c.core_mhz,
       sum(x.time_s * k.launches) AS time_s, sum(x.energy_j * k.launches) AS energy_j, sum(x.power_limited) AS limited_kernels, count(*) AS kernels
FROM kernels k
JOIN clocks c ON c.run_id = k.run_id
JOIN cells x ON x.cell_id = k.first_cell + c.clock_id
GROUP BY k.run_id, k.pass, c.clock_id
UNION ALL
SELECT kind, run_id, pass, NULL, clock, CAST(mem_mhz AS TEXT), core_mhz, sum(time_s), sum(energy_j), sum(power_limited), count(*)
FROM v_cells WHERE kind = 'pipeline' GROUP BY kind, run_id, pass, clock, mem_mhz, core_mhz;

-- The whole run at each single clock. Of pipelines none is stored.
CREATE VIEW v_clocks AS
SELECT g.kind, g.run_id, g.clock, r.default_clock = g.clock AS is_default, sum(g.time_s) AS time_s, sum(g.energy_j) AS energy_j,
       100.0 * (sum(g.time_s) / r.default_time_s - 1) AS time_change_pct, 100.0 * (sum(g.energy_j) / r.default_energy_j - 1) AS energy_change_pct
FROM v_pass_grid g JOIN v_runs r ON r.kind = g.kind AND r.run_id = g.run_id WHERE g.kind = 'trace' GROUP BY g.run_id, g.clock_id
UNION ALL
SELECT 'capture', c.graph_run_id, c.clock, c.is_default, c.time_s, c.energy_j, 100.0 * (c.time_s / r.default_s - 1), 100.0 * (c.energy_j / r.default_j - 1)
FROM graph_clocks c JOIN graph_runs r ON r.graph_run_id = c.graph_run_id;

-- Least energy over time. bound_j: no plan takes less by then; of captured runs it is what there is.
CREATE VIEW v_front AS
SELECT 'trace' AS kind, f.run_id, f.granularity, f.point_id, f.time_s, f.energy_j, NULL AS bound_j,
       100.0 * (f.time_s / b.time_s - 1) AS time_change_pct,
       100.0 * (f.energy_j / b.energy_j - 1) AS energy_change_pct, NULL AS bound_change_pct
FROM front_points f
JOIN plans b ON b.run_id = f.run_id AND b.goal = 'default'
UNION ALL
SELECT 'capture', f.graph_run_id, 'launch', f.point_id, f.time_s, NULL, f.bound_j, 100.0 * (f.time_s / r.default_s - 1), NULL,
       100.0 * (f.bound_j / r.default_j - 1)
FROM graph_front f JOIN graph_runs r ON r.graph_run_id = f.graph_run_id
UNION ALL
SELECT 'pipeline', f.pipeline_run_id, 'microbatch', f.vertex_id, f.time_s, f.energy_j, f.lower_bound_j, 100.0 * (f.time_s / b.time_s - 1),
       100.0 * (f.energy_j / b.energy_j - 1), 100.0 * (f.lower_bound_j / b.energy_j - 1)
FROM pipeline_front f JOIN pipeline_plans b ON b.pipeline_run_id = f.pipeline_run_id AND b.goal = 'baseline';

-- The same question in two runs of one kind.
CREATE VIEW v_compare AS
SELECT a.kind, a.run_id AS run_a, b.run_id AS run_b, a.plan_id AS plan_a, b.plan_id AS plan_b, a.work AS work_a, b.work AS work_b, a.gpu AS gpu_a, b.gpu AS gpu_b,
       a.power_limit_w AS power_limit_a_w, b.power_limit_w AS power_limit_b_w, a.granularity, a.aggregation, a.goal, a.slack_pct,
       a.is_answer AS is_answer_a, b.is_answer AS is_answer_b,
       a.time_s AS time_a_s, b.time_s AS time_b_s, a.energy_j AS energy_a_j, b.energy_j AS energy_b_j,
       a.time_change_pct AS time_change_a_pct, b.time_change_pct AS time_change_b_pct,
       a.energy_change_pct AS energy_change_a_pct, b.energy_change_pct AS energy_change_b_pct,
       100.0 * (b.time_s / a.time_s - 1) AS time_difference_pct, 100.0 * (b.energy_j / a.energy_j - 1) AS energy_difference_pct
FROM v_plans a
JOIN v_plans b ON b.kind = a.kind AND b.granularity = a.granularity AND b.aggregation = a.aggregation AND b.want = a.want;

-- Sweeps: one row per unit, with the value of every axis and with how far the model can be trusted.
-- Time and energy are those of the plan as applied, with its changes of clock counted. Of captured runs (g, q) status and gap are those of
-- the played plan, the gap where it is in time. Intervals are assumed to be the 90 % intervals of the plans as they were made, shifted by as
-- much. v_trace_plans and v_graph_plans have the plans as they were made.
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
       coalesce(p.goal, substr(q.want, 1, instr(q.want || ' ', ' ') - 1)) AS goal,
       100.0 * coalesce(p.slack_frac, q.slack_frac) AS slack_pct,
       100.0 * coalesce(p.tolerance_frac, CASE WHEN q.graph_plan_id IS NOT NULL THEN 0.0 END) AS tolerance_pct,
       coalesce(p.status, CASE WHEN q.status = 'optimal' AND abs(q.counted_energy_change_frac - q.energy_change_frac) > 1e-9
                               THEN 'feasible' ELSE q.status END) AS status,
       coalesce(p.counted_time_s, p.time_s, g.default_s * (1 + q.counted_time_change_frac)) AS time_s,
       coalesce(p.counted_energy_j, p.energy_j, g.default_j * (1 + q.counted_energy_change_frac)) AS energy_j,
       ifnull(p.in_time, q.in_time) AS in_time, ifnull(p.applicable, q.applicable) AS applicable,
       coalesce(b.time_s, g.default_s) AS default_time_s, coalesce(b.energy_j, g.default_j) AS default_energy_j,
       100.0 * coalesce(ifnull(p.counted_time_s, p.time_s) / b.time_s - 1, q.counted_time_change_frac) AS time_change_pct,
       100.0 * coalesce(ifnull(p.counted_energy_j, p.energy_j) / b.energy_j - 1, q.counted_energy_change_frac) AS energy_change_pct,
       coalesce(p.time_change_low_pct + 100.0 * ifnull(p.counted_time_s - p.time_s, 0) / b.time_s, 100.0 * (q.time_change_low_frac + q.counted_time_change_frac - q.time_change_frac))
         AS time_change_low_pct,
       coalesce(p.time_change_high_pct + 100.0 * ifnull(p.counted_time_s - p.time_s, 0) / b.time_s, 100.0 * (q.time_change_high_frac + q.counted_time_change_frac - q.time_change_frac))
         AS time_change_high_pct,
       coalesce(p.energy_change_low_pct + 100.0 * ifnull(p.counted_energy_j - p.energy_j, 0) / b.energy_j,
                100.0 * (q.energy_change_low_frac + q.counted_energy_change_frac - q.energy_change_frac)) AS energy_change_low_pct,
       coalesce(p.energy_change_high_pct + 100.0 * ifnull(p.counted_energy_j - p.energy_j, 0) / b.energy_j,
                100.0 * (q.energy_change_high_frac + q.counted_energy_change_frac - q.energy_change_frac)) AS energy_change_high_pct,
       p.time_change_expected_pct, p.energy_change_expected_pct, ifnull(p.is_answer, q.is_answer) AS is_answer,
       (SELECT group_concat(kind, ', ') FROM (  -- its own and those of the default clocks
          SELECT kind FROM plan_marks WHERE plan_id IN (p.plan_id, b.plan_id)
          UNION SELECT kind FROM graph_plan_marks WHERE graph_plan_id = u.graph_plan_id
          UNION SELECT kind FROM graph_run_marks WHERE graph_run_id = u.graph_run_id)) AS notes,
       ifnull(p.applied_clock_changes, q.applied_clock_changes) AS clock_switches, 100.0 * coalesce(p.gap_frac, CASE WHEN q.counted_in_time
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

-- Per experiment, setting, goal and slack: the unit that is the answer, of all units of the setting.
CREATE VIEW v_best_unit AS SELECT * FROM v_experiment_units WHERE is_answer = 1;

-- Per axis and value: what the units of the product of the axes with that value save.
CREATE VIEW v_sensitivity AS
SELECT v.experiment_id, a.key AS axis, CAST(a.value AS TEXT) AS value, count(*) AS units,
       avg(v.energy_change_pct) AS mean_energy_change_pct, min(v.energy_change_pct) AS best_energy_change_pct,
       max(v.energy_change_pct) AS worst_energy_change_pct, avg(v.time_change_pct) AS mean_time_change_pct
FROM v_experiment_units v, json_each(json_object('gpu', gpu, 'trace_name', trace_name, 'captured_clock', captured_clock, 'model', model,
  'batch', batch, 'sequence', sequence, 'tensor_parallel', tensor_parallel, 'data_parallel', data_parallel, 'pipeline_parallel', pipeline_parallel,
  'microbatches', microbatches, 'schedule', schedule, 'power_limit_w', power_limit_w, 'clock_grid', clock_grid, 'switch_stall_us', switch_stall_us,
  'switch_energy_j', switch_energy_j, 'switch_latency_us', switch_latency_us, 'switch_dwell_us', switch_dwell_us, 'granularity', granularity,
  'aggregation', aggregation, 'goal', goal, 'slack_pct', slack_pct, 'seed', seed)) a
WHERE v.scenario = '' AND a.value IS NOT NULL GROUP BY v.experiment_id, a.key, a.value;

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
       substr(p.want, 1, instr(p.want || ' ', ' ') - 1) AS goal,
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

-- Verifications with the plan they are of, in either kind of run. The plan is found by its totals, which are equal to the last bit: of several the newest, of runs asked for first.
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
  SELECT plan_id FROM plans JOIN runs USING (run_id) WHERE granularity = v.granularity AND time_s = v.plan_time_s
    AND energy_j = v.plan_energy_j AND goal <> 'default' ORDER BY asked DESC, plan_id DESC LIMIT 1)
LEFT JOIN graph_plans g ON g.graph_plan_id = (
  SELECT graph_plan_id FROM graph_plans JOIN graph_runs USING (graph_run_id) WHERE granularity = v.granularity AND time_s = v.plan_time_s
    AND energy_j = v.plan_energy_j ORDER BY asked DESC, graph_plan_id DESC LIMIT 1);

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
