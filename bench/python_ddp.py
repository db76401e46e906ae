#!/usr/bin/env python3
"""A network of torchvision's, or Hugging Face's BERT, under the Python module, beside PyTorch's
DistributedDataParallel, interleaved in one job.

    ./tutti run -n 2 -- python3 bench/python_ddp.py --rounds 5 --steps 10
    ./tutti run -n 2 -- python3 bench/python_ddp.py --device cuda --bf16 --model bert --batch 32
    mpirun -n 2 python3 bench/python_ddp.py --horovod            # and Horovod, where python3 has it

In each round every contender runs the same steps, one after the other: Tutti's strategies, DDP over gloo, and ranks that
do not synchronize at all. Prints the median time of a step of the slowest rank, and the median and the spread of the
rounds' ratios to DDP.
"""

import argparse
import os
import statistics
import time

import torch

import tutti


def make_workload(options, device):
    """A function that makes the network, and one that gives its loss on a batch of noise."""
    if options.model == "bert":
        import transformers

        config = transformers.BertConfig(attn_implementation="eager" if device.type == "cpu" else "sdpa")
        tokens = torch.randint(0, config.vocab_size, (options.batch, options.tokens), device=device)
        return (lambda: transformers.BertForMaskedLM(config)), lambda model: model(input_ids=tokens, labels=tokens).loss
    import torchvision

    inputs = torch.randn(options.batch, 3, options.pixels, options.pixels, device=device)
    targets = torch.randint(0, 10, (options.batch,), device=device)
    criterion = torch.nn.CrossEntropyLoss()
    return (lambda: getattr(torchvision.models, options.model)(num_classes=10),
            lambda model: criterion(model(inputs), targets))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=10, help="of each contender in each round")
    parser.add_argument("--model", default="resnet18", help="of torchvision, or bert: BERT-Base of transformers")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--bf16", action="store_true", help="autocast to bfloat16")
    parser.add_argument("--backend", default="gloo", help="of PyTorch's DDP")
    parser.add_argument("--tokens", type=int, default=64, help="of a sample, with bert")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--pixels", type=int, default=64)
    parser.add_argument("--strategies", default="buckets,mgwfbp,zero1")
    parser.add_argument("--horovod", action="store_true")
    options = parser.parse_args()

    job = tutti.init(runs=None, device=options.device)
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    torch.distributed.init_process_group(options.backend, rank=job.rank, world_size=job.size)
    torch.manual_seed(job.rank)
    make_model, loss_of = make_workload(options, job.device)

    def make(name):
        torch.manual_seed(0)
        model = make_model().to(job.device)
        if name == "DDP":
            model = torch.nn.parallel.DistributedDataParallel(model)
        elif name == "Horovod":
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
            horovod.broadcast_parameters(model.state_dict(), root_rank=0)
            return model, horovod.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
        elif name == "zero1":  # which needs an optimizer of the engine's
            return model, tutti.optim.SGD(model, lr=0.01, momentum=0.9, strategy=name)
        elif name != "alone":
            model = tutti.DistributedDataParallel(model, strategy=name)
        return model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def run(model, optimizer, steps):
        for _ in range(steps):
            optimizer.zero_grad()
            with torch.autocast(options.device, torch.bfloat16, enabled=options.bf16):
                loss = loss_of(model)
            loss.backward()
            optimizer.step()
        if options.device == "cuda":
            torch.cuda.synchronize()

    names = ["alone", "DDP", *options.strategies.split(",")]
    if options.horovod:
        import horovod.torch as horovod

        horovod.init()
        names.append("Horovod")
    contenders = {name: make(name) for name in names}
    for model, optimizer in contenders.values():
        run(model, optimizer, 6)  # past the profile
    seconds = {name: [] for name in names}
    for number in range(options.rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            tutti.barrier()
            begin = time.perf_counter()
            run(*contenders[name], options.steps)
            tutti.barrier()  # the slowest rank counts
            seconds[name].append((time.perf_counter() - begin) / options.steps)
    if job.rank == 0:
        size = f"{options.tokens} tokens" if options.model == "bert" else f"{options.pixels} pixels"
        print(f"{options.model}, batch {options.batch}, {size}, {options.device}{', bf16' if options.bf16 else ''}, "
              f"{job.size} ranks over {job.transport}, DDP over {options.backend}, PyTorch {torch.__version__}, "
              f"{torch.get_num_threads()} threads each")
        for name in names:
            ratios = [ddp / its for ddp, its in zip(seconds["DDP"], seconds[name])]
            print(f"{name:>14}: {statistics.median(seconds[name]) * 1e3:9.2f} ms a step, "
                  f"{statistics.median(ratios):.3f} times as fast as DDP ({min(ratios):.3f} to {max(ratios):.3f}, "
                  f"{len(ratios)} rounds)")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
