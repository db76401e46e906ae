#!/usr/bin/env python3
"""Compares Tutti's shared-memory all-reduce with the floor that memory sets, with Open MPI and with gloo.

Runs rounds of all programs in turn, so that a disturbance of the machine meets all of them; every program checks its
result before it measures. Prints a Markdown table and appends the raw samples to a file of JSON lines.

The floor: an in-place all-reduce of n bytes on P ranks reads at least P·n and writes at least P·n bytes in all. It is
measured in the same run as P pinned processes that each read and write n bytes of their own and exchange nothing.
"""
import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
KB, MB = 1024, 1024 * 1024
SIZES = [KB, 4 * KB, 16 * KB, 64 * KB, 256 * KB, MB, 4 * MB, 16 * MB, 64 * MB]
LABELS = {"shm": "Tutti shm", "staged": "Tutti, ordinary memory", "thread": "Tutti, progress thread", "floor": "floor",
          "openmpi": "Open MPI", "gloo": "gloo"}


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, cwd=HERE, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def python_with_torch():
    for python in ("/usr/bin/python3", sys.executable):
        if output_of(python, "-c", "import torch.distributed as d; print(d.is_gloo_available())") == "True":
            return python
    return None


def mpirun(ranks, cores):
    command = ["mpirun", "-n", str(ranks)]
    if os.geteuid() == 0:
        command.append("--allow-run-as-root")
    if ranks > cores:
        return command + ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    return command + ["--bind-to", "core"]


def contenders(args, cores):
    """What to run, as (name, function from ranks and sizes to a command)."""
    bench = args.build / "allreduce_bench"
    mpi = args.build / "mpi_allreduce"
    found = {}
    for what in ("shm", "floor", "staged", "thread"):
        found[what] = lambda ranks, what=what: [bench, what, ranks, args.budget]
    if mpi.exists() and shutil.which("mpirun"):
        found["openmpi"] = lambda ranks: mpirun(ranks, cores) + [mpi, args.budget]
    else:
        print("no mpi_allreduce or no mpirun: without Open MPI", file=sys.stderr)
    python = python_with_torch()
    if python:
        found["gloo"] = lambda ranks: [python, HERE / "gloo_allreduce.py", ranks, args.budget]
    else:
        print("no Python with torch and gloo: without gloo", file=sys.stderr)
    return {name: command for name, command in found.items() if not args.only or name in args.only}


def run_once(command, sizes):
    command = [str(part) for part in command] + [str(size) for size in sizes]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=1800, check=False)
    if done.returncode != 0:
        sys.exit(f"failed with {done.returncode}: {' '.join(command)}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def cpu_model():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def environment(python):
    return {
        "host": platform.node(), "cpu": cpu_model(), "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(), "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "load_before": os.getloadavg()[0],
        "commit": output_of("git", "rev-parse", "HEAD"), "dirty": bool(output_of("git", "status", "--porcelain")),
        "openmpi": output_of("mpirun", "--version").splitlines()[:1],
        "torch": output_of(python, "-c", "import torch; print(torch.__version__)") if python else "",
        "kind": "measured",
    }


def shown_size(size):
    return f"{size // MB} MB" if size >= MB else f"{size // KB} KB"


def shown_time(seconds):
    return f"{seconds * 1e6:.1f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def cell(samples):
    """Median, and between which values half of the samples lie."""
    low, middle, high = statistics.quantiles(samples, n=4) if len(samples) > 1 else samples * 3
    return f"{shown_time(middle)} ({shown_time(low)}–{shown_time(high)})"


def table(records, names, ranks, sizes):
    samples = {}
    for record in records:
        if record["ranks"] == ranks:
            samples.setdefault((record["what"], record["bytes"]), []).extend(record["samples_s"])
    n = {len(values) for values in samples.values()}
    ratios = [name for name in ("floor", "openmpi", "gloo") if name in names and "shm" in names]
    header = ["size"] + [LABELS[name] for name in names] + [f"shm / {LABELS[name]}" for name in ratios]
    lines = [f"### {ranks} ranks: median (quartiles), n = {', '.join(map(str, sorted(n)))} batches", "",
             "| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for size in sizes:
        row = [shown_size(size)] + [cell(samples[name, size]) for name in names]
        for name in ratios:
            ratio = statistics.median(samples["shm", size]) / statistics.median(samples[name, size])
            row.append(f"{ratio:.2f}")
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build" / "release" / "bench" / "allreduce",
                        help="where allreduce_bench and mpi_allreduce are")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=0.2, help="seconds per program, size and round")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="bytes")
    parser.add_argument("--only", nargs="+", choices=list(LABELS), help="leave out the others")
    parser.add_argument("--records", type=Path, default=HERE.parents[1] / "runs" / "bench" / "allreduce.jsonl",
                        help="file that the raw samples are appended to")
    args = parser.parse_args()
    if not (args.build / "allreduce_bench").exists():
        sys.exit(f"{args.build} has no allreduce_bench: build it, or say where it is with --build")
    cores = len(os.sched_getaffinity(0))
    if os.getloadavg()[0] > 0.5:
        print(f"WARNING: the machine is busy (load {os.getloadavg()[0]:.1f}): times will be too long", file=sys.stderr)
    all_contenders = contenders(args, cores)
    about = environment(python_with_torch())
    records = []
    for round_number in range(args.rounds):
        for ranks in args.ranks:
            for name, command in all_contenders.items():
                for record in run_once(command(ranks), args.sizes):
                    records.append({**record, "round": round_number, **about})
        print(f"round {round_number + 1} of {args.rounds} done", file=sys.stderr)
    args.records.parent.mkdir(parents=True, exist_ok=True)
    with args.records.open("a") as file:
        for record in records:
            file.write(json.dumps(record) + "\n")
    print(f"{about['cpu']}, {cores} cores, Linux {about['kernel']}, commit {about['commit'][:10]}"
          f"{' with changes' if about['dirty'] else ''}, {about['time']}\n")
    for ranks in args.ranks:
        print(table(records, list(all_contenders), ranks, args.sizes))


if __name__ == "__main__":
    main()
