#!/usr/bin/env python3
"""Loads weights that Tutti saved into torchvision's or transformers' model, strictly: no key missing, none left over.

    import.py resnet18 model.safetensors --shape 1,28,28 --classes 10
"""

import argparse
import json
import os
import shutil
import sys
import tempfile

import torch
from safetensors.torch import load_file


def check_resnet(args, weights):
    import torchvision

    model = getattr(torchvision.models, args.model)(num_classes=args.classes)
    channels = int(args.shape.split(",")[0])
    if channels != 3:
        model.conv1 = torch.nn.Conv2d(channels, 64, kernel_size=7, stride=2, padding=3, bias=False)
    model.load_state_dict(weights, strict=True)
    return model


def check_bert(args, weights):
    from transformers import BertConfig, BertForPreTraining

    width = weights["bert.pooler.dense.weight"].size(0)
    depth = 1 + max(int(name.split(".")[3]) for name in weights if name.startswith("bert.encoder.layer."))
    config = BertConfig(vocab_size=weights["cls.predictions.bias"].size(0), hidden_size=width, num_hidden_layers=depth,
                        num_attention_heads=width // 64, intermediate_size=4 * width)
    with tempfile.TemporaryDirectory() as folder:
        config.save_pretrained(folder)
        shutil.copy(args.file, os.path.join(folder, "model.safetensors"))
        model, info = BertForPreTraining.from_pretrained(folder, output_loading_info=True)
    info = info if isinstance(info, dict) else vars(info)
    for problem in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if info.get(problem):
            sys.exit(f"{problem}: {sorted(info[problem])[:5]}")
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("file")
    parser.add_argument("--shape", default="3,224,224", help="of images")
    parser.add_argument("--classes", type=int, default=1000, help="of images")
    args = parser.parse_args()
    weights = load_file(args.file)
    model = (check_bert if args.model.startswith("bert") else check_resnet)(args, weights)
    state = model.state_dict()
    for name, value in weights.items():
        if not torch.equal(state[name], value.to(state[name].dtype)):
            sys.exit(f"'{name}' was loaded with other values")
    print(json.dumps({"model": args.model, "tensors": len(weights), "loaded": True}))


if __name__ == "__main__":
    main()
