#!/usr/bin/env python3
"""A training step on 16,384 GPUs, made, simulated and planned: at most 10 s of CPU and 4 GB of memory.

    python3 bench/tables/parallel_scale.py [PROGRAM]

Also on 1,024 and 4,096 GPUs, with fewer replicas: GPUs that do the same are simulated once, so time and
memory should not grow. CPU time, since machines are shared; compare its ratios with each other.
"""
import argparse
import os
import subprocess
import sys

MOST_SECONDS = 10.0
MOST_BYTES = 4e9
MODEL = ["llama3-70b", "--seq", "8192"]
TRAINING = ["--batch", "1", "--microbatches", "16", "--optimizer", "--zero", "1", "--gpu", "h100-sxm5", "--cluster", "hgx-h100"]


def measured(program, degrees, plans):
    """CPU seconds and peak memory of one table."""
    command = [program, "trace", "scale", *MODEL, *TRAINING, *degrees, "--json"] + ([] if plans else ["--no-plans"])
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"failed: {' '.join(command)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", default="build/release/rubato")
    args = parser.parse_args()
    met = True
    first = None
    for dp in (8, 32, 128):
        for plans in (False, True):
            seconds, memory = measured(args.program, ["--tp", "8", "--pp", "16", "--dp", str(dp)], plans)
            first = first or seconds
            print(f"{8 * 16 * dp:6} GPUs {'with plans at slack 0, 1, 5 %' if plans else 'times only':30} "
                  f"{seconds:6.2f} s of CPU ({seconds / first:4.1f} x), {memory * 1e-9:5.2f} GB")
            met &= seconds < MOST_SECONDS and memory < MOST_BYTES
    print("met" if met else f"missed: at most {MOST_SECONDS:g} s of CPU and {MOST_BYTES * 1e-9:g} GB")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
