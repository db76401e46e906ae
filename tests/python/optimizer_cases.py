"""What habits_test.py runs of tutti.optim: state, groups of parameters, scaled losses."""

import copy

import harness
from harness import check_close, reference, whole_batch


def grouped():
    """Groups with options of their own, schedulers on each, and the state in both directions with torch.optim."""
    import torch

    import tutti

    job = tutti.init(runs=None)

    def groups_of(net):
        return [{"params": [net.first.bias, net.second.bias], "weight_decay": 0.0, "lr": 0.02},
                {"params": net.second.weight, "weight_decay": 0.3}]

    def all_groups_of(net):
        taken = (net.first.bias, net.second.bias, net.second.weight)
        return [{"params": [p for p in net.parameters() if not any(p is t for t in taken)]}, *groups_of(net)]

    def scheduled(optimizer):
        return torch.optim.lr_scheduler.LambdaLR(optimizer, [lambda step, power=power: 0.9 ** (power * step)
                                                             for power in range(3)])

    cases = (
        ("zero1", tutti.optim.AdamW, torch.optim.AdamW, {"weight_decay": 0.1}),
        ("dear", tutti.optim.SGD, torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.1}),
        ("buckets", tutti.optim.Adam, torch.optim.Adam, {"betas": (0.8, 0.99)}),
    )
    for strategy, ours, theirs, options in cases:
        net, expected = harness.make_network(), harness.make_network()
        optimizer = ours(net, lr=0.03, param_groups=groups_of(net), strategy=strategy, **options)
        reference = theirs(all_groups_of(expected), lr=0.03, **options)
        schedulers = [scheduled(optimizer), scheduled(reference)]
        for step in range(7):
            x, y = whole_batch(net, job, step)
            harness.loss_of(net(x), y).backward()
            optimizer.step()
            x, y = harness.make_samples(step * job.size * 4, job.size * 4)
            reference.zero_grad()
            harness.loss_of(expected(x), y).backward()
            reference.step()
            for scheduler in schedulers:
                scheduler.step()
            if step == 4:  # as OneCycleLR does
                for one in (optimizer, reference):
                    one.param_groups[1]["weight_decay"] = 0.2
        state = optimizer.state_dict()
        optimizer.synchronize()
        check_close(net, expected)
        again = theirs(all_groups_of(expected), lr=0.5, **options)
        again.load_state_dict(copy.deepcopy({key: state[key] for key in ("state", "param_groups")}))
        assert [group["lr"] for group in again.param_groups] == [group["lr"] for group in reference.param_groups]
        back = harness.make_network()
        back.load_state_dict(net.state_dict())
        own = ours(back, lr=0.5, param_groups=groups_of(back), strategy=strategy, **options)
        own.load_state_dict(reference.state_dict())
        x, y = harness.make_samples(1000, 4)
        harness.loss_of(back(x), y).backward()
        own.step()
        own.synchronize()
        again.zero_grad()
        harness.loss_of(expected(x), y).backward()
        again.step()
        check_close(back, expected)


def scaled():
    """A scaled loss: unscaled before the step, which all ranks leave out where a gradient of one of them overflows."""
    import torch

    import tutti

    job = tutti.init(runs=None)

    class Scaler:
        """What tutti.optim uses of a GradScaler: PyTorch 1.13 has none for CPUs."""

        def __init__(self):
            self.factor, self._per_optimizer_states = 1024.0, {}

        def get_scale(self):
            return self.factor

        def scale(self, loss):
            return loss * self.factor

        def step(self, optimizer):
            self._per_optimizer_states[id(optimizer)] = {}
            optimizer.step(grad_scaler=self)
            found = sum(float(t) for t in self._per_optimizer_states[id(optimizer)]["found_inf_per_device"].values())
            if found:
                self.factor /= 2

    adam = lambda parameters: torch.optim.Adam(parameters, lr=0.01)  # noqa: E731
    kinds = [Scaler]
    if hasattr(torch, "amp") and hasattr(torch.amp, "GradScaler"):
        kinds.append(lambda: torch.amp.GradScaler("cpu", init_scale=1024.0))
    for make in kinds:
        net = harness.make_network()
        optimizer = tutti.optim.Adam(net, lr=0.01, strategy="zero1")
        train_scaled(job, net, net, optimizer, make())
        check_close(net, reference(6, adam, job.size))
    # torch.optim's own; where there is none for CPUs, one that does nothing.
    scaler = kinds[1]() if len(kinds) > 1 else torch.cuda.amp.GradScaler(enabled=False)
    net = harness.make_network()
    model = tutti.DistributedDataParallel(net, strategy="mgwfbp")
    train_scaled(job, net, model, adam(model.parameters()), scaler)
    check_close(net, reference(6, adam, job.size))


