"""Secrets and outputs laid out as a table, at quadrature nodes where they are continuous."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privug.errors import UnsuitableEngine
from privug.inference.curve import Curve
from privug.inference.density import apart, panel_nodes, united
from privug.inference.exact.curves.image import Image
from privug.inference.exact.curves.parts import smooth_part
from privug.inference.exact.curves.refinement import best_guess_changes, refined
from privug.inference.exact.rows.channel import Law, Source
from privug.inference.exact.rows.likelihood import Own
from privug.inference.exact.rows.order.law import Bound, CountedLaw
from privug.inference.exact.rows.outcomes import Label, Outcome
from privug.inference.exact.rows.reductions import NotRows
from privug.inference.exact.rows.secret_grid import TOO_FINE, SecretGrid
from privug.model.node import Array

MOST_PAIRS = 20_000_000
MOST_LOOKED_AT = 24
MOST_MISSED = 1e-3  # the probability that sums over outputs may miss, and say so
FEW_KINKS = 12
MOST_KINKS = 16_384
MOST_STARTS = 24  # panels of outputs to begin with, kinks aside
ITSELF = "given the output, only values with a probability of their own are left for the secret"
SOMETIMES = "with some probability the output gives the secret away to the last digit"

Dense = tuple[int, Outcome, float, Curve]
"""The number of a source, and one way in which outputs that have a density follow from it."""


@dataclass(frozen=True, eq=False)
class Table:
    """Secrets as rows, outputs as columns: certain ones with labels, others at nodes of panels; and probabilities."""

    secrets: Array
    """A line for each row: the row's number, or the values of what is asked."""
    probabilities: Array
    labels: list[Label]
    """What each column stands for; the part that moves is filled in."""
    information: float
    error: float
    """Of the information, as far as the table tells."""
    missed: float
    """The probability by which sums over outputs missed that of the secrets."""
    infinite: str | None = None


