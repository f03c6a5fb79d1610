-- Promised savings beside measured ones, rubato verify. docs/apply.md.
CREATE TABLE verifications (
  verification_id INTEGER PRIMARY KEY,
  created_utc TEXT NOT NULL,              -- ISO 8601
  command TEXT NOT NULL,
  program_version TEXT NOT NULL,
  plan_file TEXT NOT NULL,
  measured_file TEXT NOT NULL,
  gpu TEXT NOT NULL,                      -- name of the spec
  source TEXT NOT NULL,                   -- trace or captures that were planned
  granularity TEXT NOT NULL,
  plan_time_s REAL NOT NULL,              -- totals of the plan: it is known again by them, also after a merge
  plan_energy_j REAL NOT NULL,
  pairs INTEGER NOT NULL,                 -- of windows, one at the default clocks and one under the plan
  promised_energy_change_frac REAL NOT NULL,
  promised_energy_change_low_frac REAL NOT NULL,
  promised_energy_change_high_frac REAL NOT NULL,
  measured_energy_change_frac REAL NOT NULL,
  measured_energy_change_low_frac REAL NOT NULL,  -- 90 %, Student's t over pairs
  measured_energy_change_high_frac REAL NOT NULL,
  promised_time_change_frac REAL NOT NULL,
  promised_time_change_low_frac REAL NOT NULL,
  promised_time_change_high_frac REAL NOT NULL,
  measured_time_change_frac REAL NOT NULL,
  measured_time_change_low_frac REAL NOT NULL,
  measured_time_change_high_frac REAL NOT NULL,
  -- A promised saving whose measured interval reaches to no change at all is undecided, not kept.
  energy_verdict TEXT NOT NULL CHECK (energy_verdict IN ('kept', 'better', 'missed', 'undecided')),
  time_verdict TEXT NOT NULL CHECK (time_verdict IN ('kept', 'better', 'missed'))
) STRICT;
