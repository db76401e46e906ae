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
import json
import warnings
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Optional, Tuple

import torch

from ._job import UsageError
from ._session import EngineUser

# PyTorch 2's GradScaler hands itself over, as before, and says with each step that it may stop to.
warnings.filterwarnings("ignore", message="GradScaler is going to stop passing itself", category=FutureWarning)


class TuttiOptimizer(torch.optim.Optimizer):
    """What the optimizers of this module have in common: all parameters of a model, in one group or several.

    param_groups: as torch.optim takes them, e.g. ``[{"params": biases, "weight_decay": 0.0}]``. Parameters that are in
    none of them make a first group.
    """

    # What torch.optim calls the engine's state, by the engine's names.
    _state_names: Dict[str, str] = {}
    # What of a group's options the engine reads, beside its learning rate, by the engine's names.
    _option_names: Tuple[str, ...] = ("weight_decay",)
    # GradScaler.step() leaves unscaling, and leaving out the step, to step().
    _step_supports_amp_scaling = True

    def __init__(self, model: torch.nn.Module, name: str, defaults: dict, *, strategy: str, clip_norm: float, wire: str,
                 trace_steps: int, strategy_options: Optional[dict], param_groups: Optional[List[dict]]) -> None:
        if not isinstance(model, torch.nn.Module):
            raise UsageError(f"give {type(self).__name__} the model itself, not {type(model).__name__}: it trains all "
                             "parameters of it that require gradients; groups of them are named by param_groups=")
        self._model = model
        self._name = name
        named = list(model.named_parameters())
        self._is_made = False
        super().__init__(self._all_groups(named, param_groups or []), defaults)
        self._is_made = True
        group_of = {id(p): number for number, group in enumerate(self.param_groups) for p in group["params"]}
        self._options = [self._options_of(group) for group in self.param_groups]
        self._engine = EngineUser(
            named,
            list(model.named_buffers()),
            model=model,
            strategy=strategy,
            updates=True,
            groups=self._options,
            group_of=group_of,
            wire=wire,
            clip_norm=clip_norm,
            trace_steps=trace_steps,
            config={"lr": float(self.param_groups[0]["lr"]), **{k: v for k, v in self._options[0].items() if k != "name"}},
            strategy_options=strategy_options,
        )
        places = {id(p): i for i, p in enumerate(p for group in self.param_groups for p in group["params"])}
        # In the engine's order, with torch.optim's number of each.
        self._parameters = [(places[id(p)], name, p) for name, p in named if p.requires_grad]
        try:
            model.register_forward_pre_hook(self._before_forward, with_kwargs=True)
        except TypeError:  # PyTorch 1.13 gives what is not named alone
            model.register_forward_pre_hook(self._before_forward)

    def _all_groups(self, named: List[Tuple[str, torch.Tensor]], groups: List[dict]) -> List[dict]:
        own = {id(p) for _, p in named}
        taken = set()
        result = []
        for group in groups:
            group = dict(group)
            params = group["params"]
            group["params"] = [params] if isinstance(params, torch.Tensor) else list(params)
            strange = [tuple(p.shape) for p in group["params"] if id(p) not in own]
            if strange:
                raise UsageError(f"param_groups has a tensor of shape {strange[0]} that is no parameter of the model")
            taken.update(id(p) for p in group["params"])
            result.append(group)
        others = [p for _, p in named if id(p) not in taken]
        return [{"params": others}, *result] if others or not result else result

    def _options_of(self, group: dict) -> Dict[str, Any]:
        """What the engine is told of a group."""
        for option in ("amsgrad", "maximize", "dampening"):
            if group.get(option):
                raise UsageError(f"tutti.optim has no {option}: take torch.optim with tutti.DistributedDataParallel")
        options: Dict[str, Any] = {"name": self._name}
        for option in self._option_names:
            if option == "betas":
                options["beta1"], options["beta2"] = (float(beta) for beta in group["betas"])
            else:
                value = group[option]
                options["epsilon" if option == "eps" else option] = value if isinstance(value, bool) else float(value)
        return options

    def _rates(self) -> List[float]:
        return [float(group["lr"]) for group in self.param_groups]

    def _before_forward(self, module: torch.nn.Module, *inputs: Any) -> None:
        if module.training and torch.is_grad_enabled():
            self._engine.begin_forward(inputs, self._rates())

    def add_param_group(self, param_group: dict) -> None:
        if self._is_made:
            raise UsageError("name the groups of tutti.optim when it is made: param_groups=")
        super().add_param_group(param_group)

    @torch.no_grad()
    def step(self, closure: Optional[Callable[[], Any]] = None, grad_scaler: Any = None) -> Any:
        """Ends the step on every rank. A rank that has run no backward pass brings nothing.

        ``scaler.step(optimizer)`` of a GradScaler calls it with itself: where the sum of some gradient over ranks is not
        finite, all ranks leave the step out.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for number, group in enumerate(self.param_groups):
            options = self._options_of(group)
            if options != self._options[number]:  # a scheduler of momentum, or a state that was loaded
                self._engine.session.set_options(number, json.dumps(options))
                self._options[number] = options
        if grad_scaler is None:
            self._engine.session.finish_step(self._rates())
            return loss
        if self._engine.is_joined:
            raise UsageError("in join() a rank without batches does not know the scale of a GradScaler: take torch.optim "
                             "with tutti.DistributedDataParallel for both")
        found = self._engine.session.finish_scaled_step(self._rates(), 1.0 / float(grad_scaler.get_scale()))
        device = self._parameters[0][2].device
        grad_scaler._per_optimizer_states[id(self)]["found_inf_per_device"] = {
            device: torch.full((), 1.0 if found else 0.0, dtype=torch.float32, device=device)}
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
        self._engine.job._meet()
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
        if session.is_sharded:
            self._engine.job._meet()
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
        groups, count = [], 0
        for group in self.param_groups:
            length = len(group["params"])
            groups.append({**{key: value for key, value in group.items() if key != "params"},
                           "params": list(range(count, count + length))})
            count += length
        return {"state": state, "param_groups": groups, "tutti": {"steps": session.steps, "first_updates": first}}

    _counts_steps = True

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """What state_dict() gave, or torch.optim's like. Load the same on every rank."""
        groups = state_dict["param_groups"]
        if [len(group["params"]) for group in groups] != [len(group["params"]) for group in self.param_groups]:
            raise UsageError("the state is of another model, or of other groups: it has other parameters")
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
        for own, group in zip(self.param_groups, groups):
            own.update({key: value for key, value in group.items() if key != "params"})


