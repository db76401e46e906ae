"""Faults from inside a process: system calls that fail while a run saves, a clock that jumps, a bit of a weight. The
library broken_calls.c, loaded before libc, makes them."""

import json
import os
import re
import signal
import struct
import time

import case as cases
import processes
from faults import Fault

RANKS_DIFFER = 87  # an exit code


class LibraryFault(Fault):
    """Struck by the library itself, which then makes a file."""

    needs = "library"
    places = ("shm", "mpi")

    def told(self, trial):
        return os.path.join(trial.folder, "told")

    def environment(self, trial):
        return {"LD_PRELOAD": trial.storm.library, "STORM_CALL_TELLS": self.told(trial), **self.settings(trial)}

    def strike(self, trial):
        while trial.process.poll() is None:
            if os.path.exists(self.told(trial)):
                return True
            time.sleep(0.005)
        return os.path.exists(self.told(trial))


class CallFault(LibraryFault):
    """The Nth call that writes into the checkpoints, or anywhere in the run's folder."""

    does = ()

    def __init__(self, draw, case):
        super().__init__(draw, case)
        self.what = draw.pick("what", list(self.does))
        self.where = draw.pick("where", {"checkpoints": 3, "run": 1})
        self.number = draw.integer("call", 1, 180 if self.where == "checkpoints" else 60)

    def __str__(self):
        return f"{self.what} at call {self.number} in the {self.where} folder"

    def settings(self, trial):
        folder = trial.run_folder + ("/checkpoints" if self.where == "checkpoints" else "/")
        return {"STORM_CALLS_IN": folder, "STORM_CALL": str(self.number), "STORM_CALL_DOES": self.what}


class BadDisk(CallFault):
    kind = "bad-disk"
    does = ("eio", "enospc")
    survives = True  # nothing is said of what is only tidied up

    def judge(self, trial):
        if trial.code == 0:
            return
        trial.expect_code(1)
        text = {"eio": "Input/output error", "enospc": "No space left on device"}[self.what]
        trial.named = any(text in line and trial.run_name in line for line in trial.output.splitlines())


class ShortWrites(CallFault):
    """Every write from then on takes half of what it is given: allowed, and no reason for anything."""

    kind = "short-writes"
    does = ("short",)
    survives = True

    def judge(self, trial):
        trial.expect_code(0)


class KillInSave(CallFault):
    kind = "kill-in-save"
    does = ("kill",)
    may_restart = True

    def judge(self, trial):
        if self.case.restarts and trial.code == 0:
            return
        trial.expect_code(128 + signal.SIGKILL, *([1] if trial.transport == "mpi" else []))
        trial.named = any(re.search(r"rank 0\b", line) for line in trial.output.splitlines()
                          if re.search("signal 9|[Kk]illed", line))


class StopInSave(CallFault):
    """Rank 0 stops in the middle of a save, while the others wait for it."""

    kind = "stop-in-save"
    does = ("stop",)

    def judge(self, trial):
        if trial.code == 0:
            trial.problems.append("the run ended well though rank 0 was stopped")
        trial.named = any(re.search(r"(?<!\[)rank 0\b(?!/)", line) for line in trial.output.splitlines()
                          if "tutti: " in line or line.startswith("rank 0 of"))


class ClockJump(LibraryFault):
    kind = "clock"
    survives = True

    def __init__(self, draw, case):
        super().__init__(draw, case)
        self.after = draw.number("after")
        self.jump = int(draw.pick("jump", [-86400 * 400, -3600, -7, 7, 3600, 86400 * 400]))

    def __str__(self):
        return f"{self.jump:+} s after {self.after:.0%} of the run"

    def settings(self, trial):
        return {"STORM_CLOCK_AFTER": f"{self.after * trial.timings.whole:.3f}", "STORM_CLOCK_JUMP": str(self.jump)}

    def strike(self, trial):
        time.sleep(self.after * trial.timings.whole)
        return trial.process.poll() is None

    def judge(self, trial):
        trial.expect_code(0)


