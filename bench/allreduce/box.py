#!/usr/bin/env python3
"""Compares Tutti's all-reduce over MPI with Open MPI's own and with gloo, over links of a given speed in a cluster in a box.

Makes the box (needs root), runs rounds of all programs in turn, one rank on each node, and removes it. Every program checks its result
before it measures. Prints a Markdown table and appends the raw samples to a file of JSON lines.

The ring bound: an all-reduce of n bytes on p ranks sends at least 2 (p-1)/p n bytes over each rank's link. Of the link's rate TCP gets what its
and Ethernet's headers leave: of frames of 1538 bytes on the wire, 1448.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import run

ROOT = run.HERE.parents[1]
TCP_SHARE = 1448 / 1538
LABELS = {"mpi": "Tutti", "openmpi": "Open MPI", "gloo": "gloo"}


def contenders(args):
    mpirun = [*(["chrt", "--rr", 1] if args.realtime else []), "mpirun", "-np", args.nodes, "--map-by", "node", "-x", "MASTER_ADDR=n0", "-x", "MASTER_PORT=29511"]
    found = {"mpi": [*mpirun, args.build / "allreduce_bench", "mpi", args.nodes, args.budget],
             "openmpi": [*mpirun, args.build / "mpi_allreduce", args.budget]}
    python = run.python_with_torch()
    if python:
        found["gloo"] = [*mpirun, python, run.HERE / "gloo_allreduce.py", args.nodes, args.budget]
    else:
        print("no Python with torch and gloo: without gloo", file=sys.stderr)
    return found


def cluster(args, *words):
    command = [str(word) for word in [args.tutti, "cluster", words[0], "--name", args.name, *words[1:]]]
    if subprocess.run(command, stdout=sys.stderr).returncode != 0:
        sys.exit(f"failed: {' '.join(command)}")


def table(records, args):
    samples = {}
    for record in records:
        samples.setdefault((record["what"], record["bytes"]), []).extend(record["samples_s"])
    names = list(dict.fromkeys(record["what"] for record in records))
    lines = [f"{args.nodes} nodes at {args.gbps:g} Gbit/s: median (quartiles), n = {len(next(iter(samples.values())))} batches", "",
             "| size | " + " | ".join(LABELS[name] for name in names) + " | ring bound, TCP | bound / Tutti | bound at line rate / Tutti | Tutti's speed-up over "
             + " | over ".join(LABELS[name] for name in names[1:]) + " |", "|" + "---|" * (2 * len(names) + 3)]
    for size in args.sizes:
        medians = {name: statistics.median(samples[name, size]) for name in names}
        line_rate = 2 * (args.nodes - 1) / args.nodes * size * 8 / (args.gbps * 1e9)
        row = [run.shown_size(size)] + [run.cell(samples[name, size]) for name in names]
        row += [run.shown_time(line_rate / TCP_SHARE), f"{line_rate / TCP_SHARE / medians['mpi']:.0%}", f"{line_rate / medians['mpi']:.0%}"]
        row += [f"{medians[name] / medians['mpi']:.2f}" for name in names[1:]]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tutti", type=Path, default=ROOT / "build/release/tutti")
    parser.add_argument("--build", type=Path, default=ROOT / "build/release/bench/allreduce", help="where allreduce_bench and mpi_allreduce are")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--network", default="1gbe", help="as tutti cluster up has it")
    parser.add_argument("--gbps", type=float, default=1, help="what that is")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=0.3, help="seconds per program, size and round")
    parser.add_argument("--sizes", type=int, nargs="+", default=run.SIZES, help="bytes")
    parser.add_argument("--realtime", action="store_true", help="run all programs with real-time priority: for machines with other things to do")
    parser.add_argument("--records", type=Path, default=ROOT / "runs/bench/allreduce-box.jsonl")
    args = parser.parse_args()
    args.name = f"allreduce{os.getpid()}"
    args.records.parent.mkdir(parents=True, exist_ok=True)
    programs = contenders(args)
    environment = run.environment(run.python_with_torch())
    records = []
    cluster(args, "up", "--nodes", args.nodes, "--network", args.network)
    try:
        for number in range(args.rounds):
            names = list(programs)
            for name in names[number % len(names):] + names[:number % len(names)]:
                print(f"round {number + 1}/{args.rounds}: {LABELS[name]}", file=sys.stderr)
                command = [args.tutti, "cluster", "run", "--name", args.name, "--", *programs[name]]
                for record in run.run_once(command, args.sizes):
                    records.append({**record, "what": name})
                    with args.records.open("a") as file:
                        file.write(json.dumps({**records[-1], "round": number, "network": args.network, "environment": environment}) + "\n")
    finally:
        cluster(args, "down")
    print(f"{environment['cpu']}, {environment['cores']} cores, load before {environment['load_before']:.1f}, commit {environment['commit'][:10]}")
    print(table(records, args))


if __name__ == "__main__":
    main()