def _defaults(like: Callable[..., torch.optim.Optimizer], **options: Any) -> Dict[str, Any]:
    """What this PyTorch's optimizer keeps of its options in a state: versions differ."""
    return like([torch.zeros(1)], **options).defaults


class SGD(TuttiOptimizer):
    """Gradient descent with momentum; the formula of ``torch.optim.SGD``."""

    _state_names = {"momentum": "momentum_buffer"}
    _option_names = ("momentum", "weight_decay", "nesterov")
    _counts_steps = False

    def __init__(self, model: torch.nn.Module, lr: float, momentum: float = 0.0, weight_decay: float = 0.0,
                 nesterov: bool = False, *, param_groups: Optional[List[dict]] = None, strategy: str = "buckets",
                 clip_norm: float = 0.0, wire: str = "fp32", trace_steps: int = 20,
                 strategy_options: Optional[dict] = None) -> None:
        super().__init__(
            model, "sgd",
            _defaults(torch.optim.SGD, lr=lr, momentum=momentum, weight_decay=weight_decay, nesterov=nesterov),
            strategy=strategy, clip_norm=clip_norm, wire=wire, trace_steps=trace_steps,
            strategy_options=strategy_options, param_groups=param_groups)


class _Adam(TuttiOptimizer):
    _state_names = {"exp_avg": "exp_avg", "exp_avg_sq": "exp_avg_sq"}
    _option_names = ("betas", "eps", "weight_decay")
    _engine_name = ""
    _like = torch.optim.AdamW
    _weight_decay = 0.0

    def __init__(self, model: torch.nn.Module, lr: float = 1e-3, betas: Tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: Optional[float] = None, *,
                 param_groups: Optional[List[dict]] = None, strategy: str = "buckets", clip_norm: float = 0.0,
                 wire: str = "fp32", trace_steps: int = 20, strategy_options: Optional[dict] = None) -> None:
        decay = self._weight_decay if weight_decay is None else weight_decay
        super().__init__(
            model, self._engine_name, _defaults(self._like, lr=lr, betas=tuple(betas), eps=eps, weight_decay=decay),
            strategy=strategy, clip_norm=clip_norm, wire=wire, trace_steps=trace_steps,
            strategy_options=strategy_options, param_groups=param_groups)


class Adam(_Adam):
    """The formula of ``torch.optim.Adam``."""

    _engine_name = "adam"
    _like = torch.optim.Adam


class AdamW(_Adam):
    """The formula of ``torch.optim.AdamW``: weight decay apart from the gradients, 0.01 unless given."""

    _engine_name = "adamw"
    _weight_decay = 0.01


class LAMB(_Adam):
    """As AdamW, with steps as long as each tensor's weights are large: for large batches."""

    _engine_name = "lamb"
    _weight_decay = 0.01
