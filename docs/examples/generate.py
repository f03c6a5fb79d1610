#!/usr/bin/env python3
"""Makes run.pt.trace.json.gz and run.power.csv: a captured run as a PyTorch profiler and nvidia-smi would write it, out of
Rubato's own simulator. Run it in this folder with rubato on PATH; the same program gives the same files.

Six training steps of four layers of GPT-3-small (batch 256) on an A100-SXM4-80GB at its default clocks, under its power limit.
Each step ends in loss.item(), which waits for the GPU; then the host fetches the next batch. To the simulated times come 3 % of
scatter per kernel and 1 % per launch.
"""
import csv
import datetime
import gzip
import json
import random
import subprocess
import tempfile
from pathlib import Path

GPU = "a100-sxm4-80gb"
MEM_MHZ, MAX_MHZ, CLOCK_STEP_MHZ = 1593, 1410, 15
STEPS = 6
FIRST_STEP = 3
LAUNCH_US = 6.0  # host, per launch
COPY_US = 2.5  # of a scalar
START_NS = 1763805600 * 10**9  # 2025-11-22 10:00:00 UTC
IDLE_BEFORE_S, IDLE_AFTER_S = 1.0, 1.0
SENSOR_WINDOW_S, SENSOR_PERIOD_S = 0.025, 0.1  # of an A100: arXiv 2312.02741
READ_AFTER_S = 0.05  # the sensor's last window
OPERATORS = {"gemm": "aten::mm", "gemm_batched": "aten::bmm", "gelu": "aten::gelu", "softmax": "aten::_softmax",
             "embedding": "aten::embedding", "permute": "aten::copy_", "bias_reduce": "aten::sum"}


