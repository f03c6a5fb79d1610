"""What tests of pipelines share: options that describe one go to `rubato pipeline describe`, the others to `rubato explore`.

Unless they say otherwise, they ask for the finest plans alone.
"""
import subprocess
import tempfile
from pathlib import Path

DESCRIBE = {"--profile", "--model", "--blocked-power", "--profile-scale", "--stage-map", "--gpu", "--clocks", "--clock-per", "--power-limits",
            "--optimizer", "--batch", "--seq", "--schedule", "--stages", "--microbatches", "--chunks", "--transfer-ms", "--hold-ms",
            "--embedding-reduction-ms", "--ops", "--edges", "--tensor-parallel", "--data-parallel", "--host-power", "--switching"}
FLAGS = {"--optimizer"}


def explored(rubato, words, cwd=".", **options):
    """What subprocess.run() says of `rubato explore` of the pipeline that the words describe; of its description if that fails."""
    words, described, rest = [str(word) for word in words], [], []
    while words:
        name = words.pop(0)
        values = []
        while words and name not in FLAGS and not words[0].startswith("--"):
            values.append(words.pop(0))
        (described if name.split("=")[0] in DESCRIBE else rest).extend([name, *values])
    if "--per" not in rest:
        rest += ["--per", "kernel" if "kernel" in described else "pass"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pipeline.json"
        done = subprocess.run([rubato, "pipeline", "describe", *described, "-o", file], capture_output=True, text=True, cwd=cwd, **options)
        if done.returncode:
            return done
        return subprocess.run([rubato, "explore", file, *rest], capture_output=True, text=True, cwd=cwd, **options)
