"""After steps that ranks without batches took part in with nothing: what these did not do themselves, they are given."""

from __future__ import annotations

import ctypes
import gc
import io
import json
import os
import sys
from typing import Any, Dict, List, Tuple

import torch

from ._tutti import Error


_WORDS = ("Optimizer", "LRScheduler", "_LRScheduler", "ReduceLROnPlateau", "GradScaler")


def _objects() -> Dict[str, List[Any]]:
    """The program's optimizers, schedulers and scalers: objects of PyTorch's classes, and of those derived from them."""
    words: Dict[type, str] = {}
    found: Dict[str, List[Any]] = {word: [] for word in _WORDS}
    for thing in gc.get_objects():
        kind = type(thing)  # not isinstance: some objects pretend
        if kind not in words:
            words[kind] = next((base.__name__ for base in kind.__mro__
                                if base.__name__ in found and base.__module__.startswith("torch.")), "")
        if words[kind]:
            found[words[kind]].append(thing)
    return found


def _trainers(job: Any) -> List[Tuple[str, Any]]:
    """Optimizers of the job's models, the schedulers of these, and scalers: all that a program's steps change, in an
    order that is the same on all ranks."""
    places: Dict[int, int] = {}
    for user in job._users:
        for place in user.places:
            places.setdefault(place, len(places))
    objects = _objects()
    found = []
    for optimizer in objects["Optimizer"]:
        own = [places[id(p)] for group in optimizer.param_groups for p in group["params"] if id(p) in places]
        if own:
            found.append((f"{type(optimizer).__name__} of parameters {own[0]} to {own[-1]}, {len(own)}", optimizer))
    found.sort(key=lambda item: item[0])
    order = {id(optimizer): number for number, (_, optimizer) in enumerate(found)}
    schedulers = {}
    for word in ("LRScheduler", "_LRScheduler", "ReduceLROnPlateau"):
        for scheduler in objects[word]:
            number = order.get(id(getattr(scheduler, "optimizer", None)))
            if number is not None:
                schedulers[id(scheduler)] = (f"{type(scheduler).__name__} of optimizer {number}", scheduler)
    scalers = {id(scaler): (type(scaler).__name__, scaler) for scaler in objects["GradScaler"]}
    return found + sorted(schedulers.values(), key=lambda i: i[0]) + sorted(scalers.values(), key=lambda i: i[0])


def _caller() -> str:
    """Where the program is: the line that called Tutti."""
    here = os.path.dirname(os.path.abspath(__file__))
    frame = sys._getframe(1)
    while frame is not None and os.path.dirname(os.path.abspath(frame.f_code.co_filename)) == here:
        name = frame.f_code.co_name
        if name == "_at_exit":
            return "the end of the program"
        frame = frame.f_back
    if frame is None:
        return "the end of the program"
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def broadcast_bytes(job: Any, data: bytes, root: int) -> bytes:
    """Rank root's bytes, on all ranks."""
    length = torch.tensor([len(data)])
    job._native.broadcast(length, root)
    count = int(length.item())
    words = torch.zeros((count + 7) // 8, dtype=torch.int64)
    if job.rank == root and count:
        ctypes.memmove(words.data_ptr(), data, count)
    if count:
        job._native.broadcast(words, root)
    return ctypes.string_at(words.data_ptr(), count) if count else b""


def catch_up(job: Any, missed: int) -> None:
    """A collective, once all ranks have come to one: those that missed steps become copies of one that missed none."""
    place = _caller()
    ranks = [json.loads(text) for text in job._native.gather_texts(json.dumps([place, missed]))]
    root = next(number for number, (_, steps) in enumerate(ranks) if steps == 0)
    other = next((number for number, (line, _) in enumerate(ranks) if line != ranks[root][0]), None)
    if other is not None:
        job._native.finish_together()
        raise Error(
            f"ranks had unequally many batches, and went on differently: rank {root} is at {ranks[root][0]}, and rank "
            f"{other} at {ranks[other][0]}.\nLet every rank make the same calls of Tutti after its loop, and none in it, "
            "or put the loop into `with model.join(optimizer):`"
        )
    for user in job._users:
        if not user.updates:
            user.session.take_values(root)
    trainers = _trainers(job)
    buffer = io.BytesIO()
    if job.rank == root:
        torch.save([(name, _state_of(trainer)) for name, trainer in trainers], buffer)
    states = torch.load(io.BytesIO(broadcast_bytes(job, buffer.getvalue(), root)), weights_only=False)
    names = [name for name, _ in states]
    job._agree(
        "" if names == [name for name, _ in trainers] else
        f"ranks had unequally many batches, and this one has other optimizers and schedulers than rank {root}, which has "
        f"{', '.join(names) or 'none'}: put the loop into `with model.join(optimizer):`"
    )
    if missed:
        for (_, trainer), (_, state) in zip(trainers, states):
            _give_state(trainer, state)


def _state_of(trainer: Any) -> Any:
    if hasattr(trainer, "_engine"):  # the engine has made the same updates
        return [{key: value for key, value in group.items() if key != "params"} for group in trainer.param_groups]
    return trainer.state_dict()


def _give_state(trainer: Any, state: Any) -> None:
    if hasattr(trainer, "_engine"):
        for group, values in zip(trainer.param_groups, state):
            group.update(values)
    else:
        trainer.load_state_dict(state)
