-- Schema 8: plans of captured runs in the order a run sets them.
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
