#!/usr/bin/env python3
"""Writes a parity case: random weights, a batch, and outputs, loss and gradients of torchvision, torch or transformers.

    export.py resnet18 case.safetensors --shape 1,28,28 --classes 10
    export.py bert-base case.safetensors --depth 2

`parity_check` reads it. Dropout is off; batch normalization uses the statistics of the batch.
"""

import argparse
import json

import torch
from safetensors.torch import save_file


def resnet_case(args):
    import torchvision

    channels, height, width = map(int, args.shape.split(","))
    model = getattr(torchvision.models, args.model)(num_classes=args.classes)
    if channels != 3:
        model.conv1 = torch.nn.Conv2d(channels, 64, kernel_size=7, stride=2, padding=3, bias=False)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "bn" in name or "downsample.1" in name:  # ones and zeros would hide mistakes
                parameter.add_(0.1 * torch.randn_like(parameter))
    description = {"model": args.model, "mode": "train",
                   "data": {"kind": "images", "shape": [channels, height, width], "classes": args.classes}}
    inputs = [torch.randn(args.batch, channels, height, width)]
    target = torch.randint(args.classes, (args.batch,))

    def run(model, inputs, target):
        logits = model(inputs[0])
        return [logits], torch.nn.functional.cross_entropy(logits, target)

    return description, model.train(), inputs, target, run


class Classifier(torch.nn.Module):
    """torch.nn.TransformerEncoder between an embedding and a classifier. No dropout, so it can stay in training mode:
    evaluation takes other ways through the encoder."""

    def __init__(self, vocabulary, length, width, layers, classes):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, width)
        self.positions = torch.nn.Embedding(length, width)
        layer = torch.nn.TransformerEncoderLayer(width, width // 64, 4 * width, dropout=0, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, layers)
        self.classifier = torch.nn.Linear(width, classes)

    def forward(self, tokens):
        padding = tokens == 0
        x = self.encoder(self.embedding(tokens) + self.positions.weight, src_key_padding_mask=padding)
        weights = (~padding).to(x.dtype).unsqueeze(-1)
        return self.classifier((x * weights).sum(1) / weights.sum(1))


def transformer_case(args):
    classes, depth = 5, args.depth or 6
    model = Classifier(args.vocabulary, args.length, 256, depth, classes)
    description = {"model": args.model, "mode": "eval", "depth": depth,
                   "data": {"kind": "sentences", "shape": [args.length], "vocabulary": args.vocabulary,
                            "classes": classes}}
    tokens = torch.randint(1, args.vocabulary, (args.batch, args.length))
    tokens[0, args.length // 2:] = 0  # one sentence is shorter

    def run(model, inputs, target):
        logits = model(inputs[0])
        return [logits], torch.nn.functional.cross_entropy(logits, target)

    return description, model.train(), [tokens], torch.randint(classes, (args.batch,)), run


def bert_case(args):
    from transformers import BertConfig, BertForPreTraining

    large = args.model == "bert-large"
    width, depth = (1024, 24) if large else (768, 12)
    depth = args.depth or depth
    length, masked, vocabulary = args.length, args.masked, args.vocabulary
    model = BertForPreTraining(BertConfig(
        vocab_size=vocabulary, hidden_size=width, num_hidden_layers=depth, num_attention_heads=width // 64,
        intermediate_size=4 * width))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:  # ones and zeros would hide mistakes
                parameter.add_(0.05 * torch.randn_like(parameter))
    description = {"model": args.model, "mode": "eval", "depth": depth,
                   "data": {"kind": "masked_text", "shape": [length], "vocabulary": vocabulary, "masked": masked}}
    tokens = torch.randint(1, vocabulary, (args.batch, length))
    segments = (torch.arange(length) >= length // 2).long().repeat(args.batch, 1)
    attention = torch.ones(args.batch, length, dtype=torch.long)
    attention[0, length * 3 // 4:] = 0  # one text is shorter
    positions = torch.stack([torch.randperm(length * 3 // 4)[:masked] for _ in range(args.batch)])
    words = torch.randint(vocabulary, (args.batch, masked))
    words[-1, masked // 2:] = -100  # and has fewer words to guess
    target = torch.randint(2, (args.batch,))

    def run(model, inputs, target):
        tokens, segments, attention, positions, words = inputs
        labels = torch.full_like(tokens, -100).scatter_(1, positions, words)
        result = model(input_ids=tokens, token_type_ids=segments, attention_mask=attention, labels=labels,
                       next_sentence_label=target)
        logits = result.prediction_logits
        at = positions.unsqueeze(-1).expand(-1, -1, logits.size(-1))
        return [logits.gather(1, at).flatten(0, 1), result.seq_relationship_logits], result.loss

    return description, model.eval(), [tokens, segments, attention, positions, words], target, run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=["resnet18", "resnet50", "resnet101", "transformer", "bert-base", "bert-large"])
    parser.add_argument("file")
    parser.add_argument("--shape", default="3,224,224", help="of images")
    parser.add_argument("--classes", type=int, default=1000, help="of images")
    parser.add_argument("--depth", type=int, default=0, help="layers of transformer and bert; 0: their own")
    parser.add_argument("--length", type=int, default=64, help="tokens of a text")
    parser.add_argument("--masked", type=int, default=10, help="words to guess in a text")
    parser.add_argument("--vocabulary", type=int, default=30522)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.deterministic = True

    make = {"resnet": resnet_case, "transf": transformer_case, "bert-b": bert_case, "bert-l": bert_case}[args.model[:6]]
    description, model, inputs, target, run = make(args)
    dtype = getattr(torch, args.dtype)
    model = model.to(args.device, dtype)
    inputs = [x.to(args.device, dtype) if x.is_floating_point() else x.to(args.device) for x in inputs]
    target = target.to(args.device)
    tensors = {}
    # named_parameters() names a tied weight once, as Tutti does; clones, because what follows changes buffers.
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if not name.endswith(("position_ids", "token_type_ids")):  # constants of older versions of transformers
            tensors["weight/" + name] = tensor.detach().cpu().clone().contiguous()
    outputs, loss = run(model, inputs, target)
    loss.backward()
    for number, tensor in enumerate(inputs):
        tensors[f"input/{number}"] = tensor.cpu().contiguous()
    for number, tensor in enumerate(outputs):
        tensors[f"output/{number}"] = tensor.detach().cpu().contiguous()
    tensors["target"] = target.cpu()
    tensors["loss"] = loss.detach().cpu()
    for name, parameter in model.named_parameters():
        tensors["gradient/" + name] = parameter.grad.cpu().contiguous()
    save_file(tensors, args.file, metadata={"case": json.dumps(description)})


if __name__ == "__main__":
    main()