class FlipWeight(LibraryFault):
    """A bit of a weight in the memory of one rank. Rank 0 is stopped in a save for that, so that all ranks hold the
    weights that it has written; the same bytes are looked for in the memory of the other rank."""

    kind = "flip-weight"
    may_restart = True
    needs = "library root"

    def __init__(self, draw, case):
        super().__init__(draw, case)
        self.save = draw.integer("save", 1, cases.STEPS // cases.CHECKPOINT_STEPS) * cases.CHECKPOINT_STEPS
        self.rank = draw.integer("rank", 0, case.ranks - 1)

    def __str__(self):
        return f"rank {self.rank}, step {self.save}"

    def settings(self, trial):
        return {"STORM_CALLS_IN": f"{trial.run_name}/checkpoints/writing-step-{self.save:010}/optimizer.safetensors",
                "STORM_CALL": "1", "STORM_CALL_DOES": "stop"}

    def strike(self, trial):
        if not super().strike(trial):
            return False
        found = {process.rank: process for process in processes.processes_of(trial.mark) if process.rank is not None}
        start = time.monotonic()
        try:
            place = os.path.join(trial.run_folder, f"checkpoints/writing-step-{self.save:010}/model.safetensors")
            needle = some_weights(processes.read(place), self.draw)
            flips = flip_in_memory(found[self.rank].pid, needle, self.draw.integer("bit", 0, 31), self.rank)
            trial.note(f"flipped at {flips} places in the memory of rank {self.rank}")
            if not flips:
                trial.problems.append("the storm did not find the weights in the rank's memory")
        finally:
            processes.send(found[0].pid, signal.SIGCONT)
        # On a machine that is so busy, the others may have given rank 0 up meanwhile: another fault than this.
        return time.monotonic() - start < 0.6 * cases.COMM_TIMEOUT_S

    def judge(self, trial):
        if self.case.restarts and trial.code == 0:
            return
        trial.expect_code(RANKS_DIFFER)
        lines = [line for line in trial.output.splitlines() if "other weights" in line]
        # Of two nobody knows which is right.
        trial.named = bool(lines) and (self.case.ranks == 2 or any(f"rank {self.rank}" in line for line in lines))


def some_weights(file, draw):
    """64 bytes of a large tensor of a safetensors file."""
    length = struct.unpack("<Q", file[:8])[0]
    header = json.loads(file[8:8 + length])
    name = draw.pick("tensor", ["conv2.weight", "fc1.weight"])
    begin, end = header[name]["data_offsets"]
    at = 8 + length + begin + draw.integer("element", 0, (end - begin) // 4 - 16) * 4
    return file[at:at + 64]


def flip_in_memory(pid, needle, bit, rank):
    """Flips this bit of the first word of every place with these bytes; returns how many there were. Of memory that
    ranks share, which has their parts in order, only the part of this rank."""
    places, shared = [], []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        for line in maps:
            addresses, rights = line.split()[:2]
            if not rights.startswith("rw"):
                continue
            begin, end = (int(text, 16) for text in addresses.split("-"))
            (shared if rights[3] == "s" else places).extend(find_in(memory, begin, end, needle))
        places += sorted(shared)[rank:rank + 1]
        for place in places:
            memory.seek(place + bit // 8)
            memory.write(bytes([needle[bit // 8] ^ (1 << bit % 8)]))
    return len(places)


def find_in(memory, begin, end, needle):
    step = 16 << 20
    for at in range(begin, end, step):
        try:
            memory.seek(at)
            data = memory.read(min(step + len(needle), end - at))
        except (OSError, ValueError, OverflowError):
            continue
        place = data.find(needle)
        while 0 <= place < step:
            yield at + place
            place = data.find(needle, place + 1)


KINDS = [BadDisk, ShortWrites, KillInSave, StopInSave, ClockJump, FlipWeight]
