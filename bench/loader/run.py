#!/usr/bin/env python3
"""Samples per second out of the loader, against the number of its workers, for pictures that are decoded (nuclei) and for
digits that are deformed (bigmnist).

Every round runs every setting once, in an order that rotates from round to round, so that whatever else the machine does
falls on all of them. Prints a Markdown table; appends one JSON record per setting, with the raw samples, to a file.
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BATCH = {"nuclei": 16, "bigmnist": 512}


def measure(args, data, workers):
    command = [os.path.join(args.build, "loader_bench"), data, str(workers), str(BATCH.get(data, 64)), str(args.seconds)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if done.returncode != 0:
        sys.exit(f"failed ({done.returncode}): {' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout)


def cpu_name():
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release/bench/loader"), help="folder of loader_bench")
    parser.add_argument("--data", default="nuclei,bigmnist")
    parser.add_argument("--workers", default="0,1,2,4,8")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="for one measurement")
    parser.add_argument("--records", default=os.path.join(ROOT, "runs/loader.jsonl"))
    args = parser.parse_args()

    keys = [(data, int(workers)) for data in args.data.split(",") for workers in args.workers.split(",")]
    results = {key: [] for key in keys}
    for number in range(args.rounds):
        shift = number % len(keys)
        for key in keys[shift:] + keys[:shift]:
            results[key].append(measure(args, *key))
            print(f"round {number + 1}/{args.rounds}: {key[0]}, {key[1]} workers: "
                  f"{results[key][-1]['samples_per_s']:.0f}/s", file=sys.stderr)

    common = {"kind": "measured", "benchmark": "loader", "time": datetime.datetime.now().astimezone().isoformat(),
              "host": platform.node(), "cpu": cpu_name(), "cores": len(os.sched_getaffinity(0)),
              "system": platform.platform(), "load_average": os.getloadavg(), "seconds": args.seconds}
    os.makedirs(os.path.dirname(os.path.abspath(args.records)), exist_ok=True)
    with open(args.records, "a") as file:
        for (data, workers), runs in results.items():
            file.write(json.dumps({**common, "commit": runs[0]["commit"], "build": runs[0]["build"], "data": data,
                                   "workers": workers, "batch": runs[0]["batch"],
                                   "samples_per_s": [run["samples_per_s"] for run in runs]}) + "\n")

    commit = results[keys[0]][0]["commit"]
    print(f"{common['cpu']}, {common['cores']} cores; commit {commit}; median of {args.rounds} (min to max)\n")
    print("| data | workers | images/s | min to max | to 1 worker |\n|---|---|---|---|---|")
    for data, workers in keys:
        rates = [run["samples_per_s"] for run in results[(data, workers)]]
        alone = [run["samples_per_s"] for run in results.get((data, 1), results[(data, workers)])]
        print(f"| {data} | {workers} | {statistics.median(rates):.0f} | {min(rates):.0f} to {max(rates):.0f} | "
              f"{statistics.median(rates) / statistics.median(alone):.2f} |")


if __name__ == "__main__":
    main()
