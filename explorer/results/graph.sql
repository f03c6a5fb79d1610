-- Explorations of captured runs as execution graphs, since schema 5. docs/graphs.md.
CREATE TABLE IF NOT EXISTS graph_runs (
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
  wall_time_s REAL NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS graph_plans (
  graph_plan_id INTEGER PRIMARY KEY,
  graph_run_id INTEGER NOT NULL REFERENCES graph_runs ON DELETE CASCADE,
  granularity TEXT NOT NULL CHECK (granularity IN ('iteration', 'gpu', 'pass', 'kernel', 'launch')),
  slack_frac REAL NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('optimal', 'feasible', 'infeasible')),
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
  clock_changes INTEGER                   -- of all GPUs
) STRICT;
CREATE INDEX IF NOT EXISTS graph_plans_by_run ON graph_plans (graph_run_id);

-- Launches of a plan that share GPU, pass, kernel and clock.
CREATE TABLE IF NOT EXISTS graph_plan_clocks (
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
  PRIMARY KEY (graph_plan_id, row_id)
) STRICT, WITHOUT ROWID;

-- Collectives that several captured ranks share.
CREATE TABLE IF NOT EXISTS graph_collectives (
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
