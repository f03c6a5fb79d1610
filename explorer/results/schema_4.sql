-- Schema 4: changes of clock as they are. switch_stall_s and switch_energy_j of a run are those of
-- the core clock, or of any change.
ALTER TABLE runs ADD COLUMN switch_lead_s REAL NOT NULL DEFAULT 0;   -- from request to stall
ALTER TABLE runs ADD COLUMN switch_dwell_s REAL NOT NULL DEFAULT 0;  -- from effect to next request
ALTER TABLE runs ADD COLUMN mem_switch_lead_s REAL;                  -- NULL: as the core clock's
ALTER TABLE runs ADD COLUMN mem_switch_stall_s REAL;
ALTER TABLE runs ADD COLUMN mem_switch_energy_j REAL;
ALTER TABLE plans ADD COLUMN late_launches INTEGER;                  -- ran in part at another clock than planned
