"""The random generators that a program draws from, wherever it holds them, so that its draws follow the engine's seed.

What comes from the operating system (`secrets`, `uuid4`, `os.urandom`, a generator made without a seed in each call)
cannot be made to follow a seed. It is found by its name, so that no such program is ever taken for a function.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from privug.program.reachable import Reached, reached

_GLOBAL: tuple[Any, ...] = (random.random.__self__, np.random.mtrand._rand)  # type: ignore[attr-defined]

_KINDS = (np.random.BitGenerator, np.random.RandomState, random.Random)
_ENTROPY = {
    ("posix", "urandom"), ("nt", "urandom"), ("posix", "getrandom"),
    ("secrets", "randbelow"), ("secrets", "randbits"), ("secrets", "choice"),
    ("secrets", "token_bytes"), ("secrets", "token_hex"), ("secrets", "token_urlsafe"),
    ("uuid", "uuid1"), ("uuid", "uuid4"),
}  # fmt: skip
_DEVICES = {"/dev/urandom", "/dev/random"}
_MAKERS = (
    random.Random, np.random.default_rng, np.random.RandomState, np.random.SeedSequence, np.random.PCG64,
    np.random.PCG64DXSM, np.random.MT19937, np.random.SFC64, np.random.Philox,
)  # fmt: skip


class Generators:
    """The generators that some objects hold, and Python's and NumPy's global ones first."""

    def __init__(self, *holders: Any) -> None:
        found = [*_GLOBAL, *_generators(reached(*holders))] if holders else _GLOBAL
        self._all = list({id(generator): generator for generator in found}.values())

    def states(self) -> list[Any]:
        """Return the states of all generators."""
        return [_state(generator) for generator in self._all]

    def restore(self, states: Sequence[Any]) -> None:
        """Put all generators back into states they had."""
        for generator, state in zip(self._all, states, strict=True):
            _put_back(generator, state)

    def have_moved(self, states: Sequence[Any]) -> bool:
        """Say whether any generator has been used since it had a state."""
        return not all(
            is_same_state(_state(generator), state) for generator, state in zip(self._all, states, strict=True)
        )

    def seed(self, seed: int) -> None:
        """Start all generators anew, each with a stream of its own."""
        random.seed(seed)
        np.random.seed(seed)
        for number, generator in enumerate(self._all[len(_GLOBAL) :], 1):
            _seed(generator, np.random.SeedSequence(seed, spawn_key=(number,)))


def _generators(found: Reached) -> Iterator[Any]:
    for value in found.objects:
        if isinstance(value, np.random.Generator):
            yield value.bit_generator
        elif isinstance(value, _KINDS) and not isinstance(value, random.SystemRandom):
            yield value


def _state(generator: Any) -> Any:
    match generator:
        case np.random.BitGenerator():
            return generator.state
        case np.random.RandomState():
            return generator.get_state(legacy=False)
        case _:
            with suppress(NotImplementedError):  # one of the user's own that has no state
                return generator.getstate()


def _put_back(generator: Any, state: Any) -> None:
    match generator:
        case np.random.BitGenerator():
            generator.state = state
        case np.random.RandomState():
            generator.set_state(state)
        case _ if state is not None:
            generator.setstate(state)


def _seed(generator: Any, sequence: np.random.SeedSequence) -> None:
    match generator:
        case np.random.BitGenerator():
            make: Callable[..., Any] = type(generator)
            generator.state = make(sequence).state
        case np.random.RandomState():
            state: Any = generator.get_state(legacy=False)
            fresh = getattr(np.random, state["bit_generator"])(sequence).state
            generator.set_state({**fresh, "has_gauss": 0, "gauss": 0.0})
        case _:
            generator.seed(int.from_bytes(sequence.generate_state(4).tobytes(), "little"))


def is_same_state(left: Any, right: Any) -> bool:
    """Compare two states of a generator."""
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(is_same_state(left[key], right[key]) for key in left)
    return bool(np.array_equal(left, right)) if isinstance(left, np.ndarray) else bool(left == right)


def entropy_source(*holders: Any) -> str | None:
    """Return the name of something in a program whose randomness is the operating system's, if there is any."""
    found = reached(*holders)
    for value in found.held:
        if isinstance(value, random.SystemRandom) or value is random.SystemRandom:
            return "random.SystemRandom"
        named = (getattr(value, "__module__", None), getattr(value, "__name__", None))
        texts_only = all(isinstance(part, str) for part in named)  # pl.col has any attribute
        if callable(value) and texts_only and named in _ENTROPY:
            return f"{'os' if named[0] in ('posix', 'nt') else named[0]}.{named[1]}"
    for name, value, code in found.taken:
        if name in code.called_bare and any(value is maker for maker in _MAKERS):
            return f"{name}() without a seed"
    texts = frozenset().union(*(code.texts for code in found.code))
    return next((device for device in sorted(_DEVICES) if device in texts), None)
