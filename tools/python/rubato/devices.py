"""Which GPU is this process's, and whether a plan should be set on it."""

from __future__ import annotations

import logging
import os
from typing import Optional

from rubato.hardware import backends
from rubato.errors import IoError, UsageError
from rubato.hardware.nvml import NVMLError
from rubato.plan_file import PlanFile

_log = logging.getLogger("rubato")


#: torchrun's variables, and what launchers that set none of them have
_ALSO = {"RANK": ("SLURM_PROCID", "OMPI_COMM_WORLD_RANK"), "LOCAL_RANK": ("SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK"),
         "WORLD_SIZE": ("SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE")}


def _word(variable: str) -> Optional[str]:
    return next((os.environ[name] for name in (variable, *_ALSO[variable]) if name in os.environ), None)


def rank_of(variable: str) -> int:
    """RANK or LOCAL_RANK of the environment (torchrun's, Slurm's or Open MPI's), else 0. Raises UsageError where it is no number."""
    word = _word(variable) or "0"
    if not word.strip().isdigit():
        raise UsageError(f"{variable} is '{word}'; expected a number from 0")
    return int(word)


def count_of(variable: str) -> Optional[int]:
    """WORLD_SIZE of the environment, as rank_of(); None where it is not set. Raises UsageError where it is no number from 1."""
    word = _word(variable)
    if word is None:
        return None
    if not word.strip().isdigit() or int(word) == 0:
        raise UsageError(f"{variable} is '{word}'; expected a number from 1")
    return int(word)


def local_gpu() -> int:
    """NVML index of this rank's GPU: entry LOCAL_RANK of CUDA_VISIBLE_DEVICES, or its only one. Raises UsageError, IoError where there is none."""
    rank, visible = rank_of("LOCAL_RANK"), _visible()
    if not visible:
        return rank
    if len(visible) == 1:  # the launcher shows each rank its own alone
        return _index_of(visible[0])
    if rank >= len(visible):
        raise UsageError(f"LOCAL_RANK is {rank}, but CUDA_VISIBLE_DEVICES names {len(visible)} GPUs")
    return _index_of(visible[rank])


def visible_gpus(backend: backends.NvmlBackend) -> list[int]:
    """NVML indices of this process's GPUs: LOCAL_RANK's, else those of CUDA_VISIBLE_DEVICES, else all. Raises UsageError, IoError."""
    if "LOCAL_RANK" in os.environ:
        return [local_gpu()]
    return [_index_of(name) for name in _visible()] or list(range(backend.nvml.nvmlDeviceGetCount()))


def _visible() -> list[str]:
    return [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]


def _index_of(name: str) -> int:
    if name.isdigit():
        return int(name)
    if name.startswith("MIG"):
        raise IoError(f"{name} is an instance of a GPU, and clocks are those of all its instances", "apply plans to whole GPUs only")
    nvml = backends.NvmlBackend().nvml
    try:
        return nvml.nvmlDeviceGetIndex(nvml.nvmlDeviceGetHandleByUUID(name))
    except NVMLError as error:
        raise IoError(f"CUDA_VISIBLE_DEVICES names GPU {name}: {error}", "nvidia-smi -L lists the GPUs") from None


def check_gpu(backend: backends.Backend, index: int, plan: PlanFile, any_gpu: bool, shared_gpu: bool) -> None:
    """Raises UsageError or IoError where the plan should not be set on this GPU."""
    name = backend.gpu_name(index)
    if name is not None and plan.fits_gpu(name) is False and not any_gpu:
        raise UsageError(f"{plan.path}: the plan is for {plan.gpu_title}; GPU {index} is {name}",
                         "plan for this GPU with 'rubato explore --gpu', or pass any_gpu=True")
    if name is not None and not plan.names_gpu and not any_gpu:
        raise UsageError(f"{plan.path}: the plan is of a measured profile, which does not say its GPU; GPU {index} is {name}",
                         "plan with --gpu, or pass any_gpu=True if the profile is of such a GPU")
    if name is not None and plan.fits_gpu(name) is None and plan.names_gpu:
        _log.warning("rubato: the plan file does not say for which GPU it is; this one is %s", name)
    reader = backend if isinstance(backend, backends.NvmlBackend) else getattr(backend, "reader", None)
    if reader is None:
        return
    gpu = reader.gpu(index)
    if gpu.mig_enabled():
        raise IoError(f"{name}: MIG is on, and clocks are those of all its instances", "apply plans to whole GPUs only")
    others = [pid for pid in gpu.processes() if pid != os.getpid() and os.path.exists(f"/proc/{pid}")]
    if others and not shared_gpu:
        raise IoError(f"{name}: process {others[0]} computes on it too and would change its speed", "end it, or pass shared_gpu=True")
