"""Training throughput of PyTorch, on one batch that already lies on the device.

Three ways to run a step: eagerly; as one CUDA graph, recorded from eager mode (--mode graph); forward and backward by
torch.compile and the whole step as one CUDA graph (--mode compiled). All use torch's fused optimizers on a GPU.

ResNets are torchvision's; BERT, U-Net, the Transformer and mnist-cnn are written below from torch.nn, with the losses
that Tutti has: BERT decodes the masked words alone. Prints one JSON object with samples per second for each block of
steps, as model_throughput does for Tutti. With --serve, does so for every line of options on stdin, so that libraries
are loaded once.
"""

import gc
import json
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

from peer_options import parse


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


class BertLayer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.heads = width // 64
        self.query, self.key, self.value, self.mixed = (nn.Linear(width, width) for _ in range(4))
        self.inner, self.outer = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)

    def forward(self, x, mask):
        n, length, width = x.shape
        q, k, v = (part(x).view(n, length, self.heads, 64).transpose(1, 2) for part in (self.query, self.key, self.value))
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=0.1)
        mixed = self.mixed(mixed.transpose(1, 2).reshape(n, length, width))
        x = self.norm1(F.dropout(mixed, 0.1) + x)
        return self.norm2(F.dropout(self.outer(F.gelu(self.inner(x))), 0.1) + x)


class Bert(nn.Module):
    """BERT with its two pretraining tasks; the word decoder is the embedding of words, as in Hugging Face's."""

    def __init__(self, width, depth, vocabulary=30522):
        super().__init__()
        self.words, self.positions, self.segments = (nn.Embedding(rows, width) for rows in (vocabulary, 512, 2))
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(BertLayer(width) for _ in range(depth))
        self.pooler, self.transform, self.next = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, 2)
        self.transform_norm = nn.LayerNorm(width, eps=1e-12)
        self.word_bias = nn.Parameter(torch.zeros(vocabulary))
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens, segments, attention, positions):
        mask = torch.where(attention != 0, 0.0, -1e9)[:, None, None, :]
        x = self.words(tokens) + self.segments(segments) + self.positions.weight[:tokens.shape[1]]
        x = F.dropout(self.norm(x), 0.1)
        for layer in self.layers:
            x = layer(x, mask)
        rows = positions + torch.arange(0, tokens.numel(), tokens.shape[1], device=tokens.device)[:, None]
        masked = x.flatten(0, 1).index_select(0, rows.flatten())
        features = self.transform_norm(F.gelu(self.transform(masked)))
        return F.linear(features, self.words.weight, self.word_bias), self.next(torch.tanh(self.pooler(x[:, 0])))


def bert_loss(model, batch):
    words, following = model(batch["tokens"], batch["segments"], batch["attention"], batch["positions"])
    return F.cross_entropy(words, batch["words"].flatten()) + F.cross_entropy(following, batch["next"])


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
        length, masked = args.shape[0], 10
        batch = {"tokens": torch.randint(1, 30522, (n, length)),
                 "segments": (torch.arange(length) >= length // 2).long().repeat(n, 1),
                 "attention": torch.ones(n, length, dtype=torch.long),
                 "positions": torch.rand(n, length).argsort(1)[:, :masked].contiguous(),
                 "words": torch.randint(30522, (n, masked)), "next": torch.randint(2, (n,))}
        return Bert(1024, 24) if args.model == "bert-large" else Bert(768, 12), batch, bert_loss
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


def capture(step):
    """The step as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step().detach()

    def replay():
        graph.replay()
        return loss

    return replay


def kernel_time(work):
    """Seconds for which at least one kernel or copy was running."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        work()
    spans = sorted((event.time_range.start, event.time_range.end) for event in profiler.events()
                   if event.device_type == torch.autograd.DeviceType.CUDA)
    busy, until = 0, 0
    for begin, end in spans:
        busy += max(0, end - max(begin, until))
        until = max(until, end)
    return busy * 1e-6


def measure(args):
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = args.precision != "fp32"
    torch.backends.cudnn.benchmark = True
    model, batch, loss_of = make(args)
    layout = {"memory_format": torch.channels_last} if args.channels_last else {}
    model = model.to(args.device, **layout).train()
    batch = {name: value.to(args.device, **(layout if value.dim() == 4 else {})) for name, value in batch.items()}
    on_gpu, captured = args.device == "cuda", args.mode != "eager"
    if args.optimizer == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, fused=on_gpu)
    else:
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=on_gpu, capturable=on_gpu and captured)
    if args.mode == "compiled":
        torch._dynamo.reset()
        loss_of = torch.compile(loss_of)

    def step():
        optimizer.zero_grad()
        with torch.autocast(args.device, torch.bfloat16, enabled=args.precision == "bf16"):
            loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        return loss

    run_step = capture(step) if captured else step

    def run_steps(count):
        for _ in range(count):
            loss = run_step()
        if on_gpu:
            torch.cuda.synchronize()
        return loss

    run_steps(args.warmup)
    rates = []
    for _ in range(args.blocks):
        start = time.perf_counter()
        loss = run_steps(args.steps)
        rates.append(args.batch * args.steps / (time.perf_counter() - start))
    result = {"samples_per_s": rates, "last_loss": loss.item(), "torch": torch.__version__}
    if on_gpu and args.kernel_time:
        result["kernel_s"] = kernel_time(lambda: run_steps(args.steps)) / args.steps
    return result


def main():
    if sys.argv[1:] != ["--serve"]:
        print(json.dumps(measure(parse(sys.argv[1:], __doc__))))
        return
    for line in sys.stdin:
        print(json.dumps(measure(parse(json.loads(line), __doc__))), flush=True)
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