def rubato(*arguments):
    subprocess.run(["rubato", *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def simulated(folder, layers=4, core_mhz=None):
    """Kernels by name, the launches of one step, (kernel, time in us, power in W, core clock in MHz that the power limit lets be),
    and the GPU: at its default clocks or at one clock."""
    trace, timeline, spec = folder / "trace.json", folder / "timeline.json", folder / "spec.json"
    rubato("trace", "gen", "gpt3-small", "--layers", layers, "--batch", 256, "-o", trace)
    clocks = ["--clocks", f"mem={MEM_MHZ} core={core_mhz}", "--slack", 300] if core_mhz else []
    rubato("explore", trace, "--gpu", GPU, "--per", "run", "--timeline", timeline, *clocks)
    spec.write_text(subprocess.run(["rubato", "gpus", GPU], check=True, capture_output=True, text=True).stdout)
    events = json.loads(timeline.read_text())["traceEvents"]
    launches = [(e["name"], e["dur"], e["args"]["energy_j"] / (e["dur"] * 1e-6), e["args"]["core_mhz"])
                for e in events if e["ph"] == "X" and e.get("cat") == "kernel" and e["pid"] == (2 if core_mhz else 1)]
    kernels = {kernel["name"]: kernel for kernel in json.loads(trace.read_text())["kernels"]}
    return kernels, launches, json.loads(spec.read_text())


def operands(kernel):
    """Shapes whose FLOPs and bytes are the kernel's: of a product its matrices, else half of its bytes in bf16."""
    if "gemm" not in kernel:
        return [[int(kernel["dram_bytes"]) // 4]]
    m, n, k, batch = (int(kernel["gemm"][key]) for key in ("m", "n", "k", "batch"))
    return [[n, k], [k, m]] if batch == 1 else [[batch, n, k], [batch, k, m]]


def us(time):
    return round(time, 3)


def launch_events(kernel, number, host_us, start_us, duration_us):
    dims = operands(kernel)
    backward = "backward" in kernel["pass"]
    common = {"pid": 100, "tid": 101 if backward else 100}
    if backward:  # as autograd's thread would record it
        yield {"ph": "X", "cat": "cpu_op", "name": "autograd::engine::evaluate_function: Backward", "ts": us(host_us - 0.5),
               "dur": LAUNCH_US - 0.5, **common, "args": {"External id": 100000 + number}}
    yield {"ph": "X", "cat": "cpu_op", "name": OPERATORS.get(kernel["class"], "aten::native_layer_norm"), "ts": us(host_us),
           "dur": LAUNCH_US - 1, **common,
           "args": {"External id": number, "Input Dims": dims, "Input type": ["c10::BFloat16"] * len(dims)}}
    yield {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": us(host_us + 1), "dur": LAUNCH_US - 3, **common,
           "args": {"correlation": number, "External id": number}}
    # The class stands in the name, since import goes by names.
    yield {"ph": "X", "cat": "kernel", "name": f"simulated_{kernel['class']}_kernel_{kernel['name']}", "pid": 0, "tid": 7,
           "ts": us(start_us), "dur": us(duration_us),
           "args": {"device": 0, "stream": 7, "correlation": number, "External id": number, "grid": [432, 1, 1],
                    "block": [256, 1, 1]}}


def wait_events(call, number, host_us, end_us, device=0, stream=None):
    """A call of the host that waits, as CUPTI records it: in the runtime, and as an activity that names the stream (cuda_sync)."""
    cbid, activity = {"cudaStreamSynchronize": (131, "Stream Sync"), "cudaDeviceSynchronize": (165, "Context Sync")}[call]
    span = {"ts": us(host_us), "dur": us(end_us - host_us)}
    yield {"ph": "X", "cat": "cuda_runtime", "name": call, "pid": 100, "tid": 100, **span,
           "args": {"cbid": cbid, "correlation": number, "External id": number}}
    yield {"ph": "X", "cat": "cuda_sync", "name": activity, "pid": device, "tid": 7 if stream is None else stream, **span,
           "args": {"device": device, "stream": -1 if stream is None else stream, "correlation": number}}


def item_events(number, host_us, start_us, duration_us):
    """loss.item(): a copy of four bytes to pinned memory, and a wait for its stream."""
    common = {"pid": 100, "tid": 100}
    end_us = start_us + duration_us
    yield {"ph": "X", "cat": "cpu_op", "name": "aten::_local_scalar_dense", "ts": us(host_us), "dur": us(end_us + 5.0 - host_us),
           **common, "args": {"External id": number, "Input Dims": [[]], "Input type": ["float"]}}
    yield {"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "ts": us(host_us + 1), "dur": LAUNCH_US - 3, **common,
           "args": {"cbid": 41, "correlation": number, "External id": number}}
    yield {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoH (Device -> Pinned)", "pid": 0, "tid": 7, "ts": us(start_us),
           "dur": us(duration_us), "args": {"device": 0, "stream": 7, "correlation": number, "External id": number, "bytes": 4}}
    yield from wait_events("cudaStreamSynchronize", number + 1, host_us + LAUNCH_US, end_us + 4.0, stream=7)


def captured(kernels, launches, steps=STEPS, seed=20260113):
    """Events of the profiler, and (start, end, power, core clock) of every launch, in us. A kernel's own scatter is that of the
    same seed, and so are the pauses for data."""
    dice = random.Random(seed)
    scatter = {name: dice.gauss(1.0, 0.03) for name in kernels}
    events, busy = [], []
    now, number = 1000.0, 0
    for step in range(FIRST_STEP, FIRST_STEP + steps):
        begin = host = gpu = now
        for name, time_us, power_w, mhz in launches:
            number += 1
            start = max(gpu + 1.0, host + 4.0)
            duration = time_us * scatter[name] * dice.gauss(1.0, 0.01)
            events += launch_events(kernels[name], number, host, start, duration)
            busy.append((start, start + duration, power_w, mhz))
            host, gpu = host + LAUNCH_US, start + duration
        events += item_events(number + 1, host, gpu + 1.0, COPY_US)
        number += 2
        now = gpu + 1.0 + COPY_US + 20.0 + dice.uniform(100e3, 300e3)  # the next batch
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 100, "tid": 100,
                       "ts": us(begin - 1), "dur": us(now - begin)})
    events += wait_events("cudaDeviceSynchronize", number + 1, now, now + 5.0)  # the profiler's own, as it stops
    return events, busy


def mean_power(busy, idle_w, begin_us, end_us):
    energy = (end_us - begin_us) * idle_w
    for start, end, power, _ in busy:
        energy += max(0.0, min(end, end_us) - max(start, begin_us)) * (power - idle_w)
    return energy / (end_us - begin_us)


def clock_at(busy, rest_mhz, at_us):
    return next((mhz for start, end, _, mhz in busy if start <= at_us < end), rest_mhz)


def write_trace(path, gpu, events):
    document = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": gpu["title"]}], "baseTimeNanoseconds": START_NS,
                "traceName": "simulated by rubato, see docs/examples/README.md", "traceEvents": events}
    path.write_bytes(gzip.compress(json.dumps(document, separators=(",", ":")).encode(), mtime=0))


def idle_power(gpu, core_mhz=MAX_MHZ):
    """Without work the base power of the memory state, plus leakage and clock tree at the voltage of the clock, is drawn."""
    power = gpu["core_power"]
    known = list(zip(power["voltage_core_mhz"], power["relative_v"]))
    (low_mhz, low_v), (high_mhz, high_v) = next((a, b) for a, b in zip(known, known[1:]) if core_mhz <= b[0])
    volt = low_v + (high_v - low_v) * (core_mhz - low_mhz) / (high_mhz - low_mhz)
    return gpu["memory"]["states"][0]["base_power_w"] + (power["leakage_w"] + power["clock_w_per_mhz"] * core_mhz) * volt ** 2


def write_power_log(path, busy, idle_w, rest_mhz=MAX_MHZ, index=0, seed=7):
    """A sample every 100 ms: the mean power of a window of 25 ms that ended a while before, and the clock as it is read."""
    dice = random.Random(seed)
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["timestamp", " index", " power.draw [W]", " clocks.current.sm [MHz]", " clocks.current.memory [MHz]"])
        at_s = -IDLE_BEFORE_S
        while at_s * 1e6 < busy[-1][1] + IDLE_AFTER_S * 1e6:
            power = mean_power(busy, idle_w, (at_s - SENSOR_WINDOW_S) * 1e6, at_s * 1e6) + dice.gauss(0.0, 1.0)
            # A clock between two steps is the mean of the two, which take turns.
            mhz = CLOCK_STEP_MHZ * int(clock_at(busy, rest_mhz, (at_s + READ_AFTER_S) * 1e6) / CLOCK_STEP_MHZ + dice.uniform(0.001, 0.999))
            time = datetime.datetime.fromtimestamp(START_NS / 1e9 + at_s + READ_AFTER_S, datetime.timezone.utc)
            rows.writerow([time.strftime("%Y/%m/%d %H:%M:%S.%f")[:-3], f" {index}", f" {power:.2f} W", f" {mhz} MHz", f" {MEM_MHZ} MHz"])
            at_s += SENSOR_PERIOD_S


def run_at(core_mhz=None):
    """The same run at the default clocks or at one core clock: the profiler's events, launches, idle power, the GPU's spec."""
    with tempfile.TemporaryDirectory() as folder:
        kernels, launches, gpu = simulated(Path(folder), core_mhz=core_mhz)
    events, busy = captured(kernels, launches)
    return events, busy, idle_power(gpu, core_mhz or MAX_MHZ), gpu


def main():
    events, busy, idle_w, gpu = run_at()
    write_trace(Path("run.pt.trace.json.gz"), gpu, events)
    write_power_log("run.power.csv", busy, idle_w)


if __name__ == "__main__":
    main()