def train_scaled(job, net, model, optimizer, scaler):
    """Six steps, and one in between in which rank 1 overflows, where the scaler can tell."""
    import torch

    overflows = scaler.get_scale() > 1
    for step in range(6):
        if step == 3 and overflows:
            before, scale = torch.cat([p.detach().reshape(-1).clone() for p in net.parameters()]), scaler.get_scale()
            optimizer.zero_grad()
            x, y = whole_batch(net, job, step)
            scaler.scale(harness.loss_of(model(x), y) * (float("inf") if job.rank == 1 else 1.0)).backward()
            scaler.step(optimizer)
            if hasattr(scaler, "update"):
                scaler.update()
            assert torch.equal(before, torch.cat([p.detach().reshape(-1) for p in net.parameters()]))
            assert scaler.get_scale() == scale / 2, scaler.get_scale()
        optimizer.zero_grad()
        x, y = whole_batch(net, job, step)
        scaler.scale(harness.loss_of(model(x), y)).backward()
        scaler.step(optimizer)
        if hasattr(scaler, "update"):
            scaler.update()


def fused():
    """tutti.optim against torch.optim, its state in both directions, a scheduler, accumulation, clipping."""
    import torch

    import tutti

    job = tutti.init(runs=None)
    adam = lambda parameters: torch.optim.AdamW(parameters, lr=0.01)  # noqa: E731
    for strategy in ("zero1", "dear", "bytescheduler", "bsp"):
        net = harness.make_network()
        del net.unused  # what has never had a gradient keeps zero1 from sharding
        del net.sometimes
        optimizer = tutti.optim.AdamW(net, lr=0.01, strategy=strategy)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
        for step in range(8):
            x, y = whole_batch(net, job, step)
            optimizer.zero_grad()
            if step % 2:
                with optimizer.no_sync():
                    (harness.loss_of(net(x[:2]), y[:2]) / 2).backward()
                (harness.loss_of(net(x[2:]), y[2:]) / 2).backward()
            else:
                harness.loss_of(net(x), y).backward()
            optimizer.step()
            scheduler.step()
        state = optimizer.state_dict()
        optimizer.synchronize()
        expected = reference(8, adam, job.size, schedule=True)
        del expected.unused
        del expected.sometimes
        check_close(net, expected)
        # torch.optim goes on from its state …
        plain = harness.make_network()
        del plain.unused
        del plain.sometimes
        plain.load_state_dict(net.state_dict())
        theirs = adam(plain.parameters())
        # A copy: PyTorch 2 goes on with the very tensors.
        theirs.load_state_dict(copy.deepcopy({key: state[key] for key in ("state", "param_groups")}))
        x, y = harness.make_samples(1000, 4)
        harness.loss_of(plain(x), y).backward()
        theirs.step()
        # … and it from that of torch.optim, to the same end.
        again = tutti.optim.AdamW(copy_of(net), strategy=strategy)
        again.load_state_dict({key: state[key] for key in ("state", "param_groups")})
        harness.loss_of(again._model(x), y).backward()
        again.step()
        again.synchronize()
        check_close(again._model, plain)
    clipped = harness.make_network()
    optimizer = tutti.optim.SGD(clipped, lr=0.1, strategy="dear", clip_norm=0.05)
    for step in range(6):
        x, y = whole_batch(clipped, job, step)
        harness.loss_of(clipped(x), y).backward()
        optimizer.step()
    optimizer.synchronize()
    check_close(clipped, reference(6, lambda p: torch.optim.SGD(p, lr=0.1), job.size, clip=0.05))


def copy_of(net):
    result = harness.make_network()
    del result.unused
    del result.sometimes
    result.load_state_dict(net.state_dict())
    return result
