-- Schema 14: kernels whose cells are all alike share them, also those of other runs. Cells have numbers in a row, which are quick
-- to write and to merge. profile_cells, a table until now, is a view (views.sql).

-- The cells of one kernel, from first_cell at clock 0 on.
CREATE TABLE cell_rows (
  first_cell INTEGER PRIMARY KEY,         -- cell_id
  clocks INTEGER NOT NULL CHECK (clocks > 0),
  cells_hash TEXT UNIQUE                  -- of the bits of all its cells; NULL: written before schema 14, shared by none
) STRICT;

-- The model's answer for one launch of a kernel at a clock.
CREATE TABLE cells (
  cell_id INTEGER PRIMARY KEY,            -- first_cell of the kernel + clock_id
  time_s REAL NOT NULL CHECK (time_s > 0),
  energy_j REAL NOT NULL CHECK (energy_j > 0),
  effective_core_mhz REAL NOT NULL,
  power_limited INTEGER NOT NULL CHECK (power_limited IN (0, 1))
) STRICT;

ALTER TABLE kernels ADD COLUMN first_cell INTEGER REFERENCES cell_rows;  -- NULL: no cells are stored

CREATE TABLE moved_rows (
  run_id INTEGER NOT NULL,
  kernel_id INTEGER NOT NULL,
  first_cell INTEGER NOT NULL,
  clocks INTEGER NOT NULL,
  PRIMARY KEY (run_id, kernel_id)
) STRICT, WITHOUT ROWID;
INSERT INTO moved_rows
  SELECT run_id, kernel_id, 1 + sum(clocks) OVER (ORDER BY run_id, kernel_id) - clocks, clocks
  FROM (SELECT run_id, kernel_id, max(clock_id) + 1 AS clocks FROM profile_cells GROUP BY run_id, kernel_id);
INSERT INTO cell_rows SELECT first_cell, clocks, NULL FROM moved_rows ORDER BY first_cell;
INSERT INTO cells
  SELECT m.first_cell + x.clock_id, x.time_s, x.energy_j, x.effective_core_mhz, x.power_limited
  FROM moved_rows m CROSS JOIN profile_cells x ON x.run_id = m.run_id AND x.kernel_id = m.kernel_id
  ORDER BY m.run_id, m.kernel_id, x.clock_id;
UPDATE kernels SET first_cell = (SELECT m.first_cell FROM moved_rows m WHERE m.run_id = kernels.run_id AND m.kernel_id = kernels.kernel_id);
DROP TABLE moved_rows;
DROP TABLE profile_cells;

CREATE INDEX kernels_by_cells ON kernels (first_cell);
CREATE TRIGGER cells_of_nobody AFTER DELETE ON kernels
WHEN OLD.first_cell IS NOT NULL AND NOT EXISTS (SELECT 1 FROM kernels WHERE first_cell = OLD.first_cell)
BEGIN
  DELETE FROM cells WHERE cell_id BETWEEN OLD.first_cell
    AND OLD.first_cell + (SELECT clocks FROM cell_rows WHERE first_cell = OLD.first_cell) - 1;
  DELETE FROM cell_rows WHERE first_cell = OLD.first_cell;
END;
