"""Runs from Python are read by `tutti explain`, `plan` and `report` as those of `tutti train` are."""

import fcntl
import json
import os
import subprocess
import tempfile
import unittest

import harness


def recorded():
    import torch

    import tutti

    job = tutti.init(name="mine")
    net = torch.nn.Sequential(torch.nn.Linear(6, 300), torch.nn.ReLU(), torch.nn.Linear(300, 300), torch.nn.ReLU(),
                              torch.nn.Linear(300, 3))
    model = tutti.DistributedDataParallel(net, strategy="mgwfbp", trace_steps=5)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(25):
        x, y = harness.make_samples((step * job.size + job.rank) * 32, 32)
        optimizer.zero_grad()
        with tutti.step() as marked:
            marked.loss = harness.loss_of(model(x), y)
            marked.loss.backward()
            optimizer.step()


class Records(unittest.TestCase):
    def test_a_run_of_python_can_be_explained_planned_and_reported(self):
        with tempfile.TemporaryDirectory() as folder:
            code, output = harness.run_case(2, "recorded", cwd=folder)
            self.assertEqual(code, 0, output)

            def tutti(*words):
                done = subprocess.run([os.environ["TUTTI"], *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      text=True, cwd=folder)
                self.assertEqual(done.returncode, 0, done.stdout)
                return done.stdout

            with open(os.path.join(folder, "runs", "mine", "records.jsonl"), encoding="utf-8") as file:
                records = [json.loads(line) for line in file]
            progress = next(r for r in records if r["record"] == "progress")
            epoch = next(r for r in records if r["record"] == "epoch")
            self.assertGreater(progress["loss"], 0)
            self.assertGreater(epoch["train_loss"], 0)
            self.assertLess(epoch["train_loss"], 10)

            explained = tutti("explain", "mine")
            for text in ("Sequential on 2 ranks, strategy mgwfbp", "optimizer  ", "data wait  "):
                self.assertIn(text, explained)
            plan = tutti("plan", "mine")
            for text in ("mgwfbp, as run", "measured all-reduce", "4.weight"):
                self.assertIn(text, plan)
            cluster = tutti("plan", "mine", "--cluster", "10gbe", "--gpus", "8,32")
            self.assertIn("the profile of mine, batch 32 per rank", cluster)
            self.assertIn("32 ranks", cluster)
            report = tutti("report", os.path.join("runs", "mine"))
            for text in ("Sequential", "mgwfbp", "32"):
                self.assertIn(text, report)

    def test_two_runs_of_a_name_at_a_time_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, "runs", "mine"))
            with open(os.path.join(folder, "runs", "mine", "lock"), "w", encoding="utf-8") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                code, output = harness.run_case(2, "recorded", cwd=folder)
            self.assertNotEqual(code, 0)
            self.assertIn("the run 'mine' is in use by", output)
            self.assertFalse(os.path.exists(os.path.join(folder, "runs", "mine", "records.jsonl")))


if __name__ == "__main__":
    harness.main({name: value for name, value in globals().items() if callable(value)})
