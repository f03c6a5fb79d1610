"""Result databases in Python: documented tables and views as tables. docs/schema.md says what they hold."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, Sequence, Union

from rubato.errors import DataError, IoError, UsageError
from rubato.tables import Table

APPLICATION_ID = 0x5255424F  #: "RUBO", in every database of rubato


class Results:
    """A database of `rubato ... --db`, opened to read.

        with rubato.Results("results.db") as results:
            results.plans[["granularity", "energy_change_pct"]]

    Each table and view is an attribute. `plans` is the view v_plans: views come before tables of the same name. Raises IoError
    where the file is missing, DataError where it is no database of rubato.
    """

    def __init__(self, path: Union[str, Path]):
        self.path = Path(path)
        if not self.path.is_file():
            raise IoError(f"{path}: there is no such file")
        try:
            self._connection = sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro", uri=True)
            known = self._connection.execute("PRAGMA application_id").fetchone()[0]
        except sqlite3.Error as error:
            raise DataError(f"{path}: {error}") from None
        if known != APPLICATION_ID:
            raise DataError(f"{path}: the database was not made by rubato")

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> "Results":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    @property
    def names(self) -> list[str]:
        """Tables and views."""
        return [row[0] for row in self._connection.execute(
            "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite%' ORDER BY name")]

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> Table:
        """Rows of one SQL statement that reads; ? stand for `parameters`. Raises UsageError with SQLite's message."""
        try:
            cursor = self._connection.execute(sql, tuple(parameters))
        except sqlite3.Error as error:
            raise UsageError(f"SQL: {error}", "the attribute `names` lists tables and views") from None
        columns = [column[0] for column in cursor.description or ()]
        return Table(dict(zip(columns, row)) for row in cursor)

    def table(self, name: str) -> Table:
        """A view ('v_plans' or 'plans') or table, whole."""
        known = self.names
        for full in (f"v_{name}", name):
            if full in known:
                return self.query(f'SELECT * FROM "{full}"')
        raise UsageError(f"{self.path}: there is no table or view '{name}'", f"it has {', '.join(known)}")

    def __getattr__(self, name: str) -> Table:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self.table(name)
        except UsageError as error:
            raise AttributeError(str(error)) from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name.removeprefix("v_") for name in self.names)]
