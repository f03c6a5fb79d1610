"""The rubato program from Python: runs it and returns its tables."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence, Union

from rubato.errors import DataError, IoError, RubatoError, UsageError
from rubato.start import bundled

PROGRAM_VARIABLE = "RUBATO"  #: environment: the program, before the one in this package and the one on the PATH

Rows = Any  #: pandas.DataFrame where pandas is installed, else a list of dicts; units are in the columns' names

_ERRORS = {2: UsageError, 3: DataError, 4: IoError}


def program() -> str:
    """The rubato to run. Raises IoError where there is none."""
    found = os.environ.get(PROGRAM_VARIABLE) or bundled() or shutil.which("rubato")
    if not found:
        raise IoError("the program rubato is not on the PATH", f"install it, or name it in the environment variable {PROGRAM_VARIABLE}")
    return found


def frame(rows: Sequence[Mapping[str, Any]], pandas: Optional[bool] = None) -> Rows:
    """Rows as a data frame if pandas is there, else as they are; `pandas` True or False decides."""
    if pandas is False:
        return list(rows)
    try:
        import pandas as module
    except ImportError:
        if pandas:
            raise IoError("python module pandas is not installed", "apt install python3-pandas, or pip install pandas") from None
        return list(rows)
    return module.DataFrame(list(rows))


def run(*arguments: Union[str, Path, float], ok: Sequence[int] = (0, 1), cwd: Union[None, str, Path] = None) -> str:
    """Runs `rubato ARGUMENTS` and returns its standard output.

    Raises UsageError, DataError, IoError or RubatoError by exit status with the program's message; status 1, no plan meets the
    budget, is an answer.
    """
    command = [program(), *map(str, arguments)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=cwd)
    except OSError as error:
        raise IoError(f"{command[0]}: {error.strerror}") from None
    if done.returncode not in ok:
        message, _, hint = done.stderr.strip().partition("\n  hint: ")
        lines = [line for line in message.splitlines() if not line.startswith("note: ")]
        raise _ERRORS.get(done.returncode, RubatoError)("\n".join(lines).removeprefix("error: ")
                                                        or f"rubato ended with status {done.returncode}", hint)
    return done.stdout


def explore(trace: Union[str, Path], *, tables: bool = True, pandas: Optional[bool] = None, **options: Any) -> Any:
    """`rubato explore TRACE`, e.g. explore('gpt3-xl', gpu='a100-sxm4-80gb', slack=2, granularity=['pass', 'kernel']).

    Options are the command's with underscores; True gives a flag. Returns the tables by name ('plans'; for captured runs also
    'run'; with per_kernel=True 'kernels'), as data frames, or the JSON text without `tables`.
    """
    arguments: list[str] = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            arguments.append(option)
        elif isinstance(value, (list, tuple)):
            arguments += [option, ",".join(map(str, value))]
        elif value is not None and value is not False:
            arguments += [option, str(value)]
    text = run("explore", trace, *arguments, "--json")
    if not tables:
        return text
    return {name: frame(rows, pandas) for name, rows in json.loads(text).items()}
