"""A question in terms of normal numbers: from points in their space to distances from the observation."""

from collections.abc import Callable, Hashable, Sequence
from threading import Lock
from typing import Any

import numpy as np

from privug.errors import PriorError, UnsuitableEngine
from privug.inference.case_plan import Quantity, answer, explained, needed_by, not_a_number, settled, total_log_weight
from privug.inference.question import Case, Question, Sizes
from privug.inference.rare.latents import Latent, Layout, with_latents
from privug.inference.rare.particles import Particles
from privug.inference.rare.scattering import Steps
from privug.inference.solving import solve
from privug.model.batch import Batch
from privug.model.graph import parents_key
from privug.model.node import Array, Kind, Node, ancestors
from privug.model.operations import SampleFailure
from privug.model.pickling import Shared
from privug.model.plan import Plan
from privug.model.structure import random_leaves
from privug.observation.distance import distance_of, is_graded
from privug.observation.likelihood import CloseTo
from privug.observation.observations import Observation
from privug.prior.family import Draw

CLOSEST = 1e-200  # the distance of what does not agree, though nothing tells how far it is


class LatentCase:
    """The model for one size of each table: what to compute from the normal numbers, and how to read it."""

    def __init__(self, model: "LatentModel", sizes: Sizes, case: Case) -> None:
        self.case, self.sizes, self._exclude = case, sizes, model.question.exclude_errors
        self._secret, self._output = Quantity.of(case.secret), Quantity.of(case.output)
        self._query = None if model.extra is None else Quantity.of(model.question.query(case, model.extra))
        self._carried = [] if self._query is None else needed_by(self._query, case)
        likelihood = case.likelihood(model.observation)
        self.impossible = likelihood.impossible
        before = len(likelihood.log_weights)
        targets = [*self._secret.nodes, *self._output.nodes, *self._carried]
        self._prior = Plan(targets[: len(targets) - len(self._carried)])
        likelihood, targets = solve(likelihood, targets)
        self.density = len(likelihood.log_weights) - before
        self.awaited = [one for one in likelihood.conditions if _is_awaited_value(one)]
        """Values to be met, but for rounding, by numbers that have a density, or may have one."""
        told = dict(likelihood.distances)
        distances = [told.get(condition) or distance_of(condition) for condition in likelihood.conditions]
        self.graded = [condition in told or is_graded(condition) for condition in likelihood.conditions]
        judged = len(self._secret.nodes) + len(self._output.nodes)
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

    def known(self, points: Array, layout: Layout) -> dict[Node, Array]:
        """Return the values of the latent nodes at some points."""
        return {
            latent.node: points[:, layout.columns(position, latent.size)].reshape(len(points), *latent.node.shape)
            for position, latent in enumerate(self.latents)
        }

    def evaluate(
        self, points: Array, layout: Layout, rng: np.random.Generator
    ) -> tuple[Array, Array, Array, list[Array]]:
        """Return the distances from each condition, log likelihoods, marks of failures, and the values to keep."""
        blocks = [
            self._block(points[start : start + self.plan.block], layout, rng)
            for start in range(0, len(points), self.plan.block)
        ]
        distances, logs, failed, columns = zip(*blocks, strict=True)
        kept = [np.concatenate(parts) for parts in zip(*columns, strict=True)]
        return np.concatenate(distances), np.concatenate(logs), np.concatenate(failed), kept

    def _block(self, points: Array, layout: Layout, rng: np.random.Generator) -> Any:
        known, samples = self.known(points, layout), len(points)
        failed = np.zeros(samples, np.bool_)
        try:
            arrays = self.plan.run(samples, rng, known, failed=failed if self._exclude else None)
            judged, conditions, weights = self._counts
            met, far = arrays[judged:][:conditions], arrays[judged + conditions :][:conditions]
            wanted = np.logical_and.reduce([~failed, *met])
            failed |= not_a_number(arrays[:judged], len(self._secret.nodes), wanted, self._exclude)
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

    def strata(self, points: Array, layout: Layout) -> Array:
        """Return for each point the number of its stratum: points of one stratum agree in all that is discrete."""
        known = self.known(points, layout)
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
        return int(np.count_nonzero(failed | not_a_number(arrays, len(self._secret.nodes), ~failed, exclude=True)))

    def quantities(self, columns: Sequence[Array], samples: int, rng: np.random.Generator) -> list[Batch]:
        """Return secret, output and the answer to the query from the values that were kept."""
        split, judged = len(self._secret.nodes), self._counts[0]
        batches = [self._secret.batch(columns[:split], samples), self._output.batch(columns[split:judged], samples)]
        if self._query is not None:
            carried = dict(zip(self._carried, columns[judged:], strict=True))
            batches.append(answer(self._query, carried, samples, rng))
        return [settled(batch) for batch in batches]


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

    def groups(self, points: Array, layout: Layout) -> list[tuple[LatentCase, Array]]:
        """Return the cases that points belong to, each with the positions of its points."""
        if not self.size_nodes:
            return [(self.case(()), np.arange(len(points)))]
        known = {
            latent.node: points[:, layout.columns(position, latent.size)].reshape(len(points), *latent.node.shape)
            for position, latent in enumerate(self._size_latents)
        }
        drawn = np.stack(self._sizes.run(len(points), np.random.default_rng(0), known), axis=1)
        sizes, members = np.unique(drawn, axis=0, return_inverse=True)
        if len(sizes) and int(sizes.min()) < 0:
            raise PriorError(f"the size of a table must not be negative, but {int(sizes.min())} was drawn")
        return [
            (self.case(tuple(int(number) for number in size)), np.flatnonzero(members.reshape(-1) == position))
            for position, size in enumerate(sizes)
        ]

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
        self.layout = Layout()
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
        combined: Array = (distances / self._scales[parts]).sum(axis=1)
        return combined
