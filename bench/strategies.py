#!/usr/bin/env python3
"""Compares strategies on links of a given speed, pretended on one machine (--link-gbps, --link-startup-us of tutti train).

Every round runs every strategy once, in an order that rotates from round to round. Prints a Markdown table of samples/s with
ratios to bsp in the same round; appends one JSON record per run, with its whole summary, to a file. The last line is bsp
again: how far it is from 1 is how far the numbers can be trusted.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def train(arguments, strategy, link):
    with tempfile.TemporaryDirectory() as folder:
        summary = pathlib.Path(folder) / "summary.json"
        command = [str(ROOT / arguments.tutti), "train", "--model", arguments.model, "--ranks", str(arguments.ranks), "--threads", "1", "--batch", str(arguments.batch),
                   "--steps", str(arguments.steps), "--no-eval", "--device", "cpu", "--runs", folder, "--summary", str(summary),
                   "--link-gbps", str(link[0]), "--link-startup-us", str(link[1]), "--strategy"] + strategy.split()
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
        result = json.loads(summary.read_text())
        if not result["samples_per_s_steady"] > 0:
            sys.exit(f"--steps {arguments.steps} of {strategy}: all of them are warm-up, so there is no speed to compare; "
                     f"give at least {2 * max(10, result.get('warm_up_steps', 0))}")
        return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tutti", default="build/release/tutti")
    parser.add_argument("--model", default="mnist-cnn", help="one that takes 28x28 images")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--links", nargs="+", default=["1:100", "4:100", "0:0"], metavar="GBPS:STARTUP_US")
    parser.add_argument("--strategies", nargs="+", metavar="STRATEGY",
                        default=["bsp", "wfbp", "buckets", "fusion", "mgwfbp", "bytescheduler --partition-mb 1", "dear --bucket-mb 1", "zero1 --bucket-mb 1",
                                 "bsp-ps --partition-mb 1", "wfbp-ps --partition-mb 1", "bytescheduler-ps --partition-mb 1", "bsp"])
    parser.add_argument("--records", default="runs/strategies.jsonl")
    arguments = parser.parse_args()
    records = pathlib.Path(arguments.records)
    records.parent.mkdir(parents=True, exist_ok=True)
    for text in arguments.links:
        link = [float(part) for part in text.split(":")]
        rates = [[] for _ in arguments.strategies]
        exposed = [[] for _ in arguments.strategies]
        for number in range(arguments.rounds):
            for offset in range(len(arguments.strategies)):
                i = (number + offset) % len(arguments.strategies)
                summary = train(arguments, arguments.strategies[i], link)
                rates[i].append(summary["samples_per_s_steady"])
                exposed[i].append(1e3 * summary["comm_exposed_s"] / summary["steps"])
                with records.open("a") as file:
                    file.write(json.dumps({"record": "strategies", "link": text, "strategy": arguments.strategies[i], "summary": summary}) + "\n")
        speed = "as fast as it is" if link == [0, 0] else f"{link[0]:g} Gbit/s, {link[1]:g} µs start-up"
        print(f"\n{arguments.model} on digits, {arguments.ranks} ranks × batch {arguments.batch}, link {speed}; "
              f"{summary['environment']['cpu']}, {summary['environment']['cores']} cores, commit {summary['environment']['commit']}\n")
        print("| strategy | samples/s, median | min to max | n | exposed ms/step | ratio to bsp | min to max |\n|---|---|---|---|---|---|---|")
        for i, strategy in enumerate(arguments.strategies):
            ratios = [mine / base for mine, base in zip(rates[i], rates[0])]
            again = " (again)" if strategy in arguments.strategies[:i] else ""
            print(f"| `{strategy}`{again} | {statistics.median(rates[i]):.0f} | {min(rates[i]):.0f} to {max(rates[i]):.0f} | {len(rates[i])} | "
                  f"{statistics.median(exposed[i]):.1f} | {statistics.median(ratios):.2f} | {min(ratios):.2f} to {max(ratios):.2f} |", flush=True)


if __name__ == "__main__":
    main()
