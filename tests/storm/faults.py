"""What goes wrong: signals, damaged files, disks. Each fault says when it strikes, what it does, and what it has to
look like to the person in front of the screen."""

import os
import re
import resource
import signal
import subprocess
import time

import case as cases
import processes
from moment import Moment

SAVED = 85  # an exit code
# Who says it: "[rank 1] tutti: rank 1/3, step 15: …"
SPEAKER = re.compile(r"^(\[rank \d+\] )?(tutti: )?(rank \d+/\d+[^:]*: )?")


class Fault:
    """One fault, drawn from a seed. The trial calls, in this order: environment(), before(), strike(), judge(),
    between() (the run has ended and will be resumed)."""

    kind = ""
    places = ("shm", "mpi", "box", "slurm")
    needs = ""  # "root"
    may_restart = False  # whether --max-restarts makes sense
    survives = False  # whether the run may go on and end well
    kills_launcher = False  # SIGKILL, so that it cannot tidy up

    def __init__(self, draw, case):
        self.draw, self.case = draw, case

    def __str__(self):
        return self.kind

    def environment(self, trial):
        return {}

    def before(self, trial):
        pass

    def strike(self, trial):
        """False: there was nothing left to strike."""
        raise NotImplementedError

    def judge(self, trial):
        """Sets trial.named, and adds to trial.problems. The run has ended with trial.code."""

    def between(self, trial):
        pass

    def judge_resumed(self, trial, code, output):
        """Of the resumed run; true if that was as it should be, and there is no need to look at its weights."""
        return False

    def clean_up(self, trial):
        pass


class SignalFault(Fault):
    """A signal to one process: a rank or server, what started them, or mpirun."""

    signal = signal.SIGKILL

    def __init__(self, draw, case):
        super().__init__(draw, case)
        self.moment = Moment(draw)
        roles = {"rank": 3, "launcher": 1}
        if case.transport in ("mpi", "box"):
            roles["mpirun"] = 1
        if case.transport == "slurm" and self.signal in (signal.SIGKILL, signal.SIGSTOP):
            del roles["launcher"]  # an srun that is gone or stopped is Slurm's to notice
        self.role = draw.pick("target", roles)
        self.rank = draw.integer("rank", 0, case.processes - 1)

    def __str__(self):
        return f"{self.target()}, {self.moment}"

    def target(self):
        return f"rank {self.rank}" if self.role == "rank" else self.role

    def find(self, trial):
        """The pid, when there is such a process."""
        if self.role == "launcher":
            return trial.process.pid
        for process in processes.processes_of(trial.mark):
            if self.role == "rank" and process.rank == self.rank:
                return process.pid
            if self.role == process.name:
                return process.pid
        return None

    def strike(self, trial):
        if not self.moment.wait(trial.process, trial.records_file, trial.timings):
            return False
        pid = None
        while pid is None:
            pid = self.find(trial)
            if pid is None and trial.process.poll() is not None:
                return False
        self.pid = pid
        return processes.send(pid, self.signal)

    def is_named_in(self, lines):
        """Does one of these lines speak of this process, not only begin with its name?"""
        who = rf"(rank|task)s? (\d+, )*{self.rank}\b" if self.role == "rank" else self.role
        if self.rank >= self.case.ranks:
            who = rf"({who}|server {self.rank - self.case.ranks}\b)"
        return any(re.search(who, SPEAKER.sub("", line)) for line in lines)


class Kill(SignalFault):
    kind = "kill"
    may_restart = True

    def __init__(self, draw, case):
        super().__init__(draw, case)
        self.kills_launcher = self.role == "launcher"

    def judge(self, trial):
        if self.role == "launcher":
            trial.expect_code(-signal.SIGKILL)
            return
        if self.case.restarts and trial.code == 0:
            trial.named = f"restart 1 of {self.case.restarts}" in trial.output
            return
        # srun tells the others to end, and takes the largest code of all.
        others = {"shm": [], "slurm": [0, 1, 128 + signal.SIGTERM]}.get(trial.transport, [0, 1])
        trial.expect_code(128 + signal.SIGKILL, *others)
        lines = [line for line in trial.output.splitlines() if re.search(r"signal 9|[Kk]illed|died", line)]
        trial.named = self.is_named_in(lines)


