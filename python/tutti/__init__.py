"""Tutti under a PyTorch program: ranks that train together, with any of Tutti's strategies.

    import tutti
    job = tutti.init()                                          # rank, size, device; alone without a launcher
    model = tutti.DistributedDataParallel(model)                # any torch.optim optimizer goes on as before

or, for strategies that cross the step and for fused, sharded optimizers:

    optimizer = tutti.optim.AdamW(model, lr=1e-3, strategy="zero1")

Start it with ``tutti run -n 2 -- python3 train.py``, mpirun, srun or torchrun. Every run is recorded in ``runs/``:
``tutti explain``, ``tutti plan`` and ``tutti report`` read it.
"""

import torch as _torch

from ._built_for import TORCH as _built_for

# The C++ half of another PyTorch would crash, not fail.
if _torch.__version__ != _built_for:
    raise ImportError(
        f"this Tutti ({__path__[0]}) was built for PyTorch {_built_for}, and this is {_torch.__version__}: build it for "
        "this python3 with `./tutti python` (TUTTI_PYTHON=PROGRAM for another one), or with `pip install ./python`"
    )

from . import optim
from ._job import (
    Error,
    Job,
    PeerFailed,
    UsageError,
    __version__,
    all_reduce,
    barrier,
    broadcast,
    init,
    is_initialized,
    rank,
    shutdown,
    size,
    strategies,
)
from ._step import step
from .parallel import DistributedDataParallel

__all__ = [
    "DistributedDataParallel",
    "Error",
    "Job",
    "PeerFailed",
    "UsageError",
    "__version__",
    "all_reduce",
    "barrier",
    "broadcast",
    "init",
    "is_initialized",
    "optim",
    "rank",
    "shutdown",
    "size",
    "step",
    "strategies",
]
