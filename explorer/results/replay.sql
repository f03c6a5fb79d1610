-- Replays of captured runs. Errors are predicted over captured, less 1.
CREATE TABLE replays (
  replay_id INTEGER PRIMARY KEY,
  created_utc TEXT NOT NULL,              -- ISO 8601
  command TEXT NOT NULL,
  program_version TEXT NOT NULL,
  trace_file TEXT NOT NULL,
  trace_name TEXT NOT NULL,
  gpu TEXT NOT NULL,
  captured_clock TEXT NOT NULL,           -- memory/core
  replayed_clock TEXT NOT NULL,
  power_file TEXT,                        -- NULL: no log
  power_shift_s REAL,
  power_correlation REAL,
  captured_s REAL NOT NULL,               -- first start to last end
  reproduced_s REAL NOT NULL,             -- simulated from captured durations at the captured clocks
  predicted_s REAL NOT NULL,              -- from the model's durations at the captured clocks
  replayed_s REAL NOT NULL,               -- from captured durations at the replayed clocks
  reproduced_j REAL NOT NULL,
  predicted_j REAL NOT NULL,
  replayed_j REAL NOT NULL,
  measured_j REAL,
  measured_coverage REAL,                 -- share of the time with samples close enough
  source_measured_s REAL NOT NULL,        -- captured time of launches, by what the model knows of them
  source_derived_s REAL NOT NULL,
  source_guessed_s REAL NOT NULL,
  source_anchored_s REAL NOT NULL,
  source_scaled_s REAL NOT NULL
) STRICT;

CREATE TABLE replay_rows (
  replay_id INTEGER NOT NULL REFERENCES replays ON DELETE CASCADE,
  grouped_by TEXT NOT NULL CHECK (grouped_by IN ('kernel', 'class')),
  row_id INTEGER NOT NULL,                -- most captured time first
  name TEXT NOT NULL,
  class TEXT NOT NULL,
  source TEXT,                            -- of kernels: measured, derived, guessed; NULL: not predicted
  launches INTEGER NOT NULL,
  captured_s REAL NOT NULL,               -- sums over launches
  compared_s REAL NOT NULL,               -- the part of captured_s that is predicted
  predicted_s REAL NOT NULL,
  replayed_s REAL NOT NULL,
  time_error REAL,                        -- of collectives it holds their waiting, and says nothing of the model
  time_error_half_width REAL,             -- 90 %; NULL: one kernel only
  verdict TEXT NOT NULL CHECK (verdict IN ('within', 'off', 'undecided', 'not predicted')),
  predicted_power_w REAL NOT NULL,        -- while the launches run
  measured_power_w REAL,                  -- of classes, fitted over windows
  measured_sigma_w REAL,
  PRIMARY KEY (replay_id, grouped_by, row_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE replay_steps (
  replay_id INTEGER NOT NULL REFERENCES replays ON DELETE CASCADE,
  step INTEGER NOT NULL,
  name TEXT NOT NULL,
  launches INTEGER NOT NULL,
  captured_s REAL NOT NULL,
  predicted_s REAL NOT NULL,
  replayed_s REAL NOT NULL,
  predicted_j REAL NOT NULL,
  replayed_j REAL NOT NULL,
  measured_j REAL,
  measured_coverage REAL,
  PRIMARY KEY (replay_id, step)
) STRICT, WITHOUT ROWID;
