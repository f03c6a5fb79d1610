-- Results of Rubato, schema 1: traces and experiments. Captured runs are in graph.sql, pipelines in pipeline.sql, what was measured in
-- replay.sql, validation.sql and verification.sql, views in views.sql. Units are in the names; a missing value is NULL.

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
  switch_stall_s REAL NOT NULL,           -- of a change of core clock, or of any
  switch_energy_j REAL NOT NULL,
  interrupted INTEGER NOT NULL CHECK (interrupted IN (0, 1)),
  switch_lead_s REAL NOT NULL,            -- from request to stall
  switch_dwell_s REAL NOT NULL,           -- from effect to next request
  mem_switch_lead_s REAL,                 -- NULL: as the core clock's, as those below
  mem_switch_stall_s REAL,
  mem_switch_energy_j REAL,
  asked INTEGER NOT NULL CHECK (asked IN (0, 1)),  -- 1: somebody asked for it; 0: an experiment did. 'latest' is the newest with 1
  headline_want TEXT                      -- of the answer that the run is known by; NULL: of an experiment, or no answer
) STRICT;
-- Runs outside experiments are known by their provenance when databases are merged.
CREATE INDEX runs_by_time ON runs (created_utc);

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
  coefficients TEXT NOT NULL CHECK (coefficients IN ('measured', 'anchored', 'scaled', 'derived', 'guessed')),
  first_cell INTEGER REFERENCES cell_rows,  -- NULL: no cells are stored
  PRIMARY KEY (run_id, kernel_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX kernels_by_cells ON kernels (first_cell);

-- The cells of one kernel, from first_cell at clock 0 on. Kernels whose cells are all alike share them, also those of other runs. Cells
-- have numbers in a row, which are quick to write and to merge; the view profile_cells has them by run, kernel and clock.
CREATE TABLE cell_rows (
  first_cell INTEGER PRIMARY KEY,         -- cell_id
  clocks INTEGER NOT NULL CHECK (clocks > 0),
  cells_hash TEXT NOT NULL UNIQUE         -- of the bits of all its cells
) STRICT;

-- The model's answer for one launch of a kernel at a clock.
CREATE TABLE cells (
  cell_id INTEGER PRIMARY KEY,            -- first_cell of the kernel + clock_id
  time_s REAL NOT NULL CHECK (time_s > 0),
  energy_j REAL NOT NULL CHECK (energy_j > 0),
  effective_core_mhz REAL NOT NULL,
  power_limited INTEGER NOT NULL CHECK (power_limited IN (0, 1))
) STRICT;

CREATE TRIGGER cells_of_nobody AFTER DELETE ON kernels
WHEN OLD.first_cell IS NOT NULL AND NOT EXISTS (SELECT 1 FROM kernels WHERE first_cell = OLD.first_cell)
BEGIN
  DELETE FROM cells WHERE cell_id BETWEEN OLD.first_cell
    AND OLD.first_cell + (SELECT clocks FROM cell_rows WHERE first_cell = OLD.first_cell) - 1;
  DELETE FROM cell_rows WHERE first_cell = OLD.first_cell;
END;

-- One answered question. The plan with goal 'default' is the run's baseline.
-- Totals are the simulator's, per iteration.
CREATE TABLE plans (
  plan_id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  granularity TEXT NOT NULL CHECK (granularity IN ('iteration', 'pass', 'kernel', 'segment')),
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
  switch_energy_j REAL,
  -- 90 % interval of the change against the default clocks; NULL where it was not worked out.
  time_change_low_pct REAL,
  time_change_high_pct REAL,
  energy_change_low_pct REAL,
  energy_change_high_pct REAL,
  late_launches INTEGER,                  -- ran in part at another clock than planned
  time_change_expected_pct REAL,          -- what to expect: the middle of the interval
  energy_change_expected_pct REAL,
  counted_time_s REAL,                    -- with changes of clock as the spec knows them, of a plan that took them to be free; else NULL
  counted_energy_j REAL,
  -- What makes it the answer, or not (explorer/plan/answer.hpp); NULL: goal 'default'.
  want TEXT,                              -- goal with slack, budgets and prices: plans that want the same compete
  default_in_time INTEGER CHECK (default_in_time IN (0, 1)),  -- the default clocks keep time and budget
  in_time INTEGER CHECK (in_time IN (0, 1)),  -- it does, with its changes of clock
  objective_frac REAL,                    -- what is wanted least, with these, over that at the default clocks
  applicable INTEGER CHECK (applicable IN (0, 1)),
  not_applicable_because TEXT,
  fitted INTEGER CHECK (fitted IN (0, 1)),  -- 0: at clocks beyond those that the GPU was fitted at
  clocks INTEGER,                         -- different ones
  applied_clock_changes INTEGER,
  is_answer INTEGER NOT NULL DEFAULT 0 CHECK (is_answer IN (0, 1)),
  keeps_default INTEGER NOT NULL DEFAULT 0 CHECK (keeps_default IN (0, 1))  -- the default clocks are the answer to what it wants
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

-- Marks beside a plan; those of the plan with goal 'default' hold for every change against it.
CREATE TABLE plan_marks (
  plan_id INTEGER NOT NULL REFERENCES plans ON DELETE CASCADE,
  kind TEXT NOT NULL,                     -- e.g. 'limit not reached', 'clocks not fitted', 'slack missed'
  reason TEXT NOT NULL,
  PRIMARY KEY (plan_id, kind)
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
  clock_id INTEGER,                       -- of all its launches; NULL: they have several
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

-- Experiments. A unit is one question in one setting; its plan and the run that holds the setting's profile are in the tables above, or
-- in those of captured runs.

-- An experiment file as it was run; an edited file is another experiment.
CREATE TABLE experiments (
  experiment_id TEXT PRIMARY KEY,         -- hash of the text
  name TEXT NOT NULL,
  text TEXT NOT NULL,
  planned_units INTEGER NOT NULL,
  first_run_utc TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What a run of a sweep was made from. Axes of generated traces are NULL for fixed ones.
CREATE TABLE settings (
  setting_id TEXT PRIMARY KEY,            -- hash of inputs, options and program version
  run_id INTEGER NOT NULL UNIQUE REFERENCES runs ON DELETE CASCADE,
  model TEXT,
  batch INTEGER,
  sequence INTEGER,
  tensor_parallel INTEGER,
  data_parallel INTEGER,
  pipeline_parallel INTEGER,              -- stages
  microbatches INTEGER,
  schedule TEXT,                          -- of pipelines
  seed INTEGER NOT NULL,
  measured_time_frac REAL NOT NULL,       -- of default time, in kernels whose coefficients were
  derived_time_frac REAL NOT NULL,        -- measured, derived from their work, guessed, ...
  guessed_time_frac REAL NOT NULL,
  profile_hash TEXT NOT NULL,             -- of cells and baseline
  anchored_time_frac REAL NOT NULL,
  scaled_time_frac REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE units (
  unit_id TEXT PRIMARY KEY,               -- hash of the question and the program version
  question_id TEXT NOT NULL,              -- hash of inputs, options and question
  run_id INTEGER REFERENCES runs ON DELETE CASCADE,         -- of a trace ...
  plan_id INTEGER UNIQUE REFERENCES plans ON DELETE CASCADE,
  program_version TEXT NOT NULL,          -- with the source revision
  result_hash TEXT NOT NULL,              -- of status, totals and the clock of every launch
  wall_time_s REAL NOT NULL,              -- profile, search and simulation
  estimated_s REAL NOT NULL,
  finished_utc TEXT NOT NULL,
  host TEXT NOT NULL,
  graph_run_id INTEGER REFERENCES graph_runs ON DELETE CASCADE  -- ... or of a captured run
    CHECK ((run_id IS NULL) <> (graph_run_id IS NULL)),
  graph_plan_id INTEGER REFERENCES graph_plans ON DELETE CASCADE
    CHECK ((plan_id IS NULL) <> (graph_plan_id IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX units_by_question ON units (question_id, program_version);
CREATE INDEX units_by_run ON units (run_id);
CREATE INDEX units_by_graph_run ON units (graph_run_id);
CREATE UNIQUE INDEX units_by_graph_plan ON units (graph_plan_id);

-- Which units an experiment asks for, under which scenario; '' is the product of the axes.
CREATE TABLE experiment_units (
  experiment_id TEXT NOT NULL REFERENCES experiments ON DELETE CASCADE,
  scenario TEXT NOT NULL,
  unit_id TEXT NOT NULL REFERENCES units ON DELETE CASCADE,
  PRIMARY KEY (experiment_id, scenario, unit_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX experiment_units_by_unit ON experiment_units (unit_id);

-- What the fit of a spec left, by the names of its file.
CREATE TABLE model_errors (
  spec_hash TEXT NOT NULL REFERENCES inputs,
  name TEXT NOT NULL,                     -- ends in the unit, e.g. table1_energy_mae_points
  value REAL NOT NULL,
  PRIMARY KEY (spec_hash, name)
) STRICT, WITHOUT ROWID;

-- Where rows of other databases came from.
CREATE TABLE merges (
  merge_id INTEGER PRIMARY KEY,
  merged_utc TEXT NOT NULL,
  source TEXT NOT NULL,                   -- the file's name
  host TEXT NOT NULL,
  new_runs INTEGER NOT NULL,
  new_units INTEGER NOT NULL
) STRICT;
