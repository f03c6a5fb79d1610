"""Zeus's own server with a schedule of ours, and its own client on each stage of the simulated machine, for a step.

Usage: zeus_stages.py SCHEDULE.py PASSES...   (PASSES of a stage in order, with commas)
Prints JSON: by stage the clock that its GPU had come to in each pass. Zeus's client ends in an error at a pass that it does not expect.

PyTorch is a stand-in: Zeus asks it only for the process group, and to synchronize.
"""
import json
import multiprocessing
import os
import socket
import sys
import time
from unittest import mock

schedule, passes = os.path.abspath(sys.argv[1]), [words.split(",") for words in sys.argv[2:]]
fork = multiprocessing.get_context("fork")
job, played = fork.SimpleQueue(), fork.Queue()


def broadcast(objects, src):
    """From rank 0, which has the job's name, to each of the others."""
    if objects[0] is None:
        objects[0] = job.get()
    else:
        for _ in passes[1:]:
            job.put(objects[0])


torch = mock.MagicMock(__spec__=None)
torch.distributed.broadcast_object_list = broadcast
sys.modules.update({"torch": torch, "torch.distributed": torch.distributed})
os.environ.update(ZEUS_PFO_SCHEDULER="PointSolution", ZEUS_PFO_SCHEDULER_ARGS=json.dumps({"solution_path": schedule}), ZEUS_PFO_LOG_LEVEL="ERROR",
                  ZEUS_PFO_DUMP_DATA="false")

import pynvml  # noqa: E402
import uvicorn  # noqa: E402
from zeus.optimizer.pipeline_frequency.optimizer import PipelineFrequencyOptimizer  # noqa: E402
from zeus.optimizer.pipeline_frequency.server.router import app  # noqa: E402


def play(stage, url):
    client = PipelineFrequencyOptimizer(rank=stage, dp_rank=0, pp_rank=stage, tp_rank=0, device_id=stage, dp_degree=1, pp_degree=len(passes),
                                        tp_degree=1, world_size=len(passes), server_url=url)
    pynvml.nvmlInit()
    gpu, clocks = pynvml.nvmlDeviceGetHandleByIndex(stage), []
    client.on_step_begin()
    for name in passes[stage]:
        client.on_instruction_begin(name)
        time.sleep(0.05)  # its other process sets the clock; the simulated GPU takes 4 ms
        clocks.append(pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_SM))
        client.on_instruction_end(name)
    client.on_step_end()
    client.frequency_controller.end()  # at exit, which a forked process skips
    played.put((stage, clocks))


with socket.socket() as listening:
    listening.bind(("127.0.0.1", 0))
    server = fork.Process(target=uvicorn.Server(uvicorn.Config(app, log_level="error")).run, args=([listening],), daemon=True)
    server.start()
    clients = [fork.Process(target=play, args=(stage, f"http://127.0.0.1:{listening.getsockname()[1]}")) for stage in range(len(passes))]
    for client in clients:
        client.start()
    for client in clients:
        client.join(60)
    server.kill()
    if any(client.exitcode != 0 for client in clients):
        sys.exit("a client of Zeus failed")
    print(json.dumps([clocks for _, clocks in sorted(played.get() for _ in clients)]))
