-- Schema 10: intervals of modelled pipelines, marks of captured runs.
-- 90 % interval of a plan's change against the baseline, and its middle; NULL: the profile was measured.
ALTER TABLE pipeline_plans ADD COLUMN time_change_low_pct REAL;
ALTER TABLE pipeline_plans ADD COLUMN time_change_high_pct REAL;
ALTER TABLE pipeline_plans ADD COLUMN time_change_expected_pct REAL;
ALTER TABLE pipeline_plans ADD COLUMN energy_change_low_pct REAL;
ALTER TABLE pipeline_plans ADD COLUMN energy_change_high_pct REAL;
ALTER TABLE pipeline_plans ADD COLUMN energy_change_expected_pct REAL;

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
