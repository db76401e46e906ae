"""Options of the programs that measure a peer: those of model_throughput, and how a step is to be run."""

import argparse


def parse(words, description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", required=True)
    parser.add_argument("--shape", type=lambda text: [int(word) for word in text.split(",")], required=True)
    parser.add_argument("--classes", type=int, default=0)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--precision", choices=["fp32", "tf32", "bf16"], default="fp32")
    parser.add_argument("--optimizer", choices=["sgd", "adam"], default="sgd")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--mode", choices=["eager", "graph", "compiled"], default="eager")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--kernel-time", action="store_true", help="also the time for which the GPU was busy in a step")
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    return parser.parse_args(words)
