#!/usr/bin/env python3
"""How far communication hides behind computation that takes as long.

    bench/overlap.py --tutti build/release/tutti [--ranks 2] [--rounds 5]

First finds the link speed at which the gradients travel for as long as a step computes: `bsp` without a limit is the
computation alone, and what `bsp` takes longer on limited links is the communication alone. Then every round runs these two
and every strategy once, in an order that rotates, and the table says how long a step of each takes over the longer of the
two in the same round. 1 is the floor; `bsp` itself is at about 2. The links are pretended (--link-gbps of `tutti train`):
they take no processor time, so cores are free for computing, as with a network card that does its own work.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FREE, BSP = "bsp, no limit", "bsp"


def step_ms(arguments, strategy, gbps, trace=None):
    """Milliseconds of a step, after warm-up."""
    with tempfile.TemporaryDirectory() as folder:
        summary = pathlib.Path(folder) / "summary.json"
        command = [str(ROOT / arguments.tutti), "train", "--model", arguments.model, "--data", arguments.data, "--train-size", "16384",
                   "--ranks", str(arguments.ranks), "--threads", "1", "--batch", str(arguments.batch), "--steps", str(arguments.steps), "--no-eval",
                   "--device", "cpu", "--runs", folder, "--summary", str(summary), "--strategy"] + strategy.split()
        if gbps > 0:
            command += ["--link-gbps", f"{gbps:.4g}"]
        if trace:
            command += ["--trace", trace]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
        report = json.loads(summary.read_text())
        return 1e3 * arguments.ranks * arguments.batch / report["samples_per_s_steady"], report


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tutti", default="build/release/tutti")
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--data", default="synthetic-mnist")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--strategies", nargs="+", metavar="STRATEGY",
                        default=["wfbp", "buckets --bucket-mb 4", "dear --bucket-mb 2", "zero1 --bucket-mb 2", "bytescheduler --partition-mb 1"])
    parser.add_argument("--traces", help="folder for a timeline of each strategy (Chrome trace), from one more run of each")
    arguments = parser.parse_args()

    compute, _ = step_ms(arguments, "bsp", 0)
    gbps = 10.0
    for _ in range(3):
        both, _ = step_ms(arguments, "bsp", gbps)
        gbps *= max(0.1, (both - compute) / compute)
    print(f"{arguments.model}, {arguments.ranks} ranks × batch {arguments.batch}: at {gbps:.3g} Gbit/s communication takes as long as computation", flush=True)

    contenders = [FREE, BSP] + arguments.strategies
    times = {name: [] for name in contenders}
    for number in range(arguments.rounds):
        for offset in range(len(contenders)):
            name = contenders[(number + offset) % len(contenders)]
            milliseconds, report = step_ms(arguments, "bsp", 0) if name == FREE else step_ms(arguments, name, gbps)
            times[name].append(milliseconds)
    longer = [max(free, both - free) for free, both in zip(times[FREE], times[BSP])]
    environment = report["environment"]
    print(f"{environment['cpu']}, {environment['cores']} cores, commit {environment['commit']}\n")
    print("| | ms a step, median | min to max | n | over the longer of the two | min to max |\n|---|---|---|---|---|---|")
    alone = [both - free for free, both in zip(times[FREE], times[BSP])]
    rows = [("computation alone", times[FREE]), ("communication alone", alone)] + [(f"`{name}`", times[name]) for name in contenders[1:]]
    for name, values in rows:
        ratios = [value / most for value, most in zip(values, longer)]
        print(f"| {name} | {statistics.median(values):.1f} | {min(values):.1f} to {max(values):.1f} | {len(values)} | "
              f"{statistics.median(ratios):.2f} | {min(ratios):.2f} to {max(ratios):.2f} |", flush=True)
    if arguments.traces:
        folder = pathlib.Path(arguments.traces)
        folder.mkdir(parents=True, exist_ok=True)
        for name in arguments.strategies:
            step_ms(arguments, name, gbps, str(folder.resolve() / f"{name.split()[0]}.json"))


if __name__ == "__main__":
    main()
