-- Results of Rubato, schema 1. Every kind of run is in these tables: a trace (one training step), captured ranks, stages of a pipeline.
-- Units of measure end a column's name. Changes are in percent against the default clocks of the same run: a saving is negative.
-- NULL: does not apply, or is not known. Views, which are what to ask, are in views.sql.

-- What runs are made from, by hash. Captures are named, not kept: they are too large.
CREATE TABLE inputs (
  input_hash TEXT PRIMARY KEY,            -- 128-bit XXH3 of the bytes, hexadecimal
  kind TEXT NOT NULL CHECK (kind IN ('trace', 'gpu_spec', 'capture')),
  name TEXT NOT NULL,
  text TEXT                               -- the JSON document; NULL: not kept
) STRICT, WITHOUT ROWID;

-- What is planned, on which GPU, and what it takes at the default clocks. Energies are of all its GPUs together: of pipelines of one
-- pipeline with one GPU per stage (gpus.replicas says how many do the same).
CREATE TABLE runs (
  run_id INTEGER PRIMARY KEY,
  run_hash TEXT NOT NULL UNIQUE,          -- of an experiment: of inputs, options and program; else also of time and host
  result_hash TEXT NOT NULL,              -- of cells, clocks and the default totals, to the last bit
  kind TEXT NOT NULL CHECK (kind IN ('trace', 'capture', 'pipeline')),
  asked INTEGER NOT NULL CHECK (asked IN (0, 1)),  -- 1: somebody asked for it; 0: an experiment did. 'latest' is the newest with 1
  created_utc TEXT NOT NULL,              -- ISO 8601
  command TEXT NOT NULL,                  -- the command line
  options_json TEXT,                      -- options that were given; of an experiment all settings
  program_version TEXT NOT NULL,          -- with the source revision
  build_info TEXT NOT NULL,
  host TEXT NOT NULL,
  wall_time_s REAL,
  interrupted INTEGER NOT NULL CHECK (interrupted IN (0, 1)),  -- by Ctrl-C or a time limit: plans are the best known by then
  work TEXT NOT NULL,                     -- trace, captured files (one a line) or profile, as people know it
  gpu TEXT,                               -- NULL: a profile that names none
  gpu_calibrated INTEGER CHECK (gpu_calibrated IN (0, 1)),
  power_limit_w REAL,
  host_power_w REAL NOT NULL,             -- of the rest of the node for each GPU, in all energies but those of cells, and of units of captures
  clock_grid TEXT,                        -- name or selection
  disturbance TEXT,                       -- what goes otherwise than in the capture, as --disturb has it: 3:kernels*1.2
  gpus INTEGER NOT NULL,                  -- in the energies of the run
  steps INTEGER NOT NULL,                 -- training steps in its time
  default_time_s REAL NOT NULL,
  default_energy_j REAL NOT NULL,
  default_energy_low_j REAL,              -- 90 % interval of it: of captures without a power log. NULL: not asked, or not known
  default_energy_high_j REAL,
  -- Shares of the time by where times of kernels come from, docs/trust.md: the first six are 100 together. NULL: a profile does not say.
  measured_pct REAL,
  anchored_pct REAL,
  scaled_pct REAL,
  derived_pct REAL,
  guessed_pct REAL,
  fixed_pct REAL,                         -- no clock changes it
  guessed_split_pct REAL,                 -- part of anchored_pct
  -- What a change of clock takes, as plans were made with it.
  switch_lead_s REAL NOT NULL,            -- from request to stall
  switch_stall_s REAL NOT NULL,           -- of a change of core clock, or of any
  switch_energy_j REAL NOT NULL,
  switch_dwell_s REAL NOT NULL,           -- from effect to next request, at least
  mem_switch_lead_s REAL,                 -- NULL: as the core clock's, as the two below
  mem_switch_stall_s REAL,
  mem_switch_energy_j REAL,
  -- What a generated step or a pipeline is made from.
  model TEXT,
  batch INTEGER,
  sequence INTEGER,
  tensor_parallel INTEGER,
  data_parallel INTEGER,
  stages INTEGER,
  microbatches INTEGER,
  chunks INTEGER,                         -- of a stage
  schedule TEXT,
  seed INTEGER,
  -- Captured runs.
  captured_clock TEXT,                    -- memory/core
  captured_clock_source TEXT,
  captured_s REAL,
  reproduced_s REAL,                      -- simulated, captured durations at the captured clocks
  arcs_read INTEGER,                      -- what waits for what, as the files say
  arcs_inferred INTEGER,                  -- and as rules say
  -- Pipelines.
  transfer_s REAL,
  blocked_power_w REAL,                   -- of a GPU that waits for another stage
  least_time_s REAL,                      -- no plan is faster
  cheapest_time_s REAL,                   -- of the plan of least energy at any time
  headline_want TEXT                      -- of the answer that the run is known by; NULL: of an experiment, or no answer
) STRICT;
CREATE INDEX runs_by_time ON runs (asked, created_utc);

