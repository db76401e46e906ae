#!/usr/bin/env python3
"""Whether --strategy auto finds a plan as fast as the best fixed strategy.

    bench/auto.py [--tutti build/release/tutti] [--cases mnist-cnn:4 …] [--sets 3] [--turns 40]

Three models on two links, two ranks. A machine that others use has moods that last for seconds to minutes and are larger
than what is to be seen here, so all runs of a case are alive at the same time and take short turns: all but one are stopped
(SIGSTOP). `auto` runs alone until it has chosen. Of each turn the median step counts, without the first ones.

First all fixed strategies take turns; then `auto` and the fastest of them, and what is printed comes from those later turns
alone: the best of eight by the same turns would be the luckiest of eight too. It is the median over turns of the times of
`auto` over those of the best, with the range that holds it with 95 % (by drawing turns again, 2000 times). The first turns may
have named one that is not the best: the last column says by how much that one is expected to be slower (by drawing those again).
"""
import argparse
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from records import Records

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIXED = ["bsp", "wfbp", "buckets", "fusion", "mgwfbp", "bytescheduler", "dear", "zero1"]
MODELS = {  # about as long to compute as their gradients travel at 4 Gbit/s
    "mnist-cnn": ["--batch", "64"],
    "transformer": ["--width", "64", "--depth", "2", "--batch", "4"],
    "bert-base": ["--width", "64", "--depth", "2", "--batch", "8"],
}
SKIPPED = 3  # steps of a turn that do not count: the first was stopped in its middle, caches belong to another run


class Run:
    """A training run that can be stopped and continued, with the times of its steps."""

    def __init__(self, arguments, folder, model, link, strategy):
        self.strategy = strategy
        self.turns = []
        command = [str(ROOT / arguments.tutti), "train", "--model", model, *MODELS[model], "--data", "synthetic", "--train-size", "65536",
                   "--test-size", "64", "--ranks", str(arguments.ranks), "--threads", "1", "--device", "cpu", "--no-eval", "--steps", "1000000",
                   "--log-every", "1", "--strategy", strategy, "--runs", str(folder), "--name", strategy]
        if link != "own":
            command += ["--link-gbps", link, "--link-startup-us", "50"]
        self.folder = folder / strategy
        self.output = open(folder / f"{strategy}.txt", "w+")
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=self.output, stderr=subprocess.STDOUT, start_new_session=True)

    def signal(self, number):
        """To the command and its ranks; ranks before the command, which looks after them."""
        def tree(pid):
            try:
                children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            except FileNotFoundError:
                children = []
            return [one for child in children for one in tree(int(child))] + [pid]
        for pid in tree(self.process.pid):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def check(self):
        if self.process.poll() is not None:
            self.output.seek(0)
            sys.exit(f"--strategy {self.strategy} ended early:\n{self.output.read()}")

    def wait_for_plan(self):
        """Until it has a plan, and has run it for some steps."""
        while True:
            self.check()
            records = Records(self.folder)
            plans, steps = records.plan_steps(), records.progress_steps()
            if plans and steps and steps[-1] > plans[-1] + 20:
                return
            time.sleep(0.3)

    def choice(self):
        search = Records(self.folder).searches()[-1]
        chosen = search["candidates"][search["chosen"]]
        return f"{chosen['strategy']} {chosen['settings']}".strip()

    def step_s(self):
        ends = Records(self.folder).progress_times()
        return statistics.median(after - before for before, after in zip(ends, ends[1:]))

    def take_turn(self, seconds):
        self.check()
        start = time.time()
        self.signal(signal.SIGCONT)
        time.sleep(seconds)
        self.signal(signal.SIGSTOP)
        self.turns.append((start, time.time()))

    def step_times(self):
        """The median step of each turn."""
        ends = Records(self.folder).progress_times()
        result = []
        for start, stop in self.turns:
            inside = [end for end in ends if start < end < stop]
            steps = [after - before for before, after in zip(inside, inside[1:])][SKIPPED:]
            result.append(statistics.median(steps) if len(steps) >= 3 else None)  # the machine hardly ran it at all
        return result

    def end(self):
        self.signal(signal.SIGKILL)
        self.process.wait()
        self.output.close()


def take_turns(runs, turns, seconds, show):
    """Times of each run, turn by turn."""
    for turn in range(turns):
        show(turn + 1)
        for run in runs if turn % 2 == 0 else reversed(runs):
            run.take_turn(seconds)
    times = {run.strategy: run.step_times() for run in runs}
    complete = [turn for turn in range(turns) if all(of_run[turn] for of_run in times.values())]
    if len(complete) < 0.8 * turns:
        sys.exit(f"in {turns - len(complete)} of {turns} turns fewer than {SKIPPED + 4} steps were done: make turns longer (--seconds)")
    return {strategy: [of_run[turn] for turn in complete] for strategy, of_run in times.items()}


