"""Links of a cluster in a box that are cut, slow or lose packets."""

import re
import subprocess
import time

import case as cases
from faults import Fault
from moment import Moment


class LinkFault(Fault):
    """Of one node, for good or for a while."""

    places = ("box",)
    survives = True

    def __init__(self, draw, case):
        super().__init__(draw, case)
        self.moment = Moment(draw, ["profile", "training", "evaluation", "checkpoint", "finishing"])
        self.node = draw.integer("node", 0, case.ranks - 1)

    def __str__(self):
        return f"n{self.node}, {self.moment}, {self.how()}"

    def strike(self, trial):
        if not self.moment.wait(trial.process, trial.records_file, trial.timings):
            return False
        self.spoil(trial)
        end = time.monotonic() + self.seconds
        while time.monotonic() < end and trial.process.poll() is None:
            time.sleep(0.02)
        self.mend(trial)
        return True

    def judge(self, trial):
        trial.expect_code(0)


class CutForGood(LinkFault):
    kind = "cut"
    seconds = 0
    survives = False

    def how(self):
        return "for good"

    def spoil(self, trial):
        trial.place.cluster(trial, "cut", f"n{self.node}")

    def mend(self, trial):
        pass

    def judge(self, trial):
        if trial.code == 0:
            return  # nobody had anything left to say to the others
        lines = [line for line in trial.output.splitlines() if "tutti: " in line]
        # From the node of mpirun, all others are gone.
        trial.named = any(re.search(r"ranks? [\d, ]+ of" if self.node == 0 or self.case.ranks == 2 else
                                    rf"ranks? (\d+, )*{self.node}\b(?!/)", line) for line in lines)

    def between(self, trial):
        trial.place.cluster(trial, "heal", "--all")


class CutForAWhile(CutForGood):
    """For less than the time-out. TCP tries again later and later, so a connection takes up to twice that to go on."""

    kind = "short-cut"
    survives = True

    def __init__(self, draw, case):
        super().__init__(draw, case)
        self.seconds = draw.uniform("seconds", 0.05, 0.25 * cases.COMM_TIMEOUT_S)

    def how(self):
        return f"{self.seconds:.2f} s"

    def mend(self, trial):
        trial.place.cluster(trial, "heal", f"n{self.node}")

    def judge(self, trial):
        trial.expect_code(0)


class SlowLink(LinkFault):
    """So slow that a message takes longer than the time-out, though it moves all the time."""

    kind = "slow-link"

    def __init__(self, draw, case):
        super().__init__(draw, case)
        self.mbit = draw.pick("rate", [4, 8, 30, 100])
        self.seconds = draw.uniform("seconds", 2, 3 * cases.COMM_TIMEOUT_S)

    def how(self):
        return f"{self.mbit} Mbit/s for {self.seconds:.0f} s"

    def spoil(self, trial):
        trial.place.cluster(trial, "shape", f"n{self.node}", "--rate", f"{self.mbit}mbit")

    def mend(self, trial):
        trial.place.cluster(trial, "shape", f"n{self.node}", "--rate", "unlimited")


class LossyLink(LinkFault):
    """Loses packets: some of all where the kernel can (netem), else those that a short queue has no room for."""

    kind = "lossy-link"

    def __init__(self, draw, case):
        super().__init__(draw, case)
        self.percent = draw.pick("loss", [0.5, 2, 5])
        self.seconds = draw.uniform("seconds", 2, 2 * cases.COMM_TIMEOUT_S)

    def how(self):
        return f"{self.percent} % for {self.seconds:.0f} s"

    def _tc(self, trial, *words):
        return subprocess.run(["tc", "-n", trial.place.namespace(trial, self.node), "qdisc", *words],
                              capture_output=True, check=False).returncode == 0

    def spoil(self, trial):
        loss = ("replace", "dev", "eth0", "root", "netem", "loss", f"{self.percent}%")
        queue = ("replace", "dev", "eth0", "root", "tbf", "rate", "200mbit", "burst", "6000", "limit",
                 str(int(60000 / self.percent)))
        if not self._tc(trial, *loss):
            trial.note("no netem: a short queue instead")
            self._tc(trial, *queue)

    def mend(self, trial):
        self._tc(trial, "del", "dev", "eth0", "root")


KINDS = [CutForGood, CutForAWhile, SlowLink, LossyLink]
