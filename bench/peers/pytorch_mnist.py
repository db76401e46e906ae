"""mnist-cnn in PyTorch, as in its official MNIST example; plain, or with DistributedDataParallel over gloo or nccl.

Prints one JSON line with the samples per second of all ranks together, measured over the steps after the warm-up.
The data set lies in memory as one normalized tensor; a batch is one index_select away, so no loader slows PyTorch down.
"""

import argparse
import gzip
import json
import os
import socket
import struct
import time

import torch
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, 1)
        self.conv2 = nn.Conv2d(32, 64, 3, 1)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(9216, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = self.dropout1(x)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = self.dropout2(x)
        return F.log_softmax(self.fc2(x), dim=1)


def read_idx(path, header):
    with (gzip.open(path) if path.endswith(".gz") else open(path, "rb")) as file:
        sizes = struct.unpack(f">{header}I", file.read(4 * header))[1:]
        return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).view(*sizes)


def load_mnist(folder, device):
    def path(name):
        plain = os.path.join(folder, name)
        return plain if os.path.exists(plain) else plain + ".gz"

    images = read_idx(path("train-images-idx3-ubyte"), 4).float().div_(255).sub_(0.1307).div_(0.3081)
    labels = read_idx(path("train-labels-idx1-ubyte"), 2).long()
    return images.unsqueeze(1).to(device), labels.to(device)


def train(rank, args):
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    device = torch.device(f"cuda:{rank % torch.cuda.device_count()}" if args.device == "cuda" else "cpu")
    images, labels = load_mnist(args.data, device)
    model = Net().to(device)
    if args.ranks > 1:
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", str(args.port))
        backend = "nccl" if args.device == "cuda" else "gloo"
        torch.distributed.init_process_group(backend, rank=rank, world_size=args.ranks)
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    model.train()

    def synchronize():
        if args.device == "cuda":
            torch.cuda.synchronize()
        if args.ranks > 1:
            torch.distributed.barrier()

    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(1)).to(device)
    per_step = args.batch * args.ranks
    for step in range(args.warmup + args.steps):
        if step == args.warmup:
            synchronize()
            start = time.perf_counter()
        first = step * per_step % (len(images) - per_step) + rank * args.batch
        chosen = order[first:first + args.batch]
        optimizer.zero_grad()
        loss = F.nll_loss(model(images[chosen]), labels[chosen])
        loss.backward()
        optimizer.step()
    synchronize()
    seconds = time.perf_counter() - start
    if rank == 0:
        print(json.dumps({"samples_per_s": args.steps * per_step / seconds, "ranks": args.ranks, "steps": args.steps,
                          "last_loss": loss.item(), "torch": torch.__version__}), flush=True)
    if args.ranks > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="folder with MNIST's four files")
    parser.add_argument("--ranks", type=int, default=1, help="1: plain PyTorch; more: DistributedDataParallel")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=64, help="per rank")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--port", type=int, default=0, help="for the ranks to meet at; 0: any free one")
    arguments = parser.parse_args()
    if arguments.port == 0:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            arguments.port = free.getsockname()[1]
    if arguments.ranks == 1:
        train(0, arguments)
    else:
        mp.spawn(train, args=(arguments,), nprocs=arguments.ranks)
