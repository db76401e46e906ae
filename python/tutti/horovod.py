"""Horovod's names, where they map one to one: ``import tutti.horovod as hvd`` in place of ``horovod.torch``.

What it has: init, shutdown, rank, size, local_rank, allreduce, allreduce_, allreduce_async, allreduce_async_, poll,
synchronize, broadcast, broadcast_, broadcast_parameters, broadcast_optimizer_state, broadcast_object,
DistributedOptimizer; Average, Sum, Min, Max, Product. Strategies are chosen with DistributedOptimizer's ``strategy``.

Every rank begins the same operations in the same order: names are not compared.
"""

from __future__ import annotations

import pickle
from typing import Any, Callable, Dict, Iterable, Optional, Tuple

import torch

from . import _job
from ._catch_up import broadcast_bytes
from ._job import UsageError, current
from ._session import EngineUser

Average, Sum, Min, Max, Product = "average", "sum", "min", "max", "product"

# Operations under way, by their handles: what waits for each and gives its result.
_under_way: Dict[int, Callable[[], torch.Tensor]] = {}
_last_handle = 0


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


def _operation(op: Optional[str], average: Optional[bool]) -> str:
    if op not in (None, Average, Sum, Min, Max, Product):
        raise UsageError(f"op={op!r}: there are Average, Sum, Min, Max and Product")
    if average is not None:
        return Average if average else Sum
    return op or Average


def _of_all(tensor: torch.Tensor) -> torch.Tensor:
    """Every rank's tensor, one below the other."""
    rows = torch.zeros((size(), *tensor.shape), dtype=tensor.dtype, device=tensor.device)
    rows[rank()] = tensor.detach()
    return _job.all_reduce(rows)


def allreduce(tensor: torch.Tensor, average: Optional[bool] = None, name: Optional[str] = None,
              op: Optional[str] = None) -> torch.Tensor:
    """The average over ranks, or what ``op`` says."""
    operation = _operation(op, average)
    if operation in (Average, Sum):
        return _job.all_reduce(tensor, average=operation == Average)
    rows = _of_all(tensor)
    return rows.amin(0) if operation == Min else rows.amax(0) if operation == Max else rows.prod(0).to(tensor.dtype)


def allreduce_async(tensor: torch.Tensor, average: Optional[bool] = None, name: Optional[str] = None,
                    op: Optional[str] = None) -> int:
    """Begins an allreduce, for synchronize(). Not between backward() and the end of a step."""
    global _last_handle
    operation = _operation(op, average)
    if operation in (Average, Sum):
        end = _job.begin_all_reduce(tensor, average=operation == Average)
    else:
        result = allreduce(tensor, op=operation)
        end = lambda: result  # noqa: E731
    _last_handle += 1
    _under_way[_last_handle] = end
    return _last_handle


def allreduce_async_(tensor: torch.Tensor, average: Optional[bool] = None, name: Optional[str] = None,
                     op: Optional[str] = None) -> int:
    """The same, whose result synchronize() puts into the tensor."""
    handle = allreduce_async(tensor, average, name, op)
    end = _under_way[handle]

    def end_in_place() -> torch.Tensor:
        with torch.no_grad():
            return tensor.copy_(end())

    _under_way[handle] = end_in_place
    return handle


def synchronize(handle: int) -> torch.Tensor:
    """The result of an operation that was begun, once it is complete."""
    if handle not in _under_way:
        raise UsageError(f"there is no operation {handle}: synchronize() gives a result once")
    return _under_way.pop(handle)()


def poll(handle: int) -> bool:
    """True, once the operation is complete: it waits for it."""
    if handle in _under_way:
        result = _under_way[handle]()
        _under_way[handle] = lambda: result
    return True


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
    current()._meet()
    data = pickle.dumps(obj) if rank() == root_rank else b""
    return pickle.loads(broadcast_bytes(current(), data, root_rank))


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
