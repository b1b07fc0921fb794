"""Tallies: what all rows together add to sums, by how many of them fell into which cell.

Cells that add the same numbers, and move the same sums in the same proportions, form a class. A tally lists vectors of
whole numbers, flat contributions in units of each sum and how many rows fell into each moving class, with their
probabilities. Given such a vector, the moving parts of the sums are sums of independent curves.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from privug.inference.exact.rows.cells import Cell
from privug.inference.exact.rows.regrouping import NotRows
from privug.inference.measure.convolution import Powers, added
from privug.inference.measure.curve import Curve
from privug.inference.measure.lattice_law import SumLaw, sum_law, total_law
from privug.model.node import Array

MOST_DENOMINATOR = 10**6
MOST_UNITS = 10**7
LARGEST = 2.0**53  # of whole numbers that floats tell apart
LATTICE = 1e-11  # how far from a multiple of a unit a number may be, relative to its size, for rounding
MOST_VECTORS = 400_000


PowersOfClasses = dict[tuple[float, ...], tuple[Powers, list[Cell]]]
"""Sums of what classes of cells add, by the cells, which are kept, and by their probabilities."""


@dataclass(frozen=True, eq=False)
class MovingClass:
    """Cells that move sums along one direction: the distribution of the first moving sum, and the others' ratios."""

    direction: tuple[float, ...]
    powers: Powers


@dataclass(frozen=True, eq=False)
class CellCounts:
    """What rows add to sums: a line of `flats` for each vector, how many rows are in each class, and probabilities."""

    flats: Array
    counts: Array
    probabilities: Array
    classes: tuple[MovingClass, ...]
    lost: float = 0.0
    _laws: dict[tuple[tuple[float, ...], tuple[int, ...]], Curve] = field(default_factory=dict, repr=False)

    @property
    def laws(self) -> list[Curve]:
        """The distributions that were asked for."""
        return list(self._laws.values())

    def law(self, weights: Sequence[float] | Array, counts: Sequence[int]) -> Curve:
        """Return the distribution of weighted moving parts of the sums, given how many rows are in each class."""
        scales = tuple(float(np.dot(weights, one.direction)) for one in self.classes)
        used = tuple(int(k) if scale else 0 for k, scale in zip(counts, scales, strict=True))
        key = scales, used
        if key not in self._laws:
            self._laws[key] = self._summed(scales, used)
        return self._laws[key]

    def _summed(self, scales: Sequence[float], counts: Sequence[int]) -> Curve:
        total: Curve | None = None
        for one, scale, count in zip(self.classes, scales, counts, strict=True):
            if count:
                part = one.powers.sum(count).affine(scale, 0.0)
                total = part if total is None else added(total, part)
        return Curve.point(0.0) if total is None else total


def unit_of(values: Array) -> float | None:
    """Return a unit of which all numbers are multiples, but for rounding; None if there is none to be seen."""
    sizes = np.abs(values[values != 0])
    plain = _unit(values)
    if not len(sizes) or (plain is not None and sizes.max() / plain < LARGEST):
        return plain
    smallest = float(sizes.min())
    relative = _unit(values / smallest)
    return smallest * relative if relative is not None and sizes.max() / smallest / relative < LARGEST else None


def _unit(values: Array) -> float | None:
    """Return one over a whole number of which all numbers are multiples."""
    denominator = 1
    for value in np.unique(values):
        if value == math.floor(value):
            continue
        fraction = Fraction(float(value)).limit_denominator(MOST_DENOMINATOR)
        if abs(float(fraction) - value) > LATTICE * abs(value):
            return None
        denominator = math.lcm(denominator, fraction.denominator)
        if denominator > MOST_UNITS:
            return None
    return 1 / denominator


def direction_of(cell: Cell) -> tuple[float, ...]:
    """Return by how much each sum moves if the first that moves does by one."""
    moving = cell.moving
    if len(moving) == 1:
        return tuple(float(j == moving[0]) for j in range(len(cell.terms)))
    if any(cell.terms[j].image is not None for j in moving):
        raise NotRows("several sums depend on one quantity of a row in ways that are not proportional")
    first = cell.terms[moving[0]].slope
    return tuple(term.slope / first if j in moving else 0.0 for j, term in enumerate(cell.terms))


def first_law(cell: Cell) -> tuple[Curve, Array]:
    """Return the distribution of the first sum that a cell moves, and what it adds to all sums besides."""
    assert cell.curve is not None
    first = cell.moving[0]
    flats = cell.flats.copy()
    for j in cell.moving[1:]:
        ratio = cell.terms[j].slope / cell.terms[first].slope
        flats[j] += cell.terms[j].start - ratio * cell.terms[first].start
    return cell.terms[first].law(cell.curve), flats


@dataclass(eq=False)
class _Class:
    direction: tuple[float, ...]
    flats: Array
    weights: list[float] = field(default_factory=list)
    laws: list[Curve] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    absorbed: list[float] = field(default_factory=list)


def _classified(cells: Iterable[Cell], sums: int) -> tuple[Array, Array, list[_Class]]:
    """Return the flat cells as a table with probabilities, and the classes of moving ones."""
    flat: dict[tuple[float, ...], float] = {}
    classes: dict[tuple[tuple[float, ...], tuple[float, ...]], _Class] = {}
    for cell in cells:
        if not cell.moving:
            key = tuple(cell.flats.tolist())
            flat[key] = flat.get(key, 0.0) + cell.weight
            continue
        direction = tuple(round(ratio, 12) for ratio in direction_of(cell))
        law, flats = first_law(cell)
        one = classes.setdefault((direction, tuple(flats.tolist())), _Class(direction, flats))
        one.weights.append(cell.weight)
        one.laws.append(law)
        one.cells.append(cell)
    _absorb(flat, list(classes.values()))
    values = np.array(list(flat)).reshape(len(flat), sums)
    return values, np.array(list(flat.values())), list(classes.values())


