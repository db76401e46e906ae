"""Training throughput of PyTorch in eager mode, on one batch that already lies on the device.

ResNets are torchvision's, BERT is Hugging Face's, U-Net, the Transformer and mnist-cnn are written below from torch.nn.
Prints one JSON object with samples per second for each block of steps, as model_throughput does for Tutti. With --serve,
does so for every line of options on stdin, so that libraries are loaded once.
"""

import argparse
import gc
import json
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class MnistCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 3)
        self.dropout1, self.dropout2 = nn.Dropout(0.25), nn.Dropout(0.5)
        self.fc1, self.fc2 = nn.Linear(9216, 128), nn.Linear(128, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv2(F.relu(self.conv1(x)))), 2)
        x = F.relu(self.fc1(torch.flatten(self.dropout1(x), 1)))
        return self.fc2(self.dropout2(x))


def double_conv(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs),
                         nn.ReLU(inplace=True), nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
                         nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, width=64, depth=4):
        super().__init__()
        self.inc = double_conv(3, width)
        self.downs = nn.ModuleList(double_conv(width << i, width << (i + 1)) for i in range(depth))
        self.ups = nn.ModuleList(nn.ConvTranspose2d(width << i, width << (i - 1), 2, stride=2)
                                 for i in range(depth, 0, -1))
        self.convs = nn.ModuleList(double_conv(width << i, width << (i - 1)) for i in range(depth, 0, -1))
        self.outc = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        levels = [self.inc(x)]
        for down in self.downs:
            levels.append(down(F.max_pool2d(levels[-1], 2)))
        x = levels.pop()
        for up, conv in zip(self.ups, self.convs):
            x = conv(torch.cat([levels.pop(), up(x)], dim=1))
        return self.outc(x)


class Transformer(nn.Module):
    def __init__(self, vocabulary=20000, length=256, width=256, layers=6, classes=5):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(0.02 * torch.randn(length, width))
        self.dropout = nn.Dropout(0.1)
        layer = nn.TransformerEncoderLayer(width, width // 64, 4 * width, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.classifier = nn.Linear(width, classes)

    def forward(self, tokens):
        padding = tokens == 0
        x = self.encoder(self.dropout(self.embedding(tokens) + self.positions), src_key_padding_mask=padding)
        weights = (~padding).to(x.dtype).unsqueeze(-1)
        return self.classifier((x * weights).sum(1) / weights.sum(1).clamp(min=1))


def segmentation_loss(logits, target):
    logits = logits.float()
    entropy = F.binary_cross_entropy_with_logits(logits, target, reduction="none").mean((1, 2, 3))
    found = torch.sigmoid(logits)
    both, total = (found * target).sum((1, 2, 3)), found.sum((1, 2, 3)) + target.sum((1, 2, 3))
    return (entropy + 1 - (2 * both + 1) / (total + 1)).mean()


def make(args):
    """Model, batch and a function that gives the loss."""
    n = args.batch
    if args.model.startswith("bert"):
        from transformers import BertConfig, BertForPreTraining

        width, depth = (1024, 24) if args.model == "bert-large" else (768, 12)
        model = BertForPreTraining(BertConfig(hidden_size=width, num_hidden_layers=depth,
                                              num_attention_heads=width // 64, intermediate_size=4 * width))
        length, masked = args.shape[0], 10
        tokens = torch.randint(1, 30522, (n, length))
        positions = torch.rand(n, length).argsort(1)[:, :masked]
        labels = torch.full_like(tokens, -100).scatter_(1, positions, torch.randint(30522, (n, masked)))
        batch = {"input_ids": tokens, "token_type_ids": (torch.arange(length) >= length // 2).long().repeat(n, 1),
                 "attention_mask": torch.ones_like(tokens), "labels": labels,
                 "next_sentence_label": torch.randint(2, (n,))}
        return model, batch, lambda model, batch: model(**batch).loss
    if args.model == "unet":
        batch = {"x": torch.rand(n, *args.shape), "y": (torch.rand(n, 1, *args.shape[1:]) > 0.7).float()}
        return UNet(), batch, lambda model, batch: segmentation_loss(model(batch["x"]), batch["y"])
    if args.model == "transformer":
        model = Transformer(length=args.shape[0])
        batch = {"x": torch.randint(1, 20000, (n, args.shape[0])), "y": torch.randint(5, (n,))}
    else:
        batch = {"x": torch.randn(n, *args.shape), "y": torch.randint(args.classes, (n,))}
        if args.model == "mnist-cnn":
            model = MnistCnn()
        else:
            import torchvision

            model = getattr(torchvision.models, args.model)(num_classes=args.classes)
            if args.shape[0] != 3:
                model.conv1 = nn.Conv2d(args.shape[0], 64, 7, stride=2, padding=3, bias=False)
    return model, batch, lambda model, batch: F.cross_entropy(model(batch["x"]), batch["y"])


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--shape", type=lambda text: [int(word) for word in text.split(",")], required=True)
    parser.add_argument("--classes", type=int, default=0)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--precision", choices=["fp32", "tf32", "bf16"], default="fp32")
    parser.add_argument("--optimizer", choices=["sgd", "adam"], default="sgd")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    return parser.parse_args(words)


def measure(args):
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = args.precision != "fp32"
    model, batch, loss_of = make(args)
    layout = {"memory_format": torch.channels_last} if args.channels_last else {}
    model = model.to(args.device, **layout).train()
    batch = {name: value.to(args.device, **(layout if value.dim() == 4 else {})) for name, value in batch.items()}
    if args.optimizer == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    else:
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

    def run_steps(count):
        for _ in range(count):
            optimizer.zero_grad()
            with torch.autocast(args.device, torch.bfloat16, enabled=args.precision == "bf16"):
                loss = loss_of(model, batch)
            loss.backward()
            optimizer.step()
        if args.device == "cuda":
            torch.cuda.synchronize()
        return loss

    run_steps(args.warmup)
    rates = []
    for _ in range(args.blocks):
        start = time.perf_counter()
        loss = run_steps(args.steps)
        rates.append(args.batch * args.steps / (time.perf_counter() - start))
    return {"samples_per_s": rates, "last_loss": loss.item(), "torch": torch.__version__}


def main():
    if sys.argv[1:] != ["--serve"]:
        print(json.dumps(measure(parse(sys.argv[1:]))))
        return
    for line in sys.stdin:
        print(json.dumps(measure(parse(json.loads(line)))), flush=True)
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
