#!/usr/bin/env python3
"""Makes pipeline/rank*.pt.trace.json.gz and pipeline/rank*.power.csv: the ranks of a pipeline as PyTorch profilers and nvidia-smi
would write them, out of Rubato's own simulator. Run it in this folder with rubato on PATH; the same program gives the same files.

Four stages of a layer of GPT-3 XL each (embedding on the first, loss on the last), 1F1B, six microbatches of 64 sequences, three
steps, A100-SXM4-80GB at their default clocks, under their power limit. A host waits for each message that it receives, and at the
end of a step for its GPU. To the simulated times come 3 % of scatter per kernel and 1 % per launch. A GPU that waits for others
draws 90 W.
"""
import gzip
import json
import random
import tempfile
from pathlib import Path

from generate import GPU, LAUNCH_US, START_NS, launch_events, rubato, us, wait_events, write_power_log

STAGES, MICROBATCHES, STEPS, FIRST_STEP = 4, 6, 3, 3
TRANSFER_US, WAITING_W = 1500.0, 90.0
BYTES = 64 * 1024 * 2048 * 2  # of activations
GROUP = {"Collective name": "send", "dtype": "BFloat16", "In msg nelems": BYTES // 2, "Out msg nelems": BYTES // 2,
         "Group size": STAGES, "Process Group Name": "7", "Process Group Description": "PIPELINE_MODEL_PARALLEL_GROUP",
         "Process Group Ranks": str(list(range(STAGES)))}


def simulated(folder):
    """Kernels by name, and the launches of each segment: (kernel, time in us, power in W, core clock in MHz)."""
    trace, timeline = folder / "trace.json", folder / "timeline.json"
    rubato("trace", "gen", "gpt3-xl", "--layers", 1, "--batch", 64, "--vocab", 8192, "-o", trace)
    rubato("explore", trace, "--gpu", GPU, "--per", "run", "--timeline", timeline)
    events = json.loads(timeline.read_text())["traceEvents"]
    costs = {e["name"]: (e["dur"], e["args"]["energy_j"] / (e["dur"] * 1e-6), e["args"]["core_mhz"])
             for e in events if e["ph"] == "X" and e.get("cat") == "kernel" and e["pid"] == 1}
    document = json.loads(trace.read_text())
    kernels = {kernel["name"]: kernel for kernel in document["kernels"]}
    segments = {segment["name"]: [(name, *costs[name]) for name in segment["launches"]] for segment in document["segments"]}
    return kernels, segments


def launches_of(segments, stage, forward):
    first, last = stage == 0, stage == STAGES - 1
    if forward:
        return (segments["embedding"] if first else []) + segments["layer forward"] + (segments["loss"] if last else [])
    return ((segments["head backward"] if last else []) + segments["layer backward"] +
            (segments["embedding backward"] if first else []))


def one_f_one_b(stage):
    """(forward, microbatch) in the order of a stage."""
    ahead = min(STAGES - stage, MICROBATCHES)
    order = [(True, m) for m in range(ahead)]
    for m in range(MICROBATCHES):
        order.append((False, m))
        if m + ahead < MICROBATCHES:
            order.append((True, m + ahead))
    return order


class Rank:
    def __init__(self, stage):
        self.stage, self.events, self.busy, self.number = stage, [], [], 0
        self.host = self.gpu = 0.0

    def run(self, kernels, launches, scatter, dice, start):
        """Launches of a pass. Returns its end on the GPU."""
        self.gpu = max(self.gpu, start)
        for name, time_us, power_w, mhz in launches:
            self.number += 1
            begin = max(self.gpu + 1.0, self.host + 4.0)
            duration = time_us * scatter[name] * dice.gauss(1.0, 0.01)
            self.events += launch_events(kernels[name], self.number, self.host, begin, duration)
            self.busy.append((begin, begin + duration, power_w, mhz))
            self.host, self.gpu = self.host + LAUNCH_US, begin + duration
        return self.gpu

    def message(self, source, target, stream, begin, end):
        """The kernel of a send or receive on a stream of its own, as the host called it between the passes."""
        self.number += 1
        common = {"pid": 100, "tid": 100}
        self.events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernelExC", "ts": us(self.host), "dur": 3.0,
                            **common, "args": {"correlation": self.number, "External id": self.number}})
        self.events.append({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
                            "pid": 0, "tid": stream, "ts": us(begin), "dur": us(end - begin),
                            "args": {"device": 0, "stream": stream, "correlation": self.number, "External id": self.number,
                                     "grid": [2, 1, 1], "block": [544, 1, 1], **GROUP, "Src Rank": source, "Dst Rank": target}})
        self.host += LAUNCH_US

    def wait(self, call, end, stream=None):
        """The host waits until a moment."""
        self.number += 1
        self.events += wait_events(call, self.number, self.host, max(end, self.host) + 4.0, stream=stream)
        self.host = max(end, self.host) + 5.0


