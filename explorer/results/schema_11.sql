-- Schema 11: validations of several models, and what planning with each costs.
ALTER TABLE validations ADD COLUMN model TEXT NOT NULL DEFAULT 'builtin';  -- name or file

-- Plans made with the model, as measured. Changes are against the default clock.
CREATE TABLE validation_regrets (
  validation_id INTEGER NOT NULL REFERENCES validations ON DELETE CASCADE,
  plans TEXT NOT NULL CHECK (plans IN ('alone', 'one-clock', 'per-kernel')),
  slack_pct REAL NOT NULL,
  count INTEGER NOT NULL,                 -- plans behind this row; all but 'worst_' are means over them
  late INTEGER NOT NULL,                  -- of them take longer than the slack allows
  time_change_pct REAL NOT NULL,
  late_pct REAL NOT NULL,                 -- time beyond the slack; 0: in time
  worst_late_pct REAL NOT NULL,
  promised_energy_pct REAL NOT NULL,      -- what the model said of its plan
  energy_change_pct REAL NOT NULL,
  best_energy_pct REAL NOT NULL,          -- of the best plan within the slack
  regret_pct REAL NOT NULL,               -- points that the best plan in the same time saves more
  worst_regret_pct REAL NOT NULL,
  PRIMARY KEY (validation_id, plans, slack_pct)
) STRICT, WITHOUT ROWID;
