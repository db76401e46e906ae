"""Optimizers that Tutti runs itself: fused, sharded under ``zero1``, under way while the next forward begins.

    optimizer = tutti.optim.AdamW(model, lr=1e-3, strategy="zero1")
    for inputs, targets in loader:
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()

Gradients are averaged over all ranks on their way. After ``backward()`` a parameter's ``grad`` is None: it travels.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, ContextManager, Dict, Iterator, Optional, Tuple

import torch

from ._job import UsageError
from ._session import EngineUser


class TuttiOptimizer(torch.optim.Optimizer):
    """What the optimizers of this module have in common. One group of parameters, all of the model's."""

    # What torch.optim calls the engine's state, by the engine's names.
    _state_names: Dict[str, str] = {}

    def __init__(self, model: torch.nn.Module, options: dict, defaults: dict, *, strategy: str, clip_norm: float,
                 wire: str, trace_steps: int, strategy_options: Optional[dict]) -> None:
        if not isinstance(model, torch.nn.Module):
            raise UsageError(f"give {type(self).__name__} the model itself, not {type(model).__name__}: it trains all "
                             "parameters of it that require gradients")
        self._model = model
        names = list(model.named_parameters())
        self._engine = EngineUser(
            names,
            list(model.named_buffers()),
            model=model,
            strategy=strategy,
            updates=True,
            optimizer=options,
            wire=wire,
            clip_norm=clip_norm,
            trace_steps=trace_steps,
            config={"lr": defaults["lr"], **{k: v for k, v in options.items() if k != "name"}},
            strategy_options=strategy_options,
        )
        self._options = options
        self._parameters = [(i, name, p) for i, (name, p) in enumerate(names) if p.requires_grad]
        super().__init__([p for _, p in names], defaults)
        try:
            model.register_forward_pre_hook(self._before_forward, with_kwargs=True)
        except TypeError:  # PyTorch 1.13 gives what is not named alone
            model.register_forward_pre_hook(self._before_forward)

    def _before_forward(self, module: torch.nn.Module, *inputs: Any) -> None:
        if module.training and torch.is_grad_enabled():
            self._engine.begin_forward(inputs)

    def add_param_group(self, param_group: dict) -> None:
        if getattr(self, "param_groups", None):
            raise UsageError("tutti.optim has one group: all parameters of the model, when it was made")
        super().add_param_group(param_group)

    @torch.no_grad()
    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Ends the step on every rank. A rank that has run no backward pass brings nothing."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._engine.session.finish_step(float(self.param_groups[0]["lr"]))
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Nothing: step() forgets gradients by itself."""

    def no_sync(self) -> ContextManager[None]:
        """Backward passes in here are added up, and travel with the first one after it."""
        return self._engine.no_sync()

    @contextlib.contextmanager
    def join(self, *schedulers: Any) -> Iterator[None]:
        """Around a loop over batches, of which ranks may have unequally many: a rank that is through brings nothing to
        the steps of the others, and makes the same updates. It calls step() of the schedulers that the loop steps."""

        def step() -> None:
            self.step()
            for scheduler in schedulers:
                scheduler.step()

        with self._engine.join(step):
            yield

    def synchronize(self) -> None:
        """Completes what is under way, and gives all ranks rank 0's buffers. A collective: before evaluation."""
        self._engine.session.settle()

    @property
    def strategy(self) -> str:
        """The strategy in use: ``bsp`` until the first steps were profiled; what ``auto`` has chosen."""
        return self._engine.session.strategy

    @property
    def state_bytes(self) -> int:
        """Memory that the state takes on this rank: a share of it under ``zero1``."""
        return self._engine.session.optimizer_state_bytes

    def state_dict(self) -> Dict[str, Any]:
        """The whole state, as torch.optim has it: loadable there. A collective under ``zero1``: every rank calls it."""
        session = self._engine.session
        named = dict(session.optimizer_state())
        first = session.first_updates()
        state: Dict[int, Dict[str, Any]] = {}
        for (index, name, _), since in zip(self._parameters, first):
            if since == 0:
                continue
            state[index] = {theirs: named[f"{ours}.{name}"] for ours, theirs in self._state_names.items()
                            if f"{ours}.{name}" in named}
            if self._counts_steps:
                state[index]["step"] = torch.tensor(float(session.steps - since + 1))
        group = {key: value for key, value in self.param_groups[0].items() if key != "params"}
        group["params"] = list(range(len(self.param_groups[0]["params"])))
        return {"state": state, "param_groups": [group], "tutti": {"steps": session.steps, "first_updates": first}}

    _counts_steps = True

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """What state_dict() gave, or torch.optim's like. Load the same on every rank."""
        group = state_dict["param_groups"][0]
        if len(state_dict["param_groups"]) != 1 or len(group["params"]) != len(self.param_groups[0]["params"]):
            raise UsageError("the state is of another model: it has other parameters")
        state = state_dict["state"]
        extra = state_dict.get("tutti")
        if extra:
            steps, first = extra["steps"], list(extra["first_updates"])
        else:
            counts = {i: int(state[i]["step"]) if "step" in state[i] else 1 for i in state}
            steps = max(counts.values(), default=0)
            first = [steps - counts[i] + 1 if i in counts else 0 for i, _, _ in self._parameters]
        tensors: Dict[str, torch.Tensor] = {}
        for index, name, parameter in self._parameters:
            for ours, theirs in self._state_names.items():
                value = state.get(index, {}).get(theirs)
                tensors[f"{ours}.{name}"] = torch.zeros_like(parameter) if value is None else value
        self._engine.session.restore(steps, first, tensors)
        self.param_groups[0].update({key: value for key, value in group.items() if key != "params"})


