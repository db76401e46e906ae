"""Choices that a seed decides, and that stay the same when there is less to choose from."""

import hashlib


class Draw:
    """Every choice has a name, and is made from seed and name alone. An option wins by its own number, so leaving out
    others (no root, --only) does not change which of the rest wins: a fault is repeated with its seed and its kind."""

    def __init__(self, seed):
        self.seed = seed

    def number(self, *names):
        """From 0 to 1, without 1."""
        text = "/".join(str(name) for name in (self.seed, *names))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big") / 2**56

    def pick(self, name, options):
        """`options`: a list, or a dict of options and weights."""
        weights = options if isinstance(options, dict) else {option: 1 for option in options}
        return max(weights, key=lambda option: self.number(name, option) ** (1 / weights[option]))

    def uniform(self, name, low, high):
        return low + (high - low) * self.number(name)

    def integer(self, name, low, high):
        """Both ends included."""
        return low + int((high - low + 1) * self.number(name))
