-- Schema 2: sweeps. A unit is one question in one setting; its plan and the run
-- that holds the setting's profile are in the tables of schema 1.

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
  derived_time_frac REAL NOT NULL,        -- measured, derived from their work, or guessed
  guessed_time_frac REAL NOT NULL,
  profile_hash TEXT NOT NULL              -- of cells and baseline
) STRICT, WITHOUT ROWID;

CREATE TABLE units (
  unit_id TEXT PRIMARY KEY,               -- hash of the question and the program version
  question_id TEXT NOT NULL,              -- hash of inputs, options and question
  run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  plan_id INTEGER NOT NULL UNIQUE REFERENCES plans ON DELETE CASCADE,
  program_version TEXT NOT NULL,          -- with the source revision
  result_hash TEXT NOT NULL,              -- of status, totals and the clock of every launch
  wall_time_s REAL NOT NULL,              -- profile, search and simulation
  estimated_s REAL NOT NULL,
  finished_utc TEXT NOT NULL,
  host TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX units_by_question ON units (question_id, program_version);
CREATE INDEX units_by_run ON units (run_id);

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

-- 90 % interval of a plan's change against the default clocks; NULL where it was not worked out.
ALTER TABLE plans ADD COLUMN time_change_low_pct REAL;
ALTER TABLE plans ADD COLUMN time_change_high_pct REAL;
ALTER TABLE plans ADD COLUMN energy_change_low_pct REAL;
ALTER TABLE plans ADD COLUMN energy_change_high_pct REAL;

-- Where rows of other databases came from.
CREATE TABLE merges (
  merge_id INTEGER PRIMARY KEY,
  merged_utc TEXT NOT NULL,
  source TEXT NOT NULL,                   -- the file's name
  host TEXT NOT NULL,
  new_runs INTEGER NOT NULL,
  new_units INTEGER NOT NULL
) STRICT;

-- Runs outside sweeps are known by their provenance when databases are merged.
CREATE INDEX runs_by_time ON runs (created_utc);
