"""Bad use ends with one clear exception on every rank; none hangs."""

import tempfile
import unittest

import harness


def different_models():
    import torch

    import tutti

    job = tutti.init(runs=None)
    tutti.DistributedDataParallel(torch.nn.Linear(4, 3 if job.rank == 0 else 5))


def forgotten_init():
    import torch

    import tutti

    tutti.DistributedDataParallel(torch.nn.Linear(4, 3))


def second_wrap():
    import tutti

    tutti.init()
    tutti.DistributedDataParallel(tutti.DistributedDataParallel(harness.make_network()))


def wrap_and_optimizer():
    import tutti

    tutti.init()
    net = harness.make_network()
    tutti.DistributedDataParallel(net)
    tutti.optim.SGD(net, lr=0.1)


def step(model, optimizer, number=0):
    x, y = harness.make_samples(number * 4, 4)
    optimizer.zero_grad()
    harness.loss_of(model(x), y).backward()
    optimizer.step()


def parameter_added_later():
    import torch

    import tutti

    tutti.init()
    net = harness.make_network()
    model = tutti.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step(model, optimizer)
    net.late = torch.nn.Linear(3, 3)
    step(model, optimizer)


def moved_later():
    import torch

    import tutti

    tutti.init()
    model = tutti.DistributedDataParallel(harness.make_network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step(model, optimizer)
    model.double().float()
    step(model, optimizer)


def optimizer_over_others():
    import torch

    import tutti

    tutti.init()
    model = tutti.DistributedDataParallel(harness.make_network())
    optimizer = torch.optim.SGD([torch.nn.Parameter(p.detach().clone()) for p in model.parameters()], lr=0.1)
    for number in range(5):
        step(model, optimizer, number)


def strange_group():
    import torch

    import tutti

    tutti.init()
    tutti.optim.Adam(harness.make_network(), param_groups=[{"params": [torch.nn.Parameter(torch.ones(7))]}])


def amsgrad():
    import tutti

    tutti.init()
    net = harness.make_network()
    tutti.optim.Adam(net, param_groups=[{"params": [net.unused], "amsgrad": True}])


def optimizer_of_tensors():
    import tutti

    tutti.init()
    tutti.optim.Adam(harness.make_network().parameters())


def second_backward():
    import tutti

    tutti.init()
    net = harness.make_network()
    optimizer = tutti.optim.Adam(net)
    x, y = harness.make_samples(0, 4)
    harness.loss_of(net(x), y).backward()
    harness.loss_of(net(x), y).backward()
    optimizer.step()


def all_reduce_before_the_step():
    import torch

    import tutti

    net = harness.make_network()
    optimizer = tutti.optim.Adam(net)
    x, y = harness.make_samples(0, 4)
    harness.loss_of(net(x), y).backward()
    try:
        tutti.all_reduce(torch.ones(1))
    finally:
        optimizer.step()


def unknown_strategy():
    import tutti

    tutti.init()
    tutti.DistributedDataParallel(harness.make_network(), strategy="bucket")


def one_rank_raises():
    import torch

    import tutti

    job = tutti.init(runs=None)
    model = tutti.DistributedDataParallel(harness.make_network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number in range(20):
        if number == 5 and job.rank == 1:
            raise ValueError("a file of rank 1 is missing")
        step(model, optimizer, number)


def one_rank_exits():
    import sys

    import torch

    import tutti

    job = tutti.init(runs=None)
    model = tutti.DistributedDataParallel(harness.make_network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    while True:
        step(model, optimizer)
        if job.rank == 1:
            sys.exit(3)


def collectives_of_a_loop():
    """A rank that is through goes on to another collective than the one in the others' loop."""
    import torch

    import tutti

    job = tutti.init(runs=None)
    model = tutti.DistributedDataParallel(harness.make_network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number in range(10 if job.rank == 0 else 6):
        step(model, optimizer, number)
        tutti.all_reduce(torch.ones(1))
    tutti.all_reduce(torch.ones(1))


def other_updates():
    import torch

    import tutti

    job = tutti.init(runs="runs", name="other")
    model = tutti.DistributedDataParallel(harness.make_network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 + job.rank)
    for number in range(6):
        step(model, optimizer, number)


REFUSED = (
    (forgotten_init, "UsageError: call tutti.init() first"),
    (different_models, "Error: ranks have different models: trainable parameter 0 is"),
    (second_wrap, "UsageError: the model has been given to Tutti before"),
    (wrap_and_optimizer, "UsageError: the model has been given to Tutti before"),
    (unknown_strategy, "UsageError: there is no strategy 'bucket'; there are"),
    (optimizer_of_tensors, "UsageError: give Adam the model itself, not generator"),
    (strange_group, "UsageError: param_groups has a tensor of shape (7,) that is no parameter of the model"),
    (amsgrad, "UsageError: tutti.optim has no amsgrad: take torch.optim"),
    (parameter_added_later, "UsageError: parameter 'late.weight' came to the model"),
    (moved_later, "Error: parameter 'sometimes' has other memory than when the model was given to Tutti"),
    (optimizer_over_others, "UsageError: an optimizer has made steps, but no parameter of this model has changed"),
    (all_reduce_before_the_step, "Error: between backward() and the optimizer's step() gradients are on their way"),
    (second_backward, "RuntimeError: a second backward pass before the optimizer's step"),
)


def refused():
    """One after the other: an exception on this rank, and the job goes on."""
    import torch

    for case, text in REFUSED:
        try:
            case()
        except Exception as error:  # noqa: BLE001
            found = f"{type(error).__name__}: {error}"
            assert text in found, (case.__name__, found)
        else:
            raise AssertionError(f"{case.__name__}: nothing was raised")
        import tutti

        if case is second_backward:
            break  # its gradients are still on their way
        if tutti.is_initialized():
            assert int(tutti.all_reduce(torch.tensor([1]))) == tutti.size()
        else:
            tutti.init(runs=None)
    import os

    print("refused all")
    os._exit(0)  # its models were left in the middle of things


class Misuse(unittest.TestCase):
    def run_case(self, case):
        with tempfile.TemporaryDirectory() as folder:
            return harness.run_case(2, case, timeout=60, cwd=folder)

    def test_bad_use_is_one_exception_on_every_rank(self):
        code, output = self.run_case("refused")
        self.assertEqual(code, 0, output)
        self.assertIn("refused all", output)
        self.assertIn("[rank 1] refused all", output)

    def test_an_exception_in_one_rank_ends_the_others_with_its_text(self):
        code, output = self.run_case("one_rank_raises")
        self.assertEqual(code, 1, output)
        self.assertIn("[rank 1] ValueError: a file of rank 1 is missing", output)
        self.assertRegex(output, r"(?m)^RuntimeError: .*ended with ValueError: a file of rank 1 is missing")
        self.assertIn("rank 1 of 2 failed: exit code 1", output)

    def test_a_rank_that_exits_with_an_error_ends_the_others(self):
        code, output = self.run_case("one_rank_exits")
        self.assertEqual(code, 3, output)
        self.assertIn("rank 1 ended with exit code 3", output)

    def test_unequal_loops_with_collectives_in_them_end_with_both_places(self):
        code, output = self.run_case("collectives_of_a_loop")
        self.assertNotEqual(code, 0, output)
        self.assertRegex(output, r"rank 0 is at misuse_test.py:\d+, and rank 1 at misuse_test.py:\d+")
        self.assertIn("with model.join(optimizer)", output)

    def test_ranks_that_update_otherwise_are_told_at_the_end(self):
        code, output = self.run_case("other_updates")
        self.assertEqual(code, 1, output)
        self.assertIn("rank 1 ended with other weights than rank 0: every rank has to make the same updates", output)


if __name__ == "__main__":
    harness.main({name: value for name, value in globals().items() if callable(value)})