def tabulated(found: Sequence[Source], asked: int, halvings: int) -> Table:
    """Return secrets and outputs as a table; panels of a continuous secret are halved so many times."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _Tabulation(SecretGrid(found, asked, halvings)).table()


class _Tabulation:
    def __init__(self, grid: SecretGrid) -> None:
        self._grid = grid
        self._columns: dict[Label, Array] = {}
        self._densities: dict[Label, list[Dense]] = {}
        self._telling: list[str | None] = []

    def table(self) -> Table:
        """Return the table."""
        for number, one in enumerate(self._grid.found):
            _, weights = self._grid.points[number]
            for label, chance in one.certain.items():
                self._put(label, number, weights * chance)
            for outcome, chance, law in one.formulas:
                self._add(number, outcome, chance, law)
        labels, tables = list(self._columns), [column[:, np.newaxis] for column in self._columns.values()]
        error = 0.0
        for label, several in self._densities.items():
            nodes, table, off = self._with_density(several)
            place = several[0][1].images[0][0]
            labels += [(*label[:place], float(node), *label[place + 1 :]) for node in nodes]
            tables.append(table)
            error += off
        return self._checked(labels, np.concatenate(tables, axis=1), error)

    def _checked(self, labels: list[Label], whole: Array, error: float) -> Table:
        if not np.isfinite(whole).all():
            raise UnsuitableEngine(TOO_FINE)
        apart = float(np.abs(whole.sum(axis=1) - self._grid.priors).sum())
        # Given one value of a continuous secret a density may have kinks inside of panels; on average that is little.
        missed = abs(float(whole.sum()) - 1) if self._grid.is_continuous else apart
        if any(self._telling):
            told = ITSELF if set(self._telling) == {ITSELF} else SOMETIMES
            return Table(*self._grid.spread(whole / whole.sum()), labels, 0.0, error, 0.0, told)
        if not missed <= MOST_MISSED:
            raise UnsuitableEngine(f"engine='exact' missed {missed:.0e} of the joint; engine='sample' can serve")
        whole = whole / whole.sum()
        off = apart * (1 + math.log2(whole.shape[0]))  # what is missed might have told the secret
        return Table(*self._grid.spread(whole), labels, information(whole), max(error, off), missed)

    def _add(self, number: int, outcome: Outcome, chance: float, law: Law) -> None:
        """Take down outputs that follow from a source in one way."""
        one, (x, weights) = self._grid.found[number], self._grid.points[number]
        assert outcome.weights is not None
        own = Own(one.cell, outcome.weights)
        if outcome.steps is not None:
            low, high, labels = outcome.steps
            bound = law if isinstance(law, Curve) else law.at(x)
            self._put_ranges(number, low, high, labels, own.at(x), weights * chance, bound)
        elif isinstance(law, CountedLaw):
            self._telling.append(SOMETIMES)
            for values, shares in law.listed(x):
                self._put_listed(outcome, number, values, (weights * chance)[:, np.newaxis] * shares)
        else:
            self._telling.append(self._put_atoms(outcome, number, own, weights * chance, law))
            if law.parts:
                self._put_flats(outcome, number, own.at(x), weights * chance, law)
            if law.parts or (len(law.atoms) and not own.is_flat and not self._grid.is_continuous):
                self._densities.setdefault(outcome.label, []).append((number, outcome, chance, law))

    def _put(self, label: Label, number: int, weights: Array) -> None:
        column = self._columns.setdefault(label, np.zeros(len(self._grid.values)))
        np.add.at(column, self._grid.codes[number], weights)
        if len(self._columns) * len(column) > MOST_PAIRS:
            raise UnsuitableEngine(TOO_FINE)

    def _put_ranges(
        self, number: int, low: Array, high: Array, labels: Sequence[Label], own: Array, weights: Array,
        law: Curve | Bound,
    ) -> None:  # fmt: skip
        """Put outputs that are certain on ranges of the weighted sum behind them."""
        shift = own[:, np.newaxis]
        masses = law.mass(low[np.newaxis] - shift, high[np.newaxis] - shift) * weights[:, np.newaxis]
        for column in np.flatnonzero(masses.sum(axis=0) > 0):
            self._put(labels[int(column)], number, masses[:, column])

    def _put_flats(self, outcome: Outcome, number: int, own: Array, weights: Array, law: Curve) -> None:
        """Put outputs that are certain on some ranges and have a density elsewhere, as far as they are certain."""
        place, image = outcome.images[0]
        if image is None or not image.steps.any():
            return
        ends = [image.piece_ends(int(piece)) for piece in np.flatnonzero(image.steps)]
        labels = [_filled(outcome.label, place, float(value)) for value in image.middles[image.steps]]
        low, high = np.array(ends).T
        if image.steps[0]:
            low[0] = -np.inf
        if image.steps[-1]:
            high[-1] = np.inf
        self._put_ranges(number, low, high, labels, own, weights * law.continuous_share, smooth_part(law))

    def _put_listed(self, outcome: Outcome, number: int, values: Array, told: Array) -> None:
        """Put outputs of the one part that moves, a column for each."""
        place, image = outcome.images[0]
        seen = values if image is None else image.values(values)
        for column, value in enumerate(seen.tolist()):
            self._put((*outcome.label[:place], value, *outcome.label[place + 1 :]), number, told[:, column])

    def _put_atoms(self, outcome: Outcome, number: int, own: Own, weights: Array, law: Curve) -> str | None:
        """Put outputs that have a probability of their own; say so if they tell the secret."""
        (place, image), (x, _) = outcome.images[0], self._grid.points[number]
        for atom, mass in zip(law.atoms, law.masses, strict=True):
            if own.is_flat:
                value = atom if image is None else image.values(np.array([atom]))[0]
                self._put(_filled(outcome.label, place, float(value)), number, weights * float(mass))
            elif self._grid.is_continuous:
                self._put_listed(outcome, number, own.at(x) + atom, np.diag(weights * float(mass)))
            elif image is not None:
                raise NotRows("the output is, with some probability, a function of the secret's row alone")
        if not len(law.atoms) or own.is_flat or not self._grid.is_continuous:
            return None
        return SOMETIMES if law.parts else ITSELF

    def _density(self, formula: Dense, y: Array, some: Array | None) -> tuple[Array, Array]:
        """Return rows, and the density of outputs together with each."""
        number, outcome, chance, law = formula
        (x, weights), codes = self._grid.points[number], self._grid.codes[number]
        if some is not None:
            chosen = np.isin(codes, some)
            x, weights, codes = x[chosen], weights[chosen], codes[chosen]
        assert outcome.weights is not None
        moved = Own(self._grid.found[number].cell, outcome.weights)
        shift = moved.at(x[:1] if moved.is_flat else x)
        own = outcome.density(law, y[np.newaxis], shift[:, np.newaxis])
        return codes, (chance * weights)[:, np.newaxis] * own

    def _crossing(self, formula: Dense, y: Array) -> Array:
        """Return the density that the row's number gives outputs all by itself."""
        number, outcome, chance, law = formula
        cell = self._grid.found[number].cell
        assert outcome.weights is not None
        own, total = Own(cell, outcome.weights), np.zeros(len(y))
        if own.is_flat or cell.curve is None:
            return total
        for atom, mass in zip(law.atoms, law.masses, strict=True):
            place, slope = own.solved(y - atom)
            there = np.abs(own.at(place) + atom - y) <= 1e-9 * np.abs(y)
            total += np.where(there, mass * cell.curve.pdf(place) / slope, 0.0)
        return self._grid.found[number].weight * chance * total

    def _with_density(self, several: Sequence[Dense]) -> tuple[Array, Array, float]:
        """Return the nodes of outputs that have a density, and the table of probabilities there."""
        grid = self._grid

        def densities(y: Array, some: Array | None = None) -> Array:
            table = np.zeros((len(grid.values), len(y)))
            for formula in several:
                codes, part = self._density(formula, y, some)
                if len(np.unique(codes)) == len(codes):
                    table[codes] += part
                else:
                    np.add.at(table, codes, part)
                if not grid.is_continuous and len(formula[3].atoms):
                    table[grid.codes[formula[0]][0]] += self._crossing(formula, y)
            return table if some is None else table[some]

        some = self._looked_at()
        edges, error = refined(lambda y: densities(y, some), grid.priors[some], self._start(several), MOST_PAIRS)
        if not grid.is_continuous:
            edges = np.union1d(edges, best_guess_changes(densities, panel_nodes(edges)[0]))
        places, steps = panel_nodes(edges)
        nodes = places.reshape(-1)
        if len(nodes) * len(grid.values) > MOST_PAIRS:
            raise UnsuitableEngine(TOO_FINE)
        return nodes, densities(nodes) * steps.reshape(-1), error

    def _looked_at(self) -> Array:
        """Return the rows by which panels of outputs are judged: all, or some from all over."""
        priors = self._grid.priors
        if not self._grid.is_continuous or len(priors) <= MOST_LOOKED_AT:
            return np.arange(len(priors))
        shares = np.cumsum(priors) / priors.sum()
        return np.unique(np.searchsorted(shares, (np.arange(MOST_LOOKED_AT) + 0.5) / MOST_LOOKED_AT))

    def _start(self, several: Sequence[Dense]) -> Array:
        """Return edges to refine panels of outputs from: some from all over, and where densities are not smooth."""
        tracks: list[Array] = []
        kinks: list[Array] = [np.empty(0)]
        for number, outcome, _, law in several:
            curve, image = self._grid.found[number].cell.curve, outcome.images[0][1]
            assert outcome.weights is not None
            own = Own(self._grid.found[number].cell, outcome.weights)
            shifts = _quantiles(own.at(self._grid.points[number][0]), self._grid.points[number][1])
            breaks = law.breaks[np.isfinite(law.breaks)]
            breaks = breaks[: FEW_KINKS if self._grid.is_continuous else MOST_KINKS // len(several)]
            found = [(tracks, edges) for edges in np.add.outer(shifts, law.edges) if len(edges)]
            found += [(kinks, edges) for edges in np.add.outer(shifts, breaks)]
            if len(law.atoms) and curve is not None and curve.parts and not own.is_flat:
                found += [(tracks, np.sort(edges)) for edges in np.add.outer(law.atoms, own.at(curve.edges))]
            for where, edges in found:
                where.append(edges if image is None else _moved(image, edges))
            if image is not None:
                kinks.append(image.values(np.concatenate([image.edges[:-1], np.nextafter(image.edges[1:], -np.inf)])))
        edges = united(tracks)
        if self._grid.is_continuous:
            edges = np.append(edges[:: max(1, len(edges) // MOST_STARTS)], edges[-1])
        return apart(np.concatenate([edges, *kinks]))


def _filled(label: Label, place: int, value: float) -> Label:
    """Return a label with the part that moves filled in; what only rounding tells apart is one."""
    return (*label[:place], float(f"{value:.12g}"), *label[place + 1 :])


def _quantiles(values: Array, weights: Array) -> Array:
    """Return the ends, the middle, and something in between."""
    order = np.argsort(values)
    places = np.searchsorted(np.cumsum(weights[order]) / weights.sum(), [0.0, 0.1, 0.5, 0.9, 1.0])
    return np.unique(values[order][np.clip(places, 0, len(values) - 1)])


def _moved(image: Image, edges: Array) -> Array:
    """Return edges of outputs, in order, for edges of the weighted sum that they are a function of."""
    return np.unique(image.values(np.clip(edges, *image.edges[[0, -1]])))


def information(probabilities: Array) -> float:
    """Return the mutual information of rows and columns in bits."""
    sides = probabilities.sum(axis=1), probabilities.sum(axis=0)
    row, column = np.nonzero(probabilities)
    shares = probabilities[row, column]
    # Logarithms apart: the product of two small probabilities would vanish.
    logs = np.log2(shares) - np.log2(sides[0][row]) - np.log2(sides[1][column])
    return max(0.0, float(shares @ logs))
