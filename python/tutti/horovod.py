"""Horovod's names, where they map one to one: ``import tutti.horovod as hvd`` in place of ``horovod.torch``.

What it has: init, shutdown, rank, size, local_rank, allreduce, allreduce_, broadcast, broadcast_, broadcast_parameters,
broadcast_optimizer_state, broadcast_object, DistributedOptimizer. Strategies are chosen with DistributedOptimizer's
``strategy``.
"""

from __future__ import annotations

import pickle
from typing import Any, Iterable, Optional, Tuple

import torch

from . import _job
from ._job import UsageError, current
from ._session import EngineUser

Average, Sum = "average", "sum"


def init(*args: Any, **kwargs: Any) -> None:
    """Joins the other ranks; takes what tutti.init() takes."""
    _job.init(*args, **kwargs)


def shutdown() -> None:
    _job.shutdown()


def is_initialized() -> bool:
    return _job.is_initialized()


def rank() -> int:
    return current().rank


def size() -> int:
    return current().size


def local_rank() -> int:
    return current().local_rank


def _averages(op: Optional[str], average: Optional[bool]) -> bool:
    if op not in (None, Average, Sum):
        raise UsageError(f"op={op!r}: there are Average and Sum")
    return average if average is not None else op != Sum


def allreduce(tensor: torch.Tensor, average: Optional[bool] = None, name: Optional[str] = None,
              op: Optional[str] = None) -> torch.Tensor:
    """The average over ranks, or with ``op=Sum`` the sum."""
    return _job.all_reduce(tensor, average=_averages(op, average))


def allreduce_(tensor: torch.Tensor, average: Optional[bool] = None, name: Optional[str] = None,
               op: Optional[str] = None) -> torch.Tensor:
    with torch.no_grad():
        return tensor.copy_(allreduce(tensor, average, name, op))


def broadcast(tensor: torch.Tensor, root_rank: int, name: Optional[str] = None) -> torch.Tensor:
    return _job.broadcast(tensor.detach().clone(), root_rank)


def broadcast_(tensor: torch.Tensor, root_rank: int, name: Optional[str] = None) -> torch.Tensor:
    return _job.broadcast(tensor, root_rank)


def broadcast_parameters(params: Any, root_rank: int = 0) -> None:
    """Of a state_dict(), or of named_parameters()."""
    items = params.items() if isinstance(params, dict) else params
    for _, tensor in sorted(items, key=lambda item: item[0]):
        if isinstance(tensor, torch.Tensor):
            _job.broadcast(tensor, root_rank)


def broadcast_object(obj: Any = None, root_rank: int = 0, name: Optional[str] = None) -> Any:
    """What the root has, on all ranks; anything that can be pickled."""
    data = pickle.dumps(obj) if rank() == root_rank else b""
    length = _job.broadcast(torch.tensor([len(data)]), root_rank)
    buffer = torch.zeros(int(length.item()), dtype=torch.uint8)
    if rank() == root_rank:
        buffer.copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))
    return pickle.loads(bytes(_job.broadcast(buffer, root_rank).tolist()))


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int = 0) -> None:
    state = broadcast_object(optimizer.state_dict(), root_rank)
    if rank() != root_rank:
        optimizer.load_state_dict(state)


def DistributedOptimizer(optimizer: torch.optim.Optimizer,
                         named_parameters: Optional[Iterable[Tuple[str, torch.Tensor]]] = None,
                         backward_passes_per_step: int = 1, op: str = Average, *, strategy: str = "buckets",
                         wire: str = "fp32") -> torch.optim.Optimizer:
    """The optimizer itself: from now on backward() leaves averages over ranks in the gradients of its parameters."""
    if op != Average:
        raise UsageError("DistributedOptimizer averages: scale the loss for a sum")
    own = [p for group in optimizer.param_groups for p in group["params"]]
    if named_parameters is None:
        named = [(f"parameter.{i}", p) for i, p in enumerate(own)]
    else:
        named = [(name, p) for name, p in named_parameters]
        ids = {id(p) for _, p in named}
        if any(id(p) not in ids for p in own):
            raise UsageError("named_parameters lacks parameters that the optimizer updates: give those of the whole model")
        ids = {id(p) for p in own}
        named = [(name, p) for name, p in named if id(p) in ids]
    engine = EngineUser(named, [], model=None, strategy=strategy, updates=False, wire=wire)
    engine.session.set_passes(backward_passes_per_step)
    optimizer._tutti_engine = engine
    optimizer.synchronize = lambda: None  # backward() has done it
    return optimizer
