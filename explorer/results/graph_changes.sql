-- Schema 7: plans of captured runs whose changes of clock take something; granularity auto.
-- A wider check changes no row; SQLite has no ALTER for it (sqlite.org/lang_altertable.html, section 7).
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''kernel'', ''launch'')', '''kernel'', ''launch'', ''auto'')')
WHERE type = 'table' AND name = 'graph_plans';
PRAGMA writable_schema = RESET;
-- The plan as it is played: one step's clocks for all, changes counted; NULL: what they take is not known. Of auto, time_s and energy_j count them too.
ALTER TABLE graph_plans ADD COLUMN counted_clock_changes INTEGER;
ALTER TABLE graph_plans ADD COLUMN counted_late_launches INTEGER;
ALTER TABLE graph_plans ADD COLUMN counted_time_change_frac REAL;
ALTER TABLE graph_plans ADD COLUMN counted_energy_change_frac REAL;
ALTER TABLE graph_plans ADD COLUMN counted_in_time INTEGER CHECK (counted_in_time IN (0, 1));
