"""Training throughput of JAX, the whole step jitted by XLA, on one batch that already lies on the device.

The same networks, losses and optimizers as in pytorch_models.py, in plain jax.numpy: images with channels last, float32
parameters, matrix products and convolutions in bfloat16 with --precision bf16. Prints one JSON object with samples per
second for each block of steps. With --serve, does so for every line of options on stdin.
"""

import json
import math
import os
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # others use the same GPU

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from peer_options import parse

jax.config.update("jax_default_prng_impl", "rbg")  # by far the cheapest for dropout on a GPU


class Scope:
    """Makes parameters while a network runs for the first time, and hands them out by their order afterwards. Keeps
    batch normalization's averages and the keys of dropout too."""

    def __init__(self, values=None, averages=None, key=None, dtype=jnp.float32):
        self.is_new = values is None
        self.values, self.averages = values or [], averages or []
        self.taken, self.new_averages, self.key, self.dtype = 0, [], key, dtype
        self.random = np.random.default_rng(1) if self.is_new else None

    def parameter(self, shape, spread):
        if self.is_new:
            value = self.random.normal(0, spread, shape) if spread > 0 else np.full(shape, 1.0 + spread)
            self.values.append(jnp.asarray(value, jnp.float32))
        self.taken += 1
        return self.values[self.taken - 1]

    def ones(self, shape):
        return self.parameter(shape, 0)

    def zeros(self, shape):
        return self.parameter(shape, -1)

    def dropout(self, x, share):
        if self.key is None:
            return x
        self.key, key = jax.random.split(self.key)
        return jnp.where(jax.random.bernoulli(key, 1 - share, x.shape), x / (1 - share), 0).astype(x.dtype)

    def dense(self, x, outputs, spread=0.02):
        weight, bias = self.parameter((x.shape[-1], outputs), spread), self.zeros((outputs,))
        return x.astype(self.dtype) @ weight.astype(self.dtype) + bias.astype(self.dtype)

    def conv(self, x, outputs, kernel, stride=1, padding=0, bias=False):
        inputs = x.shape[-1]
        weight = self.parameter((kernel, kernel, inputs, outputs), math.sqrt(2 / (kernel * kernel * outputs)))
        x = lax.conv_general_dilated(x.astype(self.dtype), weight.astype(self.dtype), (stride, stride),
                                     [(padding, padding)] * 2, dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return x + self.zeros((outputs,)).astype(self.dtype) if bias else x

    def conv_transpose(self, x, outputs):
        weight = self.parameter((2, 2, x.shape[-1], outputs), math.sqrt(1 / x.shape[-1]))
        x = lax.conv_transpose(x.astype(self.dtype), weight.astype(self.dtype), (2, 2), "VALID",
                               dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return x + self.zeros((outputs,)).astype(self.dtype)

    def batch_norm(self, x):
        weight, bias = self.ones((x.shape[-1],)), self.zeros((x.shape[-1],))
        wide = x.astype(jnp.float32)
        mean, square = wide.mean((0, 1, 2)), (wide * wide).mean((0, 1, 2))
        variance = jnp.maximum(square - mean * mean, 0)
        number = len(self.new_averages)
        before = (jnp.zeros_like(mean), jnp.ones_like(mean)) if self.is_new else self.averages[number]
        self.new_averages.append(tuple(0.9 * old + 0.1 * lax.stop_gradient(new)
                                       for old, new in zip(before, (mean, variance))))
        return ((wide - mean) * lax.rsqrt(variance + 1e-5) * weight + bias).astype(x.dtype)

    def layer_norm(self, x, epsilon):
        weight, bias = self.ones((x.shape[-1],)), self.zeros((x.shape[-1],))
        wide = x.astype(jnp.float32)
        wide = wide - wide.mean(-1, keepdims=True)
        return (wide * lax.rsqrt((wide * wide).mean(-1, keepdims=True) + epsilon) * weight + bias).astype(x.dtype)

    def attention(self, q, k, v, mask):
        n, length, width = q.shape
        q, k, v = (part.reshape(n, length, width // 64, 64) for part in (q, k, v))
        scores = jnp.einsum("nqhd,nkhd->nhqk", q, k).astype(jnp.float32) / 8 + mask
        weights = self.dropout(jax.nn.softmax(scores, -1), 0.1).astype(self.dtype)
        return jnp.einsum("nhqk,nkhd->nqhd", weights, v).reshape(n, length, width)


def max_pool(x, window, stride, padding=0):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, window, window, 1), (1, stride, stride, 1),
                             [(0, 0), (padding, padding), (padding, padding), (0, 0)])


def cross_entropy(logits, labels):
    logits = logits.astype(jnp.float32)
    chosen = jnp.take_along_axis(logits, labels[:, None], 1)[:, 0]
    return (jax.nn.logsumexp(logits, -1) - chosen).mean()


def mnist_cnn(scope, batch):
    x = jax.nn.relu(scope.conv(batch["x"], 32, 3, bias=True))
    x = scope.dropout(max_pool(jax.nn.relu(scope.conv(x, 64, 3, bias=True)), 2, 2), 0.25)
    x = scope.dropout(jax.nn.relu(scope.dense(x.reshape(x.shape[0], -1), 128)), 0.5)
    return cross_entropy(scope.dense(x, 10), batch["y"])


def resnet(blocks, kernels, expansion, classes):
    def block(scope, x, width, stride):
        y, strided = x, False
        for i, kernel in enumerate(kernels):
            strides = kernel == 3 and not strided
            strided = strided or strides
            outputs = width * expansion if i + 1 == len(kernels) else width
            y = scope.batch_norm(scope.conv(y, outputs, kernel, stride if strides else 1, kernel // 2))
            if i + 1 < len(kernels):
                y = jax.nn.relu(y)
        if x.shape != y.shape:
            x = scope.batch_norm(scope.conv(x, y.shape[-1], 1, stride))
        return jax.nn.relu(y + x)

    def loss(scope, batch):
        x = jax.nn.relu(scope.batch_norm(scope.conv(batch["x"], 64, 7, 2, 3)))
        x = max_pool(x, 3, 2, 1)
        for stage, count in enumerate(blocks):
            for i in range(count):
                x = block(scope, x, 64 << stage, 2 if i == 0 and stage > 0 else 1)
        return cross_entropy(scope.dense(x.mean((1, 2)), classes), batch["y"])

    return loss


def unet(scope, batch):
    def double_conv(x, outputs):
        for _ in range(2):
            x = jax.nn.relu(scope.batch_norm(scope.conv(x, outputs, 3, padding=1)))
        return x

    levels = [double_conv(batch["x"], 64)]
    for i in range(1, 5):
        levels.append(double_conv(max_pool(levels[-1], 2, 2), 64 << i))
    x = levels.pop()
    while levels:
        across = levels.pop()
        x = double_conv(jnp.concatenate([across, scope.conv_transpose(x, across.shape[-1])], -1), across.shape[-1])
    logits, y = scope.conv(x, 1, 1, bias=True).astype(jnp.float32), batch["y"]
    entropy = (jnp.maximum(logits, 0) - logits * y + jnp.log1p(jnp.exp(-jnp.abs(logits)))).mean((1, 2, 3))
    found = jax.nn.sigmoid(logits)
    both, total = (found * y).sum((1, 2, 3)), found.sum((1, 2, 3)) + y.sum((1, 2, 3))
    return (entropy + 1 - (2 * both + 1) / (total + 1)).mean()


def padding_mask(is_token):
    return jnp.where(is_token, 0.0, -1e9)[:, None, None, :]


def transformer(scope, batch, width=256, depth=6, epsilon=1e-5):
    tokens = batch["x"]
    mask = padding_mask(tokens != 0)
    x = scope.parameter((20000, width), 1.0)[tokens] + scope.parameter((tokens.shape[1], width), 0.02)
    x = scope.dropout(x, 0.1).astype(scope.dtype)
    for _ in range(depth):
        q, k, v = jnp.split(scope.dense(x, 3 * width), 3, -1)
        x = scope.layer_norm(x + scope.dropout(scope.dense(scope.attention(q, k, v, mask), width), 0.1), epsilon)
        inner = scope.dropout(jax.nn.relu(scope.dense(x, 4 * width)), 0.1)
        x = scope.layer_norm(x + scope.dropout(scope.dense(inner, width), 0.1), epsilon)
    weights = (tokens != 0).astype(x.dtype)[..., None]
    return cross_entropy(scope.dense((x * weights).sum(1) / jnp.maximum(weights.sum(1), 1), 5), batch["y"])


def bert(width, depth, epsilon=1e-12):
    def loss(scope, batch):
        tokens = batch["tokens"]
        mask = padding_mask(batch["attention"] != 0)
        table = scope.parameter((30522, width), 0.02)
        x = table[tokens] + scope.parameter((2, width), 0.02)[batch["segments"]]
        x = x + scope.parameter((512, width), 0.02)[: tokens.shape[1]]
        x = scope.dropout(scope.layer_norm(x, epsilon), 0.1).astype(scope.dtype)
        for _ in range(depth):
            q, k, v = (scope.dense(x, width) for _ in range(3))
            mixed = scope.dense(scope.attention(q, k, v, mask), width)
            x = scope.layer_norm(scope.dropout(mixed, 0.1) + x, epsilon)
            inner = jax.nn.gelu(scope.dense(x, 4 * width), approximate=False)
            x = scope.layer_norm(scope.dropout(scope.dense(inner, width), 0.1) + x, epsilon)
        masked = jnp.take_along_axis(x, batch["positions"][..., None], 1).reshape(-1, width)
        features = scope.layer_norm(jax.nn.gelu(scope.dense(masked, width), approximate=False), epsilon)
        words = features.astype(scope.dtype) @ table.T.astype(scope.dtype) + scope.zeros((30522,)).astype(scope.dtype)
        following = scope.dense(jnp.tanh(scope.dense(x[:, 0], width)), 2)
        return cross_entropy(words, batch["words"].reshape(-1)) + cross_entropy(following, batch["next"])

    return loss


def make(args):
    """The loss as a function of scope and batch, and a batch."""
    n, random = args.batch, np.random.default_rng(2)
    if args.model.startswith("bert"):
        length, masked = args.shape[0], 10
        batch = {"tokens": random.integers(1, 30522, (n, length)),
                 "segments": np.tile(np.arange(length) >= length // 2, (n, 1)).astype(int),
                 "attention": np.ones((n, length), int), "positions": random.random((n, length)).argsort(1)[:, :masked],
                 "words": random.integers(0, 30522, (n, masked)), "next": random.integers(0, 2, n)}
        return bert(1024, 24) if args.model == "bert-large" else bert(768, 12), batch
    if args.model == "transformer":
        return transformer, {"x": random.integers(1, 20000, (n, args.shape[0])), "y": random.integers(0, 5, n)}
    channels, height, width = args.shape
    images = random.normal(size=(n, height, width, channels)).astype(np.float32)
    if args.model == "unet":
        return unet, {"x": images, "y": (random.random((n, height, width, 1)) > 0.7).astype(np.float32)}
    batch = {"x": images, "y": random.integers(0, args.classes, n)}
    if args.model == "mnist-cnn":
        return mnist_cnn, batch
    blocks, kernels, expansion = {"resnet18": ((2, 2, 2, 2), (3, 3), 1), "resnet50": ((3, 4, 6, 3), (1, 3, 1), 4),
                                  "resnet101": ((3, 4, 23, 3), (1, 3, 1), 4)}[args.model]
    return resnet(blocks, kernels, expansion, args.classes), batch


def make_step(loss_of, optimizer, dtype):
    def loss(values, averages, key, batch):
        scope = Scope(values, averages, key, dtype)
        return loss_of(scope, batch), scope.new_averages

    def step(state, batch):
        values, averages, moments, count = state
        key = jax.random.fold_in(jax.random.key(1), count)
        (value, averages), gradients = jax.value_and_grad(loss, has_aux=True)(values, averages, key, batch)
        count = count + 1
        if optimizer == "sgd":
            moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, gradients)
            values = jax.tree.map(lambda v, m: v - 1e-4 * m, values, moments)
        else:
            means = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], gradients)
            squares = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, moments[1], gradients)
            scale = 1e-4 / (1 - 0.9**count)
            root = lax.rsqrt(1 - 0.999**count)
            values = jax.tree.map(lambda v, m, s: v - scale * m / (jnp.sqrt(s) * root + 1e-8), values, means, squares)
            moments = (means, squares)
        return (values, averages, moments, count), value

    return jax.jit(step, donate_argnums=0)


def measure(args):
    jax.config.update("jax_default_matmul_precision", "float32" if args.precision == "fp32" else "tensorfloat32")
    loss_of, batch = make(args)
    device = jax.devices("gpu" if args.device == "cuda" else "cpu")[0]
    with jax.default_device(device):
        batch = {name: jnp.asarray(value, jnp.int32 if value.dtype.kind == "i" else jnp.float32)
                 for name, value in batch.items()}
        dtype = jnp.bfloat16 if args.precision == "bf16" else jnp.float32
        first = Scope(dtype=dtype)
        loss_of(first, batch)
        zeros = [jnp.zeros_like(value) for value in first.values]
        moments = zeros if args.optimizer == "sgd" else (zeros, [jnp.zeros_like(value) for value in first.values])
        state = (first.values, first.new_averages, moments, jnp.zeros((), jnp.float32))
        step = make_step(loss_of, args.optimizer, dtype)
        rates = []
        for count in [args.warmup] + [args.steps] * args.blocks:
            start = time.perf_counter()
            for _ in range(count):
                state, loss = step(state, batch)
            jax.block_until_ready(state)
            rates.append(args.batch * count / (time.perf_counter() - start))
    return {"samples_per_s": rates[1:], "last_loss": float(loss), "jax": jax.__version__}


def main():
    if sys.argv[1:] != ["--serve"]:
        print(json.dumps(measure(parse(sys.argv[1:], __doc__))))
        return
    for line in sys.stdin:
        print(json.dumps(measure(parse(json.loads(line), __doc__))), flush=True)
        jax.clear_caches()


if __name__ == "__main__":
    main()
