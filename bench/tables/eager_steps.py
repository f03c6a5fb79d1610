#!/usr/bin/env python3
"""Training steps of GPT models in fp32 as eager PyTorch runs them, beside measured ones.

STEPS is a table of measured steps with the columns gpu, model, mode, seq, batch, parallel, measured_ms, forward_ms and
backward_ms, and of other tools' predictions (neusight_ms ...): that of NeuSight's artifact (github.com/sitar-lab/NeuSight
6945927, scripts/asplos/label and results/prediction). Rows of other models and GPUs are left out. OPT is taken as a GPT of
its size. Steps have no optimizer. Prints errors in % of whole steps, forward and backward passes.

Usage: eager_steps.py RUBATO STEPS
"""
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

# Layers, hidden, heads, vocabulary: the artifact's gpt3_xl is wider than that of the paper.
MODELS = {"gpt2_large": (36, 1280, 20, 50257), "gpt3_xl": (24, 3072, 24, 50257),
          "gpt3_27": (32, 2560, 32, 50257), "opt_13": (24, 2048, 32, 50272)}
GPUS = {"A100-PCIe-80GB": "a100-pcie-80gb", "V100-PCIe": "v100-pcie", "H100": "h100-sxm5"}  # by the name's beginning
FORWARD = {"embedding", "layer forward", "loss"}


def spec_of(row):
    """None where no spec is shipped for the GPU of a row."""
    return next((spec for name, spec in GPUS.items() if row["gpu"].startswith(name)), None)


def run(rubato, *arguments):
    done = subprocess.run([rubato, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def step_of(rubato, row, kernels):
    layers, hidden, heads, vocabulary = MODELS[row["model"]]
    attention = [] if kernels == "eager" else ["--attention", "unfused"]
    return json.loads(run(
        rubato, "trace", "gen", "gpt3-xl", "--layers", str(layers), "--hidden", str(hidden), "--heads", str(heads),
        "--vocab", str(vocabulary), "--seq", row["seq"], "--batch", row["batch"], "--dtype", "fp32", "--kernels", kernels,
        "--no-optimizer", *attention))


def time_ms(rubato, step, segments, gpu, folder):
    """Of the segments of a step, at default clocks."""
    part = dict(step, segments=[s for s in step["segments"] if s["name"] in segments])
    launched = {name for segment in part["segments"] for name in segment["launches"]}
    part["kernels"] = [kernel for kernel in step["kernels"] if kernel["name"] in launched]
    path = folder / "part.json"
    path.write_text(json.dumps(part))
    answer = json.loads(run(rubato, "explore", str(path), "--gpu", gpu, "--granularity", "iteration", "--json"))
    return 1e3 * answer["run"][0]["default_time_s"]


def error(ours, measured):
    return f"{100.0 * (ours / float(measured) - 1.0):+9.1f}"


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__.strip().splitlines()[-1])
    rubato, table = sys.argv[1:]
    print("gpu             model        seq batch kernels     step  forward backward  NeuSight")
    with tempfile.TemporaryDirectory() as name, open(table, encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["mode"] != "train" or row["model"] not in MODELS or not spec_of(row) or row["parallel"]:
                continue
            for kernels in ("eager", "fused"):
                step = step_of(rubato, row, kernels)
                rest = {segment["name"] for segment in step["segments"]} - FORWARD
                forward, backward = (time_ms(rubato, step, part, spec_of(row), Path(name)) for part in (FORWARD, rest))
                print(f"{row['gpu']:15} {row['model']:10} {row['seq']:>5} {row['batch']:>5} {kernels:7}"
                      f"{error(forward + backward, row['measured_ms'])}{error(forward, row['forward_ms'])}"
                      f"{error(backward, row['backward_ms'])} {error(float(row['neusight_ms']), row['measured_ms'])}")


if __name__ == "__main__":
    main()
