"""What is trained: a short run of `tutti train`, and the same run undisturbed."""

import dataclasses
import hashlib
import json
import os

from draw import Draw

STRATEGIES = ["bsp", "wfbp", "buckets", "fusion", "mgwfbp", "bytescheduler", "dear", "zero1",
              "bsp-ps", "wfbp-ps", "bytescheduler-ps"]
# Those that compress leave out what depends on the messages, so only plans that do not depend on measured times can be
# compared. Servers and reduce-scatters do not take them.
COMPRESSING = {"topk", "sign"}
FIXED_PLANS = ["bsp", "wfbp", "buckets", "bytescheduler"]

# Ranks, optimizer, wire format, further options. A list and not a product: each entry costs an undisturbed run.
TRAININGS = [
    (2, "sgd", "fp32", ()), (2, "adam", "fp32", ()), (2, "adamw", "bf16", ()), (2, "lamb", "fp16", ()),
    (3, "sgd", "fp32", ("--accumulate", "2")), (3, "adam", "fp32", ("--clip-norm", "1")), (3, "adamw", "fp32", ()),
    (3, "lamb", "fp32", ()), (4, "sgd", "bf16", ("--nesterov",)), (4, "adam", "fp32", ("--schedule", "cosine")),
    (5, "lamb", "bf16", ()), (5, "adamw", "fp32", ("--warmup", "6")),
    (2, "sgd", "topk", ("--topk-ratio", "0.1")), (2, "adam", "sign", ()), (3, "sgd", "sign", ()),
]

BATCH = 4
STEPS_PER_EPOCH = 8
EPOCHS = 2
STEPS = STEPS_PER_EPOCH * EPOCHS
CHECKPOINT_STEPS = 3
COMM_TIMEOUT_S = 5


@dataclasses.dataclass
class Case:
    transport: str
    training: int  # in TRAININGS
    strategy: str
    restarts: int = 0
    servers: int = 0

    @property
    def ranks(self):
        return TRAININGS[self.training][0]

    @property
    def processes(self):
        return self.ranks + self.servers

    @property
    def wire(self):
        return TRAININGS[self.training][2]

    def words(self):
        """The options that say what is trained and how, without names and places."""
        ranks, optimizer, wire, more = TRAININGS[self.training]
        accumulate = int(more[1]) if "--accumulate" in more else 1
        # The last step of an epoch is smaller than the others.
        samples = STEPS_PER_EPOCH * BATCH * accumulate * ranks - 3
        words = ["--ranks", ranks, "--threads", 1, "--device", "cpu", "--train-size", samples, "--test-size", 120,
                 "--eval-batch", 20, "--batch", BATCH, "--epochs", EPOCHS, "--checkpoint-steps", CHECKPOINT_STEPS,
                 "--log-every", 1, "--trace-steps", 0, "--comm-timeout", COMM_TIMEOUT_S, "--strategy", self.strategy,
                 "--optimizer", optimizer, "--wire", wire, *more]
        if self.servers:
            words += ["--servers", self.servers]
        return [str(word) for word in words]

    def reference(self):
        """The undisturbed run that ends with the same weights: all strategies and transports do, so one will do."""
        strategy = self.strategy if self.wire in COMPRESSING else "bsp"
        return Case("shm", self.training, strategy)

    def key(self):
        return hashlib.sha256(json.dumps(dataclasses.asdict(self)).encode()).hexdigest()[:16]

    def __str__(self):
        ranks, optimizer, wire, more = TRAININGS[self.training]
        text = f"{self.strategy} {optimizer} {wire}"
        if more:
            text += " " + " ".join(more)
        if self.servers:
            text += f" {self.servers} servers"
        if self.restarts:
            text += f" {self.restarts} restart"
        return text


def draw_case(draw: Draw, transport: str, may_restart: bool) -> Case:
    # Few ranks more often than many: half of what a run takes is the start of its processes.
    training = draw.pick("training", {i: {2: 4, 3: 2}.get(TRAININGS[i][0], 1) for i in range(len(TRAININGS))})
    strategies = FIXED_PLANS if TRAININGS[training][2] in COMPRESSING else STRATEGIES
    strategy = draw.pick("strategy", strategies)
    # Servers as processes of their own are started by tutti itself.
    servers = draw.integer("servers", 0, 1) if strategy.endswith("-ps") and transport in ("shm", "mpi") else 0
    restarts = 1 if may_restart and draw.number("restarts") < 0.2 else 0
    return Case(transport, training, strategy, restarts, servers)


def read_records(path):
    """The whole lines of a record file that can be read, and how many cannot."""
    records, damaged = [], 0
    try:
        with open(path, "rb") as file:
            text = file.read()
    except OSError:
        return [], 0
    for line in text.split(b"\n")[:-1]:
        try:
            record = json.loads(line)
            record["record"], record["time"]  # what all of them have
            records.append(record)
        except (ValueError, KeyError, TypeError):
            damaged += 1
    return records, damaged


def checkpoints(run_folder):
    """Names of the finished ones, oldest first."""
    try:
        names = os.listdir(os.path.join(run_folder, "checkpoints"))
    except OSError:
        return []
    return sorted(name for name in names if name.startswith("step-"))
