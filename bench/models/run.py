#!/usr/bin/env python3
"""Training throughput of every model at the published batch sizes: Tutti beside PyTorch eager, on one GPU.

    bench/models/run.py --build build/cuda

Every round runs every contender once, in an order that rotates from round to round. Prints a Markdown table and appends
one JSON record per contender, with the raw samples, to a file. PyTorch runs convolution networks both ways, with images
as they come and channels-last; the table compares with the faster one.
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


class PyTorch:
    """A process that measures what it is asked to; starting one for each run would take most of the time."""

    def __init__(self, python):
        self.process = subprocess.Popen([python, os.path.join(HERE, "pytorch_models.py"), "--serve"], cwd=ROOT,
                                        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def measure(self, options):
        self.process.stdin.write(json.dumps(options) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("{"):  # libraries may have something to say as well
                return json.loads(line)["samples_per_s"]
        sys.exit(f"PyTorch failed with {' '.join(options)}")


def run_tutti(options, args):
    command = [os.path.join(ROOT, args.build, "bench/models/model_throughput"), *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=args.timeout)
    if done.returncode != 0:
        sys.exit(f"failed ({done.returncode}): {' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return json.loads(done.stdout.splitlines()[-1])["samples_per_s"]


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True).stdout.strip()


def contenders_of(optimizer):
    names = ["tutti", "pytorch"]
    return names + ["pytorch channels-last"] if optimizer == "sgd" else names


def options_of(contender, workload, precision, args):
    model, batch, optimizer, rest = WORKLOADS[workload]
    layout = ["--channels-last"] if contender == "pytorch channels-last" else []
    return ["--model", model, "--batch", str(args.batch or batch), "--optimizer", optimizer, "--precision", precision,
            "--device", args.device, "--warmup", str(args.warmup), "--blocks", str(args.blocks), "--steps",
            str(args.steps), *rest, *layout]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/cuda", help="build folder that has bench/models/model_throughput")
    parser.add_argument("--python", default=sys.executable, help="interpreter with torch, torchvision and transformers")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--precisions", default="tf32,bf16", help="some of fp32, tf32, bf16")
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help="some of " + ", ".join(WORKLOADS))
    parser.add_argument("--batch", type=int, default=0, help="instead of the published ones; to try things out")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--blocks", type=int, default=3, help="timed per run")
    parser.add_argument("--steps", type=int, default=20, help="per block")
    parser.add_argument("--warmup", type=int, default=15)
    parser.add_argument("--records", default=os.path.join(ROOT, "runs/models.jsonl"))
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one run")
    args = parser.parse_args()

    probe = subprocess.run([args.python, "-c", "import torch; print(torch.__version__); "
                            "print(torch.cuda.get_device_name() if torch.cuda.is_available() else 'no GPU')"],
                           capture_output=True, text=True)
    torch_version, gpu = (probe.stdout.splitlines() + ["unknown", "unknown"])[:2]
    common = {"kind": "measured", "benchmark": "models", "time": datetime.datetime.now().astimezone().isoformat(),
              "host": platform.node(), "device": args.device, "gpu": gpu, "pytorch": torch_version,
              "commit": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain")), "steps": args.steps,
              "warmup": args.warmup, "rounds": args.rounds}
    os.makedirs(os.path.dirname(os.path.abspath(args.records)), exist_ok=True)
    pytorch = PyTorch(args.python)
    print(f"samples/s, median (min to max, n); {gpu}; PyTorch {torch_version}; commit {common['commit'][:10]}"
          f"{' with changes' if common['dirty'] else ''}\n")
    print("| workload | precision | Tutti | PyTorch eager | ratio |\n|---|---|---|---|---|")
    for workload in args.workloads.split(","):
        for precision in args.precisions.split(","):
            names = contenders_of(WORKLOADS[workload][2])
            samples = {name: [] for name in names}
            for number in range(args.rounds):
                shift = number % len(names)
                for name in names[shift:] + names[:shift]:
                    options = options_of(name, workload, precision, args)
                    rates = run_tutti(options, args) if name == "tutti" else pytorch.measure(options)
                    samples[name] += rates
                    print(f"{workload}, {precision}, round {number + 1}/{args.rounds}: {name}: "
                          f"{statistics.median(rates):.0f}", file=sys.stderr)
            with open(args.records, "a") as file:
                for name in names:
                    file.write(json.dumps({**common, "workload": workload, "precision": precision, "contender": name,
                                           "options": options_of(name, workload, precision, args),
                                           "samples_per_s": samples[name]}) + "\n")
            best = max(names[1:], key=lambda name: statistics.median(samples[name]))
            ratio = statistics.median(samples["tutti"]) / statistics.median(samples[best])
            cells = [f"{statistics.median(rates):.0f} ({min(rates):.0f} to {max(rates):.0f}, {len(rates)})"
                     for rates in (samples["tutti"], samples[best])]
            note = " channels-last" if best.endswith("channels-last") else ""
            print(f"| {workload} | {precision} | {cells[0]} | {cells[1]}{note} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
