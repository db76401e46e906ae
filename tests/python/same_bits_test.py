"""The same network trained by C++ and by Python, under every strategy, ends in the same bits."""

import os
import unittest

import harness


def weights_line(how, strategy, model):
    import torch

    values = torch.cat([p.detach().reshape(-1) for p in model.parameters()]).double().tolist()
    return f"{how} {strategy} " + " ".join(v.hex() for v in values)


def train_all(device="cpu"):
    import torch

    import tutti

    job = tutti.init(runs=None, device=device)
    sizes = {"bucket_bytes": 200, "first_bucket_bytes": 100}
    for how in ("sgd", "adam", "torch"):
        for strategy in tutti.strategies():
            net = harness.make_network().to(job.device)
            if job.rank > 0:  # rank 0's values are given to all
                torch.nn.init.zeros_(net.first.weight)
            model = net
            if how == "sgd":
                optimizer = tutti.optim.SGD(net, lr=0.05, momentum=0.9, strategy=strategy, strategy_options=sizes)
            elif how == "adam":
                optimizer = tutti.optim.Adam(net, lr=0.05, strategy=strategy, strategy_options=sizes)
            else:
                model = tutti.DistributedDataParallel(net, strategy=strategy, strategy_options=sizes)
                optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
            for step in range(8):
                x, y = (part.to(job.device) for part in harness.make_samples((step * job.size + job.rank) * 4, 4))
                optimizer.zero_grad()
                harness.loss_of(model(x, step % 2 == 1), y).backward()
                optimizer.step()
            if how != "torch":
                optimizer.synchronize()
            if job.rank == 0:
                print(weights_line(how, strategy, net))


def as_numbers(text):
    """(how, strategy) -> weights, whatever form the hexadecimal numbers have."""
    result = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) > 20 and words[0] in ("sgd", "adam", "torch"):
            result[words[0], words[1]] = [float.fromhex(word) for word in words[2:]]
    return result


class SameBits(unittest.TestCase):
    def expect_all_equal(self, found, expected):
        import tutti

        for how in ("sgd", "adam", "torch"):
            for strategy in tutti.strategies():
                self.assertEqual(found[how, strategy], expected[how, "bsp"], (how, strategy))

    def test_every_strategy_in_python_ends_in_the_bits_of_cpp(self):
        code, text = harness.run_ranks(2, os.environ["TUTTI_REFERENCE"])
        self.assertEqual(code, 0, text)
        expected = as_numbers(text)
        code, text = harness.run_case(2, "train_all")
        self.assertEqual(code, 0, text)
        self.expect_all_equal(as_numbers(text), expected)
        self.assertEqual(expected["sgd", "zero1"], expected["sgd", "bsp"])
        self.assertNotEqual(expected["sgd", "bsp"], expected["adam", "bsp"])

    def test_every_strategy_ends_in_the_same_bits_on_a_gpu(self):
        import torch

        if not torch.cuda.is_available():
            self.skipTest("there is no GPU")
        code, text = harness.run_case(2, "train_all_on_gpu")
        self.assertEqual(code, 0, text)
        found = as_numbers(text)
        self.expect_all_equal(found, found)


if __name__ == "__main__":
    harness.main({"train_all": train_all, "train_all_on_gpu": lambda: train_all("cuda")})
