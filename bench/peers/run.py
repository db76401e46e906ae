#!/usr/bin/env python3
"""Compares Tutti's training of mnist-cnn with PyTorch's: plain on one rank, DistributedDataParallel on more.

Every round runs every contender once, in an order that rotates from round to round, so that whatever else the machine
does falls on all of them. Prints a Markdown table; appends one JSON record per contender, with the raw samples, to a file.
Two lines of the table are the same contender twice: how far they differ is how far the numbers can be trusted.
"""

import argparse
import datetime
import functools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def find_python(given):
    """An interpreter with torch: the one given, else the first of the usual ones that can import it."""
    for python in [given] if given else [sys.executable, "/usr/bin/python3", "python3"]:
        probe = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
        if probe.returncode == 0:
            return python, probe.stdout.strip()
    sys.exit("no Python with torch found; install python3-torch, or name an interpreter with --python")


def find_data(given):
    candidates = [given] if given else [
        *([os.path.join(os.environ["TUTTI_DATA"], "mnist")] if os.environ.get("TUTTI_DATA") else []),
        os.path.join(ROOT, "data/mnist"), os.path.join(ROOT, "../shared/data/mnist")]
    for folder in candidates:
        if os.path.isdir(folder):
            return os.path.abspath(folder)
    sys.exit("no MNIST files in " + ", ".join(candidates) + "; name their folder with --data")


def run_pytorch(args, ranks):
    command = [args.python, os.path.join(HERE, "pytorch_mnist.py"), "--data", args.data, "--ranks", str(ranks),
               "--threads", str(args.threads), "--batch", str(args.batch), "--steps", str(args.steps),
               "--warmup", str(args.warmup), "--device", args.device]
    extra = dict(setting.split("=", 1) for setting in args.pytorch_env)
    return json.loads(run(command, args, extra).splitlines()[-1])["samples_per_s"], command


def run_tutti(args, ranks, transport="shm"):
    with tempfile.TemporaryDirectory() as folder:
        summary = os.path.join(folder, "summary.json")
        command = [*args.tutti.split(), "train", "--model", "mnist-cnn", "--data", "mnist", "--ranks", str(ranks),
                   "--threads", str(args.threads), "--batch", str(args.batch), "--optimizer", "sgd", "--momentum",
                   "0.9", "--lr", "0.01", "--steps", str(args.warmup + args.steps), "--no-eval", "--device", args.device,
                   "--transport", transport, "--runs", folder, "--summary", summary]
        run(command, args)
        with open(summary) as file:
            return json.load(file)["samples_per_s"], command


def run(command, args, extra={}):
    # The same threads for both sides, whichever library takes them; TUTTI_DATA so that both read the same files.
    environment = {**os.environ, "OMP_NUM_THREADS": str(args.threads), "OPENBLAS_NUM_THREADS": str(args.threads),
                   "MKL_NUM_THREADS": str(args.threads), "TUTTI_DATA": os.path.dirname(args.data), **extra}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=args.timeout)
    if done.returncode != 0:
        sys.exit(f"failed ({done.returncode}): {' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True).stdout.strip()


def cpu_name():
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="1,2", help="rank counts to compare at (default 1,2)")
    parser.add_argument("--transports", default="shm", help="of Tutti, with more than one rank: shm,mpi")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100, help="timed steps per run")
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64, help="per rank")
    parser.add_argument("--threads", type=int, default=1, help="per rank")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--tutti", default="./tutti", help="command that runs Tutti, from the repository root")
    parser.add_argument("--python", default="", help="interpreter with torch")
    parser.add_argument("--pytorch-env", action="append", default=[], metavar="NAME=VALUE",
                        help="set for PyTorch alone; OPENBLAS_CORETYPE=SkylakeX lets Debian's OpenBLAS use AVX-512 on "
                             "processors it does not know")
    parser.add_argument("--data", default="", help="folder with MNIST's four files")
    parser.add_argument("--records", default=os.path.join(ROOT, "runs/peers.jsonl"))
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one run")
    args = parser.parse_args()
    args.python, torch_version = find_python(args.python)
    args.data = find_data(args.data)

    contenders = {}
    for ranks in map(int, args.ranks.split(",")):
        pytorch = "PyTorch" if ranks == 1 else "PyTorch DDP"
        for transport in args.transports.split(",") if ranks > 1 else ["shm"]:
            contenders[("tutti " + transport, ranks)] = (
                "Tutti" if ranks == 1 else f"Tutti, {transport}", functools.partial(run_tutti, transport=transport))
        contenders[("pytorch", ranks)] = (pytorch, run_pytorch)
        contenders[("pytorch again", ranks)] = (pytorch + " (again)", run_pytorch)
    keys = list(contenders)
    samples = {key: [] for key in keys}
    commands = {}
    for number in range(args.rounds):
        shift = number % len(keys)
        for key in keys[shift:] + keys[:shift]:
            rate, commands[key] = contenders[key][1](args, key[1])
            samples[key].append(rate)
            print(f"round {number + 1}/{args.rounds}: {contenders[key][0]}, {key[1]} ranks: {rate:.0f} samples/s",
                  file=sys.stderr)

    common = {
        "kind": "measured", "benchmark": "peers/mnist-cnn", "time": datetime.datetime.now().astimezone().isoformat(),
        "host": platform.node(), "cpu": cpu_name(), "cores": os.cpu_count(), "system": platform.platform(),
        "load_average": os.getloadavg(), "commit": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain")),
        "pytorch": torch_version, "device": args.device, "threads": args.threads, "batch": args.batch,
        "steps": args.steps, "warmup": args.warmup, "rounds": args.rounds,
        "pytorch_env": args.pytorch_env,
    }
    os.makedirs(os.path.dirname(os.path.abspath(args.records)), exist_ok=True)
    with open(args.records, "a") as file:
        for key in keys:
            file.write(json.dumps({**common, "contender": contenders[key][0], "ranks": key[1],
                                   "command": commands[key], "samples_per_s": samples[key]}) + "\n")

    print(f"mnist-cnn, batch {args.batch} and {args.threads} thread(s) per rank, {args.device}; PyTorch "
          f"{torch_version}; {common['cpu']}, {os.cpu_count()} cores; commit {common['commit'][:10]}"
          f"{' with changes' if common['dirty'] else ''}; ratio: median of the rounds' ratios to PyTorch\n")
    print("| | ranks | samples/s, median | min to max | n | ratio | ratio, min to max |")
    print("|---|---|---|---|---|---|---|")
    for key in keys:
        rates = samples[key]
        ratios = [rate / base for rate, base in zip(rates, samples[("pytorch", key[1])])]
        ratio = ["1", ""] if key[0] == "pytorch" else [
            f"{statistics.median(ratios):.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}"]
        print(f"| {contenders[key][0]} | {key[1]} | {statistics.median(rates):.0f} | {min(rates):.0f} to "
              f"{max(rates):.0f} | {len(rates)} | {ratio[0]} | {ratio[1]} |")


if __name__ == "__main__":
    main()
