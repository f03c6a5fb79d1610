-- Results of Rubato, schema 1. Units are in the names; a missing value is NULL.

-- Input files, whole: any stored number can be made again.
CREATE TABLE inputs (
  input_hash TEXT PRIMARY KEY,            -- 128-bit XXH3 of the text, hexadecimal
  kind TEXT NOT NULL CHECK (kind IN ('trace', 'gpu_spec')),
  name TEXT NOT NULL,
  text TEXT NOT NULL                      -- the JSON document
) STRICT, WITHOUT ROWID;

-- One exploration: a trace on a GPU with a set of clocks to choose from.
CREATE TABLE runs (
  run_id INTEGER PRIMARY KEY,
  created_utc TEXT NOT NULL,              -- ISO 8601
  command TEXT NOT NULL,                  -- the command line
  options_json TEXT NOT NULL,             -- every option, defaults included
  program_version TEXT NOT NULL,
  source_revision TEXT NOT NULL,
  build_info TEXT NOT NULL,
  host TEXT NOT NULL,
  wall_time_s REAL NOT NULL,
  trace_hash TEXT NOT NULL REFERENCES inputs,
  trace_name TEXT NOT NULL,
  spec_hash TEXT NOT NULL REFERENCES inputs,
  gpu TEXT NOT NULL,
  gpu_calibrated INTEGER NOT NULL CHECK (gpu_calibrated IN (0, 1)),
  power_limit_w REAL NOT NULL,
  clock_grid TEXT NOT NULL,               -- name or selection
  switch_stall_s REAL NOT NULL,
  switch_energy_j REAL NOT NULL,
  interrupted INTEGER NOT NULL CHECK (interrupted IN (0, 1))
) STRICT;

