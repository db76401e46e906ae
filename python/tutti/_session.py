"""What models and optimizers share: the engine under them."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import Any, Dict, Iterator, List, Optional, Tuple

import torch

from . import _tutti
from ._job import UsageError, current
from ._step import Losses

# Parameters that an engine holds, by id, with the parameter itself so that the id stays its own.
_held: Dict[int, torch.Tensor] = {}


def _samples_of(inputs: Any) -> int:
    """How many samples a forward pass gets: the length of the first tensor that it is given."""
    if isinstance(inputs, torch.Tensor):
        return int(inputs.shape[0]) if inputs.dim() > 0 else 1
    if isinstance(inputs, dict):
        inputs = list(inputs.values())
    if isinstance(inputs, (list, tuple)):
        for item in inputs:
            count = _samples_of(item)
            if count:
                return count
    return 0


class EngineUser:
    """The engine's side of a model or an optimizer."""

    def __init__(
        self,
        parameters: List[Tuple[str, torch.Tensor]],
        buffers: List[Tuple[str, torch.Tensor]],
        *,
        model: Optional[torch.nn.Module],
        strategy: str,
        updates: bool,
        groups: Optional[List[dict]] = None,
        group_of: Optional[Dict[int, int]] = None,
        wire: str = "fp32",
        clip_norm: float = 0.0,
        share_buffers: bool = True,
        trace_steps: int = 20,
        config: Optional[dict] = None,
        strategy_options: Optional[dict] = None,
    ) -> None:
        job = current()
        self.job = job
        self.model = model
        self.updates = updates
        self.synchronizes = True
        self.is_joined = False
        self._told = -1
        trained = [(name, p) for name, p in parameters if p.requires_grad]
        self.places = [id(p) for _, p in trained]  # in one order on all ranks
        self._ids = set(self.places)
        self._versions = -1
        self._idle_steps = 0
        # All ranks learn of a problem of one of them before any begins.
        job._meet()
        job._agree(self._problem(parameters, trained, strategy))
        name = type(model).__name__ if model is not None else "model"
        options = {
            "strategy": strategy,
            "strategy_options": strategy_options or {},
            "updates_parameters": updates,
            "wire": wire,
            "clip_norm": clip_norm,
            "groups": groups or [{"name": "sgd"}],
            "number": len(job._sessions),
            "share_buffers": share_buffers and bool(buffers),
            "run": {
                "name": job._name if not job._sessions else f"{job._name}-{len(job._sessions) + 1}" if job._name else "",
                "folder": job._runs,
                "model": name,
                "launcher": job._native.launcher,
                "trace_steps": trace_steps,
            },
            "config": {
                "strategy": strategy,
                "wire": wire,
                "clip_norm": clip_norm,
                "optimizer": groups[0]["name"] if groups else "torch.optim",
                "outer_optimizer": not updates,
                "precision": "fp32",
                "device": job.device.type,
                "threads": torch.get_num_threads(),
                "program": os.path.basename(sys.argv[0]) if sys.argv else "",
                **(config or {}),
            },
        }
        of = [(group_of or {}).get(id(p), 0) for _, p in trained]
        self.session = _tutti.Session(job._native, job._meeting, trained, of, buffers, json.dumps(options))
        job._sessions.append(self.session)
        job._users.append(self)
        job._losses = job._losses or Losses(self.session)
        _held.update({id(p): p for _, p in trained})
        if model is not None:
            model._register_state_dict_hook(_own_memory)

    @staticmethod
    def _problem(parameters, trained, strategy: str) -> str:
        if not trained:
            return "the model has no parameter that requires a gradient"
        if any(id(p) in _held for _, p in trained):
            return (
                "the model has been given to Tutti before: wrap it once, in tutti.DistributedDataParallel or in an "
                "optimizer of tutti.optim"
            )
        devices = {p.device for _, p in trained}
        if len(devices) > 1:
            return f"the model's parameters are on several devices: {', '.join(sorted(map(str, devices)))}"
        names = _tutti.strategies()
        if strategy not in names:
            return f"there is no strategy {strategy!r}; there are {', '.join(names)}"
        return ""

    def begin_forward(self, inputs: Any, rates: Tuple[float, ...] = ()) -> None:
        """Before a forward pass of training, in a step with these learning rates where the engine updates."""
        self._check_parameters()
        if self.is_joined and self.synchronizes and self._told != self.session.steps:
            self._told = self.session.steps  # once a step, however often forward is called
            self._tell_others(True)
        self.session.begin_forward(_samples_of(inputs), rates)

    def _check_parameters(self) -> None:
        if self.model is None:
            return
        versions = 0
        for parameter in self.model.parameters():
            if parameter.requires_grad and id(parameter) not in self._ids:
                name = next(n for n, p in self.model.named_parameters() if p is parameter)
                raise UsageError(
                    f"parameter {name!r} came to the model, or began to require a gradient, after it was given to "
                    "Tutti: add and unfreeze parameters before that"
                )
            versions += parameter._version
        # While steps are profiled, steps of optimizers are seen.
        if not self.updates and not self.session.is_profiled and self.session.steps > 0:
            unchanged = versions == self._versions and self.session.outer_updates > self._idle_steps
            if unchanged and self.session.steps >= 2:
                raise UsageError(
                    "an optimizer has made steps, but no parameter of this model has changed: give it "
                    "model.parameters() of the model that is trained"
                )
        self._versions = versions
        self._idle_steps = self.session.outer_updates

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Backward passes in here are added up, and travel with the first one after it."""
        before = self.synchronizes
        self.synchronizes = False
        self.session.synchronize(False)
        try:
            yield
        finally:
            self.synchronizes = before
            self.session.synchronize(before)

    def _tell_others(self, is_active: bool) -> bool:
        """Whether any rank still has a batch."""
        self.job._drain()
        flag = torch.tensor([1 if is_active else 0])
        self.job._native.all_reduce(flag).wait()
        return int(flag.item()) > 0

    @contextlib.contextmanager
    def join(self, step) -> Iterator[None]:
        """A loop over batches, of which ranks may have unequally many; `step` is a step with nothing."""
        if self.is_joined:
            raise UsageError("join() inside join()")
        self.is_joined = True
        try:
            yield
            while self._tell_others(False):
                step()
        finally:
            self.is_joined = False


def _own_memory(module, state_dict, prefix, local_metadata):
    """Parameters lie in one buffer: what is saved gets memory of its own, or each would be saved with all others."""
    for name, value in state_dict.items():
        if isinstance(value, torch.Tensor) and not value.requires_grad and name.startswith(prefix):
            state_dict[name] = value.clone(memory_format=torch.preserve_format)
    return state_dict
