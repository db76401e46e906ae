"""When a fault strikes: an event of the run that its records tell of, and a while after it."""

import os
import time

import case as cases

PHASES = ["set-up", "profile", "training", "evaluation", "checkpoint", "finishing"]
LOOK_S = 0.002


class Timings:
    """How long the phases of a run take, from its start and the times in its records. Those of the undisturbed run
    say how long after an event a phase still lasts."""

    def __init__(self, started, ended, records):
        def time_of(wanted):
            return next((r["time"] for r in records if wanted(r)), None)
        run = time_of(lambda r: r["record"] == "run") or ended
        plan = time_of(lambda r: r["record"] == "plan") or run
        epochs = [r for r in records if r["record"] == "epoch"]
        saves = [r["seconds"] for r in records if r["record"] == "checkpoint"]
        steps = [r["time"] for r in records if r["record"] == "progress"]
        self.whole = ended - started
        self.of = {
            "set-up": run - started,
            "profile": max(0.01, plan - run),
            "training": (steps[-1] - steps[0]) / max(1, len(steps) - 1) if steps else 0.02,
            "evaluation": max((r.get("test_s") or 0.02 for r in epochs), default=0.02),
            "checkpoint": max(saves, default=0.02),
            "finishing": max(0.02, ended - epochs[-1]["time"]) if epochs else 0.05,
        }


class Moment:
    """A point of a phase. What is drawn is the event and the part of the phase that passes after it."""

    def __init__(self, draw, phases=PHASES):
        self.phase = draw.pick("phase", phases)
        self.part = draw.number("part of phase")
        self.step = 0
        if self.phase == "training":
            self.step = draw.integer("step", 1, cases.STEPS - 1)
        elif self.phase == "evaluation":
            self.step = draw.integer("epoch", 1, cases.EPOCHS) * cases.STEPS_PER_EPOCH
        elif self.phase == "checkpoint":
            self.step = draw.integer("save", 1, cases.STEPS // cases.CHECKPOINT_STEPS) * cases.CHECKPOINT_STEPS

    def __str__(self):
        return f"{self.phase}{f' after step {self.step}' if self.step else ''} + {self.part:.0%}"

    def _is_here(self, records):
        kinds = [record["record"] for record in records]
        if self.phase == "set-up":
            return True
        if self.phase == "profile":
            return "run" in kinds
        if self.phase == "finishing":
            return kinds.count("epoch") >= cases.EPOCHS
        return any(r["record"] == "progress" and r["step"] >= self.step for r in records)

    def wait(self, process, records_file, timings):
        """Returns at that moment; false if the run has ended before it."""
        size = -1
        while process.poll() is None:
            try:
                now = os.stat(records_file).st_size
            except OSError:
                now = 0
            if now != size or self.phase == "set-up":
                size = now
                if self._is_here(cases.read_records(records_file)[0]):
                    break
            time.sleep(LOOK_S)
        time.sleep(self.part * timings.of[self.phase])
        return process.poll() is None
