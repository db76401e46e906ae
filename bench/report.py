#!/usr/bin/env python3
"""How long `tutti report` takes for a sweep of many cells.

    bench/report.py --tutti build/release/tutti [--records 100000] [--steps 30]

Writes that many cell records, each with everything that `tutti bench` puts into one, then reports them to the terminal
and to a folder, and prints the seconds of both: by the clock, and of the processor.
"""
import argparse
import json
import os
import random
import resource
import subprocess
import tempfile
import time

MODELS = ["resnet18", "resnet50", "bert-base", "mnist-cnn"]
STRATEGIES = ["bsp", "wfbp", "buckets", "mgwfbp", "bytescheduler", "dear", "wfbp-ps"]
NETWORKS = ["1gbe", "10gbe", "100gbe"]
ENVIRONMENT = {"build": "Release", "commit": "0123456789ab", "compiler": "GNU 12.2.0", "cores": 2, "cpu": "a processor",
               "host": "node0", "libtorch": "1.13.0", "tutti": "0.1.0"}


def cell(number, steps):
    model, strategy, network = random.choice(MODELS), random.choice(STRATEGIES), random.choice(NETWORKS)
    ranks, batch = random.choice([1, 2, 4, 8]), random.choice([16, 32, 64])
    step_s = [random.gauss(0.08, 0.004) for _ in range(steps)]
    train_s = sum(step_s)
    rank = {"node": "node0", "train_s": train_s, "comm_s": 0.3, "comm_exposed_s": 0.1, "data_wait_s": 0.02}
    return {"record": "cell", "time": 1.7e9, "source": "measured", "sweep": "many", "cell": f"c{number}", "repeat": 1,
            "status": "done",
            "config": {"model": model, "batch": batch, "data": "synthetic", "strategy": strategy, "wire": "fp32",
                       "transport": "shm", "network": network, "ranks": ranks, "nodes": 1, "servers": 0, "workers": 1,
                       "precision": "fp32", "device": "cpu"},
            "environment": ENVIRONMENT, "load": 1.2, "samples_per_step": batch * ranks, "step_s": step_s,
            "command": f"tutti train --model {model} --batch {batch} --ranks {ranks} --strategy {strategy}",
            "warmup_steps": 5, "steps": steps, "run_s": train_s, "node_list": "node0",
            "epochs": [{"epoch": 1, "train_s": train_s, "loss": 0.3,
                        "ranks": [dict(rank, rank=r) for r in range(ranks)]}],
            "breakdown": {"compute_s": 0.06, "exposed": {"bandwidth": 0.01, "start-up": 0.001}, "data_wait_s": 0.001,
                          "optimizer_s": 0.002},
            "nodes": [{"name": "node0", "ranks": ranks}]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tutti", required=True, help="the binary")
    parser.add_argument("--records", type=int, default=100000)
    parser.add_argument("--steps", type=int, default=30, help="raw step times in each record")
    arguments = parser.parse_args()
    random.seed(1)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "cells.jsonl")
        with open(file, "w") as out:
            for number in range(arguments.records):
                out.write(json.dumps(cell(number, arguments.steps)) + "\n")
        result = {"records": arguments.records, "megabytes": round(os.path.getsize(file) / 1e6, 1)}
        for what, more in (("terminal", []), ("folder", ["-o", os.path.join(folder, "report")])):
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
            subprocess.run([os.path.abspath(arguments.tutti), "report", file, *more], check=True, stdout=subprocess.DEVNULL)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            result[what + "_s"] = round(time.monotonic() - start, 2)
            result[what + "_processor_s"] = round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2)
        result["peak_rss_mb"] = round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
        print(json.dumps(result))


if __name__ == "__main__":
    main()