def run_step(ranks, kernels, segments, scatter, dice):
    """One iteration. Each rank runs a pass as soon as what it waits for has arrived."""
    orders = [one_f_one_b(stage) for stage in range(STAGES)]
    arrived, position = {}, [0] * STAGES
    while any(position[s] < len(orders[s]) for s in range(STAGES)):
        for stage, rank in enumerate(ranks):
            if position[stage] == len(orders[stage]):
                continue
            forward, m = orders[stage][position[stage]]
            before, after = (stage - 1, stage + 1) if forward else (stage + 1, stage - 1)
            start = rank.gpu
            if 0 <= before < STAGES:
                if (forward, m, stage) not in arrived:
                    continue
                sent = arrived.pop((forward, m, stage))
                # Both kernels end together; the one that came first waits.
                received = max(sent, rank.gpu, rank.host + 4.0) + TRANSFER_US
                stream = 21 if forward else 23
                rank.message(before, stage, stream, max(rank.gpu, rank.host + 4.0), received)
                rank.wait("cudaStreamSynchronize", received, stream)
                ranks[before].pending.append((before, stage, 20 if forward else 22, sent, received))
                start = received
            end = rank.run(kernels, launches_of(segments, stage, forward), scatter, dice, start)
            if 0 <= after < STAGES:
                arrived[forward, m, after] = end
                rank.sends.append((len(rank.events), rank.host, end))
                rank.host += LAUNCH_US
            position[stage] += 1
    for rank in ranks:
        rank.wait("cudaDeviceSynchronize", max([rank.gpu, *(received for *_, received in rank.pending)]))


def captured(kernels, segments):
    dice = random.Random(20251122)
    scatter = {name: dice.gauss(1.0, 0.03) for name in kernels}
    ranks = [Rank(stage) for stage in range(STAGES)]
    for rank in ranks:
        rank.host = rank.gpu = 1000.0
    for step in range(FIRST_STEP, FIRST_STEP + STEPS):
        for rank in ranks:
            rank.sends, rank.pending, rank.begin = [], [], rank.host
        run_step(ranks, kernels, segments, scatter, dice)
        pause_us = 20e3 + dice.uniform(0, 20e3)  # the next batch
        for rank in ranks:
            # A send was called right after its pass; when it ended is known once it was received.
            calls = {end: host for _, host, end in rank.sends}
            for source, target, stream, sent, received in rank.pending:
                ahead, rank.host = rank.host, calls[sent]
                rank.message(source, target, stream, sent, received)
                rank.host = ahead
            rank.host += pause_us
            rank.events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 100, "tid": 100,
                                "ts": us(rank.begin - 1), "dur": us(rank.host - rank.begin)})
    return ranks


def main():
    with tempfile.TemporaryDirectory() as folder:
        kernels, segments = simulated(Path(folder))
    Path("pipeline").mkdir(exist_ok=True)
    for rank in captured(kernels, segments):
        document = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}],
                    "distributedInfo": {"backend": "nccl", "rank": rank.stage, "world_size": STAGES},
                    "baseTimeNanoseconds": START_NS, "traceName": "simulated by rubato, see docs/examples/README.md",
                    "traceEvents": rank.events}
        packed = gzip.compress(json.dumps(document, separators=(",", ":")).encode(), mtime=0)
        Path(f"pipeline/rank{rank.stage}.pt.trace.json.gz").write_bytes(packed)
        write_power_log(f"pipeline/rank{rank.stage}.power.csv", rank.busy, WAITING_W, index=rank.stage, seed=rank.stage)


if __name__ == "__main__":
    main()
