-- Results of Rubato: the tables of schema 1. schema_2.sql adds those of sweeps, views.sql the views. Units are in the names; a missing value is NULL.

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