CREATE TABLE clocks (
  run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  clock_id INTEGER NOT NULL,              -- position in the grid
  label TEXT NOT NULL,                    -- memory/core as requested, e.g. '5001/1470', 'auto/auto'
  mem_state TEXT NOT NULL,
  mem_mhz REAL NOT NULL,
  core_mhz REAL,                          -- NULL: auto
  is_default INTEGER NOT NULL CHECK (is_default IN (0, 1)),
  PRIMARY KEY (run_id, clock_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE kernels (
  run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  kernel_id INTEGER NOT NULL,             -- position in the trace
  name TEXT NOT NULL,
  label TEXT NOT NULL,
  class TEXT NOT NULL,
  pass TEXT NOT NULL,
  dtype TEXT NOT NULL,
  launches INTEGER NOT NULL,              -- per iteration
  flops REAL,                             -- per launch
  dram_bytes REAL,                        -- per launch
  coefficients TEXT NOT NULL CHECK (coefficients IN ('measured', 'derived', 'guessed')),
  PRIMARY KEY (run_id, kernel_id)
) STRICT, WITHOUT ROWID;

-- The model's answer for one launch of a kernel at a clock.
CREATE TABLE profile_cells (
  run_id INTEGER NOT NULL,
  kernel_id INTEGER NOT NULL,
  clock_id INTEGER NOT NULL,
  time_s REAL NOT NULL CHECK (time_s > 0),
  energy_j REAL NOT NULL CHECK (energy_j > 0),
  effective_core_mhz REAL NOT NULL,
  power_limited INTEGER NOT NULL CHECK (power_limited IN (0, 1)),
  PRIMARY KEY (run_id, kernel_id, clock_id),
  FOREIGN KEY (run_id, kernel_id) REFERENCES kernels ON DELETE CASCADE,
  FOREIGN KEY (run_id, clock_id) REFERENCES clocks ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- One answered question. The plan with goal 'default' is the run's baseline.
-- Totals are the simulator's, per iteration.
CREATE TABLE plans (
  plan_id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  granularity TEXT NOT NULL CHECK (granularity IN ('iteration', 'pass', 'kernel', 'auto')),
  aggregation TEXT NOT NULL CHECK (aggregation IN ('local', 'global')),
  goal TEXT NOT NULL,
  slack_frac REAL,                        -- of the waste goals
  tolerance_frac REAL,
  max_energy_j REAL,                      -- of least_time
  max_average_power_w REAL,
  status TEXT NOT NULL CHECK (status IN ('optimal', 'feasible', 'infeasible', 'time_limit')),
  objective REAL,                         -- in the unit of the goal: J, s, J s, J s^2
  lower_bound REAL,
  gap_frac REAL,
  nodes INTEGER NOT NULL,
  solve_time_s REAL NOT NULL,
  time_s REAL,                            -- NULL if infeasible
  energy_j REAL,
  launches INTEGER,
  clock_switches INTEGER,
  power_limited_launches INTEGER,
  switch_time_s REAL,
  switch_energy_j REAL
) STRICT;
CREATE INDEX plans_by_run ON plans (run_id, goal, granularity, aggregation);

-- The clock of every launch of the compact trace (a repeated block is listed once).
CREATE TABLE plan_entries (
  plan_id INTEGER NOT NULL REFERENCES plans ON DELETE CASCADE,
  site_id INTEGER NOT NULL,               -- position in launch order
  segment TEXT NOT NULL,
  repeat INTEGER NOT NULL,
  run_id INTEGER NOT NULL,
  kernel_id INTEGER NOT NULL,
  clock_id INTEGER NOT NULL,
  PRIMARY KEY (plan_id, site_id),
  FOREIGN KEY (run_id, kernel_id) REFERENCES kernels ON DELETE CASCADE,
  FOREIGN KEY (run_id, clock_id) REFERENCES clocks ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE plan_passes (
  plan_id INTEGER NOT NULL REFERENCES plans ON DELETE CASCADE,
  pass TEXT NOT NULL,
  time_s REAL NOT NULL,
  energy_j REAL NOT NULL,
  launches INTEGER NOT NULL,
  PRIMARY KEY (plan_id, pass)
) STRICT, WITHOUT ROWID;

CREATE TABLE plan_kernels (
  plan_id INTEGER NOT NULL REFERENCES plans ON DELETE CASCADE,
  run_id INTEGER NOT NULL,
  kernel_id INTEGER NOT NULL,
  time_s REAL NOT NULL,                   -- all launches of an iteration
  energy_j REAL NOT NULL,
  launches INTEGER NOT NULL,
  power_limited_launches INTEGER NOT NULL,
  PRIMARY KEY (plan_id, kernel_id),
  FOREIGN KEY (run_id, kernel_id) REFERENCES kernels ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE front_points (
  run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  granularity TEXT NOT NULL CHECK (granularity IN ('iteration', 'pass', 'kernel')),
  point_id INTEGER NOT NULL,              -- 0 is the fastest
  time_s REAL NOT NULL,
  energy_j REAL NOT NULL,
  PRIMARY KEY (run_id, granularity, point_id)
) STRICT, WITHOUT ROWID;

-- Views: change is relative to the default clocks of the same run, in percent;
-- negative energy change is a saving.

CREATE VIEW v_plans AS
SELECT p.plan_id, p.run_id, r.gpu, r.trace_name, r.clock_grid, p.granularity, p.aggregation, p.goal,
       p.slack_frac, p.tolerance_frac, p.status, p.time_s, p.energy_j,
       100.0 * (p.time_s / b.time_s - 1) AS time_change_pct,
       100.0 * (p.energy_j / b.energy_j - 1) AS energy_change_pct,
       p.energy_j / p.time_s AS average_power_w,
       p.clock_switches, p.gap_frac, p.solve_time_s
FROM plans p
JOIN runs r ON r.run_id = p.run_id
JOIN plans b ON b.run_id = p.run_id AND b.goal = 'default';

-- The least energy per run among the plans no slower than the default clocks allow.
CREATE VIEW v_best_plan AS
SELECT * FROM (
  SELECT v.*, row_number() OVER (PARTITION BY run_id ORDER BY energy_j, plan_id) AS rank
  FROM v_plans v WHERE goal = 'strict_waste' AND status IN ('optimal', 'feasible'))
WHERE rank = 1;

CREATE VIEW v_kernel_savings AS
SELECT pk.plan_id, pk.run_id, k.kernel_id, k.name, k.label, k.class, k.pass, pk.launches,
       pk.time_s, pk.energy_j, bk.time_s AS default_time_s, bk.energy_j AS default_energy_j,
       100.0 * (pk.time_s / bk.time_s - 1) AS time_change_pct,
       100.0 * (pk.energy_j / bk.energy_j - 1) AS energy_change_pct,
       bk.energy_j - pk.energy_j AS saved_j
FROM plan_kernels pk
JOIN kernels k ON k.run_id = pk.run_id AND k.kernel_id = pk.kernel_id
JOIN plans b ON b.run_id = pk.run_id AND b.goal = 'default'
JOIN plan_kernels bk ON bk.plan_id = b.plan_id AND bk.kernel_id = pk.kernel_id;

CREATE VIEW v_plan_clocks AS
SELECT e.plan_id, e.run_id, e.site_id, e.segment, e.repeat, k.name AS kernel, k.label, k.class, k.pass,
       c.label AS clock, c.mem_state, c.core_mhz, x.time_s, x.energy_j, x.effective_core_mhz,
       x.power_limited
FROM plan_entries e
JOIN kernels k ON k.run_id = e.run_id AND k.kernel_id = e.kernel_id
JOIN clocks c ON c.run_id = e.run_id AND c.clock_id = e.clock_id
JOIN profile_cells x ON x.run_id = e.run_id AND x.kernel_id = e.kernel_id AND x.clock_id = e.clock_id;

CREATE VIEW v_pass_grid AS
SELECT x.run_id, k.pass, c.clock_id, c.label AS clock, c.mem_state, c.core_mhz,
       sum(x.time_s * k.launches) AS time_s, sum(x.energy_j * k.launches) AS energy_j
FROM profile_cells x
JOIN kernels k ON k.run_id = x.run_id AND k.kernel_id = x.kernel_id
JOIN clocks c ON c.run_id = x.run_id AND c.clock_id = x.clock_id
GROUP BY x.run_id, k.pass, c.clock_id;

CREATE VIEW v_front AS
SELECT f.run_id, f.granularity, f.point_id, f.time_s, f.energy_j,
       100.0 * (f.time_s / b.time_s - 1) AS time_change_pct,
       100.0 * (f.energy_j / b.energy_j - 1) AS energy_change_pct
FROM front_points f
JOIN plans b ON b.run_id = f.run_id AND b.goal = 'default';

-- The same question in two runs.
CREATE VIEW v_compare AS
SELECT a.run_id AS run_a, b.run_id AS run_b, a.granularity, a.aggregation, a.goal, a.slack_frac,
       a.time_s AS time_a_s, b.time_s AS time_b_s, a.energy_j AS energy_a_j, b.energy_j AS energy_b_j,
       a.time_change_pct AS time_change_a_pct, b.time_change_pct AS time_change_b_pct,
       a.energy_change_pct AS energy_change_a_pct, b.energy_change_pct AS energy_change_b_pct
FROM v_plans a
JOIN v_plans b ON b.granularity = a.granularity AND b.aggregation = a.aggregation AND b.goal = a.goal
  AND b.slack_frac IS a.slack_frac;