CREATE TABLE run_inputs (
  run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  input_hash TEXT NOT NULL REFERENCES inputs,
  position INTEGER NOT NULL,              -- of captures: the rank
  PRIMARY KEY (run_id, input_hash)
) STRICT, WITHOUT ROWID;

-- Who can be told a clock: the GPU of a trace, each captured GPU, the GPUs of a stage.
CREATE TABLE gpus (
  run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  gpu_id INTEGER NOT NULL,
  label TEXT NOT NULL,                    -- 'GPU', 'rank 3', 'rank 3 GPU 1', 'stage 2'
  rank INTEGER,                           -- of captures
  device INTEGER,
  stage INTEGER,                          -- of pipelines
  replicas INTEGER NOT NULL,              -- GPUs that do the same
  PRIMARY KEY (run_id, gpu_id)
) STRICT, WITHOUT ROWID;

-- What a GPU can be set to: clocks, and in some pipelines a power limit.
CREATE TABLE clocks (
  run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  clock_id INTEGER NOT NULL,              -- position in the grid
  label TEXT NOT NULL,                    -- memory/core as requested, '5001/1470', 'auto/auto'; with a limit '1200 300W'
  mem_mhz REAL,                           -- NULL: not a choice
  core_mhz REAL,                          -- NULL: the driver's choice
  power_limit_w REAL,                     -- NULL: the run's
  is_default INTEGER NOT NULL CHECK (is_default IN (0, 1)),
  time_s REAL,                            -- of the whole run at this one clock
  energy_j REAL,
  PRIMARY KEY (run_id, clock_id)
) STRICT, WITHOUT ROWID;