class Stop(SignalFault):
    """Stopped for good. A launcher that a person stops stays so; then only the ranks have to end."""

    kind = "stop"
    signal = signal.SIGSTOP
    may_restart = True

    def strike(self, trial):
        if not super().strike(trial):
            return False
        if self.role == "launcher":
            trial.excused = self.pid
        return True

    def judge(self, trial):
        if self.role == "launcher":
            return  # it has been continued, and ends as the ranks ended
        if trial.code == 0:
            return  # it had nothing left to do for others
        # What ranks say, and what the launcher says of them.
        lines = [line for line in trial.output.splitlines() if re.match(r"(rank \d+ of \d+|mpirun) |.*tutti: |srun: error: ", line)]
        trial.named = self.is_named_in(lines)
        blamed = re.match(r"(?:tutti: )?rank (\d+) of \d+", lines[-1]) if lines else None
        if self.role == "rank" and blamed and int(blamed[1]) != self.rank:
            trial.problems.append(f"the last line blames another: {lines[-1]}")


class Pause(SignalFault):
    """Stopped for less than the time-out: nothing may come of it."""

    kind = "pause"
    signal = signal.SIGSTOP
    survives = True

    def strike(self, trial):
        if not super().strike(trial):
            return False
        time.sleep(self.draw.uniform("pause", 0.05, cases.COMM_TIMEOUT_S * 0.4))
        processes.send(self.pid, signal.SIGCONT)
        return True

    def judge(self, trial):
        trial.expect_code(0)


class Term(SignalFault):
    """Asked to stop: a checkpoint is saved, and nothing starts again."""

    kind = "term"
    signal = signal.SIGTERM
    may_restart = True

    def judge(self, trial):
        # Before a rank listens, or where mpirun passes it on in its own way, the signal ends the run.
        # srun that is told to end kills its tasks. It tells the others to end where one has died, and takes the largest
        # code of all.
        others = [1] if self.role == "mpirun" else \
            [] if trial.transport != "slurm" else \
            [128 + signal.SIGKILL] if self.role == "launcher" else [128 + signal.SIGTERM]
        trial.expect_code(SAVED, 128 + self.signal, -self.signal, 0, *others)
        # A signal to mpirun alone is not one to `tutti train`, which sees it fail.
        if self.role != "mpirun" and re.search(r"restart \d of", trial.output):
            trial.problems.append("it was restarted though a person stopped it")
        if self.role != "mpirun":  # which nobody but the launcher is to send signals to
            trial.named = trial.code in (0, -self.signal) or re.search("signal|[Ss]topped|Interrupt|Terminated", trial.output) is not None


class Int(Term):
    kind = "int"
    signal = signal.SIGINT


class AfterKill(Fault):
    """Everything is killed once there are checkpoints; what then lies on the disk is damaged."""

    kills_launcher = True

    def __init__(self, draw, case):
        super().__init__(draw, case)
        self.moment = Moment(draw, ["training"])
        self.moment.step = draw.integer("step", 2 * cases.CHECKPOINT_STEPS + 1, cases.STEPS - 1)

    def strike(self, trial):
        if not self.moment.wait(trial.process, trial.records_file, trial.timings):
            return False
        trial.kill_all()
        return True


def flip_bit(path, draw, name):
    """Returns where."""
    size = os.path.getsize(path)
    place, bit = draw.integer(name + " byte", 0, size - 1), draw.integer(name + " bit", 0, 7)
    with open(path, "r+b") as file:
        file.seek(place)
        byte = file.read(1)[0] ^ (1 << bit)
        file.seek(place)
        file.write(bytes([byte]))
    return place, bit


