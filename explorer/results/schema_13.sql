-- Schema 13: power limits of pipelines.
ALTER TABLE pipeline_options ADD COLUMN power_limit_w REAL CHECK (power_limit_w > 0);  -- NULL where it is not a choice
ALTER TABLE pipeline_passes ADD COLUMN power_limit_w REAL CHECK (power_limit_w > 0);   -- of the option