def _absorb(flat: dict[tuple[float, ...], float], classes: Sequence[_Class]) -> None:
    """Make flat cells that differ from a moving class in its own sum alone atoms of that class."""
    for one in classes:
        moved = [j for j, ratio in enumerate(one.direction) if ratio]
        if len(moved) > 1:
            continue
        rest = np.delete(one.flats, moved[0])
        for key in [key for key in flat if np.array_equal(np.delete(np.array(key), moved[0]), rest)]:
            one.weights.append(flat.pop(key))
            one.laws.append(Curve.point(key[moved[0]]))
            one.absorbed.append(key[moved[0]])


def tallied(rows: Sequence[tuple[Sequence[Cell], int]], sums: int, known: PowersOfClasses | None = None) -> CellCounts:
    """Tally rows, each given by its cells and how many are alike; sums of classes that are `known` are used again."""
    parts = [(_classified(cells, sums), count) for cells, count in rows]
    lines = [np.concatenate([values, *(one.flats[np.newaxis] for one in classes)]) for (values, _, classes), _ in parts]
    coded = _Coordinates(lines, [count for _, count in parts], sums)
    moving = [(number, one) for number, ((_, _, classes), _) in enumerate(parts) for one in classes]
    laws = []
    for number, ((values, weights, classes), count) in enumerate(parts):
        marks = np.zeros((len(lines[number]), len(moving)), np.int64)
        for place, (owner, one) in enumerate(moving):
            if owner == number:
                marks[len(values) + [c is one for c in classes].index(True), place] = 1
        vectors = np.concatenate([coded.of(number), marks], axis=1)
        shares = np.concatenate([weights, [sum(one.weights) for one in classes]])
        law = sum_law(vectors, shares / shares.sum(), count, MOST_VECTORS)
        if law is None or len(law.values) > MOST_VECTORS:
            raise NotRows("too many combinations of cells that rows can fall into")
        laws.append(law)
    whole = _total(laws, coded.width + len(moving))
    made = tuple(MovingClass(one.direction, _powers(one, {} if known is None else known)) for _, one in moving)
    flats, counts = coded.decoded(whole.values[:, : coded.width]), whole.values[:, coded.width :]
    return CellCounts(flats, counts, whole.probabilities, made, whole.lost)


class _Coordinates:
    """What rows add to sums as whole numbers: multiples of units, or how often each came up where there is none."""

    def __init__(self, lines: Sequence[Array], counts: Sequence[int], sums: int) -> None:
        self._lines = lines
        columns = np.concatenate([np.zeros((1, sums)), *lines]).T
        units = [unit_of(column) for column in columns]
        self._loose = [j for j, unit in enumerate(units) if unit is None]
        self._units = np.array([1.0 if unit is None else unit for unit in units])
        self._single = [count == 1 for count in counts]
        widths = [
            (1 if single else len(some)) if self._loose else 0 for some, single in zip(lines, self._single, strict=True)
        ]
        self._starts = np.cumsum([sums, *widths]).tolist()

    @property
    def width(self) -> int:
        """How many coordinates there are."""
        return int(self._starts[-1])

    def of(self, number: int) -> Array:
        """Return the vectors of what one kind of row can add."""
        lines, (start, stop) = self._lines[number], self._starts[number : number + 2]
        vectors = np.zeros((len(lines), self.width), np.int64)
        vectors[:, : len(self._units)] = np.rint(lines / self._units)
        vectors[:, self._loose] = 0
        if stop > start:
            vectors[:, start:stop] = (
                np.arange(len(lines))[:, np.newaxis] if self._single[number] else np.eye(len(lines))
            )
        return vectors

    def decoded(self, vectors: Array) -> Array:
        """Return what all rows add to sums."""
        flats = vectors[:, : len(self._units)] * self._units
        for number, lines in enumerate(self._lines if self._loose else ()):
            own = vectors[:, self._starts[number] : self._starts[number + 1]]
            added = lines[own[:, 0]] if self._single[number] else own @ lines
            flats[:, self._loose] += added[:, self._loose]
        return np.asarray(flats)


def _powers(one: _Class, known: PowersOfClasses) -> Powers:
    """Return the sums of what a class adds, for any number of rows."""
    key = (*(id(cell) for cell in one.cells), *one.absorbed, *one.weights)
    if key not in known:
        law = one.laws[0] if len(one.laws) == 1 else Curve.mixture(one.weights, one.laws)
        known[key] = Powers(law), one.cells
    return known[key][0]


def _total(laws: Sequence[SumLaw], width: int) -> SumLaw:
    if not laws:
        return SumLaw(np.zeros((1, width), np.int64), np.ones(1))
    whole = laws[0]
    for law in sorted(laws[1:], key=lambda one: len(one.values)):
        if len(whole.values) * len(law.values) <= 4 * MOST_VECTORS:
            sums = (whole.values[:, np.newaxis] + law.values[np.newaxis]).reshape(-1, width)
            chances = np.multiply.outer(whole.probabilities, law.probabilities).reshape(-1)
            distinct, codes = np.unique(sums, axis=0, return_inverse=True)
            whole = SumLaw(distinct, np.bincount(codes.reshape(-1), chances), whole.lost + law.lost)
        else:
            both = total_law([whole, law])
            if both is None:
                raise NotRows("too many combinations of cells that rows can fall into")
            whole = both
    return whole
