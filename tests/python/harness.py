"""What the tests of the Python module share: how ranks are started, and the network that they train."""

import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


def run_ranks(ranks, *words, timeout=120, env=None, cwd=None):
    """Ranks of a program under `tutti run`. Returns its exit code and all that they wrote."""
    command = [os.environ["TUTTI"], "run", "-n", str(ranks), "--threads", "1", "--", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout,
                          env={**os.environ, **(env or {})}, cwd=cwd or tempfile.gettempdir())
    return done.returncode, done.stdout


def run_case(ranks, name, timeout=120, cwd=None):
    """The function `name` of the test file, on ranks of python3."""
    return run_ranks(ranks, sys.executable, os.path.abspath(sys.argv[0]), "case", name, timeout=timeout, cwd=cwd)


def main(cases):
    """The tests of a file, or, as a rank, one of its cases."""
    if sys.argv[1:2] == ["case"]:
        cases[sys.argv[2]]()
        return
    if os.environ.get("TUTTI_PYTHON_MISSING"):
        print("SKIPPED: " + os.environ["TUTTI_PYTHON_MISSING"])
        return
    unittest.main(argv=sys.argv[:1])


def make_network():
    """The OddNetwork of tests/engine/networks.h, with its weights."""
    import torch

    class OddNetwork(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Linear(6, 8)
            self.second = torch.nn.Linear(8, 3)
            self.sometimes = torch.nn.Parameter(torch.ones(3))
            self.unused = torch.nn.Parameter(torch.ones(5))
            self.frozen = torch.nn.Parameter(torch.full((3,), 0.5), requires_grad=False)

        def forward(self, x, use_sometimes=False):
            out = self.second(torch.tanh(self.first(x))) + self.frozen
            return out * self.sometimes if use_sometimes else out

    torch.manual_seed(5)
    return OddNetwork()


def make_samples(first, count):
    import torch

    i = torch.arange(first, first + count, dtype=torch.float32).unsqueeze(1)
    return (torch.sin(i * torch.arange(1, 7, dtype=torch.float32) * 0.7),
            torch.cos(i * torch.arange(1, 4, dtype=torch.float32)))


def loss_of(out, y):
    return (out - y).pow(2).mean(1).mean()


def whole_batch(model, job, step, each=4):
    """This rank's part of a batch."""
    return make_samples((step * job.size + job.rank) * each, each)


def check_close(model, expected):
    import torch

    for (name, ours), theirs in zip(model.named_parameters(), expected.parameters()):
        assert torch.allclose(ours, theirs, atol=2e-6), (name, ours, theirs)


def reference(steps, make_optimizer, ranks, clip=0.0, schedule=False):
    """One process on the whole batch."""
    import torch

    model = make_network()
    optimizer = make_optimizer(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5) if schedule else None
    for step in range(steps):
        x, y = make_samples(step * ranks * 4, ranks * 4)
        optimizer.zero_grad()
        loss_of(model(x), y).backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        if scheduler:
            scheduler.step()
    return model