def relative(times):
    """Of each strategy the median over turns, against all of the turn, so that a slow minute does not weigh more."""
    means = [statistics.mean(turn) for turn in zip(*times.values())]
    return {strategy: statistics.median(time / mean for time, mean in zip(of_one, means)) for strategy, of_one in times.items()}


def fastest(times):
    medians = relative(times)
    return min(medians, key=medians.get)


def missed(times, draws=400):
    """How much slower than the best is what such turns name as the fastest, on average?"""
    source = random.Random(1)
    truth = relative(times)
    turns = range(len(next(iter(times.values()))))

    def drawn():
        chosen = source.choices(turns, k=len(turns))
        return {strategy: [of_one[turn] for turn in chosen] for strategy, of_one in times.items()}
    return statistics.mean(truth[fastest(drawn())] for _ in range(draws)) / min(truth.values()) - 1


def one_set(arguments, model, link, number):
    """What auto chose, the fastest fixed strategy, and the times of both, turn by turn."""
    def show(what):
        if sys.stderr.isatty():
            print(f"\r{model}, {link}: set {number + 1} of {arguments.sets}, {what}\033[K", end="", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        runs = []
        try:
            for strategy in ["auto"] + FIXED:
                show(f"starting {strategy}")
                runs.append(Run(arguments, pathlib.Path(folder), model, link, strategy))
                runs[-1].wait_for_plan()
                runs[-1].signal(signal.SIGSTOP)
            chosen, fixed = runs[0], runs[1:]
            seconds = max(arguments.seconds, 15 * fixed[0].step_s())
            screening = take_turns(fixed, arguments.screening, seconds, lambda turn: show(f"turn {turn} of {arguments.screening} of all"))
            best = next(run for run in fixed if run.strategy == fastest(screening))
            best.turns.clear()
            times = take_turns([chosen, best], arguments.turns, seconds, lambda turn: show(f"turn {turn} of {arguments.turns} of two"))
            return {"chosen": chosen.choice(), "best": best.strategy, "auto_s": times["auto"], "best_s": times[best.strategy], "screening_s": screening}
        finally:
            for run in runs:
                run.end()
            show("")


def interval(values, draws=2000):
    source = random.Random(1)
    medians = sorted(statistics.median(source.choices(values, k=len(values))) for _ in range(draws))
    return medians[draws // 40], medians[-draws // 40 - 1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tutti", default="build/release/tutti")
    parser.add_argument("--cases", nargs="+", metavar="MODEL:GBPS", default=[f"{model}:{link}" for link in ("4", "own") for model in MODELS])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--sets", type=int, default=3, help="whole runs of each strategy, auto's search included")
    parser.add_argument("--screening", type=int, default=12, help="turns of all fixed strategies, in each set")
    parser.add_argument("--turns", type=int, default=40, help="turns of auto and the fastest of them, in each set")
    parser.add_argument("--seconds", type=float, default=0.8, help="of a turn, 15 steps at least")
    parser.add_argument("--json", help="write all times to this file")
    arguments = parser.parse_args()
    print("| | `auto` chose | ms a step | best fixed | ms a step | `auto` over it | turns | which may be slower than the best by |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    everything = {}
    for case in arguments.cases:
        model, link = case.split(":")
        sets = [one_set(arguments, model, link, number) for number in range(arguments.sets)]
        values = [chosen / best for one in sets for chosen, best in zip(one["auto_s"], one["best_s"])]
        low, high = interval(values)
        place = "shared memory" if link == "own" else f"{link} Gbit/s"

        def names(key):
            return ", ".join(dict.fromkeys(f"`{one[key]}`" for one in sets))

        def milliseconds(key):
            return 1e3 * statistics.median(second for one in sets for second in one[key])
        print(f"| {model}, {place} | {names('chosen')} | {milliseconds('auto_s'):.1f} | {names('best')} | {milliseconds('best_s'):.1f} | "
              f"{100 * (statistics.median(values) - 1):+.1f} % ({100 * (low - 1):+.1f} to {100 * (high - 1):+.1f}) | {len(values)} | "
              f"{100 * statistics.mean(missed(one['screening_s']) for one in sets):.1f} % |", flush=True)
        everything[case] = sets
        if arguments.json:
            pathlib.Path(arguments.json).write_text(json.dumps(everything))


if __name__ == "__main__":
    main()
