"""This process among the ranks that train together."""

from __future__ import annotations

import atexit
import os
import sys
from typing import Callable, List, Optional

import torch

from . import _tutti
from ._catch_up import catch_up
from ._tutti import Error, PeerFailed, UsageError, __version__

for _kind in (Error, PeerFailed, UsageError):
    _kind.__module__ = "tutti"

# What a rank exits with that stopped only because another one failed: the launcher looks for the cause elsewhere.
_EXIT_PEER_FAILED = 75

# What of sums over ranks Tutti carries itself; other types go as the next larger one.
_CARRIED = {
    torch.float64: torch.float32,
    torch.int32: torch.int64,
    torch.int16: torch.int64,
    torch.int8: torch.int64,
    torch.uint8: torch.int64,
    torch.bool: torch.int64,
}


class Job:
    """The ranks that train together, and this one's place among them. Made by :func:`init`."""

    def __init__(self, native: "_tutti.Job", *, device: torch.device, name: str, runs: str) -> None:
        self._native = native
        self._meeting = _tutti.Meeting(native)
        self._missed = 0  # steps that this rank took part in with nothing, since ranks last were at one place
        self._name = name
        self._runs = runs
        self._sessions: list = []
        self._users: list = []  # who has them
        self._losses = None  # those of the first session
        self._pid = os.getpid()
        self._failed = ""  # why nothing more will be communicated
        self._exit_code: Optional[int] = None
        #: Where this rank should put its model: its GPU, or the CPU.
        self.device = device

    @property
    def rank(self) -> int:
        """This rank, from 0."""
        return self._native.rank

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return self._native.size

    @property
    def local_rank(self) -> int:
        """This rank among those of its machine."""
        return self._native.local_rank

    @property
    def transport(self) -> str:
        """What carries the messages: ``shm``, ``mpi`` or ``nccl``."""
        return self._native.transport

    def __repr__(self) -> str:
        return f"<tutti.Job: rank {self.rank} of {self.size} over {self.transport}>"

    # For the package:

    def _abort(self, reason: str) -> None:
        """Makes every other rank's waits fail with this reason."""
        if not self._failed:
            self._failed = reason
            self._native.abort(reason)

    def _agree(self, problem: str) -> None:
        """A collective: raises on every rank when one has a problem, the same on all."""
        problems = self._native.gather_texts(problem)
        for number, text in enumerate(problems):
            if text:
                self._native.finish_together()
                raise UsageError(problem or f"rank {number}: {text}")

    def _drain(self) -> None:
        """Between steps: makes the communicator free for others."""
        for session in self._sessions:
            session.drain()

    def _meet(self) -> None:
        """Before every collective between steps: until the others have come to one too, takes part in their steps."""
        self._drain()
        if self.size == 1 or not self._sessions:
            return
        while True:
            active, number, rates, all_missed = self._meeting.meet(self._missed)
            if active == 0:
                break
            self._sessions[number].take_part(rates)
            self._sessions[number].drain()
            self._missed += 1
        if all_missed > 0:
            missed, self._missed = self._missed, 0
            catch_up(self, missed)

    def _finish(self) -> None:
        if self._losses is not None:
            self._losses.flush()
        self._meet()
        for session in self._sessions:
            session.finish()
        self._native.finish()


_job: Optional[Job] = None
# Parameters lie in its memory: it stays as long as the process.
_joined: List["_tutti.Job"] = []
_is_over = False


def current() -> Job:
    """The job that init() joined; raises where it did not."""
    if _job is None:
        raise UsageError(
            "the job is over: tutti.shutdown() was called" if _is_over else "call tutti.init() first, on every rank"
        )
    return _job


def init(
    *,
    transport: str = "auto",
    device: Optional[str] = None,
    name: Optional[str] = None,
    runs: Optional[str] = "runs",
    timeout: float = 300.0,
) -> Job:
    """Joins the other ranks; the first call of a program. A second call returns the same job.

    The place among them comes from whoever started this process: ``tutti run``, mpirun, srun or torchrun. Alone it is
    rank 0 of 1.

    transport: ``auto``, ``shm``, ``mpi`` or ``nccl``.
    device: ``"cpu"`` or ``"cuda"``; unset, a GPU where there is one. ``job.device`` is this rank's.
    name: of the run in the folder ``runs``; unset, the time and the model's name. ``runs=None`` records nothing.
    timeout: seconds that a wait goes without news before it gives up.
    """
    global _job
    if _job is not None:
        return _job
    if _is_over:
        raise UsageError("a job cannot be joined again after tutti.shutdown()")
    local_rank = int(os.environ.get("TUTTI_LOCAL_RANK") or os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK")
                     or os.environ.get("SLURM_LOCALID") or os.environ.get("LOCAL_RANK") or 0)
    wants_gpu = device.startswith("cuda") if device else torch.cuda.is_available()
    if wants_gpu and not torch.cuda.is_available():
        raise UsageError(f"device={device!r}: PyTorch finds no usable GPU")
    gpu = local_rank % torch.cuda.device_count() if wants_gpu else 0
    native = _tutti.Job(transport=transport, device=gpu, timeout=timeout)
    _joined.append(native)
    if wants_gpu:
        torch.cuda.set_device(gpu)
    _job = Job(
        native,
        device=torch.device("cuda", gpu) if wants_gpu else torch.device("cpu"),
        name=name or os.environ.get("TUTTI_RUN_NAME", ""),
        runs=runs or "",
    )
    _watch_exceptions(_job)
    atexit.register(_at_exit)
    return _job


