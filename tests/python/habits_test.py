"""What PyTorch users are used to works, and gives what one process gives."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import harness
from harness import check_close, reference, whole_batch
from optimizer_cases import fused, grouped, scaled


def wrapped():
    """no_sync, several passes, clipping, schedulers, zero_grad of both kinds, frozen and unused parameters."""
    import torch

    import tutti

    job = tutti.init(runs=None)
    adam = lambda parameters: torch.optim.Adam(parameters, lr=0.01)  # noqa: E731
    net = harness.make_network()
    model = tutti.DistributedDataParallel(net, strategy="wfbp")
    optimizer = adam(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    for step in range(8):
        x, y = whole_batch(model, job, step)
        optimizer.zero_grad(set_to_none=step % 2 == 0)
        if step % 3 == 0:
            harness.loss_of(model(x), y).backward()
        elif step % 3 == 1:  # in two parts, the first of them kept
            with model.no_sync():
                (harness.loss_of(model(x[:2]), y[:2]) / 2).backward()
            (harness.loss_of(model(x[2:]), y[2:]) / 2).backward()
        else:  # in two parts, each averaged
            (harness.loss_of(model(x[:2]), y[:2]) / 2).backward()
            (harness.loss_of(model(x[2:]), y[2:]) / 2).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        scheduler.step()
    assert net.unused.grad is None and net.frozen.grad is None
    assert torch.equal(net.unused, torch.ones(5))
    check_close(net, reference(8, adam, job.size, clip=0.5, schedule=True))
    # What it saves is the model's own, small, and loads into a model without Tutti, on any rank alone.
    if job.rank == 0:
        with tempfile.TemporaryDirectory() as folder:
            torch.save(model.state_dict(), os.path.join(folder, "model.pt"))
            assert os.path.getsize(os.path.join(folder, "model.pt")) < 8192
            other = harness.make_network()
            other.load_state_dict(torch.load(os.path.join(folder, "model.pt")))
        assert all(torch.equal(a, b) for a, b in zip(other.parameters(), net.parameters()))


def uneven():
    """A rank that is through brings nothing, and makes the same updates."""
    import torch

    import tutti

    job = tutti.init(runs=None)
    model = tutti.DistributedDataParallel(harness.make_network(), strategy="mgwfbp")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    for epoch in range(2):
        with model.join(optimizer, scheduler):
            for step in range(4 + 3 * job.rank):
                x, y = whole_batch(model, job, step)
                optimizer.zero_grad()
                harness.loss_of(model(x), y).backward()
                optimizer.step()
                scheduler.step()
    digest = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    same = tutti.broadcast(digest.clone(), 1)
    assert torch.equal(digest, same)
    assert int(tutti.all_reduce(torch.tensor([1]))) == job.size
    net = harness.make_network()
    own = tutti.optim.AdamW(net, lr=0.01, strategy="zero1")
    with own.join():
        for step in range(6 - 2 * job.rank):
            x, y = whole_batch(net, job, step)
            harness.loss_of(net(x), y).backward()
            own.step()
    own.synchronize()
    digest = torch.cat([p.detach().reshape(-1) for p in net.parameters()])
    assert torch.equal(digest, tutti.broadcast(digest.clone(), 0))


def digest_of(model, *optimizers):
    """All that a rank goes on from."""
    import torch

    parts = [p.detach().reshape(-1) for p in model.parameters()]
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            parts.append(torch.tensor([float(group["lr"])]))
            parts += [t.reshape(-1) for p in group["params"] for t in optimizer.state.get(p, {}).values()
                      if isinstance(t, torch.Tensor)]
    return torch.cat([part.float() for part in parts])


def uneven_by_itself():
    """Without join(): at the next collective, ranks that are through take part in the others' steps, and catch up."""
    import torch

    import tutti

    job = tutti.init(runs=None)
    ends = []
    for joins in (True, False):
        model = tutti.DistributedDataParallel(harness.make_network(), strategy="dear")
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
        for epoch in range(2):
            with model.join(optimizer, scheduler) if joins else contextlib.nullcontext():
                for step in range(2 + 3 * job.rank):
                    x, y = whole_batch(model, job, step)
                    optimizer.zero_grad()
                    harness.loss_of(model(x), y).backward()
                    optimizer.step()
                    scheduler.step()
            if epoch == 0 and not joins:  # a lone rank's evaluation holds nobody up for good
                model.eval()(x)
                model.train()
            assert int(tutti.all_reduce(torch.tensor([job.rank + 1]))) == 3
        ends.append(digest_of(model, optimizer))
        assert torch.equal(ends[-1], tutti.broadcast(ends[-1].clone(), 1))
    assert torch.equal(*ends)
    for strategy in ("zero1", "bytescheduler"):
        net = harness.make_network()
        own = tutti.optim.AdamW(net, lr=0.01, strategy=strategy)
        scheduler = torch.optim.lr_scheduler.StepLR(own, 2, 0.5)
        for _ in range(2):
            for step in range(9 - 3 * job.rank):
                x, y = whole_batch(net, job, step)
                harness.loss_of(net(x), y).backward()
                own.step()
                scheduler.step()
            own.synchronize()
            digest = digest_of(net, own)
            assert torch.equal(digest, tutti.broadcast(digest.clone(), 0))
    # Two models in turn, of which the last batch trains one alone.
    models = [tutti.DistributedDataParallel(harness.make_network()) for _ in range(2)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.05) for model in models]
    for step in range(4):
        for number, (model, optimizer) in enumerate(zip(models, optimizers)):
            if step == 3 and number > job.rank:
                continue
            x, y = whole_batch(model, job, step)
            optimizer.zero_grad()
            harness.loss_of(model(x), y).backward()
            optimizer.step()
    tutti.barrier()
    digest = torch.cat([digest_of(*pair) for pair in zip(models, optimizers)])
    assert torch.equal(digest, tutti.broadcast(digest.clone(), 0))


