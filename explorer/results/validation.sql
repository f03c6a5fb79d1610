-- A model against measurements it has not seen.
CREATE TABLE validations (
  validation_id INTEGER PRIMARY KEY,
  created_utc TEXT NOT NULL,              -- ISO 8601
  command TEXT NOT NULL,
  program_version TEXT NOT NULL,
  gpu TEXT NOT NULL,
  sweep_file TEXT NOT NULL,
  holdout TEXT NOT NULL,                  -- known, few-points, folds, kernels, power-caps
  points_per_kernel INTEGER NOT NULL,
  folds INTEGER NOT NULL
) STRICT;

CREATE TABLE validation_points (
  validation_id INTEGER NOT NULL REFERENCES validations ON DELETE CASCADE,
  point_id INTEGER NOT NULL,
  kernel TEXT NOT NULL,
  mem_state TEXT NOT NULL,
  core_mhz REAL,                          -- NULL: auto
  power_cap_w REAL,
  time_s REAL,                            -- measured; NULL where it was not
  power_w REAL,
  predicted_time_s REAL NOT NULL,
  predicted_power_w REAL NOT NULL,
  power_limited INTEGER NOT NULL CHECK (power_limited IN (0, 1)),
  PRIMARY KEY (validation_id, point_id)
) STRICT, WITHOUT ROWID;

CREATE VIEW v_validation_errors AS
SELECT validation_id, kernel, count(*) AS points,
       100.0 * avg(abs(predicted_time_s / time_s - 1)) AS time_mape_pct,
       100.0 * avg(abs(predicted_power_w / power_w - 1)) AS power_mape_pct,
       100.0 * avg(abs(predicted_time_s * predicted_power_w / (time_s * power_w) - 1)) AS energy_mape_pct
FROM validation_points
GROUP BY validation_id, kernel;