def is_initialized() -> bool:
    """Whether init() was called, and shutdown() was not."""
    return _job is not None


def rank() -> int:
    """This rank, from 0."""
    return current().rank


def size() -> int:
    """How many ranks there are."""
    return current().size


def strategies() -> List[str]:
    """The names that ``strategy`` may have."""
    return _tutti.strategies()


def barrier() -> None:
    """Returns when every rank has called it. A collective."""
    current()._meet()
    current()._native.barrier()


def _carried(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor as Tutti carries it: dense, on the CPU, of a type that it adds up."""
    return tensor.detach().to(device="cpu", dtype=_CARRIED.get(tensor.dtype, tensor.dtype)).contiguous()


def all_reduce(tensor: torch.Tensor, average: bool = False) -> torch.Tensor:
    """The sum over all ranks, or their average, as a new tensor. A collective; added in the order of the ranks."""
    return begin_all_reduce(tensor, average)()


def begin_all_reduce(tensor: torch.Tensor, average: bool = False) -> Callable[[], torch.Tensor]:
    """Begins it; what is returned waits for the end and gives the result."""
    job = current()
    job._meet()
    carried = _carried(tensor).clone()
    work = job._native.all_reduce(carried)

    def end() -> torch.Tensor:
        work.wait()
        result = carried
        if average:
            result = (carried if carried.is_floating_point() else carried.float()) / job.size
            return result.to(tensor.device)
        return result.to(device=tensor.device, dtype=tensor.dtype)

    return end


def broadcast(tensor: torch.Tensor, root: int = 0) -> torch.Tensor:
    """Rank ``root``'s tensor, in place, of the same shape and type on all ranks. A collective."""
    job = current()
    job._meet()
    # Bytes, so that every type arrives as it is.
    flat = tensor.detach().to("cpu").contiguous().reshape(-1).view(torch.uint8).clone()
    words = torch.zeros((flat.numel() + 7) // 8 * 8, dtype=torch.uint8)
    words[: flat.numel()] = flat
    words = words.view(torch.int64)
    job._native.broadcast(words, root)
    result = words.view(torch.uint8)[: flat.numel()].view(tensor.dtype).reshape(tensor.shape)
    with torch.no_grad():
        tensor.detach().copy_(result)
    return tensor


def shutdown() -> None:
    """The end of the job, on every rank: completes records, and waits for the others. Done at exit by itself."""
    global _job, _is_over
    job = current()
    try:
        job._finish()
    finally:
        _is_over = True
        _job = None


def _watch_exceptions(job: Job) -> None:
    """An exception that nobody catches ends this rank: the others are told why, instead of waiting for it."""
    before = sys.excepthook

    def hook(kind, value, trace):
        if job._pid == os.getpid():
            text = f"{kind.__name__}: {value}".split("\n")[0]
            # Out of backward(), PyTorch makes a plain RuntimeError of what Tutti throws.
            follows = issubclass(kind, PeerFailed) or (kind is RuntimeError and _tutti.has_peer_failed())
            job._exit_code = _EXIT_PEER_FAILED if follows else 130 if issubclass(kind, KeyboardInterrupt) else 1
            job._abort(f"rank {job.rank} ended with {text}")
        before(kind, value, trace)

    sys.excepthook = hook
    before_exit = sys.exit

    def leave(status=None, /):
        # Where it is not 0 the others must not go on without this rank: see _at_exit().
        if job._pid == os.getpid() and status is not None and status != 0:
            job._exit_code = status if isinstance(status, int) else 1
        before_exit(status)

    sys.exit = leave


def _at_exit() -> None:
    job = _job
    if job is None or job._pid != os.getpid():
        return
    code = job._exit_code
    if code is not None:
        job._abort(f"rank {job.rank} ended with exit code {code}")
    else:
        try:
            shutdown()
            return
        except Exception as error:  # noqa: BLE001 - whatever it was, the process must end, and say so
            sys.stderr.write(f"tutti: rank {job.rank}, at the end of the program: {error}\n")
            code = _EXIT_PEER_FAILED if isinstance(error, PeerFailed) else 1
            job._abort(str(error))
    sys.stdout.flush()
    sys.stderr.flush()
    _tutti.write_exit_note(code)
    os._exit(code)  # Python would exit with 0, or with 1, whatever it was
