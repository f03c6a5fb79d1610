-- Explorations of captured runs as execution graphs. docs/graphs.md.
CREATE TABLE graph_runs (
  graph_run_id INTEGER PRIMARY KEY,
  created_utc TEXT NOT NULL,              -- ISO 8601
  command TEXT NOT NULL,
  program_version TEXT NOT NULL,
  captures TEXT NOT NULL,                 -- files, one a line
  gpu TEXT NOT NULL,                      -- name of the spec
  captured_clock TEXT NOT NULL,           -- memory/core
  captured_clock_source TEXT NOT NULL CHECK (captured_clock_source IN ('given', 'power log', 'default')),
  power_limit_w REAL NOT NULL,
  ranks INTEGER NOT NULL,
  gpus INTEGER NOT NULL,
  launches INTEGER NOT NULL,
  activities INTEGER NOT NULL,            -- launches, host calls, collectives
  arcs_read INTEGER NOT NULL,             -- what waits for what, as the files say
  arcs_inferred INTEGER NOT NULL,         -- and as rules say
  captured_s REAL NOT NULL,
  reproduced_s REAL NOT NULL,             -- simulated, captured durations at the captured clocks
  default_s REAL NOT NULL,                -- simulated at the default clocks, the baseline of all plans
  default_j REAL NOT NULL,                -- of all GPUs
  source_measured_s REAL NOT NULL,        -- captured time of launches, by what their split rests on
  source_anchored_s REAL NOT NULL,
  source_guessed_split_s REAL NOT NULL,   -- part of source_anchored_s: split as kernels of the class usually do
  source_fixed_s REAL NOT NULL,           -- no clock changes it
  wall_time_s REAL NOT NULL,
  asked INTEGER NOT NULL CHECK (asked IN (0, 1)),  -- 1: somebody asked for it; 0: an experiment did. 'latest' is the newest with 1
  headline_want TEXT,                     -- of the answer that the run is known by; NULL: of an experiment, or no answer
  switch_stall_s REAL NOT NULL,           -- of a change of core clock, or of any, as plans count it
  switch_energy_j REAL NOT NULL,
  switch_lead_s REAL NOT NULL,            -- from request to stall
  switch_dwell_s REAL NOT NULL,           -- from effect to next request
  mem_switch_lead_s REAL,                 -- NULL: as the core clock's, as those below
  mem_switch_stall_s REAL,
  mem_switch_energy_j REAL
) STRICT;

CREATE TABLE graph_plans (
  graph_plan_id INTEGER PRIMARY KEY,
  graph_run_id INTEGER NOT NULL REFERENCES graph_runs ON DELETE CASCADE,
  granularity TEXT NOT NULL CHECK (granularity IN ('iteration', 'gpu', 'pass', 'kernel', 'launch', 'segment')),
  slack_frac REAL NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('optimal', 'feasible', 'infeasible', 'time_limit')),
  deadline_s REAL NOT NULL,
  time_s REAL,                            -- by the simulator; NULL: infeasible
  energy_j REAL,                          -- of all GPUs
  lower_bound_j REAL,                     -- no plan of the granularity takes less by the deadline, whatever runs at once; NULL: not known
  gap_frac REAL,
  time_change_frac REAL,                  -- against the default clocks
  time_change_low_frac REAL,              -- 90 %: over draws of how captured times split, of guessed core energies, of fits and of the model's errors
  time_change_high_frac REAL,
  energy_change_frac REAL,
  energy_change_low_frac REAL,
  energy_change_high_frac REAL,
  clock_changes INTEGER,                  -- of all GPUs
  -- The plan as it is played: one step's clocks for all, changes counted; NULL: what they take is not known. Of granularity segment,
  -- time_s and energy_j count them too.
  counted_clock_changes INTEGER,
  counted_late_launches INTEGER,
  counted_time_change_frac REAL,
  counted_energy_change_frac REAL,
  counted_in_time INTEGER CHECK (counted_in_time IN (0, 1)),
  comm_sms REAL,                          -- of collectives that run beside compute; NULL: as captured
  -- What makes it the answer, or not (explorer/plan/answer.hpp); never NULL.
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
CREATE INDEX graph_plans_by_run ON graph_plans (graph_run_id);

-- Launches of a plan that share GPU, pass, kernel and clock.
CREATE TABLE graph_plan_clocks (
  graph_plan_id INTEGER NOT NULL REFERENCES graph_plans ON DELETE CASCADE,
  row_id INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  device INTEGER NOT NULL,
  pass TEXT NOT NULL,
  kernel TEXT NOT NULL,
  clock TEXT NOT NULL,                    -- memory/core
  launches INTEGER NOT NULL,
  time_s REAL NOT NULL,                   -- sum over the launches
  energy_j REAL NOT NULL,
  kernel_key TEXT NOT NULL,               -- name, grid, block and shapes: the same in other captures of the same kernels
  PRIMARY KEY (graph_plan_id, row_id)
) STRICT, WITHOUT ROWID;

