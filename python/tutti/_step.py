"""The loss of a step, for the records."""

from __future__ import annotations

from types import TracebackType
from typing import Optional, Type, Union

import torch

from ._job import UsageError, current

# Reading a value of a GPU waits for it: losses are added up there, and read once in so many steps.
_READ_EVERY = 20


class step:
    """A step of training, whose loss is recorded: ``tutti report`` and live views show its course.

        with tutti.step() as step:
            step.loss = criterion(model(inputs), targets)
            step.loss.backward()
            optimizer.step()

    A step ends by itself, with or without this: with ``backward()`` under ``DistributedDataParallel``, with ``step()``
    of an optimizer of ``tutti.optim``.
    """

    #: What the step was trained on: a number, or a tensor of one.
    loss: Optional[Union[float, torch.Tensor]] = None

    def __enter__(self) -> "step":
        if current()._losses is None:
            raise UsageError("tutti.step() comes after tutti.DistributedDataParallel, or an optimizer of tutti.optim")
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if self.loss is not None and kind is None:
            current()._losses.add(self.loss)


class Losses:
    """Losses on their way to the records of a session."""

    def __init__(self, session) -> None:
        self._session = session
        self._sum: Union[float, torch.Tensor] = 0.0
        self._count = 0

    def add(self, loss: Union[float, torch.Tensor]) -> None:
        if isinstance(loss, torch.Tensor):
            if loss.numel() != 1:
                raise UsageError(f"the loss of a step is one number, not a tensor of {list(loss.shape)}")
            loss = loss.detach().float().reshape(())
        self._sum = self._sum + loss
        self._count += 1
        is_far = isinstance(self._sum, torch.Tensor) and self._sum.device.type != "cpu"
        if not is_far or self._count == _READ_EVERY:
            self.flush()

    def flush(self) -> None:
        if self._count:
            self._session.add_losses(float(self._sum), self._count)
        self._sum, self._count = 0.0, 0
