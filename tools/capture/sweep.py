"""A clock sweep: every workload at every clock pair, into the CSV that `rubato calibrate` reads."""

import csv
import os
import random
import statistics
import time
from dataclasses import dataclass, field

from gpu import SLOWING, CaptureError, held_clocks

COLUMNS = ["gpu", "kernel", "core_mhz", "mem_mhz", "time_s", "power_w", "energy_j", "core_mhz_requested",
           "repeat", "time_std_s", "temperature_c", "throttled", "power_cap_w", "flop", "dram_bytes"]


@dataclass
class SweepSettings:
    """Durations in s."""

    warm_up_s: float = 2.0
    measure_s: float = 2.0
    repeats: int = 2
    idle_s: float = 2.0
    settle_s: float = 0.5
    seed: int = 1
    pairs: list = field(default_factory=list)  # (mem_mhz, core_mhz)

    def seconds(self, workloads):
        each = self.warm_up_s + self.repeats * self.measure_s
        return len(self.pairs) * (self.settle_s + self.idle_s + workloads * each)


def clock_pairs(gpu, mem=None, core=None):
    """All supported pairs whose clocks are asked for; `core` is a list, or (first, last, step)."""
    pairs = []
    for mem_mhz in gpu.mem_clocks():
        if mem and mem_mhz not in mem:
            continue
        supported = gpu.core_clocks(mem_mhz)
        if isinstance(core, tuple):
            first, last, step = core
            wanted = range(first, last + 1, step)
        else:
            wanted = core or supported
        # The nearest supported clock stands for the one asked for.
        chosen = {min(supported, key=lambda mhz: abs(mhz - w)) for w in wanted}
        pairs += [(mem_mhz, core_mhz) for core_mhz in sorted(chosen)]
    if not pairs:
        raise CaptureError("no supported clock pair is left; see nvidia-smi -q -d SUPPORTED_CLOCKS")
    return pairs


def pairs_from_csv(path, gpu):
    """Pairs of `rubato suggest --csv`: columns mem and core; rows without clocks are skipped."""
    pairs = []
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if not row.get("mem") or not row.get("core"):
                continue
            mem = gpu.mem_clocks()[-1] if row["mem"] == "auto" else int(float(row["mem"]))
            supported = gpu.core_clocks(mem)
            core = supported[-1] if row["core"] == "auto" else float(row["core"])
            pairs.append((mem, min(supported, key=lambda mhz: abs(mhz - core))))
    if not pairs:
        raise CaptureError(f"{path}: no row has the columns mem and core filled in")
    return list(dict.fromkeys(pairs))


def finished(path):
    """(kernel, mem, requested core) -> repeats in a CSV that an earlier run left."""
    done = {}
    if not os.path.exists(path):
        return done
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if reader.fieldnames != COLUMNS:
            raise CaptureError(f"{path}: is no sweep of this tool; give another --output")
        for row in reader:
            key = (row["kernel"], int(float(row["mem_mhz"])), int(float(row["core_mhz_requested"])))
            done[key] = done.get(key, 0) + 1
    return done


class Timer:
    """Launches for at least `seconds` between two CUDA events; batches keep the queue full."""

    def __init__(self, torch):
        self.torch = torch

    def run(self, launch, seconds, clock=time.monotonic):
        cuda = self.torch.cuda
        launch()
        cuda.synchronize()
        times, count, batch = [], 0, 1
        began = clock()
        while clock() - began < seconds:
            start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
            start.record()
            for _ in range(batch):
                launch()
            end.record()
            end.synchronize()
            elapsed_s = start.elapsed_time(end) / 1e3
            times.append(elapsed_s / batch)
            count += batch
            if elapsed_s < 0.05:  # shorter batches are all launch overhead
                batch *= 2
        usual = statistics.median(times)
        return usual, statistics.pstdev(times), count