def _defaults(like: Callable[..., torch.optim.Optimizer], **options: Any) -> Dict[str, Any]:
    """What this PyTorch's optimizer keeps of its options in a state: versions differ."""
    return like([torch.zeros(1)], **options).defaults


class SGD(TuttiOptimizer):
    """Gradient descent with momentum; the formula of ``torch.optim.SGD``."""

    _state_names = {"momentum": "momentum_buffer"}
    _counts_steps = False

    def __init__(self, model: torch.nn.Module, lr: float, momentum: float = 0.0, weight_decay: float = 0.0,
                 nesterov: bool = False, *, strategy: str = "buckets", clip_norm: float = 0.0, wire: str = "fp32",
                 trace_steps: int = 20, strategy_options: Optional[dict] = None) -> None:
        super().__init__(
            model, {"name": "sgd", "momentum": momentum, "weight_decay": weight_decay, "nesterov": nesterov},
            _defaults(torch.optim.SGD, lr=lr, momentum=momentum, weight_decay=weight_decay, nesterov=nesterov),
            strategy=strategy, clip_norm=clip_norm, wire=wire, trace_steps=trace_steps,
            strategy_options=strategy_options)


class _Adam(TuttiOptimizer):
    _state_names = {"exp_avg": "exp_avg", "exp_avg_sq": "exp_avg_sq"}
    _name = ""
    _like = torch.optim.AdamW
    _weight_decay = 0.0

    def __init__(self, model: torch.nn.Module, lr: float = 1e-3, betas: Tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: Optional[float] = None, *, strategy: str = "buckets",
                 clip_norm: float = 0.0, wire: str = "fp32", trace_steps: int = 20,
                 strategy_options: Optional[dict] = None) -> None:
        decay = self._weight_decay if weight_decay is None else weight_decay
        super().__init__(
            model, {"name": self._name, "beta1": betas[0], "beta2": betas[1], "epsilon": eps, "weight_decay": decay},
            _defaults(self._like, lr=lr, betas=tuple(betas), eps=eps, weight_decay=decay),
            strategy=strategy, clip_norm=clip_norm, wire=wire, trace_steps=trace_steps,
            strategy_options=strategy_options)


class Adam(_Adam):
    """The formula of ``torch.optim.Adam``."""

    _name = "adam"
    _like = torch.optim.Adam


class AdamW(_Adam):
    """The formula of ``torch.optim.AdamW``: weight decay apart from the gradients, 0.01 unless given."""

    _name = "adamw"
    _weight_decay = 0.01


class LAMB(_Adam):
    """As AdamW, with steps as long as each tensor's weights are large: for large batches."""

    _name = "lamb"
    _weight_decay = 0.01