class FlipCheckpoint(AfterKill):
    kind = "flip-checkpoint"

    def __init__(self, draw, case):
        super().__init__(draw, case)
        self.file = draw.pick("file", ["model.safetensors", "optimizer.safetensors", "state.json"])
        self.which = draw.pick("which", {"newest": 3, "all": 1})

    def __str__(self):
        return f"{self.file} of {self.which}, {self.moment}"

    def between(self, trial):
        found = cases.checkpoints(trial.run_folder)
        self.damaged = found if self.which == "all" else found[-1:]
        for name in self.damaged:
            place = os.path.join(trial.run_folder, "checkpoints", name, self.file)
            trial.note(f"flipped byte, bit {flip_bit(place, self.draw, name)} of {place}")

    def judge_resumed(self, trial, code, output):
        trial.named = any(name in output and "damaged" in output for name in self.damaged)
        if self.which == "all" and code != 0:
            trial.equal = "refused"
            return trial.named
        return False


class FlipRecord(AfterKill):
    """A bit of the records, or their end, is gone. Records are not what training goes on from."""

    kind = "flip-record"

    def __init__(self, draw, case):
        super().__init__(draw, case)
        self.how = draw.pick("how", ["flip", "truncate"])

    def __str__(self):
        return f"{self.how}, {self.moment}"

    def between(self, trial):
        if self.how == "flip":
            trial.note(f"flipped byte, bit {flip_bit(trial.records_file, self.draw, 'records')} of the records")
            return
        size = os.path.getsize(trial.records_file)
        os.truncate(trial.records_file, self.draw.integer("length", 1, size - 1))

    def judge_resumed(self, trial, code, output):
        done = subprocess.run([trial.storm.tutti, "report", trial.run_folder], capture_output=True, encoding="utf-8",
                              stdin=subprocess.DEVNULL, timeout=240)
        if done.returncode not in (0, 1):
            trial.problems.append(f"`tutti report` of the damaged records ended with {done.returncode}: "
                                  f"{done.stderr.strip()[-300:]}")
        if done.returncode == 1:
            trial.named = "records.jsonl" in done.stderr
        return False


class FullDisk(Fault):
    """The runs lie on a small disk of their own, which is given more room before the run is resumed."""

    kind = "full-disk"
    needs = "root"
    survives = True
    places = ("shm", "mpi")

    def __init__(self, draw, case):
        super().__init__(draw, case)
        self.kilobytes = int(draw.uniform("size", 64, 36000))

    def __str__(self):
        return f"{self.kilobytes} KB"

    def before(self, trial):
        os.makedirs(trial.runs, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.kilobytes}k", "tmpfs", trial.runs], check=True)

    def strike(self, trial):
        trial.process.wait(timeout=120)
        return True

    def judge(self, trial):
        if trial.code == 0:
            return
        trial.expect_code(1)
        trial.named = "No space left on device" in trial.output and trial.run_name in trial.output

    def between(self, trial):
        subprocess.run(["mount", "-o", "remount,size=400m", trial.runs], check=True)

    def clean_up(self, trial):
        subprocess.run(["umount", "--lazy", trial.runs], check=False)


class MemoryLimit(SignalFault):
    """One process may have hardly more memory than it has."""

    kind = "memory"
    survives = True
    places = ("shm", "mpi")

    def __init__(self, draw, case):
        super().__init__(draw, case)
        self.role = "rank"
        self.more = int(draw.uniform("memory", 0, 16 << 20))

    def __str__(self):
        return f"{super().__str__()}, {self.more >> 10} KB more"

    def strike(self, trial):
        self.signal = 0
        if not super().strike(trial):
            return False
        pages = int(processes.read(f"/proc/{self.pid}/statm").split()[0] or 0)
        limit = pages * resource.getpagesize() + self.more
        try:
            resource.prlimit(self.pid, resource.RLIMIT_AS, (limit, limit))
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def judge(self, trial):
        if trial.code == 0:
            return
        # Libraries that do not look whether they got memory end in a signal.
        killed = [line for line in trial.output.splitlines() if "signal" in line]
        trial.named = self.is_named_in(killed) or \
            re.search(r"memory|alloc|Resource temporarily unavailable|failed to map segment", trial.output) is not None


KINDS = [Kill, Stop, Pause, Term, Int, FlipCheckpoint, FlipRecord, FullDisk, MemoryLimit]