-- What runs: kernels of a trace; kernels in passes of a captured GPU; kinds of pass of a stage.
CREATE TABLE units (
  run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  unit_id INTEGER NOT NULL,
  gpu_id INTEGER NOT NULL,
  chunk INTEGER,                          -- of pipelines
  pass TEXT NOT NULL,
  name TEXT NOT NULL,                     -- kernel; of a pipeline the pass
  label TEXT,
  class TEXT NOT NULL,
  dtype TEXT,
  kernel_key TEXT,                        -- name, grid, block and shapes: the same in other captures of the same kernels
  launches INTEGER NOT NULL,
  flops REAL,                             -- per launch
  dram_bytes REAL,                        -- per launch
  source TEXT CHECK (source IN ('measured', 'anchored', 'scaled', 'derived', 'guessed', 'fixed')),
  default_time_s REAL NOT NULL,           -- all launches
  default_energy_j REAL NOT NULL,
  first_cell INTEGER REFERENCES cell_rows,  -- NULL: no cells
  PRIMARY KEY (run_id, unit_id),
  FOREIGN KEY (run_id, gpu_id) REFERENCES gpus ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX units_by_cells ON units (first_cell);

-- Time and energy of one launch of a unit at each clock. Units whose cells are all alike share them, also those of other runs.
CREATE TABLE cell_rows (
  first_cell INTEGER PRIMARY KEY,         -- cell_id of clock 0
  clocks INTEGER NOT NULL CHECK (clocks > 0),
  cells_hash TEXT NOT NULL UNIQUE         -- of the bits of all its cells
) STRICT;
CREATE TABLE cells (
  cell_id INTEGER PRIMARY KEY,            -- first_cell + clock_id; a clock that the unit does not have has none
  time_s REAL NOT NULL CHECK (time_s > 0),
  energy_j REAL NOT NULL CHECK (energy_j > 0),
  effective_core_mhz REAL NOT NULL,
  power_limited INTEGER NOT NULL CHECK (power_limited IN (0, 1))
) STRICT;
CREATE TRIGGER cells_of_nobody AFTER DELETE ON units
WHEN OLD.first_cell IS NOT NULL AND NOT EXISTS (SELECT 1 FROM units WHERE first_cell = OLD.first_cell)
BEGIN
  DELETE FROM cells WHERE cell_id BETWEEN OLD.first_cell
    AND OLD.first_cell + (SELECT clocks FROM cell_rows WHERE first_cell = OLD.first_cell) - 1;
  DELETE FROM cell_rows WHERE first_cell = OLD.first_cell;
END;

-- An answered question. Totals are the simulator's. `applied_`: as GPUs are set to it, which is what is promised: changes of clock counted
-- where it is known what they take, of captures the clocks of one step in all steps. Intervals are 90 %, of the change as applied.
CREATE TABLE plans (
  plan_id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  question_hash TEXT,                     -- of inputs, options and question, without the program; NULL: not of an experiment
  want TEXT NOT NULL,                     -- goal with slack, budgets and prices: plans that want the same compete
  goal TEXT NOT NULL,
  slack_pct REAL,                         -- time allowed beyond the default clocks; NULL: the goal has none
  tolerance_pct REAL,
  energy_budget_j REAL,
  power_budget_w REAL,
  price_per_kwh REAL,
  price_per_gpu_hour REAL,
  pue REAL,
  odds_pct REAL NOT NULL,                 -- of being in time, that an answer must have
  deadline_s REAL,
  granularity TEXT NOT NULL CHECK (granularity IN ('run', 'gpu', 'stage', 'pass', 'kernel', 'launch', 'segment')),
  aggregation TEXT NOT NULL CHECK (aggregation IN ('local', 'global')),
  comm_sms REAL,                          -- of collectives beside compute; NULL: as captured
  status TEXT NOT NULL CHECK (status IN ('optimal', 'feasible', 'infeasible', 'time_limit')),
  objective REAL,                         -- in the unit of the goal: J, s, J s, J s^2, money
  lower_bound REAL,                       -- of the objective: no plan of the granularity has less
  gap_pct REAL,
  time_s REAL,                            -- as planned; NULL: no plan was found
  energy_j REAL,
  time_change_pct REAL,
  energy_change_pct REAL,
  applied_time_s REAL,
  applied_energy_j REAL,
  applied_time_change_pct REAL,
  time_change_low_pct REAL,
  time_change_high_pct REAL,
  time_change_expected_pct REAL,          -- the middle
  applied_energy_change_pct REAL,
  energy_change_low_pct REAL,
  energy_change_high_pct REAL,
  energy_change_expected_pct REAL,
  applied_gap_pct REAL,
  clocks INTEGER,                         -- different ones
  clock_id INTEGER,                       -- where it is one
  clock_changes INTEGER,                  -- as applied, of all GPUs
  late_launches INTEGER,                  -- run in part at another clock than planned
  odds_in_time_pct REAL,                  -- of being in time as applied
  -- What makes it the answer, or not (explorer/plan/answer.hpp).
  default_in_time INTEGER NOT NULL CHECK (default_in_time IN (0, 1)),  -- the default clocks keep time and budget
  in_time INTEGER NOT NULL CHECK (in_time IN (0, 1)),  -- it does, as applied
  objective_frac REAL NOT NULL,           -- what is wanted least, as applied, over that at the default clocks
  applicable INTEGER NOT NULL CHECK (applicable IN (0, 1)),  -- GPUs can be set to it as it is
  not_applicable_because TEXT,
  fitted INTEGER NOT NULL CHECK (fitted IN (0, 1)),  -- 0: at clocks beyond those that the GPU was fitted at
  is_answer INTEGER NOT NULL CHECK (is_answer IN (0, 1)),
  keeps_default INTEGER NOT NULL CHECK (keeps_default IN (0, 1)),  -- the default clocks are the answer to what it wants
  solve_time_s REAL,
  wall_time_s REAL,                       -- of experiments: profile, search and simulation
  estimated_s REAL,                       -- and what was expected of it
  finished_utc TEXT NOT NULL,
  result_hash TEXT NOT NULL               -- of status, totals and clocks, to the last bit
) STRICT;
CREATE INDEX plans_by_run ON plans (run_id);
CREATE INDEX plans_by_question ON plans (question_hash) WHERE question_hash IS NOT NULL;

-- What a unit takes under a plan, by clock.
CREATE TABLE plan_units (
  plan_id INTEGER NOT NULL REFERENCES plans ON DELETE CASCADE,
  unit_id INTEGER NOT NULL,               -- of the plan's run
  clock_id INTEGER NOT NULL,
  launches INTEGER NOT NULL,
  time_s REAL NOT NULL,                   -- of these launches together
  energy_j REAL NOT NULL,
  PRIMARY KEY (plan_id, unit_id, clock_id)
) STRICT, WITHOUT ROWID;

-- A plan in the order in which it is set: stretches of a GPU within one pass with one clock in force. Of pipelines each pass is one. Of a
-- capture of several steps only the middle one is kept, whose clocks are set in every step.
CREATE TABLE plan_segments (
  plan_id INTEGER NOT NULL REFERENCES plans ON DELETE CASCADE,
  segment_id INTEGER NOT NULL,            -- by GPU and time
  gpu_id INTEGER NOT NULL,
  clock_id INTEGER NOT NULL,
  block TEXT,                             -- of a trace: its segments follow one another `repeats` times
  repeats INTEGER NOT NULL,
  pass TEXT NOT NULL,
  microbatch INTEGER,
  first_unit INTEGER NOT NULL,            -- of its first launch
  first_index INTEGER NOT NULL,           -- number of that launch among those of its unit in the pass, from 0
  launches INTEGER NOT NULL,              -- in one repeat, as time and energy
  start_s REAL,
  time_s REAL NOT NULL,                   -- of captures until the next segment of the GPU
  energy_j REAL NOT NULL,
  critical INTEGER CHECK (critical IN (0, 1)),  -- of pipelines: a delay delays the step
  PRIMARY KEY (plan_id, segment_id)
) STRICT, WITHOUT ROWID;

-- What to know beside the numbers of a plan, or of a run (plan_id NULL): then of every change against its default clocks.
CREATE TABLE caveats (
  run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  plan_id INTEGER REFERENCES plans ON DELETE CASCADE,
  kind TEXT NOT NULL,                     -- 'clocks not fitted', 'limit not reached', 'slack missed', ...
  reason TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX caveats_by_run ON caveats (run_id, ifnull(plan_id, 0), kind);
CREATE INDEX caveats_by_plan ON caveats (plan_id, kind) WHERE plan_id IS NOT NULL;

-- What a run was said to mean when it was asked: the five lines, and all notes, the most important first.
CREATE TABLE screens (
  run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  position INTEGER NOT NULL,
  label TEXT NOT NULL,                    -- 'Planned', 'Set', 'Saves', 'Rests on', 'Next' or 'note'
  text TEXT NOT NULL,
  PRIMARY KEY (run_id, position)
) STRICT, WITHOUT ROWID;

-- Least energy over time.
CREATE TABLE fronts (
  run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  granularity TEXT NOT NULL,
  point_id INTEGER NOT NULL,              -- by time
  time_s REAL NOT NULL,
  energy_j REAL,                          -- NULL: only the bound is known
  bound_j REAL,                           -- no plan of the granularity takes less by then
  price_w REAL,                           -- energy saved for each second more
  PRIMARY KEY (run_id, granularity, point_id)
) STRICT, WITHOUT ROWID;

-- Collectives that several captured GPUs share.
CREATE TABLE collectives (
  run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  collective_id INTEGER NOT NULL,         -- by time
  name TEXT NOT NULL,
  kind TEXT NOT NULL,
  process_group TEXT NOT NULL,
  ranks INTEGER NOT NULL,
  last_rank INTEGER NOT NULL,             -- that the others waited for; of one capture of several GPUs the GPU
  start_skew_s REAL NOT NULL,
  end_spread_s REAL NOT NULL,             -- on aligned clocks
  transfer_s REAL NOT NULL,
  PRIMARY KEY (run_id, collective_id)
) STRICT, WITHOUT ROWID;

-- An experiment file as it was run; an edited file is another experiment. What it asks for are plans.
CREATE TABLE experiments (
  experiment_id TEXT PRIMARY KEY,         -- hash of the text
  name TEXT NOT NULL,
  text TEXT NOT NULL,
  planned_units INTEGER NOT NULL,         -- number of questions
  first_run_utc TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE experiment_plans (
  experiment_id TEXT NOT NULL REFERENCES experiments ON DELETE CASCADE,
  scenario TEXT NOT NULL,                 -- '': the product of the axes
  plan_id INTEGER NOT NULL REFERENCES plans ON DELETE CASCADE,
  PRIMARY KEY (experiment_id, scenario, plan_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX experiment_plans_by_plan ON experiment_plans (plan_id);

-- Predictions beside what was measured: a capture replayed, points held out of a sweep, a plan that was applied.
CREATE TABLE measurements (
  measurement_id INTEGER PRIMARY KEY,
  measurement_hash TEXT NOT NULL UNIQUE,  -- of all that is stored of it
  kind TEXT NOT NULL CHECK (kind IN ('replay', 'validate', 'verify')),
  created_utc TEXT NOT NULL,
  command TEXT NOT NULL,
  program_version TEXT NOT NULL,
  measured_file TEXT NOT NULL,
  compared_file TEXT,                     -- of a replay the power log, of a verification the plan file
  work TEXT,
  gpu TEXT NOT NULL,                      -- name of the spec
  clock TEXT,                             -- of a replay: captured
  other_clock TEXT,                       -- of a replay: replayed
  holdout TEXT,                           -- of a validation: known, few-points, folds, kernels, power-caps
  points_per_kernel INTEGER,
  folds INTEGER,
  granularity TEXT,                       -- of the plan that was applied; with its totals it is known again, also after a merge
  plan_time_s REAL,
  plan_energy_j REAL,
  pairs INTEGER,                          -- of windows, one at the default clocks and one under the plan
  measured_time_s REAL,
  predicted_time_s REAL,                  -- from the model's durations at the captured clocks
  reproduced_time_s REAL,                 -- simulated from captured durations at the captured clocks
  other_time_s REAL,                      -- from captured durations at the replayed clocks
  measured_energy_j REAL,
  predicted_energy_j REAL,
  reproduced_energy_j REAL,
  other_energy_j REAL,
  measured_coverage REAL,                 -- share of the time with samples close enough
  power_shift_s REAL,
  power_correlation REAL,
  promised_energy_change_pct REAL,
  promised_energy_change_low_pct REAL,
  promised_energy_change_high_pct REAL,
  measured_energy_change_pct REAL,
  measured_energy_change_low_pct REAL,    -- 90 %, Student's t over pairs
  measured_energy_change_high_pct REAL,
  promised_time_change_pct REAL,
  promised_time_change_low_pct REAL,
  promised_time_change_high_pct REAL,
  measured_time_change_pct REAL,
  measured_time_change_low_pct REAL,
  measured_time_change_high_pct REAL,
  -- A promised saving whose measured interval reaches to no change at all is undecided, not kept.
  energy_verdict TEXT CHECK (energy_verdict IN ('kept', 'better', 'missed', 'undecided')),
  time_verdict TEXT CHECK (time_verdict IN ('kept', 'better', 'missed'))
) STRICT;
CREATE TABLE measurement_rows (
  measurement_id INTEGER NOT NULL REFERENCES measurements ON DELETE CASCADE,
  part TEXT NOT NULL CHECK (part IN ('kernel', 'class', 'step', 'point')),
  row_id INTEGER NOT NULL,                -- kernels and classes: most captured time first
  name TEXT NOT NULL,
  class TEXT,
  source TEXT,                            -- of the prediction, as units.source; NULL: not predicted
  clock TEXT,                             -- of points: memory/core
  power_cap_w REAL,
  launches INTEGER,
  measured_time_s REAL,                   -- sums over launches
  compared_time_s REAL,                   -- the part of it that is predicted
  predicted_time_s REAL NOT NULL,
  other_time_s REAL,
  time_error_pct REAL,                    -- of collectives it holds their waiting, and says nothing of the model
  time_error_half_width_pct REAL,         -- 90 %; NULL: one kernel only
  measured_power_w REAL,                  -- of classes, fitted over windows
  measured_power_sigma_w REAL,
  predicted_power_w REAL,                 -- while the launches run
  measured_energy_j REAL,
  predicted_energy_j REAL,
  other_energy_j REAL,
  measured_coverage REAL,
  power_limited INTEGER CHECK (power_limited IN (0, 1)),
  verdict TEXT CHECK (verdict IN ('within', 'off', 'undecided', 'not predicted')),
  PRIMARY KEY (measurement_id, part, row_id)
) STRICT, WITHOUT ROWID;

-- What the fit of a GPU spec left, by the names of its file.
CREATE TABLE model_errors (
  spec_hash TEXT NOT NULL REFERENCES inputs,
  name TEXT NOT NULL,                     -- ends in the unit, e.g. table1_energy_mae_points
  value REAL NOT NULL,
  PRIMARY KEY (spec_hash, name)
) STRICT, WITHOUT ROWID;

-- Databases that rows were taken from.
CREATE TABLE merges (
  merge_id INTEGER PRIMARY KEY,
  merged_utc TEXT NOT NULL,
  source TEXT NOT NULL,                   -- the file's name
  host TEXT NOT NULL,
  new_runs INTEGER NOT NULL,
  new_plans INTEGER NOT NULL
) STRICT;
