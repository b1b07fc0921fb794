"""A question in terms of normal numbers: from points in their space to distances from the observation."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import scipy

from privug.errors import UnsuitableEngine
from privug.inference.case_plan import ConditionedCase, explained, settled, total_log_weight
from privug.inference.question import Case, Question, Sizes
from privug.inference.sampling import by_sizes
from privug.inference.solving import solve
from privug.model.batch import Batch
from privug.model.graph import parents_key
from privug.model.node import Array, ConstantValue, Context, Kind, Node, Operation, ancestors
from privug.model.operations import SampleFailure
from privug.model.plan import Plan
from privug.model.structure import random_leaves
from privug.observation.likelihood import CloseTo, distance_of, is_graded
from privug.observation.observations import Observation
from privug.prior.family import Draw, Family, OfNormals, family_of
from privug.runtime.pickling import Shared


@dataclass
class Particles:
    """Points, how far each is from the observation, the log likelihood where it agrees, and the values to keep."""

    latents: Array
    distance: Array
    log_likelihood: Array
    columns: list[Array]
    failed: Array
    side: Array
    """Which of two halves a particle belongs to; either half moves by where the other one is."""

    def __len__(self) -> int:
        return len(self.distance)

    def take(self, which: Any) -> "Particles":
        """Return a copy of the chosen particles."""
        chosen = np.arange(len(self))[which]  # positions make copies, a slice would not
        return Particles._of([self], lambda arrays: arrays[0][chosen])

    def replace(self, where: Array, others: "Particles") -> None:
        """Put others of the same positions in the places that are marked."""
        self.latents[where] = others.latents[where]
        self.distance[where] = others.distance[where]
        self.log_likelihood[where] = others.log_likelihood[where]
        for column, other in zip(self.columns, others.columns, strict=True):
            column[where] = other[where]

    @staticmethod
    def concatenate(parts: Sequence["Particles"]) -> "Particles":
        """Join particles end to end; the later ones may have more latent numbers, which the others then get too."""
        return Particles._of(parts, np.concatenate)

    @staticmethod
    def _of(parts: Sequence["Particles"], made: Callable[[list[Array]], Array]) -> "Particles":
        """Make particles of what others hold, one array after the other."""
        columns = [made(list(arrays)) for arrays in zip(*(part.columns for part in parts), strict=True)]
        latents, distance, logs, failed, side = (
            made([getattr(part, name) for part in parts])
            for name in ("latents", "distance", "log_likelihood", "failed", "side")
        )
        return Particles(latents, distance, logs, columns, failed, side)


FURTHEST = 28.0  # minus the logarithm of the smallest probability of a tail: 7e-13, at 7 standard deviations
SCATTERED = 1.5  # numbers of a point, on average
MOST_SCATTERED = 0.8  # of the numbers of a point
HIDDEN = 0.05  # a value of a smaller share of what lies beyond it is not found by drawing from the tails


class Steps(NamedTuple):
    """Whether a number jumps from value to value, and up to which probabilities each value goes, if that is known."""

    discrete: bool
    levels: Array | None = None

    @property
    def hidden(self) -> Array:
        """Which values are rare although they lie in no tail."""
        if self.levels is None:
            return np.empty(0, np.intp)
        beyond = np.minimum(self.levels[:-1], 1 - self.levels[1:])
        return np.flatnonzero(np.diff(self.levels) < HIDDEN * beyond)


class Scattering:
    """A distribution of points, by its density over that of standard normal numbers; `steps` are for each number.

    >>> rng = np.random.default_rng(1)
    >>> flag = Scattering([Steps(discrete=True), Steps(discrete=False)])
    >>> bool((flag.draw(10_000, 2, rng) > 4.3).mean() > 0.03)  # of standard normal numbers less than 1e-5
    True
    """

    def __init__(self, steps: Sequence[Steps]) -> None:
        self._discrete = np.array([one.discrete for one in steps], np.bool_)
        self._hidden = {
            column: (one.levels, one.hidden)
            for column, one in enumerate(steps)
            if one.levels is not None and len(one.hidden)
        }

    def _shares(self, width: int) -> Array:
        """Return how often each number is scattered, in each of the ways to do so."""
        discrete = np.zeros(width, np.bool_)
        discrete[: len(self._discrete)] = self._discrete
        ways = [way for way in (discrete, ~discrete) if way.any()]
        return np.stack([way * min(MOST_SCATTERED, SCATTERED / way.sum()) for way in ways])

    def draw(self, count: int, width: int, rng: np.random.Generator) -> Array:
        """Draw points of so many numbers."""
        points: Array = rng.standard_normal((count, width))
        shares = self._shares(width)
        rows, columns = np.nonzero(rng.random((count, width)) < shares[rng.integers(len(shares), size=count)])
        tails = np.exp(-FURTHEST * rng.random(len(rows)))
        signs = np.where(rng.random(len(rows)) < 0.5, 1.0, -1.0)
        points[rows, columns] = signs * scipy.special.ndtri(tails / 2)
        for column, (levels, hidden) in self._hidden.items():
            chosen = rows[(columns == column) & (rng.random(len(rows)) < 0.5)]
            values = rng.choice(hidden, len(chosen))
            places = levels[values] + np.diff(levels)[values] * rng.random(len(chosen))
            points[chosen, column] = scipy.special.ndtri(np.clip(places, 1e-300, 1 - 1e-16))
        return points

    def widened(self, width: int) -> "Scattering":
        """Return the same for points with more numbers: it scatters as many as there are."""
        return self

    def log_ratio(self, points: Array) -> Array:
        """Return the log of this density over the standard normal one."""
        tails = -math.log(2.0) - scipy.special.log_ndtr(-np.abs(points))
        ratio = np.where(tails < FURTHEST, np.exp(np.minimum(tails, FURTHEST)) / FURTHEST, 0.0)
        for column, (levels, hidden) in self._hidden.items():
            surplus = np.zeros(len(levels) - 1)
            surplus[hidden] = 1 / (len(hidden) * np.diff(levels)[hidden])
            value = np.searchsorted(levels[1:-1], scipy.special.ndtr(points[:, column]), side="right")
            ratio[:, column] = (ratio[:, column] + surplus[value]) / 2
        logs = [np.log1p(share * (ratio - 1)).sum(axis=1) for share in self._shares(points.shape[1])]
        return np.asarray(np.logaddexp.reduce(logs, axis=0) - math.log(len(logs)))


MOST_VALUES = 1000


class KnownRoots(Operation):
    """Standard normal numbers, whose values evaluation is handed."""

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        raise AssertionError("latent numbers were not given")


class Latent(NamedTuple):
    """The node of the normal numbers behind one root, and the root."""

    node: Node
    root: Node

    @property
    def size(self) -> int:
        """How many normal numbers there are."""
        return math.prod(self.node.shape)

    def steps(self) -> list[Steps]:
        """Return for each number whether and where it steps from value to value."""
        family = family_of(self.root)
        chances = _chances(family, self.root.parents)
        known = None if chances is None else np.concatenate([[0.0], np.cumsum(chances)])
        chooser = Steps(bool(family.families) or self.root.kind is Kind.DISCRETE, known)
        others = Steps(self.root.kind is Kind.DISCRETE)
        return [others if place % family.latents else chooser for place in range(self.size)]

    def states(self, normals: Array, values: Array) -> list[Array]:
        """Return which value a discrete root took at some points, or a mixture which component, column by column."""
        if self.root.kind is Kind.DISCRETE:
            return [np.unique(cells, return_inverse=True)[1] for cells in values.reshape(len(values), -1).T]
        columns = zip(normals.reshape(len(normals), -1).T, self.steps(), strict=True)
        return [
            np.searchsorted(steps.levels[1:-1], scipy.special.ndtr(cells), side="right")
            for cells, steps in columns
            if steps.levels is not None
        ]


@dataclass(frozen=True)
class Latents:
    """Nodes as functions of normal numbers: the numbers, one latent for each root, and the images of the nodes."""

    latents: list[Latent]
    images: dict[Node, Node]

    def of(self, nodes: Sequence[Node]) -> list[Node]:
        """Return nodes in terms of normal numbers."""
        return [self.images.get(node, node) for node in nodes]


def with_latents(targets: Sequence[Node]) -> Latents:
    """Replace every root whose family has quantiles by those of normal numbers; other roots are still drawn."""
    latents: list[Latent] = []
    images: dict[Node, Node] = {}
    for node in ancestors(targets):
        operation = node.operation
        parents = tuple(images.get(parent, parent) for parent in node.parents)
        if isinstance(operation, Draw) and operation.family.latents:
            several = operation.family.latents > 1
            shape = (*node.shape, operation.family.latents) if several else node.shape
            given = Node(KnownRoots(), (), shape, np.dtype(np.float64), kind=Kind.CONTINUOUS)
            latents.append(Latent(given, node))
            image = Node(OfNormals(operation), (given, *parents), node.shape, node.dtype, node.levels, node.kind)
        elif any(new is not old for new, old in zip(parents, node.parents, strict=True)):
            image = Node(operation, parents, node.shape, node.dtype, node.levels, node.kind)
        else:
            continue
        image.bound = node.bound
        images[node] = image
    return Latents(latents, images)


def _chances(family: Family, parents: Sequence[Node]) -> Array | None:
    """Return the probabilities of the values that a number chooses among, in their order, if there are few."""
    constants = [parent.operation for parent in parents[:1] if isinstance(parent.operation, ConstantValue)]
    if not family.chooses or not constants or constants[0].array.ndim != 2:
        return None
    chances: Array = constants[0].array.reshape(-1)
    return chances / chances.sum() if 1 < len(chances) <= MOST_VALUES and np.all(chances > 0) else None


class LatentLayout:
    """Which columns of a matrix hold the normal numbers behind the k-th root, in models of any size.

    Models of different sizes share columns root by root. What a larger model needs beyond is added at the end.
    """

    def __init__(self) -> None:
        self._columns: list[Array] = []
        self.width = 0

    def columns(self, position: int, count: int) -> Array:
        """Return the first `count` columns of the root at a position."""
        while len(self._columns) <= position:
            self._columns.append(np.empty(0, np.intp))
        missing = count - len(self._columns[position])
        if missing > 0:
            more = np.arange(self.width, self.width + missing)
            self._columns[position] = np.concatenate([self._columns[position], more])
            self.width += missing
        return self._columns[position][:count]

    def known(self, latents: Sequence[Latent], points: Array) -> dict[Node, Array]:
        """Return the values of the latent nodes of a model at some points."""
        return {
            latent.node: points[:, self.columns(position, latent.size)].reshape(len(points), *latent.node.shape)
            for position, latent in enumerate(latents)
        }


CLOSEST = 1e-200  # the distance of what does not agree, though nothing tells how far it is


class LatentCase(ConditionedCase):
    """The model for one size of each table: what to compute from the normal numbers, and how to read it."""

    def __init__(self, model: "LatentModel", sizes: Sizes, case: Case) -> None:
        extra = None if model.extra is None else model.question.query(case, model.extra)
        super().__init__(case, model.observation, extra)
        self.sizes, self._exclude, self.impossible = sizes, model.question.exclude_errors, self.likelihood.impossible
        self._prior = Plan(self.judged)
        likelihood, targets = solve(self.likelihood, [*self.judged, *self.carried])
        self.density = len(likelihood.log_weights) - len(self.likelihood.log_weights)
        self.awaited = [one for one in likelihood.conditions if _is_awaited_value(one)]
        """Values to be met, but for rounding, by numbers that have a density, or may have one."""
        told = dict(likelihood.distances)
        distances = [told.get(condition) or distance_of(condition) for condition in likelihood.conditions]
        self.graded = [condition in told or is_graded(condition) for condition in likelihood.conditions]
        judged = len(self.judged)
        others = [*likelihood.conditions, *distances, *likelihood.log_weights, *targets[judged:]]
        self._counts = judged, len(likelihood.conditions), len(likelihood.log_weights)
        roots = _ordered(model, case, [*targets[:judged], *others])
        found = with_latents([*roots, *targets[:judged], *others])
        self.latents: list[Latent] = found.latents
        wanted = found.of([*targets[:judged], *others])
        self.plan = Plan(wanted, [latent.node for latent in self.latents], excused=wanted[:judged])
        self._values = Plan(
            found.of([latent.root for latent in self.latents]), [latent.node for latent in self.latents]
        )

    @property
    def parts(self) -> int:
        """How many conditions have a distance of their own."""
        return self._counts[1]

    @property
    def width(self) -> int:
        """How many normal numbers there are."""
        return sum(latent.size for latent in self.latents)

    def signatures(self) -> list[Hashable]:
        """Return for each normal number what is equal for numbers that stand behind the same distribution."""
        return [
            (latent.root.operation.family, parents_key(latent.root))
            for latent in self.latents
            if isinstance(latent.root.operation, Draw)
            for _ in range(latent.size)
        ]

    def steps(self) -> list[Steps]:
        """Return for each normal number whether and where it steps from value to value."""
        return [steps for latent in self.latents for steps in latent.steps()]

    def evaluate(
        self, points: Array, layout: LatentLayout, rng: np.random.Generator
    ) -> tuple[Array, Array, Array, list[Array]]:
        """Return the distances from each condition, log likelihoods, marks of failures, and the values to keep."""
        blocks = [
            self._block(points[start : start + self.plan.block], layout, rng)
            for start in range(0, len(points), self.plan.block)
        ]
        distances, logs, failed, columns = zip(*blocks, strict=True)
        kept = [np.concatenate(parts) for parts in zip(*columns, strict=True)]
        return np.concatenate(distances), np.concatenate(logs), np.concatenate(failed), kept

    def _block(self, points: Array, layout: LatentLayout, rng: np.random.Generator) -> Any:
        known, samples = layout.known(self.latents, points), len(points)
        failed = np.zeros(samples, np.bool_)
        try:
            arrays = self.plan.run(samples, rng, known, failed=failed if self._exclude else None)
            judged, conditions, weights = self._counts
            met, far = arrays[judged:][:conditions], arrays[judged + conditions :][:conditions]
            wanted = np.logical_and.reduce([~failed, *met])
            failed |= self.not_a_number(arrays, wanted, self._exclude)
        except SampleFailure as failure:
            if self.case.facts:
                raise UnsuitableEngine(
                    "the program may fail on inputs that contradict what is assumed, by which engine='rare' looks for "
                    "those that do not; engine='sample' leaves them out"
                ) from failure.cause
            roots = dict(zip([latent.root for latent in self.latents], self._root_values(known, samples), strict=True))
            raise explained(self.case, failure, rng, np.arange(samples), roots) from failure.cause
        distances = np.zeros((samples, conditions))
        for part, (condition, distance) in enumerate(zip(met, far, strict=True)):
            away = np.where(np.isnan(distance), np.inf, distance)
            distances[:, part] = np.where(condition, 0.0, np.fmax(away, CLOSEST))
        distances[failed] = np.inf
        start = judged + 2 * conditions
        logs = total_log_weight(arrays[start : start + weights], samples)
        kept = [*arrays[:judged], *arrays[start + weights :]]
        return distances, np.zeros(samples) if logs is None else logs, failed, kept

    def strata(self, points: Array, layout: LatentLayout) -> Array:
        """Return for each point the number of its stratum: points of one stratum agree in all that is discrete."""
        known = layout.known(self.latents, points)
        values = self._root_values(known, len(points))
        states = [
            column
            for latent, value in zip(self.latents, values, strict=True)
            for column in latent.states(known[latent.node], value)
        ]
        if not states:
            return np.zeros(len(points), np.intp)
        return np.unique(np.stack(states, axis=1), axis=0, return_inverse=True)[1].reshape(-1)

    def _root_values(self, known: dict[Node, Array], samples: int) -> list[Array]:
        return self._values.run(samples, np.random.default_rng(0), known)

    def failures(self, samples: int, rng: np.random.Generator) -> int:
        """Return on how many draws from the prior the program fails."""
        failed = np.zeros(samples, np.bool_)
        arrays = self._prior.run(samples, rng, failed=failed)
        return int(np.count_nonzero(failed | self.not_a_number(arrays, ~failed, exclude=True)))

    def quantities(self, columns: Sequence[Array], samples: int, rng: np.random.Generator) -> list[Batch]:
        """Return secret, output and the answer to the query from the values that were kept."""
        judged = len(self.judged)
        return [settled(one) for one in self.read(columns[:judged], columns[judged:], slice(None), samples, rng)]


def _ordered(model: "LatentModel", case: Case, needed: Sequence[Node]) -> list[Node]:
    """Return the roots behind some nodes: those of the sizes first, then of what all sizes have, then row by row."""
    tables = set(model.question.random_tables)
    inputs = sorted(case.inputs.items(), key=lambda item: item[0] in tables)
    leaves = [variable.node for variable in random_leaves([value for _, value in inputs])]
    wanted = {node for node in ancestors([*model.size_nodes, *needed]) if node.is_random}
    return [node for node in ancestors([*model.size_nodes, *leaves, *needed]) if node in wanted]


def _is_awaited_value(condition: Node) -> bool:
    number = condition.parents[0] if condition.parents else condition
    return isinstance(condition.operation, CloseTo) and number.dtype.kind == "f" and number.kind is not Kind.DISCRETE


class LatentModel(Shared):
    """A question and an observation, with a case for each size of the tables, made when it is first needed."""

    def __init__(
        self, question: Question, observation: Observation | None, extra: Callable[..., Any] | None, expected: int
    ) -> None:
        self.question, self.observation, self.extra = question, observation, extra
        self.size_nodes = question.size_nodes
        self._expected = expected  # program runs, to tell whether compiling the program pays
        self._cases: dict[Sizes, LatentCase] = {}
        self._lock = Lock()
        found = with_latents(self.size_nodes)
        self._size_latents = found.latents
        self._sizes = Plan(found.of(self.size_nodes), [latent.node for latent in found.latents])
        if self._sizes.random_numbers:
            raise UnsuitableEngine(
                "engine='rare' cannot search through this distribution of a table's size; engine='sample' can draw it"
            )

    def __reduce__(self) -> tuple[Any, ...]:  # each process makes its own cases
        return LatentModel, (self.question, self.observation, self.extra, self._expected)

    def case(self, sizes: Sizes) -> LatentCase:
        """Return the case of some sizes."""
        with self._lock:
            if sizes not in self._cases:
                self._cases[sizes] = LatentCase(self, sizes, self.question.case(sizes, self._expected))
            return self._cases[sizes]

    @property
    def typical(self) -> LatentCase:
        """The case of sizes that lie in the middle."""
        return self.case(self.question.typical_sizes)

    def groups(self, points: Array, layout: LatentLayout) -> list[tuple[LatentCase, Array]]:
        """Return the cases that points belong to, each with the positions of its points."""
        if not self.size_nodes:
            return [(self.case(()), np.arange(len(points)))]
        known = layout.known(self._size_latents, points)
        drawn = self._sizes.run(len(points), np.random.default_rng(0), known)
        return [(self.case(sizes), members) for sizes, members in by_sizes(drawn)]

    def quantities(self, columns: Sequence[Array], rng: np.random.Generator) -> list[Batch]:
        """Return secret, output and the answer to the query from values that were kept, in their order."""
        if not self.size_nodes:
            return self.case(()).quantities(columns, len(columns[0]), rng)
        rows: dict[Sizes, list[int]] = {}
        for position, (sizes, _) in enumerate(columns[0]):
            rows.setdefault(sizes, []).append(position)
        parts = []
        for sizes, positions in rows.items():
            stacked = [np.array(cells) for cells in zip(*(columns[0][p][1] for p in positions), strict=True)]
            parts.append(self.case(sizes).quantities(stacked, len(positions), rng))
        order = np.argsort(np.concatenate([np.array(positions) for positions in rows.values()]))
        return [Batch.concatenate(batches).take(order) for batches in zip(*parts, strict=True)]


class Space:
    """The space of one population: its layout, its scales of distance, its randomness, and how often it was asked."""

    def __init__(self, model: LatentModel, rng: np.random.Generator) -> None:
        self.model, self.rng = model, rng
        self.layout = LatentLayout()
        self.runs = 0
        self.density: int | None = None
        self._scales: dict[int, Array] = {}

    @classmethod
    def reserved(cls, model: LatentModel, rng: np.random.Generator) -> "Space":
        """Return a space with room for the numbers of a typical case."""
        space = cls(model, rng)
        space.reserve()
        return space

    def draw(self, samples: int) -> Particles:
        """Draw particles from the prior."""
        self.reserve()
        return self.evaluate(self.rng.standard_normal((samples, self.layout.width)))

    def reserve(self) -> None:
        """Make room for the numbers of a typical case."""
        self._reserve(self.model.typical)
        self.layout.columns(0, 1)  # a program may have no randomness but its own, which each move draws anew

    def _reserve(self, case: LatentCase) -> None:
        for position, latent in enumerate(case.latents):
            self.layout.columns(position, latent.size)

    def widened(self, points: Array) -> Array:
        """Return points with fresh numbers for roots that no smaller model had."""
        missing = self.layout.width - points.shape[1]
        if not missing:
            return points
        return np.concatenate([points, self.rng.standard_normal((len(points), missing))], axis=1)

    def evaluate(self, points: Array) -> Particles:
        """Run the program at some points."""
        points = self.widened(points)
        groups = self.model.groups(points, self.layout)
        for case, _ in groups:
            self._reserve(case)
        points = self.widened(points)
        samples = len(points)
        far, none = np.full(samples, np.inf), np.zeros(samples, np.bool_)
        particles = Particles(points, far, np.zeros(samples), [], none, np.arange(samples) % 2)
        if self.model.size_nodes:
            particles.columns.append(np.empty(samples, object))
        for case, members in groups:
            if case.impossible is None and len(members):
                self._fill(particles, case, members)
        self.runs += samples
        return particles

    def _fill(self, particles: Particles, case: LatentCase, members: Array) -> None:
        self._agree_on_density(case)
        distances, logs, failed, kept = case.evaluate(particles.latents[members], self.layout, self.rng)
        particles.distance[members] = self._combined(distances) + np.where(np.isneginf(logs), 1.0, 0.0)
        particles.log_likelihood[members] = logs
        particles.failed[members] = failed
        if not self.model.size_nodes:
            particles.columns = kept
            return
        for row, position in enumerate(members):
            particles.columns[0][position] = case.sizes, [column[row] for column in kept]

    def _agree_on_density(self, case: LatentCase) -> None:
        if self.density is None:
            self.density = case.density
        if self.density != case.density:
            raise UnsuitableEngine(
                "for some sizes of the tables the observed value has a probability and for others only a density: "
                "engine='rare' cannot weigh these against each other, engine='sample' can"
            )

    def _combined(self, distances: Array) -> Array:
        """Add up the distances from several conditions, each in units of what it is like among the first particles."""
        parts = distances.shape[1]
        if parts <= 1:
            return np.asarray(distances.sum(axis=1))
        if parts not in self._scales:
            counted = np.where(np.isfinite(distances) & (distances > CLOSEST), distances, np.nan)
            known = ~np.isnan(counted)
            means = np.where(known, counted, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
            self._scales[parts] = np.where(means > 0, means, 1.0)
        return np.asarray((distances / self._scales[parts]).sum(axis=1))
