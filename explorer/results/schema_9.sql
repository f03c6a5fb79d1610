-- Schema 9: what to know beside a plan's numbers, and kernels scaled from other shapes.
-- A wider check changes no row; SQLite has no ALTER for it (sqlite.org/lang_altertable.html, section 7).
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''anchored'', ''derived''', '''anchored'', ''scaled'', ''derived''')
WHERE type = 'table' AND name = 'kernels';
PRAGMA writable_schema = RESET;
ALTER TABLE settings ADD COLUMN scaled_time_frac REAL NOT NULL DEFAULT 0;
ALTER TABLE replays ADD COLUMN source_scaled_s REAL NOT NULL DEFAULT 0;

-- What to expect of a plan: the middle of its interval. NULL where there is none.
ALTER TABLE plans ADD COLUMN time_change_expected_pct REAL;
ALTER TABLE plans ADD COLUMN energy_change_expected_pct REAL;
-- With changes of clock as the spec knows them, of a plan that took them to be free; else NULL.
ALTER TABLE plans ADD COLUMN counted_time_s REAL;
ALTER TABLE plans ADD COLUMN counted_energy_j REAL;

-- Marks beside a plan; those of the plan with goal 'default' hold for every change against it.
CREATE TABLE plan_marks (
  plan_id INTEGER NOT NULL REFERENCES plans ON DELETE CASCADE,
  kind TEXT NOT NULL,                     -- e.g. 'limit not reached', 'clocks not fitted', 'slack missed'
  reason TEXT NOT NULL,
  PRIMARY KEY (plan_id, kind)
) STRICT, WITHOUT ROWID;
