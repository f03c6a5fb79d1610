"""What tests of `rubato pipeline` share: runs, checks, a profile, and what reads Zeus's schedules."""
import ast
import json
import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOOLS), str(TOOLS / "python")]
from checks import check, exit_status, run  # noqa: E402,F401
from schema import plan_problems  # noqa: E402
from stages import explored  # noqa: E402

RUBATO = sys.argv[1]


def rubato(folder, *arguments):
    """Plans are for all of the slack, whatever the odds, unless others are asked for: these tests are of planners."""
    if arguments[0] == "explore":
        done = explored(RUBATO, [*arguments[1:], *(() if "--odds" in arguments else ("--odds", "0"))], cwd=folder)
    else:
        done = run(RUBATO, "pipeline", *arguments, cwd=folder)
    return done.returncode, done.stdout, done.stderr


def plan_file(path):
    """A plan file, which is as docs/plan.schema.json says."""
    document = json.loads(Path(path).read_text())
    found = plan_problems(document, TOOLS.parents[1])
    check(f"{path}: {found[:5]}", not found)
    return document


def expect(folder, arguments, status, text):
    code, out, err = rubato(folder, *arguments)
    check(f"{' '.join(arguments)}: status {code}, {out}{err}; expected {status}, {text}",
          code == status and text in out + err)


class PointSolution:
    """What Zeus's PointSolution does with a file: evaluates it and gives each stage its (instruction, MHz) in turn."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            self.schedules = ast.literal_eval(f.read())
        if not all(kind in ("forward", "backward") and mhz > 0 for row in self.schedules for kind, mhz in row):
            raise ValueError(path)


def profile(folder):
    rows = ["stage,instruction,frequency,time,energy"]
    for stage in range(3):
        for kind, work in (("forward", 1.0), ("backward", 2.0)):
            for mhz in range(1400, 800, -50):
                time = work * (1 + 0.1 * stage) * (0.3 + 0.7 * 1400 / mhz)
                rows.append(f"{stage},{kind},{mhz},{time!r},{time * (90 + 310 * (mhz / 1400) ** 3)!r}")
    (folder / "p.csv").write_text("\n".join(rows) + "\n")
