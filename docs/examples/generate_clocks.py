#!/usr/bin/env python3
"""Makes clocks/: three steps of two layers of GPT-3-small captured at three core clocks of an A100-SXM4-80GB, with their power logs,
as generate.py makes run.pt.trace.json.gz. Run it in this folder with rubato on PATH.

A kernel is off the model by the same 3 % of scatter at every clock; the 1 % per launch are thrown anew, as in another run.
"""
import tempfile
from pathlib import Path

from generate import captured, idle_power, simulated, write_power_log, write_trace

CLOCKS_MHZ = (1200, 1005, 810)  # the highest that the power limit lets be, and two below


def main():
    Path("clocks").mkdir(exist_ok=True)
    for core_mhz in CLOCKS_MHZ:
        with tempfile.TemporaryDirectory() as folder:
            kernels, launches, gpu = simulated(Path(folder), layers=2, core_mhz=core_mhz)
        events, busy = captured(kernels, launches, steps=3)
        write_trace(Path(f"clocks/core{core_mhz}.pt.trace.json.gz"), gpu, events)
        write_power_log(f"clocks/core{core_mhz}.power.csv", busy, idle_power(gpu, core_mhz), core_mhz)


if __name__ == "__main__":
    main()
