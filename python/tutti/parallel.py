"""DistributedDataParallel: a model whose gradients are averaged over all ranks."""

from __future__ import annotations

import contextlib
from typing import Any, ContextManager, Iterator, Optional

import torch

from ._session import EngineUser


class DistributedDataParallel(torch.nn.Module):
    """A model that is trained on all ranks. When ``loss.backward()`` returns, the gradients are the averages over them.

    Every rank has the model, and any optimizer of ``torch.optim`` over its parameters; ranks begin with rank 0's
    values. Frozen, tied and unused parameters need no flag. ``state_dict()`` is the model's own, without a prefix.

    module: the model, on its device, with parameters in float32.
    strategy: how gradients travel: one of ``tutti.strategies()``. All of them end in the same bits over ``shm``.
    wire: the format in which gradients travel: ``fp32``, ``fp16``, ``bf16``, …
    broadcast_buffers: give all ranks rank 0's buffers (batch-norm statistics) in every step.
    trace_steps: steps of which a timeline is recorded, for ``tutti explain``.
    strategy_options: sizes as records have them, e.g. ``{"bucket_bytes": 1 << 20}``.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        strategy: str = "buckets",
        *,
        wire: str = "fp32",
        broadcast_buffers: bool = True,
        trace_steps: int = 20,
        strategy_options: Optional[dict] = None,
    ) -> None:
        super().__init__()
        if isinstance(module, DistributedDataParallel):
            inner = module.module  # refused below, on all ranks
        else:
            inner = module
        self._engine = EngineUser(
            list(inner.named_parameters()),
            list(inner.named_buffers()),
            model=inner,
            strategy=strategy,
            updates=False,
            wire=wire,
            share_buffers=broadcast_buffers,
            trace_steps=trace_steps,
            strategy_options=strategy_options,
        )
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self.training and torch.is_grad_enabled():
            self._engine.begin_forward((args, kwargs))
        return self.module(*args, **kwargs)

    def no_sync(self) -> ContextManager[None]:
        """Backward passes in here only add to this rank's gradients; the first one after it averages all of them."""
        return self._engine.no_sync()

    @contextlib.contextmanager
    def join(self, optimizer: torch.optim.Optimizer, *schedulers: Any) -> Iterator[None]:
        """Around a loop over batches, of which ranks may have unequally many.

            with model.join(optimizer, scheduler):
                for inputs, targets in loader: ...

        A rank that is through brings nothing to the steps of the others, and makes the same updates: it calls step()
        of the optimizer, and of the schedulers that the loop steps.
        """

        def step() -> None:
            optimizer.zero_grad(set_to_none=True)
            self._engine.session.finish_step([])
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            for scheduler in schedulers:
                scheduler.step()

        with self._engine.join(step):
            yield

    @property
    def strategy(self) -> str:
        """The strategy in use: ``bsp`` until the first steps were profiled; what ``auto`` has chosen."""
        return self._engine.session.strategy

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """The model's own, as without Tutti. Each rank may call it alone."""
        return self.module.state_dict(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """The model's own. Load the same on every rank."""
        return self.module.load_state_dict(*args, **kwargs)
