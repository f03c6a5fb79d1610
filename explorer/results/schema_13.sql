-- Schema 13. Power limits of pipelines:
ALTER TABLE pipeline_options ADD COLUMN power_limit_w REAL CHECK (power_limit_w > 0);  -- NULL where it is not a choice
ALTER TABLE pipeline_passes ADD COLUMN power_limit_w REAL CHECK (power_limit_w > 0);   -- of the option
-- Plans of captured runs that put collectives on other SMs:
ALTER TABLE graph_plans ADD COLUMN comm_sms REAL;  -- of collectives that run beside compute; NULL: as captured
-- A promised saving whose measured interval reaches to no change at all is undecided, not kept.
-- Plans of captured runs may come from searches that a time limit ended. A wider check changes no row; SQLite has no ALTER for it (sqlite.org/lang_altertable.html, section 7).
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'energy_verdict IN (''kept'', ''better'', ''missed'')',
  'energy_verdict IN (''kept'', ''better'', ''missed'', ''undecided'')')
WHERE type = 'table' AND name = 'verifications';
UPDATE sqlite_schema SET sql = replace(sql, 'status IN (''optimal'', ''feasible'', ''infeasible'')',
  'status IN (''optimal'', ''feasible'', ''infeasible'', ''time_limit'')')
WHERE type = 'table' AND name = 'graph_plans';
PRAGMA writable_schema = RESET;
UPDATE verifications SET energy_verdict = 'undecided'
WHERE energy_verdict = 'kept' AND promised_energy_change_frac < 0 AND measured_energy_change_high_frac >= 0;