def buffers_and_ties():
    """Batch norm's statistics are rank 0's on all; tied weights; two models in turn; a backward on a part."""
    import torch

    import tutti

    job = tutti.init(runs=None)

    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Linear(6, 6)
            self.norm = torch.nn.BatchNorm1d(6)
            self.second = torch.nn.Linear(6, 6)
            self.second.weight = self.first.weight

        def forward(self, x):
            return self.second(torch.tanh(self.norm(self.first(x))))

    torch.manual_seed(1)
    one = tutti.DistributedDataParallel(Tied(), strategy="buckets")
    two = tutti.DistributedDataParallel(harness.make_network(), strategy="auto")
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.05) for m in (one, two)]
    for step in range(6):
        x, y = whole_batch(one, job, step)
        for model, optimizer, out in ((one, optimizers[0], 6), (two, optimizers[1], 3)):
            optimizer.zero_grad()
            model(x)[:, :out].pow(2).mean().backward()
            optimizer.step()
    digest = torch.cat([t.detach().reshape(-1).float() for t in one.state_dict().values()]
                       + [p.detach().reshape(-1) for p in two.parameters()])
    assert torch.equal(digest, tutti.broadcast(digest.clone(), 0))
    assert one.module.first.weight is one.module.second.weight
    with torch.no_grad():
        if job.rank == 0:
            one.eval()(x)  # by one rank alone
    one.train()


def horovod_script():
    import torch

    import tutti.horovod as hvd

    hvd.init(runs=None)
    net = harness.make_network()
    if hvd.rank() == 1:
        torch.nn.init.zeros_(net.first.weight)
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    sgd = lambda parameters: torch.optim.SGD(parameters, lr=0.05)  # noqa: E731
    optimizer = hvd.DistributedOptimizer(sgd(net.parameters()), named_parameters=net.named_parameters(),
                                         backward_passes_per_step=2)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    for step in range(6):
        x, y = harness.make_samples((step * hvd.size() + hvd.rank()) * 4, 4)
        optimizer.zero_grad()
        for part in (slice(0, 2), slice(2, 4)):
            (harness.loss_of(net(x[part]), y[part]) / 2).backward()
        optimizer.step()
    check_close(net, reference(6, sgd, hvd.size()))
    assert abs(float(hvd.allreduce(torch.tensor(float(hvd.rank())))) - (hvd.size() - 1) / 2) < 1e-6
    assert hvd.broadcast_object({"a": hvd.rank()}, 1) == {"a": 1}
    mine = torch.tensor([hvd.rank() + 2, 5])
    handles = [hvd.allreduce_async(mine * k, op=hvd.Sum) for k in (1, 10)]
    assert hvd.poll(handles[1])
    assert [hvd.synchronize(h).tolist() for h in handles] == [[5, 10], [50, 100]]
    assert [hvd.allreduce(mine, op=op).tolist() for op in (hvd.Min, hvd.Max, hvd.Product)] == [[2, 5], [3, 5], [6, 25]]
    hvd.synchronize(hvd.allreduce_async_(mine, op=hvd.Sum))
    assert mine.tolist() == [5, 10]


CASES = (wrapped, uneven, uneven_by_itself, fused, grouped, scaled, buffers_and_ties, horovod_script)


def all_cases():
    """In one job: python3 and PyTorch take their time to start."""
    for case in CASES:
        case()


def ends_at_different_times():
    import tutti

    job = tutti.init(name="ends")
    net = harness.make_network()
    model = tutti.DistributedDataParallel(net)
    optimizer = __import__("torch").optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(9 if job.rank == 0 else 5):
        x, y = whole_batch(model, job, step)
        optimizer.zero_grad()
        harness.loss_of(model(x), y).backward()
        optimizer.step()
    print("through")


def over_mpi():
    import tutti

    job = tutti.init(transport="mpi", runs=None)
    assert (job.size, job.transport) == (2, "mpi"), job
    wrapped()


class Habits(unittest.TestCase):
    def expect_success(self, case, ranks):
        code, output = harness.run_case(ranks, case)
        self.assertEqual(code, 0, output)

    def test_pytorch_programs_do_what_one_process_does(self):
        self.expect_success("all_cases", ranks=2)

    def test_a_wrapped_model_works_alone(self):
        self.expect_success("wrapped", ranks=1)

    def test_a_rank_that_ends_early_takes_part_until_all_are_through(self):
        with tempfile.TemporaryDirectory() as folder:
            code, output = harness.run_case(2, "ends_at_different_times", cwd=folder)
            self.assertEqual(code, 0, output)  # with other weights at the end it would not be
            self.assertEqual(output.count("through"), 2, output)

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun")
    def test_ranks_of_mpirun_find_their_place(self):
        done = subprocess.run(["mpirun", "-n", "2", sys.executable, os.path.abspath(__file__), "case", "over_mpi"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    harness.main({"all_cases": all_cases, "wrapped": wrapped, "over_mpi": over_mpi,
                  "ends_at_different_times": ends_at_different_times})
