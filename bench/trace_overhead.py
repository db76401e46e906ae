#!/usr/bin/env python3
"""What recording a trace costs: steps with it over steps without it, interleaved on one machine.

    bench/trace_overhead.py --tutti build/release/tutti --rounds 9 -- --ranks 2 --strategy wfbp

Each round trains three times: without recording, with it in every step, and without it again. The ratio of the two
runs without is the noise that the other ratio has to be read against. Run it on an idle machine.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile

from records import Records

SKIPPED = 10  # warm-up, profile and the steps before a trace begins


def median_step(tutti, folder, name, steps, options):
    command = [tutti, "train", "--no-eval", "--steps", str(steps), "--runs", folder, "--name", name, *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}")
    return statistics.median(Records(os.path.join(folder, name)).step_times()[SKIPPED:])


def line(name, ratios):
    first, _, third = statistics.quantiles(ratios, n=4, method="inclusive")
    return (f"{name:<24} median {statistics.median(ratios):.4f}  quartiles {first:.4f} to {third:.4f}  "
            f"range {min(ratios):.4f} to {max(ratios):.4f}  n={len(ratios)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tutti", default="build/release/tutti")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("options", nargs="*", help="for tutti train, after --")
    arguments = parser.parse_args()
    if arguments.rounds < 2 or arguments.steps <= SKIPPED:
        parser.error(f"at least 2 rounds and {SKIPPED + 1} steps")
    with_trace, noise = [], []
    with tempfile.TemporaryDirectory() as folder:
        off = ["--trace-steps", "0"]
        on = ["--trace", os.path.join(folder, "trace.json"), "--trace-steps", str(arguments.steps)]
        for i in range(arguments.rounds):
            times = [
                median_step(arguments.tutti, folder, f"{i}-{name}", arguments.steps, [*arguments.options, *extra])
                for name, extra in (("off", off), ("on", on), ("again", off))
            ]
            without = (times[0] + times[2]) / 2
            with_trace.append(times[1] / without)
            noise.append(times[2] / times[0])
            print(f"round {i + 1}: off {times[0] * 1e3:.3f} ms, on {times[1] * 1e3:.3f} ms, off {times[2] * 1e3:.3f} ms",
                  flush=True)
    print(line("with trace / without", with_trace))
    print(line("without / without", noise))


if __name__ == "__main__":
    main()