-- Kernels of a pass on a GPU at the default clocks.
CREATE TABLE graph_kernels (
  graph_run_id INTEGER NOT NULL REFERENCES graph_runs ON DELETE CASCADE,
  row_id INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  device INTEGER NOT NULL,
  pass TEXT NOT NULL,
  kernel TEXT NOT NULL,
  class TEXT NOT NULL,
  launches INTEGER NOT NULL,
  time_s REAL NOT NULL,                   -- sum over the launches
  energy_j REAL NOT NULL,
  PRIMARY KEY (graph_run_id, row_id)
) STRICT, WITHOUT ROWID;

-- Collectives that several captured ranks share.
CREATE TABLE graph_collectives (
  graph_run_id INTEGER NOT NULL REFERENCES graph_runs ON DELETE CASCADE,
  row_id INTEGER NOT NULL,                -- by time
  name TEXT NOT NULL,
  collective TEXT NOT NULL,               -- kind
  group_name TEXT NOT NULL,
  ranks INTEGER NOT NULL,
  last_rank INTEGER NOT NULL,             -- that the others waited for; of one capture of several GPUs the GPU
  start_skew_s REAL NOT NULL,
  end_spread_s REAL NOT NULL,             -- on aligned clocks
  transfer_s REAL NOT NULL,
  PRIMARY KEY (graph_run_id, row_id)
) STRICT, WITHOUT ROWID;

-- A plan in the order in which a run sets it.
-- Stretches of a GPU with one clock in force, within one pass of one step.
CREATE TABLE graph_segments (
  graph_plan_id INTEGER NOT NULL REFERENCES graph_plans ON DELETE CASCADE,
  segment_id INTEGER NOT NULL,            -- by GPU and time
  rank INTEGER NOT NULL,
  device INTEGER NOT NULL,
  step INTEGER,                           -- of the capture; NULL: outside of its steps
  pass TEXT NOT NULL,
  clock TEXT NOT NULL,                    -- memory/core
  launches INTEGER NOT NULL,
  start_s REAL NOT NULL,
  time_s REAL NOT NULL,                   -- until the next segment of the GPU, gaps included
  energy_j REAL NOT NULL,                 -- of the launches that start in it
  first_kernel TEXT NOT NULL,             -- of its first launch
  first_index INTEGER NOT NULL,           -- number of that launch among those of its kernel in the step and pass, from 0
  PRIMARY KEY (graph_plan_id, segment_id)
) STRICT, WITHOUT ROWID;

-- Every clock of the grid for the whole run, simulated.
CREATE TABLE graph_clocks (
  graph_run_id INTEGER NOT NULL REFERENCES graph_runs ON DELETE CASCADE,
  clock TEXT NOT NULL,                    -- memory/core
  is_default INTEGER NOT NULL CHECK (is_default IN (0, 1)),
  time_s REAL NOT NULL,
  energy_j REAL NOT NULL,                 -- of all GPUs
  PRIMARY KEY (graph_run_id, clock)
) STRICT, WITHOUT ROWID;

-- No plan takes less energy by this time. Of runs for which plans of several clocks were asked, but for those whose launches
-- reach the power limit together: there launches alone, of which this is, bound nothing.
CREATE TABLE graph_front (
  graph_run_id INTEGER NOT NULL REFERENCES graph_runs ON DELETE CASCADE,
  point_id INTEGER NOT NULL,              -- by time
  time_s REAL NOT NULL,
  bound_j REAL NOT NULL,                  -- of all GPUs
  PRIMARY KEY (graph_run_id, point_id)
) STRICT, WITHOUT ROWID;

-- Marks beside a captured run (the default clocks of all its plans) and beside its plans, as plan_marks.
CREATE TABLE graph_run_marks (
  graph_run_id INTEGER NOT NULL REFERENCES graph_runs ON DELETE CASCADE,
  kind TEXT NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (graph_run_id, kind)
) STRICT, WITHOUT ROWID;
CREATE TABLE graph_plan_marks (
  graph_plan_id INTEGER NOT NULL REFERENCES graph_plans ON DELETE CASCADE,
  kind TEXT NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (graph_plan_id, kind)
) STRICT, WITHOUT ROWID;

-- What a captured run of a sweep was made from, as settings for traces.
CREATE TABLE graph_settings (
  setting_id TEXT PRIMARY KEY,            -- hash of files, spec, options and program version
  graph_run_id INTEGER NOT NULL UNIQUE REFERENCES graph_runs ON DELETE CASCADE,
  capture TEXT NOT NULL,                  -- file or pattern, as the experiment names it
  capture_hash TEXT NOT NULL,             -- of the files' bytes; they are too large to be kept
  spec_hash TEXT NOT NULL REFERENCES inputs,
  gpu_calibrated INTEGER NOT NULL CHECK (gpu_calibrated IN (0, 1)),
  clock_grid TEXT NOT NULL,               -- name or selection
  switch_stall_s REAL NOT NULL,
  switch_lead_s REAL NOT NULL,            -- from request to stall
  switch_dwell_s REAL NOT NULL,           -- from effect to next request
  switch_energy_j REAL NOT NULL,
  seed INTEGER NOT NULL,
  profile_hash TEXT NOT NULL              -- of the whole run at every single clock
) STRICT, WITHOUT ROWID;
