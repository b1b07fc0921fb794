"""Secrets and outputs laid out as a table, at quadrature nodes where they are continuous."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from privug.errors import UnsuitableEngine
from privug.inference.curve import Curve
from privug.inference.density import apart, panel_nodes
from privug.inference.exact.refinement import best_guess_changes, refined
from privug.inference.exact.rows.channel import Law, Source
from privug.inference.exact.rows.counted_law import Bound, CountedLaw
from privug.inference.exact.rows.likelihood import Own
from privug.inference.exact.rows.outcomes import Label, Outcome
from privug.inference.exact.rows.reductions import NotRows
from privug.model.node import Array

MOST_PAIRS = 20_000_000
MOST_NODES = 6000
MOST_LOOKED_AT = 24
FEW_PANELS = 12
MOST_STARTS = 24  # panels of outputs to begin with, kinks aside
TOO_FINE = "engine='exact' would need too fine a grid for the joint of secret and output; engine='sample' can serve"
SOMETIMES = "with some probability the output gives the secret away to the last digit"


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
    missed: float
    infinite: str | None = None


class Tabulation:
    """Lays secrets and outputs out as a table, at quadrature nodes where they are continuous."""

    def __init__(self, found: Sequence[Source], asked: int, halvings: int) -> None:
        self._found = found
        self._asked = asked
        self.is_continuous = any(not term.is_flat for one in found for term in one.cell.asked)
        if self.is_continuous and asked != 1:
            raise NotRows("a secret of several parts, one of which is continuous")
        self._edges = self._panels(halvings)
        self._secrets = [self._nodes(one) for one in found]
        self._points = [
            _stand_in(*nodes) if not one.cell.moving and self._is_apart(number) else nodes
            for number, (one, nodes) in enumerate(zip(found, self._secrets, strict=True))
        ]
        self._rows()

    def _is_apart(self, number: int) -> bool:
        """Say whether no other cell has numbers of the row in common with one."""
        own = self._secrets[number][0]
        ends = [(x.min(), x.max()) for k, (x, _) in enumerate(self._secrets) if k != number and len(x)]
        return len(own) > 0 and all(own.max() < low or high < own.min() for low, high in ends)

    def _panels(self, halvings: int) -> Array:
        """Return edges between which the distribution of the row's number, and all that follows, are smooth."""
        curves = [one.cell.curve for one in self._found if one.cell.curve is not None and one.cell.curve.parts]
        if not curves:
            return np.empty(0)
        edges = apart(np.concatenate([curve.edges for curve in curves]))
        bends = np.concatenate([one.bends for one in self._found])
        edges = apart(np.concatenate([edges, bends[(bends > edges[0]) & (bends < edges[-1])]]))
        for _ in range(halvings):
            edges = np.sort(np.concatenate([edges, (edges[1:] + edges[:-1]) / 2]))
        if (len(edges) - 1) * 24 > MOST_NODES:
            raise UnsuitableEngine(TOO_FINE)
        return edges

    def _nodes(self, one: Source) -> tuple[Array, Array]:
        """Return numbers of the row with the probabilities that they stand for."""
        curve = one.cell.curve
        if curve is None:
            return np.zeros(1), np.array([one.weight])
        x, weights = [curve.atoms], [curve.masses * one.weight]
        if curve.parts:
            grid, steps = panel_nodes(self._edges)
            density = curve.pdf(grid.reshape(-1)) * steps.reshape(-1)
            if density.sum() > 0:
                density *= one.weight * curve.continuous_share / density.sum()
            x.append(grid.reshape(-1))
            weights.append(density)
        numbers, shares = np.concatenate(x), np.concatenate(weights)
        return numbers[shares > 0], shares[shares > 0]

    def _rows(self) -> None:
        """Number the rows of the table: secrets, of which those stand for many in whose cell nothing moves."""
        values = []
        for number, (one, (x, _)) in enumerate(zip(self._found, self._points, strict=True)):
            mark = float(number) if len(x) < len(self._secrets[number][0]) and self.is_continuous else -1.0
            asked = np.stack([term.at(x) for term in one.cell.asked], axis=1)
            values.append(np.column_stack([np.full(len(x), mark), asked]))
        together = np.concatenate(values)
        found, codes = np.unique(together, axis=0, return_inverse=True)
        self.secrets = found[:, 1:]
        bounds = np.cumsum([0, *(len(part) for part in values)])
        self._codes = [codes.reshape(-1)[start:stop] for start, stop in pairwise(bounds)]
        self.priors = np.zeros(len(self.secrets))
        for code, (_, weights) in zip(self._codes, self._points, strict=True):
            np.add.at(self.priors, code, weights)

    def _spread(self, table: Array) -> tuple[Array, Array]:
        """Return the table with a row for each secret that others stood for."""
        secrets, rows = [], []
        for number, (one, (x, weights)) in enumerate(zip(self._found, self._secrets, strict=True)):
            if len(x) == len(self._points[number][0]) or not self.is_continuous:
                continue
            code = self._codes[number][0]
            secrets.append(np.stack([term.at(x) for term in one.cell.asked], axis=1))
            rows.append(np.multiply.outer(weights / weights.sum(), table[code]))
        alone = np.ones(len(table), bool)
        for number, (x, _) in enumerate(self._points):
            if len(x) < len(self._secrets[number][0]) and self.is_continuous:
                alone[self._codes[number]] = False
        return np.concatenate([self.secrets[alone], *secrets]), np.concatenate([table[alone], *rows])

    def table(self) -> Table:
        """Return the table."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._table()

    def _table(self) -> Table:
        columns: dict[Label, Array] = {}
        densities: dict[Label, list[tuple[int, Outcome, float, Curve]]] = {}
        infinite = None
        for number, one in enumerate(self._found):
            x, weights = self._points[number]
            for label, chance in one.certain.items():
                self._put(columns, label, number, weights * chance)
            for outcome, chance, law in one.formulas:
                own = Own(one.cell, outcome.weights)  # type: ignore[arg-type]
                if outcome.steps is not None:
                    self._put_steps(columns, outcome, number, own.at(x), weights * chance, _at(law, x))
                    continue
                if isinstance(law, CountedLaw):
                    infinite = SOMETIMES
                    for values, shares in law.listed(x):
                        self._put_listed(columns, outcome, number, values, (weights * chance)[:, np.newaxis] * shares)
                    continue
                if len(law.atoms):
                    infinite = self._put_atoms(columns, outcome, number, own, weights * chance, law) or infinite
                if law.parts:
                    densities.setdefault(outcome.label, []).append((number, outcome, chance, law))
        labels, tables = list(columns), [column[:, np.newaxis] for column in columns.values()]
        error = 0.0
        for label, several in densities.items():
            nodes, table, off = self._with_density(several)
            place = several[0][1].images[0][0]
            labels += [(*label[:place], float(node), *label[place + 1 :]) for node in nodes]
            tables.append(table)
            error += off
        whole = np.concatenate(tables, axis=1)
        if not np.isfinite(whole).all():
            raise UnsuitableEngine(TOO_FINE)
        missed = float(np.abs(whole.sum(axis=1) - self.priors).sum())
        if infinite is None and not missed < 1e-6:
            raise UnsuitableEngine(f"engine='exact' missed {missed:.0e} of the joint; engine='sample' can serve")
        whole /= whole.sum()
        told = information(whole)
        return Table(*self._spread(whole), labels, told, error, missed, infinite)

    def _put(self, columns: dict[Label, Array], label: Label, number: int, weights: Array) -> None:
        column = columns.setdefault(label, np.zeros(len(self.secrets)))
        np.add.at(column, self._codes[number], weights)

    def _put_steps(
        self, columns: dict[Label, Array], outcome: Outcome, number: int, own: Array, weights: Array, law: Curve | Bound
    ) -> None:
        assert outcome.steps is not None
        low, high, labels = outcome.steps
        shift = own[:, np.newaxis]
        masses = law.mass(low[np.newaxis] - shift, high[np.newaxis] - shift) * weights[:, np.newaxis]
        for column in np.flatnonzero(masses.sum(axis=0) > 0):
            self._put(columns, labels[column], number, masses[:, column])

    def _put_listed(
        self, columns: dict[Label, Array], outcome: Outcome, number: int, values: Array, told: Array
    ) -> None:
        """Put outputs of the one part that moves, a column for each."""
        place, image = outcome.images[0]
        seen = values if image is None else image.values(values)
        for column, value in enumerate(seen.tolist()):
            label = (*outcome.label[:place], value, *outcome.label[place + 1 :])
            self._put(columns, label, number, told[:, column])

    def _put_atoms(
        self, columns: dict[Label, Array], outcome: Outcome, number: int, own: Own, weights: Array, law: Curve
    ) -> str | None:
        """Put outputs that have a probability of their own; say so if they tell the secret."""
        if not own.is_flat:
            if self.is_continuous:
                return SOMETIMES
            raise NotRows("the output is, with some probability, a function of the secret's row alone")
        place, image = outcome.images[0]
        for atom, mass in zip(law.atoms, law.masses, strict=True):
            value = float(atom) if image is None else float(image.values(np.array([atom]))[0])
            label = (*outcome.label[:place], float(f"{value:.12g}"), *outcome.label[place + 1 :])
            self._put(columns, label, number, weights * float(mass))
        return None

    def _with_density(self, several: Sequence[tuple[int, Outcome, float, Curve]]) -> tuple[Array, Array, float]:
        """Return the nodes of outputs that have a density, and the table of probabilities there."""

        def densities(y: Array, some: Array | None = None) -> Array:
            table = np.zeros((len(self.secrets), len(y)))
            for number, outcome, chance, law in several:
                x, weights = self._points[number]
                codes = self._codes[number]
                if some is not None:
                    chosen = np.isin(codes, some)
                    x, weights, codes = x[chosen], weights[chosen], codes[chosen]
                assert outcome.weights is not None
                moved = Own(self._found[number].cell, outcome.weights)
                shift = moved.at(x[:1] if moved.is_flat else x)
                own = outcome.density(law, y[np.newaxis], shift[:, np.newaxis])
                part = (chance * weights)[:, np.newaxis] * own
                if len(np.unique(codes)) == len(codes):
                    table[codes] += part
                else:
                    np.add.at(table, codes, part)
            return table if some is None else table[some]

        edges = self._start(several)
        some = self._looked_at()
        edges, error = refined(lambda y: densities(y, some), self.priors[some], edges, MOST_PAIRS)
        if not self.is_continuous:
            edges = np.union1d(edges, best_guess_changes(densities, panel_nodes(edges)[0]))
        grid, steps = panel_nodes(edges)
        nodes = grid.reshape(-1)
        if len(nodes) * len(self.secrets) > MOST_PAIRS:
            raise UnsuitableEngine(TOO_FINE)
        return nodes, densities(nodes) * steps.reshape(-1), error

    def _looked_at(self) -> Array:
        """Return the rows by which panels of outputs are judged: all, or some from all over."""
        if not self.is_continuous or len(self.secrets) <= MOST_LOOKED_AT:
            return np.arange(len(self.secrets))
        shares = np.cumsum(self.priors) / self.priors.sum()
        return np.unique(np.searchsorted(shares, (np.arange(MOST_LOOKED_AT) + 0.5) / MOST_LOOKED_AT))

    def _start(self, several: Sequence[tuple[int, Outcome, float, Curve]]) -> Array:
        """Return edges to refine panels of outputs from: some from all over, and where densities are not smooth."""
        around: list[Array] = []
        kinks: list[Array] = [np.empty(0)]
        for number, outcome, _, law in several:
            x, weights = self._points[number]
            assert outcome.weights is not None
            shift = Own(self._found[number].cell, outcome.weights).at(x)
            order = np.argsort(shift)
            middle = np.searchsorted(np.cumsum(weights[order]) / weights.sum(), [0.0, 0.1, 0.5, 0.9, 1.0])
            chosen = np.unique(shift[order][np.clip(middle, 0, len(shift) - 1)])
            own = law.edges if len(law.edges) <= FEW_PANELS else law.edges[:: len(law.edges) // FEW_PANELS + 1]
            breaks = law.breaks[np.isfinite(law.breaks)]
            image = outcome.images[0][1]
            for found, places in ((around, np.append(own, law.edges[-1])), (kinks, breaks[:FEW_PANELS])):
                edges = np.add.outer(chosen, places).reshape(-1)
                found.append(edges if image is None else image.values(np.clip(edges, *image.edges[[0, -1]])))
            if image is not None:
                kinks.append(image.values(np.concatenate([image.edges[:-1], np.nextafter(image.edges[1:], -np.inf)])))
        ordered = apart(np.concatenate(around))
        thinned = ordered[:: max(1, len(ordered) // MOST_STARTS)]
        return apart(np.concatenate([thinned, ordered[-1:], *kinks]))


def _at(law: Law, x: Array) -> Curve | Bound:
    return law if isinstance(law, Curve) else law.at(x)


def _stand_in(x: Array, weights: Array) -> tuple[Array, Array]:
    """Return one number for all of a cell in which nothing moves."""
    return x[:1], np.array([weights.sum()])


def information(probabilities: Array) -> float:
    """Return the mutual information of rows and columns in bits."""
    sides = probabilities.sum(axis=1), probabilities.sum(axis=0)
    row, column = np.nonzero(probabilities)
    shares = probabilities[row, column]
    logs = np.log2(shares) - np.log2(sides[0][row]) - np.log2(sides[1][column])
    return max(0.0, float(shares @ logs))
