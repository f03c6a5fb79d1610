#!/usr/bin/env python3
"""Writes PyTorch profiler (Kineto) files of a made training step of several ranks.

Each rank: one host thread, a compute stream, a communication stream. Layers of kernels run forward and backward;
after each backward layer the communication stream all-reduces its gradients beside the next one (an event before
it, one behind the last). The host runs ahead and waits at the end. Ranks differ in speed by a few percent, so that
waiting for the last one is part of every all-reduce. Times are replayed from these rules, so the files agree.

Usage: kineto_ranks.py FOLDER [--ranks 8] [--launches 10000] [--kernels 40] [--seed 1]
"""
import argparse
import gzip
import json
import random
from pathlib import Path

COMPUTE, COMMUNICATION, THREAD = 7, 20, 1000
LAUNCH_CALL_US, CALL_EVERY_US, LAUNCH_LATENCY_US = 3.0, 5.0, 4.0


def kernel_times_us(rng, kernels):
    """Kernels of a layer: a few long products, many short ones."""
    return [rng.choice([180.0, 90.0, 25.0, 12.0, 8.0]) * rng.uniform(0.9, 1.1) for _ in range(kernels)]


class Rank:
    def __init__(self, rank, ranks, speed):
        self.rank, self.ranks, self.speed = rank, ranks, speed
        self.events, self.correlation = [], 0
        self.host_us, self.free_us = 10.0, {COMPUTE: 0.0, COMMUNICATION: 0.0}
        self.pending = []  # all-reduces that are not timed yet

    def call(self, name, duration_us=LAUNCH_CALL_US):
        self.correlation += 1
        self.events.append({"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 1, "tid": THREAD,
                            "ts": self.host_us, "dur": duration_us, "args": {"correlation": self.correlation}})
        called_us = self.host_us
        self.host_us += duration_us + CALL_EVERY_US - LAUNCH_CALL_US
        return called_us

    def launch(self, name, stream, duration_us, ready_us=0.0, extra=None):
        called_us = self.call("cudaLaunchKernel")
        start_us = max(called_us + LAUNCH_LATENCY_US, self.free_us[stream] + 1.0, ready_us)
        event = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": start_us, "dur": duration_us,
                 "args": {"device": 0, "stream": stream, "correlation": self.correlation, "grid": [64, 1, 1],
                          "block": [128, 1, 1], **(extra or {})}}
        self.events.append(event)
        self.free_us[stream] = start_us + duration_us
        return event

    def wait_event(self, stream, for_stream):
        """cudaEventRecord and cudaStreamWaitEvent, with the record named as enable_cuda_sync_events does."""
        self.call("cudaEventRecord", 1.0)
        record = self.correlation
        called_us = self.call("cudaStreamWaitEvent", 1.0)
        self.events.append({"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "pid": 0, "tid": stream,
                            "ts": called_us, "dur": 0.5,
                            "args": {"stream": stream, "wait_on_stream": for_stream, "device": 0, "context": 1,
                                     "wait_on_cuda_event_record_corr_id": record, "wait_on_cuda_event_id": 1,
                                     "correlation": self.correlation}})
        return self.free_us[for_stream]

    def all_reduce(self, elements, sequence):
        ready_us = self.wait_event(COMMUNICATION, COMPUTE)
        return self.launch("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", COMMUNICATION, 0.0, ready_us, {
            "Collective name": "allreduce", "dtype": "BFloat16", "In msg nelems": elements,
            "Out msg nelems": elements, "Group size": self.ranks, "Process Group Name": "0", "Seq": sequence,
            "Process Group Ranks": str(list(range(self.ranks)))})

    def synchronize(self):
        called_us = self.host_us
        end_us = max([called_us, *self.free_us.values()]) + 2.0
        self.call("cudaDeviceSynchronize", end_us - called_us)


def step(ranks, launches, kernels, rng):
    """All ranks layer by layer, since an all-reduce ends on all of them together."""
    layers = max(1, round(launches / (2 * kernels + 1)))
    forward, backward = kernel_times_us(rng, kernels), [1.9 * t for t in kernel_times_us(rng, kernels)]
    for rank in ranks:
        for _ in range(layers):
            for k, time_us in enumerate(forward):
                rank.launch(f"forward_gemm_{k}", COMPUTE, time_us / rank.speed)
    elements = 4_000_000
    for layer in range(layers):
        reduces = []
        for rank in ranks:
            for k, time_us in enumerate(backward):
                rank.launch(f"backward_gemm_{k}", COMPUTE, time_us / rank.speed)
            reduces.append(rank.all_reduce(elements, layer))
        end_us = max(event["ts"] for event in reduces) + 0.4 * sum(backward)
        for rank, event in zip(ranks, reduces):
            event["dur"] = end_us - event["ts"]
            rank.free_us[COMMUNICATION] = end_us
    for rank in ranks:
        ready_us = rank.wait_event(COMPUTE, COMMUNICATION)
        rank.launch("multi_tensor_apply_adam", COMPUTE, 500.0 / rank.speed, ready_us)
        rank.synchronize()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--launches", type=int, default=10000, help="of each rank, about")
    parser.add_argument("--kernels", type=int, default=40, help="different ones in each pass of a layer")
    parser.add_argument("--seed", type=int, default=1)
    o = parser.parse_args()
    rng = random.Random(o.seed)
    ranks = [Rank(r, o.ranks, rng.uniform(0.97, 1.0)) for r in range(o.ranks)]
    step(ranks, o.launches, o.kernels, rng)
    o.folder.mkdir(parents=True, exist_ok=True)
    for rank in ranks:
        text = json.dumps({
            "schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}],
            "distributedInfo": {"backend": "nccl", "rank": rank.rank, "world_size": o.ranks},
            "traceEvents": rank.events})
        (o.folder / f"rank{rank.rank}.pt.trace.json.gz").write_bytes(gzip.compress(text.encode(), 5, mtime=0))


main()
