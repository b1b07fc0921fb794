"""Fingerprints: equal in every process, other for what does something else."""

import functools
import os
import re
import struct
import subprocess
import sys
import textwrap
import types
from collections import defaultdict, deque
from enum import Enum
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import privug as pv
from privug.checkpoints.fingerprints import fingerprint

SOURCES = str(Path(pv.__file__).parents[1])
EVERYTHING = """
    import re, functools, numpy as np, pandas as pd, privug as pv
    from enum import Enum
    from dataclasses import dataclass
    from privug.checkpoints.fingerprints import fingerprint

    class Colour(Enum):
        RED = "r"
        BLUE = "b"
        def warm(self): return self is Colour.RED

    @dataclass
    class Person:
        age: int
        names: frozenset = frozenset({"a", "b", "c"})
        def old(self): return self.age in {60, 70, "x", "y"}

    frame = pd.DataFrame({"age": [1, 2], "sex": ["f", "m"], "when": pd.to_datetime(["2024-01-01", "2024-01-02"])})
    pattern, rng, cached = re.compile("a+"), np.random.default_rng(), functools.lru_cache(lambda x: x)

    def program(x, y):
        cached(1)
        return frame, Person(3), Colour.RED, pattern.match("a"), rng.random(), {"p", "q", "r"}

    made = {}
    exec("def without_source(x): return x in {'a', 'b', 'c', 'd'}", made)
    values = [program, made["without_source"], pv.mechanisms.laplace(sum, sensitivity=1, epsilon=1),
              pv.Records(pv.Binomial(9, 0.5), lambda i: pv.Row(age=pv.Normal(i, sd=1), colour=pv.Choice(list(Colour)))),
              pv.Empirical([1.5, 2.5]), pv.near(3, within=1), pv.External(["sh", "-c", "cat"]),
              pv.Mixture([pv.Normal(0, sd=1)])]
    for value in values:
        print(fingerprint(value))
"""


@pytest.mark.slow
def test_fingerprints_are_equal_in_every_process(tmp_path):
    script = tmp_path / "everything.py"
    script.write_text(textwrap.dedent(EVERYTHING))
    found = []
    for seed in "12":
        environment = {**os.environ, "PYTHONPATH": SOURCES, "PYTHONHASHSEED": seed}
        found.append(
            subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment, check=True)
        )
    assert found[0].stdout == found[1].stdout
    assert len(set(found[0].stdout.split())) == 8


def compiled(source, name="program"):
    """Return what a module of that source defines."""
    module = types.ModuleType("somebodys")
    exec(textwrap.dedent(source), vars(module))
    sys.modules["somebodys"] = module
    return module, vars(module)[name]


@pytest.fixture(autouse=True)
def no_module():
    yield
    sys.modules.pop("somebodys", None)


def test_methods_of_classes_are_part_of_what_uses_them():
    source = "class Noise:\n    def add(self, x): return x + {}\nnoise = Noise()\ndef program(x): return noise.add(x)"
    first, same, other = (fingerprint(compiled(source.format(n))[1]) for n in (1, 1, 2))
    assert first == same != other


def test_members_of_enums_and_functions_of_modules_are_too():
    source = "from enum import Enum\nclass Level(Enum):\n    LOW = {}\ndef program(x): return Level.LOW"
    assert fingerprint(compiled(source.format(1))[1]) != fingerprint(compiled(source.format(2))[1])
    prints = []
    for n in (1, 1, 2):
        module, _ = compiled(f"def helper(x): return x + {n}", "helper")
        space = {"somebodys": module}
        exec("def program(x): return somebodys.helper(x)", space)
        prints.append(fingerprint(space["program"]))
    assert prints[0] == prints[1] != prints[2]


class Side(Enum):
    LEFT = 1
    RIGHT = 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Side.LEFT, Side.RIGHT),
        (np.arange(3), np.arange(3.0)),
        (np.arange(4), np.arange(4).reshape(2, 2)),
        (pv.equals(1), pv.equals(2)),
        (pv.such_that(lambda x: x > 1), pv.such_that(lambda x: x > 2)),
        (pv.Choice(["a", "b"]), pv.Choice(["a", "c"])),
        ((x := pv.Bernoulli(0.5), x), (pv.Bernoulli(0.5), pv.Bernoulli(0.5))),
        (pv.mechanisms.laplace(sum, sensitivity=1, epsilon=1), pv.mechanisms.laplace(sum, sensitivity=1, epsilon=2)),
    ],
)
def test_what_differs_has_another_fingerprint(one, other):
    assert fingerprint(one) == fingerprint(one)
    assert fingerprint(one) != fingerprint(other)


def test_what_was_found_out_about_an_attack_does_not_change_it():
    attack = pv.Attack(lambda x: x, {"x": pv.DiscreteUniform(0, 3)}, "x", assume=lambda x: x > 0)
    before = fingerprint(attack)
    attack.run(pv.equals(2))
    assert fingerprint(attack) == before


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (re.compile("[1-4]"), re.compile("[1-9]")),
        (re.compile("a"), re.compile("a", re.IGNORECASE)),
        (struct.Struct("<i"), struct.Struct("<q")),
        (deque([1, 2]), deque([1, 3])),
        (defaultdict(int), defaultdict(list)),
        ("ab".count, "ac".count),
        (memoryview(b"ab"), memoryview(b"ac")),
        (pl.col("a") > 1, pl.col("a") > 2),
        tuple(functools.reduce(lambda inner, _: [inner], range(60), last) for last in (1, 2)),
    ],
)
def test_values_of_all_kinds_are_told_apart(first, second):
    def program(x, taken):
        return lambda: (x, taken)

    assert fingerprint(program(1, first)) != fingerprint(program(1, second))
    assert fingerprint(program(1, first)) == fingerprint(program(1, first))
