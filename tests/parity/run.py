#!/usr/bin/env python3
"""Parity with torchvision's ResNets, torch's TransformerEncoder and Hugging Face's BERT, in one command.

    tests/parity/run.py --build build/cuda

For each case: export.py computes outputs, loss and gradients with the original and random weights; parity_check
computes them with Tutti's model and the same weights, and saves the weights; import.py loads those into the original
again.
Prints a Markdown table; exits with 1 if a case fails. Needs PyTorch, safetensors, torchvision and transformers.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

IMAGENET = ["--shape", "3,224,224", "--classes", "1000"]
MNIST = ["--shape", "1,28,28", "--classes", "10", "--batch", "32"]
CASES = {
    "resnet18": ("resnet18", IMAGENET), "resnet50": ("resnet50", IMAGENET), "resnet101": ("resnet101", IMAGENET),
    "resnet18-mnist": ("resnet18", MNIST), "resnet50-mnist": ("resnet50", MNIST),
    "resnet101-mnist": ("resnet101", MNIST),
    "transformer": ("transformer", ["--vocabulary", "5000"]),
    "bert-base-2-layers": ("bert-base", ["--depth", "2"]), "bert-base": ("bert-base", []),
    "bert-large": ("bert-large", ["--batch", "4"]),
}


def options_of(arguments, names):
    """Those of the options that the other program has too."""
    pairs = zip(arguments[::2], arguments[1::2])
    return [word for name, value in pairs if name in names for word in (name, value)]


def run(command):
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def check(name, args, folder):
    model, arguments = CASES[name]
    case, weights = os.path.join(folder, "case.safetensors"), os.path.join(folder, "weights.safetensors")
    exported = run([args.python, os.path.join(HERE, "export.py"), model, case, *arguments, "--device", args.device,
                    "--dtype", args.dtype])
    if exported.returncode != 0:
        return {"error": "export: " + exported.stderr.strip()[-600:]}
    checked = run([os.path.join(ROOT, args.build, "tests/parity/parity_check"), case, "--device", args.device, "--save",
                   weights])
    os.remove(case)  # up to 3 GB
    if checked.returncode not in (0, 1):
        return {"error": "parity_check: " + checked.stderr.strip()[-600:]}
    result = json.loads(checked.stdout.splitlines()[-1])
    if model == "transformer":  # parity_check has placed every weight already; there is no file format of torch's own
        return {**result, "imported": True}
    imported = run([args.python, os.path.join(HERE, "import.py"), model, weights,
                    *options_of(arguments, ("--shape", "--classes"))])
    os.remove(weights)
    result["imported"] = imported.returncode == 0
    if not result["imported"]:
        result["error"] = "import: " + imported.stderr.strip()[-600:]
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="build folder that has tests/parity/parity_check")
    parser.add_argument("--python", default=sys.executable, help="interpreter with torchvision and transformers")
    parser.add_argument("--device", default="", help="cpu or cuda; default: cuda if there is")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    parser.add_argument("--cases", default=",".join(CASES), help="some of " + ", ".join(CASES))
    parser.add_argument("--records", default="", help="append one JSON line per case to this file")
    args = parser.parse_args()
    if not args.device:
        probe = run([args.python, "-c", "import torch; print('cuda' if torch.cuda.is_available() else 'cpu')"])
        args.device = probe.stdout.strip() or "cpu"
    versions = run([args.python, "-c", "import torch, torchvision, transformers as t; "
                    "print('torch', torch.__version__, 'torchvision', torchvision.__version__, 'transformers',"
                    " t.__version__)"]).stdout.strip()

    print(f"{versions or 'library versions unknown'}; {args.device}, {args.dtype}; relative errors in the norm\n")
    print("| case | loss | outputs | worst gradient | of | which | loads back | |")
    print("|---|---|---|---|---|---|---|---|")
    failed = False
    for name in args.cases.split(","):
        with tempfile.TemporaryDirectory() as folder:
            result = check(name, args, folder)
        passed = result.get("passed", False) and result.get("imported", False)
        failed = failed or not passed
        if "passed" in result:
            gradients = result["gradients"]
            print(f"| {name} | {result['loss_error']:.1e} | {result['output_error']:.1e} | {gradients['worst']:.1e} | "
                  f"{gradients['count']} | {gradients['worst_name']} | {'yes' if result['imported'] else 'NO'} | "
                  f"{'ok' if passed else 'FAILED'} |", flush=True)
        else:
            print(f"| {name} | | | | | | | FAILED |", flush=True)
        if "error" in result:
            print(f"{name}: {result['error']}", file=sys.stderr)
        if args.records:
            with open(args.records, "a") as file:
                file.write(json.dumps({"record": "parity", "case": name, "device": args.device, "dtype": args.dtype,
                                       "versions": versions, **result}) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
