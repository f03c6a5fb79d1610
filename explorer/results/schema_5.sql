-- Schema 5: coefficients of captured kernels are anchored: captured time, modelled split.
-- A wider check changes no row; SQLite has no ALTER for it (sqlite.org/lang_altertable.html, section 7).
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''measured'', ''derived''', '''measured'', ''anchored'', ''derived''')
WHERE type = 'table' AND name = 'kernels';
PRAGMA writable_schema = RESET;
ALTER TABLE settings ADD COLUMN anchored_time_frac REAL NOT NULL DEFAULT 0;
ALTER TABLE replays RENAME COLUMN source_unknown_s TO source_anchored_s;