def power_over(gpu, work, clock=time.monotonic, sample=0.02, sleep=time.sleep):
    """Runs `work()` and gives (its result, mean power in W): from the energy counter, else from samples."""
    before, began = gpu.energy_j(), clock()
    if before is not None:
        result = work()
        seconds, joules = clock() - began, gpu.energy_j() - before
        if seconds > 0 and joules > 0:
            return result, joules / seconds
    import threading

    samples, stop = [], threading.Event()

    def look():
        while not stop.is_set():
            samples.append(gpu.read().power_w)
            sleep(sample)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        result = work()
    finally:
        stop.set()
        thread.join()
    if not samples:
        samples.append(gpu.read().power_w)
    return result, statistics.fmean(samples)


def describe(gpu, workloads, settings):
    lines = [f"GPU          {gpu.name}, power limit {gpu.power_cap_w():.0f} W",
             f"kernels      {len(workloads)}: " + ", ".join(w.name for w in workloads),
             f"clock pairs  {len(settings.pairs)}: " + ", ".join(f"{m}/{c}" for m, c in settings.pairs[:8]) +
             (", ..." if len(settings.pairs) > 8 else ""),
             f"per kernel   {settings.warm_up_s:g} s warm-up, {settings.repeats} x {settings.measure_s:g} s",
             f"time         about {settings.seconds(len(workloads)) / 60:.0f} min",
             "rights       to set clocks: root, or an administrator who allows it"]
    return "\n".join(lines)


def run_sweep(gpu, torch, workloads, settings, path, log=print, sleep=time.sleep, timer=None):
    """Measures what `path` does not hold yet and appends a row at a time."""
    timer = timer or Timer(torch)
    done = finished(path)
    pairs = list(settings.pairs)
    random.Random(settings.seed).shuffle(pairs)  # drift must not look like a clock
    is_new = not os.path.exists(path)
    with open(path, "a", newline="", encoding="utf-8") as file, held_clocks(gpu):
        writer = csv.DictWriter(file, COLUMNS)
        if is_new:
            writer.writeheader()

        def write(row):
            writer.writerow(row)
            file.flush()
            os.fsync(file.fileno())

        for number, (mem_mhz, core_mhz) in enumerate(pairs):
            todo = [w for w in workloads if done.get((w.name, mem_mhz, core_mhz), 0) < settings.repeats]
            idle = done.get(("idle", mem_mhz, core_mhz), 0) == 0
            if not todo and not idle:
                continue
            log(f"{number + 1}/{len(pairs)}  memory {mem_mhz} MHz, core {core_mhz} MHz, {len(todo)} kernels")
            gpu.set_clocks(core_mhz, mem_mhz)
            sleep(settings.settle_s)

            def row(kernel, reading, power_w, **more):
                # NVML may report the memory clock one off; the state asked for is what counts.
                base = dict.fromkeys(COLUMNS, "")
                base.update(gpu=gpu.name, kernel=kernel, core_mhz=reading.core_mhz, mem_mhz=mem_mhz,
                            core_mhz_requested=core_mhz, power_w=f"{power_w:.4f}",
                            temperature_c=reading.temperature_c, power_cap_w=f"{gpu.power_cap_w():g}",
                            throttled=int(bool(reading.throttle & SLOWING)))
                base.update(more)
                return base

            if idle:
                _, power_w = power_over(gpu, lambda: sleep(settings.idle_s), sleep=sleep)
                write(row("idle", gpu.read(), power_w, repeat=0))
            for workload in todo:
                launch = workload.make(torch)
                timer.run(launch, settings.warm_up_s)
                for repeat in range(done.get((workload.name, mem_mhz, core_mhz), 0), settings.repeats):
                    readings = []

                    def measure():
                        result = timer.run(launch, settings.measure_s)
                        readings.append(gpu.read())  # clocks while it is still warm
                        return result

                    (time_s, std_s, _), power_w = power_over(gpu, measure, sleep=sleep)
                    write(row(workload.name, readings[-1], power_w, time_s=f"{time_s:.9g}",
                              energy_j=f"{time_s * power_w:.9g}", repeat=repeat, time_std_s=f"{std_s:.3g}",
                              flop=f"{workload.flops:.9g}", dram_bytes=f"{workload.dram_bytes:.9g}"))
                del launch
