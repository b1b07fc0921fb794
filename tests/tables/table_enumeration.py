"""All fillings of a small published table, by plain enumeration: independent of the code under test.

A puzzle has leaves (the finest cells) and statements: a set of leaves, whose sum lies between two ends. Two sets of
leaves that must have the same sum are a statement with signs.
"""

import math
from collections import Counter
from itertools import product

import numpy as np


class Puzzle:
    """Leaves, and statements about sums of them."""

    def __init__(self, leaves, most):
        self.leaves = list(leaves)
        self.most = most
        self.statements = []

    def says(self, leaves, low, high, minus=()):
        signs = Counter(leaves)
        signs.subtract(Counter(minus))
        self.statements.append(({leaf: s for leaf, s in signs.items() if s}, low, high))

    def fillings(self):
        """Return a row for each filling, with a column for each leaf; sums that are too large already are dropped."""
        found = np.zeros((1, 0), int)
        for known in range(1, len(self.leaves) + 1):
            longer = np.repeat(found, self.most + 1, axis=0)
            found = np.column_stack([longer, np.tile(np.arange(self.most + 1), len(found))])
            for signs, low, high in self.statements:
                factors = np.array([signs.get(leaf, 0) for leaf in self.leaves])
                sums = found @ factors[:known]
                complete = not factors[known:].any()
                found = found[(sums >= low) & (sums <= high) if complete else (sums <= high) | (factors < 0).any()]
        return found

    def totals(self, fillings, leaves):
        """Return the sum of some leaves in every filling."""
        return fillings[:, [self.leaves.index(leaf) for leaf in leaves]].sum(1)


def log_factorial(count):
    return sum(math.log(k) for k in range(1, count + 1))


def poisson_weights(puzzle, fillings, rates):
    """Return the weight of each filling if the leaves are independent Poisson counts, up to a factor."""
    logs = np.array(
        [
            sum(c * math.log(rates[leaf]) - log_factorial(c) for leaf, c in zip(puzzle.leaves, row, strict=True))
            for row in fillings
        ]
    )
    return np.exp(logs - logs.max())


def distribution(values, weights):
    """Return how probable each value is."""
    found = {}
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        found[value] = found.get(value, 0.0) + weight
    whole = sum(found.values())
    return {value: weight / whole for value, weight in found.items() if weight > 0}


class Scenario:
    """A random two-way table, as texts and as a puzzle."""

    def __init__(self, rng, rows=3, columns=3, base=None, rounding="nearest", totals=True, largest=4):
        self.rng, self.base, self.rounding = rng, base, rounding
        self.rows = [f"r{i}" for i in range(rows)]
        self.columns = [f"c{j}" for j in range(columns)]
        self.counts = {(r, c): int(rng.integers(0, largest)) for r in self.rows for c in self.columns}
        self.puzzle = Puzzle(self.counts, sum(self.counts.values()) + (2 * base if base else 0))
        self.names, self.texts = {}, {}
        self.marks = {"*": (0, None), "<3": (0, 2)}
        chance = rng.uniform(0.2, 0.6)
        for r, c in product([*self.rows, "Total"], [*self.columns, "Total"]):
            self._cell(r, c, chance if "Total" not in (r, c) else chance / 3 * totals * ((r, c) != ("Total", "Total")))

    def leaves_of(self, r, c):
        return [(a, b) for a, b in self.counts if r in (a, "Total") and c in (b, "Total")]

    def _cell(self, r, c, chance):
        leaves = self.leaves_of(r, c)
        true = sum(self.counts[leaf] for leaf in leaves)
        text, low, high = str(true), true, true
        if self.base:
            down = true - true % self.base
            if self.rounding == "nearest":
                value = down + self.base * (2 * (true % self.base) > self.base)
                within = self.base // 2
            else:
                value = down + self.base * int(self.rng.random() < true % self.base / self.base)
                within = self.base - 1
            text, low, high = str(value), max(0, value - within), value + within
        hidden = self.rng.random() < chance
        if hidden:
            mark = self.rng.choice(["*", "<3"]) if true < 3 else "*"
            text, low, high = str(mark), 0, 2 if mark == "<3" else math.inf
        self.texts[r, c] = text
        if hidden or self.base:
            self.names[f"{r} x {c}"] = leaves
        self.puzzle.says(leaves, low, high)

    def sheet(self):
        header = ["region \\ sex", *self.columns, "Total"]
        return [header, *([r, *(self.texts[r, c] for c in header[1:])] for r in [*self.rows, "Total"])]
