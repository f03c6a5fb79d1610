-- Schema 12: captured runs in sweeps. A unit has a plan of a trace or one of a captured run.
-- A check less changes no row; SQLite has no ALTER for it (sqlite.org/lang_altertable.html, section 7).
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(replace(sql, 'run_id INTEGER NOT NULL', 'run_id INTEGER'),
  'plan_id INTEGER NOT NULL UNIQUE', 'plan_id INTEGER UNIQUE')
WHERE type = 'table' AND name = 'units';
PRAGMA writable_schema = RESET;
ALTER TABLE units ADD COLUMN graph_run_id INTEGER REFERENCES graph_runs ON DELETE CASCADE
  CHECK ((run_id IS NULL) <> (graph_run_id IS NULL));
ALTER TABLE units ADD COLUMN graph_plan_id INTEGER REFERENCES graph_plans ON DELETE CASCADE
  CHECK ((plan_id IS NULL) <> (graph_plan_id IS NULL));
CREATE UNIQUE INDEX units_by_graph_plan ON units (graph_plan_id);
CREATE INDEX units_by_graph_run ON units (graph_run_id);

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
