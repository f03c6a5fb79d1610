-- Schema 7: of captured runs every single clock, the bound over time, and kernels by what they are.
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

-- Name, grid, block and shapes: the same in other captures of the same kernels. Empty in older rows.
ALTER TABLE graph_plan_clocks ADD COLUMN kernel_key TEXT NOT NULL DEFAULT '';
