#!/usr/bin/env python3
"""Pictures per second out of Tutti's loader (image-folder) and out of torchvision's ImageFolder with PyTorch's DataLoader, with
the same numbers of workers, on the same JPEG files: a random part of each, 224x224, mirrored half of the time, normalized.

Each round runs both, in turns, once with each number of workers, so that whatever else the machine does falls on both; and
Tutti twice, so that the noise is known. Two figures: per second, and per second of processor time (a core's worth), which a busy
machine disturbs less. Prints a Markdown table; appends one JSON record per setting, with the raw figures, to a file.

    /usr/bin/python3 bench/loader/against_torchvision.py                  makes 600 JPEG files of 500x375 pixels first
    /usr/bin/python3 bench/loader/against_torchvision.py --folder DIR     own ones, as `--data image-folder` takes them (without val/)

The python3 needs torch, torchvision and PIL: Debian's is /usr/bin/python3 with the package python3-torchvision.
"""

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BATCH = 32


def make_pictures(folder, count, width, height):
    """Noise of several sizes with shapes on it: about as many bytes a pixel as photographs have."""
    from PIL import Image, ImageDraw

    rng = random.Random(1)
    for i in range(count):
        side = os.path.join(folder, f"class{i % 2}")
        os.makedirs(side, exist_ok=True)
        w, h = (width, height) if i % 4 else (height, width)
        picture = Image.effect_noise((w // 6, h // 6), 50).resize((w, h), Image.BICUBIC).convert("RGB")
        fine = Image.effect_noise((w, h), 22).convert("RGB")
        picture = Image.blend(picture, fine, 0.3)
        draw = ImageDraw.Draw(picture)
        for _ in range(30):
            x, y, size = rng.randrange(w), rng.randrange(h), rng.randrange(4, 80)
            draw.ellipse([x, y, x + size, y + size], fill=tuple(rng.randrange(256) for _ in range(3)))
        picture.save(os.path.join(side, f"{i}.jpg"), quality=90)


def cpu_seconds(pids):
    """User and system time that these processes have used."""
    ticks = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def run_torchvision(folder, workers, seconds):
    """In a process of its own: prints one JSON object."""
    import torch
    import torchvision
    from torchvision import transforms

    torch.set_num_threads(1)
    data = torchvision.datasets.ImageFolder(folder, transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
        transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]))
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH, shuffle=True, num_workers=workers,
                                         persistent_workers=workers > 0)
    pids = [os.getpid()]
    samples, took, used = 0, 0.0, 0.0
    is_warm = False
    while took < seconds:
        begin, cpu_begin = None, 0.0
        for number, (pictures, _) in enumerate(loader):
            if not is_warm and number < 2 * (workers + 1):
                continue
            if not is_warm:
                is_warm = True
                if workers > 0:
                    pids += [worker.pid for worker in loader._iterator._workers]
            if begin is None:
                begin, cpu_begin = time.monotonic(), cpu_seconds(pids)
                continue
            samples += len(pictures)
            if took + time.monotonic() - begin >= seconds:
                break
        if begin is not None:
            took += time.monotonic() - begin
            used += cpu_seconds(pids) - cpu_begin
    print(json.dumps({"samples_per_s": samples / took, "samples_per_cpu_s": samples / used,
                      "versions": {"torch": torch.__version__, "torchvision": torchvision.__version__}}))


def measure(args, program, workers):
    if program == "torchvision":
        command = [sys.executable, os.path.abspath(__file__), "--torchvision", str(workers), "--folder", args.folder,
                   "--seconds", str(args.seconds)]
    else:
        command = [os.path.join(args.build, "loader_bench"), "image-folder", str(workers), str(BATCH), str(args.seconds),
                   args.folder]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"failed ({done.returncode}): {' '.join(command)}\n{done.stderr}")
    record = json.loads(done.stdout)
    if "cpu_seconds" in record:
        record["samples_per_cpu_s"] = record["samples"] / record["cpu_seconds"]
    return record


def figures(runs, key):
    values = [run[key] for run in runs]
    return f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})"


def cpu_name():
    with open("/proc/cpuinfo") as file:
        return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release/bench/loader"), help="folder of loader_bench")
    parser.add_argument("--folder", help="own pictures, in a folder for each class")
    parser.add_argument("--pictures", type=int, default=600, help="to make")
    parser.add_argument("--size", default="500x375", help="of those")
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4, help="for one measurement")
    parser.add_argument("--records", default=os.path.join(ROOT, "runs/loader-torchvision.jsonl"))
    parser.add_argument("--torchvision", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.torchvision is not None:
        return run_torchvision(args.folder, args.torchvision, args.seconds)

    with tempfile.TemporaryDirectory() as made:
        if args.folder is None:
            args.folder = made
            make_pictures(made, args.pictures, *map(int, args.size.split("x")))
        files = [os.path.join(where, name) for where, _, names in os.walk(args.folder) for name in names]
        kilobytes = sum(os.path.getsize(file) for file in files) / len(files) / 1024
        keys = [(program, int(workers)) for workers in args.workers.split(",")
                for program in ("tutti", "torchvision", "tutti, again")]
        results = {key: [] for key in keys}
        for number in range(args.rounds):
            shift = number % len(keys)
            for key in keys[shift:] + keys[:shift]:
                results[key].append(measure(args, *key))
                print(f"round {number + 1}/{args.rounds}: {key[0]}, {key[1]} workers: "
                      f"{results[key][-1]['samples_per_s']:.0f}/s", file=sys.stderr)

    common = {"kind": "measured", "benchmark": "loader against torchvision", "host": platform.node(), "cpu": cpu_name(),
              "cores": len(os.sched_getaffinity(0)), "system": platform.platform(), "load_average": os.getloadavg(),
              "versions": results[("torchvision", keys[0][1])][0]["versions"], "commit": results[keys[0]][0]["commit"]}
    os.makedirs(os.path.dirname(os.path.abspath(args.records)), exist_ok=True)
    with open(args.records, "a") as file:
        for (program, workers), runs in results.items():
            file.write(json.dumps({**common, "program": program, "workers": workers, "batch": BATCH,
                                   "samples_per_s": [run["samples_per_s"] for run in runs],
                                   "samples_per_cpu_s": [run["samples_per_cpu_s"] for run in runs]}) + "\n")
    print(f"{common['cpu']}, {common['cores']} cores, load {common['load_average'][0]:.1f}; {len(files)} JPEG files of "
          f"{kilobytes:.0f} KB; {', '.join(f'{name} {version}' for name, version in common['versions'].items())}; "
          f"median of {args.rounds} (min to max)\n")
    print("| loader | workers | pictures/s | pictures per second of a core | to torchvision |\n|---|---|---|---|---|")
    for program, workers in keys:
        runs, others = results[(program, workers)], results[("torchvision", workers)]
        ratios = [a["samples_per_cpu_s"] / b["samples_per_cpu_s"] for a, b in zip(runs, others)]
        print(f"| {program} | {workers} | {figures(runs, 'samples_per_s')} | {figures(runs, 'samples_per_cpu_s')} | "
              f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |")


if __name__ == "__main__":
    main()
