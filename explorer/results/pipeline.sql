-- Pipelines. Energies are of one pipeline with one GPU per stage; multiply by tensor_parallel and data_parallel.

-- One planned pipeline.
CREATE TABLE pipeline_runs (
  pipeline_run_id INTEGER PRIMARY KEY,
  created_utc TEXT NOT NULL,              -- ISO 8601
  command TEXT NOT NULL,                  -- the command line
  program_version TEXT NOT NULL,
  source_revision TEXT NOT NULL,
  build_info TEXT NOT NULL,
  host TEXT NOT NULL,
  profile TEXT NOT NULL,                  -- file, or model and GPU
  schedule TEXT NOT NULL,
  stages INTEGER NOT NULL,
  microbatches INTEGER NOT NULL,
  chunks INTEGER NOT NULL,                -- per stage
  transfer_s REAL NOT NULL,
  blocked_power_w REAL NOT NULL,
  switch_stall_s REAL NOT NULL,
  switch_energy_j REAL NOT NULL,
  tensor_parallel INTEGER NOT NULL,
  data_parallel INTEGER NOT NULL,
  least_time_s REAL NOT NULL,             -- no plan is faster
  cheapest_time_s REAL NOT NULL,          -- least energy per iteration
  asked INTEGER NOT NULL CHECK (asked IN (0, 1)),  -- 1: somebody asked for it; 0: an experiment did. 'latest' is the newest with 1
  headline_want TEXT                      -- of the answer that the run is known by; NULL: of an experiment, or no answer
) STRICT;

-- What every pass may run at, as planned from: any stored number can be made again.
CREATE TABLE pipeline_options (
  pipeline_run_id INTEGER NOT NULL REFERENCES pipeline_runs ON DELETE CASCADE,
  type_id INTEGER NOT NULL,               -- a kind of pass on a stage and chunk
  option_id INTEGER NOT NULL,             -- 0 is the baseline
  stage INTEGER NOT NULL,
  kind TEXT NOT NULL,
  core_mhz REAL NOT NULL,
  mem_mhz REAL,                           -- NULL where it is not a choice
  time_s REAL NOT NULL CHECK (time_s > 0),
  energy_j REAL NOT NULL CHECK (energy_j > 0),
  power_limit_w REAL CHECK (power_limit_w > 0),  -- NULL where it is not a choice
  PRIMARY KEY (pipeline_run_id, type_id, option_id)
) STRICT, WITHOUT ROWID;

-- The baseline (all passes at option 0: the highest, or default, clocks) and one plan per deadline. Totals are the simulator's.
CREATE TABLE pipeline_plans (
  pipeline_plan_id INTEGER PRIMARY KEY,
  pipeline_run_id INTEGER NOT NULL REFERENCES pipeline_runs ON DELETE CASCADE,
  goal TEXT NOT NULL CHECK (goal IN ('baseline', 'deadline', 'straggler', 'least_cost')),
  status TEXT NOT NULL CHECK (status IN ('optimal', 'feasible', 'infeasible', 'time_limit')),
  deadline_s REAL,                        -- of the straggler, if that is the goal
  time_s REAL,                            -- NULL if infeasible
  energy_j REAL,                          -- straggler: until the deadline
  lower_bound_j REAL,                     -- of energy_j over all plans that keep the deadline
  gap_frac REAL,
  pass_energy_j REAL,
  blocked_energy_j REAL,
  switch_energy_j REAL,
  clock_switches INTEGER,
  -- 90 % interval of the change against the baseline, and its middle; NULL: the profile was measured.
  time_change_low_pct REAL,
  time_change_high_pct REAL,
  time_change_expected_pct REAL,
  energy_change_low_pct REAL,
  energy_change_high_pct REAL,
  energy_change_expected_pct REAL,
  -- What makes it the answer, or not (explorer/plan/answer.hpp); NULL: the baseline.
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
CREATE INDEX pipeline_plans_by_run ON pipeline_plans (pipeline_run_id, goal);

-- One pass as the simulator ran it.
CREATE TABLE pipeline_passes (
  pipeline_plan_id INTEGER NOT NULL REFERENCES pipeline_plans ON DELETE CASCADE,
  pass_id INTEGER NOT NULL,               -- stage after stage, each in running order
  stage INTEGER NOT NULL,
  chunk INTEGER NOT NULL,
  microbatch INTEGER NOT NULL,
  kind TEXT NOT NULL,
  type_id INTEGER NOT NULL,
  option_id INTEGER NOT NULL,
  core_mhz REAL NOT NULL,
  start_s REAL NOT NULL,
  end_s REAL NOT NULL,
  energy_j REAL NOT NULL,
  critical INTEGER NOT NULL CHECK (critical IN (0, 1)),
  switched INTEGER NOT NULL CHECK (switched IN (0, 1)),
  power_limit_w REAL CHECK (power_limit_w > 0),  -- of the option
  PRIMARY KEY (pipeline_plan_id, pass_id)
) STRICT, WITHOUT ROWID;

-- The frontier with durations free between the options, slowest vertex first.
CREATE TABLE pipeline_front (
  pipeline_run_id INTEGER NOT NULL REFERENCES pipeline_runs ON DELETE CASCADE,
  vertex_id INTEGER NOT NULL,
  time_s REAL NOT NULL,
  energy_j REAL NOT NULL,                 -- waiting included
  lower_bound_j REAL NOT NULL,
  price_w REAL NOT NULL,                  -- energy above blocked power saved per second more
  PRIMARY KEY (pipeline_run_id, vertex_id)
) STRICT, WITHOUT ROWID;
