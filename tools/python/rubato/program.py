"""The rubato program from Python: runs it and returns its answers."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence, Union

from rubato.errors import DataError, IoError, RubatoError, UsageError
from rubato.start import bundled
from rubato.tables import Answer, Calibration

PROGRAM_VARIABLE = "RUBATO"  #: environment: the program, before the one in this package and the one on the PATH

_ERRORS = {2: UsageError, 3: DataError, 4: IoError}


def program() -> str:
    """The rubato to run. Raises IoError where there is none."""
    found = os.environ.get(PROGRAM_VARIABLE) or bundled() or shutil.which("rubato")
    if not found:
        raise IoError("the program rubato is not on the PATH", f"install it, or name it in the environment variable {PROGRAM_VARIABLE}")
    return found


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


def _words(options: Mapping[str, Any]) -> list[str]:
    """Options of a command from their names with underscores; True gives a flag, None and False give none, lists go by commas."""
    words: list[str] = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            words.append(option)
        elif isinstance(value, (list, tuple)):
            words += [option, ",".join(map(str, value))]
        elif value is not None and value is not False:
            words += [option, str(value)]
    return words


def _answer(*command: Union[str, Path], **options: Any) -> Answer:
    words = [*map(str, command), *_words(options)]
    return Answer(shlex.join(["rubato", *words]), json.loads(run(*words, "--json")))


def explore(work: Union[str, Path], **options: Any) -> Answer:
    """`rubato explore WORK`, e.g. explore('gpt3-xl', gpu='a100-sxm4-80gb', slack=2, granularity=['pass', 'kernel']).

    Of stages e.g. explore('profile.csv', blocked_power=84, microbatches=32, slack=5) or explore('gpt3-xl', stages=4).

    Options are the command's with underscores; True gives a flag. The answer has the tables of --json by name: 'run', 'answers',
    'plans', for captured runs also 'changes', with list='kernels' 'kernels'. Raises UsageError, DataError, IoError with the
    program's message and hint.
    """
    return _answer("explore", work, **options)


def replay(trace: Union[str, Path], **options: Any) -> Answer:
    """`rubato replay TRACE`: a captured run beside the model: 'runs', 'classes', 'kernels', ... As explore()."""
    return _answer("replay", trace, **options)


def calibrate(sweep: Union[str, Path], **options: Any) -> Calibration:
    """`rubato calibrate SWEEP`: a GPU spec fitted to measurements. As explore()."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spec.json"
        report = run("calibrate", sweep, *_words(options), "-o", path)
        return Calibration(json.loads(path.read_text(encoding="utf-8")), report)
