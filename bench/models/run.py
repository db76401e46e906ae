#!/usr/bin/env python3
"""Training throughput of every model at the published batch sizes, on one GPU: Tutti beside PyTorch and JAX.

    bench/models/run.py --build build/cuda --precisions bf16

PyTorch runs eagerly, as one CUDA graph, and compiled with the whole step as one CUDA graph; JAX jits the whole step. All
have the same network, loss, optimizer and precision, and a batch that lies on the device. Every round runs every
contender once, in an order that rotates from round to round. Prints a Markdown table and appends one JSON record per
contender, with the raw samples, to a file. PyTorch runs convolution networks both ways, with images as they come and
channels-last; the table shows the faster one. "Kernels alone" is what Tutti would reach if its kernels ran back to back:
batch over the time for which the GPU was busy in a step.
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

MNIST = ["--shape", "1,28,28", "--classes", "10"]
# name: model, batch, optimizer, the rest. Convolution networks are those with SGD.
WORKLOADS = {
    "mnist-cnn 64": ("mnist-cnn", 64, "sgd", MNIST),
    "mnist-cnn 512": ("mnist-cnn", 512, "sgd", MNIST),
    "resnet18 mnist 128": ("resnet18", 128, "sgd", MNIST),
    "resnet50 mnist 128": ("resnet50", 128, "sgd", MNIST),
    "resnet101 mnist 128": ("resnet101", 128, "sgd", MNIST),
    "resnet50 64": ("resnet50", 64, "sgd", ["--shape", "3,224,224", "--classes", "1000"]),
    "unet 16": ("unet", 16, "sgd", ["--shape", "3,256,256"]),
    "transformer 128x256": ("transformer", 128, "adam", ["--shape", "256"]),
    "bert-base 64x64": ("bert-base", 64, "adam", ["--shape", "64"]),
    "bert-large 8x64": ("bert-large", 8, "adam", ["--shape", "64"]),
}


# Column of the table: the contenders of which it shows the fastest.
COLUMNS = {
    "Tutti": ["tutti"],
    "Tutti eager": ["tutti eager"],
    "PyTorch eager": ["pytorch", "pytorch channels-last"],
    "PyTorch graph": ["pytorch graph", "pytorch graph channels-last"],
    "PyTorch compiled + graph": ["pytorch compiled", "pytorch compiled channels-last"],
    "JAX": ["jax"],
}
CONTENDERS = [name for names in COLUMNS.values() for name in names]


class Peer:
    """A process that measures what it is asked to; starting one for each run would take most of the time."""

    def __init__(self, python, script):
        self.script = script
        self.process = subprocess.Popen([python, os.path.join(HERE, script), "--serve"], cwd=ROOT, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def measure(self, options):
        try:
            self.process.stdin.write(json.dumps(options) + "\n")
            self.process.stdin.flush()
            for line in self.process.stdout:
                if line.startswith("{"):  # libraries may have something to say as well
                    return json.loads(line)
        except BrokenPipeError:
            pass
        sys.exit(f"{self.script} failed with {' '.join(options)}")


def run_tutti(options, args):
    command = [os.path.join(ROOT, args.build, "bench/models/model_throughput"), *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=args.timeout)
    if done.returncode != 0:
        sys.exit(f"failed ({done.returncode}): {' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True).stdout.strip()


def contenders_of(workload, args, has_jax):
    names = CONTENDERS
    if args.contenders:
        names = [name.strip() for name in args.contenders.split(",")]
        unknown = [name for name in names if name not in CONTENDERS]
        if unknown:
            sys.exit(f"unknown contender '{unknown[0]}'; known: {', '.join(CONTENDERS)}")
    is_convolution = WORKLOADS[workload][2] == "sgd"
    return [name for name in names if (is_convolution or not name.endswith("channels-last")) and
            (has_jax or name != "jax") and (args.device == "cuda" or "graph" not in name and "compiled" not in name)]


def options_of(contender, workload, precision, args):
    model, batch, optimizer, rest = WORKLOADS[workload]
    options = ["--model", model, "--batch", str(args.batch or batch), "--optimizer", optimizer, "--precision", precision,
               "--device", args.device, "--warmup", str(args.warmup), "--blocks", str(args.blocks), "--steps",
               str(args.steps), *rest]
    if contender == "tutti eager":
        options.append("--no-graph")
    if contender == "tutti" and args.device == "cuda":
        options.append("--kernel-time")
    if "graph" in contender or "compiled" in contender:
        options += ["--mode", "compiled" if "compiled" in contender else "graph"]
    if contender.endswith("channels-last"):
        options.append("--channels-last")
    return options


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/cuda", help="build folder that has bench/models/model_throughput")
    parser.add_argument("--python", default=sys.executable, help="interpreter with torch and torchvision, and jax or not")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--precisions", default="tf32,bf16", help="some of fp32, tf32, bf16")
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help="some of " + ", ".join(WORKLOADS))
    parser.add_argument("--contenders", default="", help="some of " + ", ".join(CONTENDERS))
    parser.add_argument("--batch", type=int, default=0, help="instead of the published ones; to try things out")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--blocks", type=int, default=3, help="timed per run")
    parser.add_argument("--steps", type=int, default=20, help="per block")
    parser.add_argument("--warmup", type=int, default=40, help="steps first: some are profiled, some run eagerly")
    parser.add_argument("--records", default=os.path.join(ROOT, "runs/models.jsonl"))
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one run")
    args = parser.parse_args()

    probe = subprocess.run([args.python, "-c", "import torch; print(torch.__version__); "
                            "print(torch.cuda.get_device_name() if torch.cuda.is_available() else 'no GPU')"],
                           capture_output=True, text=True)
    torch_version, gpu = (probe.stdout.splitlines() + ["unknown", "unknown"])[:2]
    has_jax = subprocess.run([args.python, "-c", "import jax"], capture_output=True).returncode == 0
    common = {"kind": "measured", "benchmark": "models", "time": datetime.datetime.now().astimezone().isoformat(),
              "host": platform.node(), "device": args.device, "gpu": gpu, "pytorch": torch_version,
              "commit": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain")), "steps": args.steps,
              "warmup": args.warmup, "rounds": args.rounds}
    os.makedirs(os.path.dirname(os.path.abspath(args.records)), exist_ok=True)
    peers = {}

    def measure(name, options):
        if name.startswith("tutti"):
            return run_tutti(options, args)
        script = "jax_models.py" if name == "jax" else "pytorch_models.py"
        if script not in peers:
            peers[script] = Peer(args.python, script)
        return peers[script].measure(options)

    print(f"samples/s, median (min to max, n); {gpu}; PyTorch {torch_version}; commit {common['commit'][:10]}"
          f"{' with changes' if common['dirty'] else ''}\n")
    print("| workload | precision | " + " | ".join(COLUMNS) + " | Tutti's kernels alone | Tutti over the best peer |\n" +
          "|---" * (len(COLUMNS) + 4) + "|")
    for workload in args.workloads.split(","):
        for precision in args.precisions.split(","):
            names = contenders_of(workload, args, has_jax)
            samples, alone = {name: [] for name in names}, []
            for number in range(args.rounds):
                shift = number % len(names)
                for name in names[shift:] + names[:shift]:
                    result = measure(name, options_of(name, workload, precision, args))
                    samples[name] += result["samples_per_s"]
                    if name == "tutti" and result.get("kernel_s", 0) > 0:
                        alone.append((args.batch or WORKLOADS[workload][1]) / result["kernel_s"])
                    print(f"{workload}, {precision}, round {number + 1}/{args.rounds}: {name}: "
                          f"{statistics.median(result['samples_per_s']):.0f}", file=sys.stderr)
            with open(args.records, "a") as file:
                for name in names:
                    file.write(json.dumps({**common, "workload": workload, "precision": precision, "contender": name,
                                           "options": options_of(name, workload, precision, args),
                                           "samples_per_s": samples[name],
                                           **({"kernels_alone_per_s": alone} if name == "tutti" else {})}) + "\n")
            medians = {name: statistics.median(rates) for name, rates in samples.items()}
            cells = []
            for choices in COLUMNS.values():
                present = [name for name in choices if name in medians]
                best = max(present, key=medians.get, default=None)
                cells.append("–" if best is None else f"{medians[best]:.0f} ({min(samples[best]):.0f} to "
                             f"{max(samples[best]):.0f}, {len(samples[best])})" +
                             (" channels-last" if best.endswith("channels-last") else ""))
            cells.append(f"{statistics.median(alone):.0f}" if alone else "–")
            peer = max((rate for name, rate in medians.items() if not name.startswith("tutti")), default=0)
            cells.append(f"{medians['tutti'] / peer:.2f}" if peer > 0 and "tutti" in medians else "–")
            print(f"| {workload} | {precision} | {' | '.join(cells)} |", flush=True)
    for peer in peers.values():
        peer.process.stdin.close()


if __name__ == "__main__":
    main()
