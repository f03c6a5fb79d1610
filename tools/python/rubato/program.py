"""The rubato program from Python: runs it and returns its answers."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO, Any, Mapping, Optional, Sequence, Union

from rubato.errors import DataError, IoError, RubatoError, UsageError
from rubato.start import bundled
from rubato.tables import Answer, Calibration

PROGRAM_VARIABLE = "RUBATO"  #: environment: the program, before the one in this package and the one on the PATH

ERASE = b"\r\x1b[K"  #: begins each text of the program's line of progress

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
        status, output, said = _finished(command, cwd)
    except OSError as error:
        raise IoError(f"{command[0]}: {error.strerror}") from None
    if status not in ok:
        message, _, hint = said.strip().partition("\n  hint: ")
        lines = [line for line in message.splitlines() if not line.startswith("note: ")]
        raise _ERRORS.get(status, RubatoError)("\n".join(lines).removeprefix("error: ") or f"rubato ended with status {status}", hint)
    return output


def _finished(command: Sequence[str], cwd: Union[None, str, Path]) -> tuple[int, str, str]:
    """(status, standard output, standard error). Its line of progress is shown meanwhile, on a terminal and in a notebook. Raises OSError."""
    shows = sys.stderr.isatty() or "ipykernel" in sys.modules
    said = bytearray()

    def listen(errors: IO[bytes]) -> None:
        while chunk := os.read(errors.fileno(), 4096):
            said.extend(chunk)
            if shows and chunk.startswith(ERASE) and b"\n" not in chunk:
                sys.stderr.write(chunk.decode("utf-8", "replace"))
                sys.stderr.flush()

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd,
                          env={**os.environ, "RUBATO_PROGRESS": "1"} if shows else None) as process:
        assert process.stdout and process.stderr
        listener = threading.Thread(target=listen, args=(process.stderr,))
        listener.start()
        try:
            output = process.stdout.read()
            listener.join()
        except BaseException:  # a cell that is interrupted
            process.kill()
            raise
    errors = re.sub(rb"\r\x1b\[K[^\r\n]*(?=\r)", b"", said).replace(ERASE, b"")
    return process.returncode, output.decode("utf-8"), errors.decode("utf-8", "replace")


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


def explore(work: Union[None, str, Path] = None, **options: Any) -> Answer:
    """`rubato explore WORK`, e.g. explore('gpt3-xl', gpu='a100-sxm4-80gb', slack=2, per=['pass', 'kernel']).

    Of stages e.g. explore('profile.csv', blocked_power=84, microbatches=32, slack=5) or explore('gpt3-xl', stages=4); of measurements
    explore(table='sweep.csv', gpu='a100-sxm4-80gb').

    Options are the command's with underscores; True gives a flag. The answer has the tables of --json by name: 'run', 'answers',
    'plans', for captured runs also 'changes', with list='kernels' 'kernels'. Raises UsageError, DataError, IoError with the
    program's message and hint.
    """
    return _answer("explore", *([] if work is None else [work]), **options)


def replay(trace: Union[str, Path], **options: Any) -> Answer:
    """`rubato replay TRACE`: a captured run beside the model: 'runs', 'classes', 'kernels', ... As explore()."""
    return _answer("replay", trace, **options)


def budget(jobs: Union[str, Path], **options: Any) -> Answer:
    """`rubato budget JOBS`: 'periods' and 'jobs', with list='options' what each setting of each job gives. As explore().

    E.g. budget('jobs.toml', watts=40000), budget('jobs.toml', least_watts=True).
    """
    return _answer("budget", jobs, **options)


def calibrate(sweep: Union[str, Path], **options: Any) -> Calibration:
    """`rubato calibrate SWEEP`: a GPU spec fitted to measurements. As explore()."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spec.json"
        report = run("calibrate", sweep, *_words(options), "-o", path)
        return Calibration(json.loads(path.read_text(encoding="utf-8")), report)
