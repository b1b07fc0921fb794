"""Outputs as functions of sums over rows: for each key, what is certain of an output and what still moves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privug.errors import PrivugError
from privug.inference.curve import Curve
from privug.inference.exact.curves.image import Image
from privug.inference.exact.curves.pieces import Unfollowed
from privug.inference.exact.rows.pullback import Affine, Reach, affine, core_of, typed
from privug.inference.exact.rows.reductions import NotRows
from privug.inference.exact.rows.regrouping import Placeholder
from privug.inference.exact.rows.specialisation import is_known, specialised, value_of
from privug.model.maybe import Maybe
from privug.model.node import Array, Node, ancestors
from privug.model.operations import SampleFailure
from privug.model.plan import Plan

Label = tuple[object, ...]
MANY = 50  # vectors that are worth going through at once
MOVING = object()
"""Stands in a label for the part of an output that is not certain."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """An output, given the key: plain numbers or codes, and for the one part that moves what it is a function of."""

    label: Label
    weights: Array | None = None
    constant: float = 0.0
    images: tuple[tuple[int, Image | None], ...] = ()
    """The parts that move, by their places, each as a function of the weighted sum; None is the sum itself."""

    @property
    def is_certain(self) -> bool:
        """Whether nothing moves."""
        return self.weights is None

    @cached_property
    def steps(self) -> tuple[Array, Array, list[Label]] | None:
        """The ranges of the weighted sum on which the output is certain, and what it is there, if it has no density."""
        if any(image is None or not image.is_discrete for _, image in self.images):
            return None
        edges = np.unique(np.concatenate([image.edges for _, image in self.images if image is not None]))
        low, high = edges[:-1].copy(), np.nextafter(edges[1:], -np.inf)
        middles = low / 2 + high / 2
        low[0], high[-1] = -np.inf, np.inf
        labels = []
        values = {place: image.values(middles).tolist() for place, image in self.images if image is not None}
        for position in range(len(middles)):
            filled = list(self.label)
            for place, several in values.items():
                filled[place] = several[position]
            labels.append(tuple(filled))
        return low, high, labels

    @cached_property
    def step_edges(self) -> Array:
        """Where the ranges of the weighted sum end on which the output is certain."""
        return np.empty(0) if self.steps is None else self.steps[0][1:]

    def density(self, law: Curve, y: Array, shift: Array) -> Array:
        """Return the density of values of the part that moves; the weighted sum is a quantity of a law plus a shift."""
        image = self.images[0][1]
        if image is None:
            return law.pdf(y - shift)
        total = np.zeros(np.broadcast_shapes(y.shape, shift.shape))
        for piece in np.flatnonzero(~image.steps):
            low, high = sorted(float(image.values(np.array([end]))[0]) for end in image.piece_ends(int(piece)))
            flat = y.reshape(-1)
            inside = (flat >= low) & (flat <= high)
            x = np.full(flat.shape, np.nan)
            slopes = np.ones(flat.shape)
            x[inside] = image.inverse(int(piece), flat[inside])
            slopes[inside] = np.abs(image.slope(x[inside]))
            there = np.nan_to_num(x, nan=np.inf).reshape(y.shape)
            with np.errstate(invalid="ignore"):
                part = np.where(np.isfinite(there), law.pdf(np.where(np.isfinite(there), there, 0.0) - shift), 0.0)
            total = total + part / slopes.reshape(y.shape)
        return total


class Outcomes:
    """The outputs of a program for one key after the other."""

    def __init__(self, outputs: Sequence[Node], sums: Sequence[Node]) -> None:
        self._outputs = list(outputs)
        self._sums = list(sums)
        self._known: dict[tuple[tuple[int, float], ...], Outcome] = {}

    def settle(self, totals: Array, discrete: Sequence[int]) -> None:
        """Find the outputs for known sums, a line of them for each vector, at once if they depend on no others."""
        known = {self._sums[j] for j in discrete}
        behind = [node for node in ancestors(self._outputs) if isinstance(node.operation, Placeholder)]
        if len(totals) < MANY or not known.issuperset(behind):
            return
        given = {self._sums[j]: typed(self._sums[j], totals[:, j]) for j in discrete}
        try:
            with np.errstate(all="ignore"):
                arrays = Plan(self._outputs, list(given)).run(
                    len(totals), np.random.Generator(np.random.SFC64(0)), given
                )
        except (SampleFailure, PrivugError):
            return  # it fails for some vectors, which may be those that cannot be
        columns = [np.broadcast_to(array, len(totals)).tolist() for array in arrays]
        for line, label in zip(totals[:, list(discrete)].tolist(), zip(*columns, strict=True), strict=True):
            self._known[tuple(zip(discrete, line, strict=True))] = Outcome(label)

    def at(self, key: tuple[tuple[int, float], ...], reach: Reach) -> Outcome:
        """Return the output, given the values of some sums by their positions."""
        if key not in self._known:
            self._known[key] = self._found({self._sums[j]: value for j, value in key}, reach)
        return self._known[key]

    def _found(self, values: Mapping[Node, float], reach: Reach) -> Outcome:
        nodes = [_present(node) for node in specialised(self._outputs, values)]
        label = [_plain(node) if isinstance(node, Node) and is_known(node) else node for node in nodes]
        moving = [place for place, node in enumerate(label) if isinstance(node, Node)]
        if not moving:
            return Outcome(tuple(label))
        cores = [self._core(label[place]) for place in moving]  # type: ignore[arg-type]
        found = cores[0][1]
        weights = np.array([found.weights.get(node, 0.0) for node in self._sums])
        images = []
        for place, (core, other) in zip(moving, cores, strict=True):
            if other != found:
                raise NotRows("several parts of the output depend on different sums over the same rows")
            node = label[place]
            assert isinstance(node, Node)
            images.append((place, None if node is core else self._image(node, core, found, weights, reach)))
            label[place] = MOVING
        if len(images) > 1 and any(image is None or not image.is_discrete for _, image in images):
            raise NotRows("several parts of the output have densities")
        return Outcome(tuple(label), weights, found.constant, tuple(images))

    @staticmethod
    def _core(node: Node) -> tuple[Node, Affine]:
        found = affine(node)
        return (node, found) if found is not None else core_of(node)

    @staticmethod
    def _image(node: Node, core: Node, found: Affine, weights: Array, reach: Reach) -> Image:
        low, high = reach(weights)
        try:
            return Image.of(node, core, low + found.constant, high + found.constant)
        except Unfollowed as problem:
            raise NotRows(str(problem), problem.node) from None


def _plain(node: Node) -> object:
    """Return the value of a constant as a plain number; what may be missing is a plain value already."""
    value = value_of(node)
    return value if node.dtype == object else value.item()


def _present(node: Node) -> object:
    """Return the number of an output that may be none, or what it is instead."""
    if not isinstance(node.operation, Maybe):
        return node
    there, value = node.parents
    if not is_known(there):
        raise NotRows("whether there is an output depends on a continuous quantity", node)
    return _present(value) if value_of(there) else node.operation.otherwise
