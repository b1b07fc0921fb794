"""Examples: equally weighted pairs of secret and output, as an attacker who has only seen the system has them."""

from dataclasses import dataclass, replace

import numpy as np

from privug.arguments import shown
from privug.errors import ArgumentError
from privug.inference.belief import Belief
from privug.inference.joint import Joint
from privug.model.batch import Batch
from privug.model.node import Array, Kind

MOST_ONE_BY_ONE = 1 << 20


@dataclass(frozen=True)
class Examples:
    """Pairs as arrays: the secret's and the output's number among the distinct values, and the output's coordinates.

    `points` is None for outputs that are not numbers. Several coordinates are ranks, so their units do not matter.
    """

    labels: Array
    outputs: Array
    points: Array | None
    secrets: int
    kind: Kind

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, which: Array) -> "Examples":
        """Return the chosen examples."""
        points = None if self.points is None else self.points[which]
        return replace(self, labels=self.labels[which], outputs=self.outputs[which], points=points)


def examples_of(joint: Joint, what: str, seed: int) -> Examples:
    """Return the samples of a joint with a discrete secret as examples, thinned if they are weighted."""
    check_sampled(joint, what)
    if joint.secret.kind is not Kind.DISCRETE:
        raise ArgumentError(
            f"{what}: the secret is {joint.secret.kind.value}, so no guess is ever exactly right and the risk is 1; "
            "ask for mutual_information, or make the secret a range or a yes-or-no question"
        )
    plain = thinned(joint, seed)
    labels, secrets = plain.secret.batch.factorized()
    return Examples(
        labels, plain.output.batch.factorized()[0], coordinates(plain.output.batch), len(secrets), joint.output.kind
    )


def pooled_examples(joint: Joint, test: Joint, what: str, seed: int) -> tuple[Examples, Examples]:
    """Return the examples of two joints about the same secret and output, numbered alike."""
    for part in (joint, test):
        check_sampled(part, what)
    first, second = thinned(joint, seed), thinned(test, seed)
    both = examples_of(_joined(first, second), what, seed)
    return both.take(np.arange(len(first.secret.batch))), both.take(np.arange(len(first.secret.batch), len(both)))


def _joined(first: Joint, second: Joint) -> Joint:
    def end_to_end(left: Belief, right: Belief) -> Belief:
        spread = left.spread if left.spread is right.spread else None
        return Belief(Batch.concatenate([left.batch, right.batch]), spread=spread)

    return Joint(end_to_end(first.secret, second.secret), end_to_end(first.output, second.output))


def check_sampled(joint: Joint, what: str) -> None:
    """Refuse what is not a joint of samples."""
    if not isinstance(joint, Joint):
        raise ArgumentError(f"{what} needs a Joint such as Joint.from_samples(secrets, outputs), not {shown(joint)}")
    if joint.exact:
        raise ArgumentError(
            f"{what} learns from samples, but this joint is exact; use bayes_risk(joint), which is exact"
        )


def thinned(joint: Joint, seed: int) -> Joint:
    """Return equally weighted samples: each is kept with a probability proportional to its weight, and none twice."""
    if joint.weights is None or joint.secret.squares is not None:
        return one_by_one(joint)
    rng = np.random.default_rng((seed, 2))
    kept = rng.random(len(joint.weights)) * joint.weights.max() < joint.weights
    secret, output = (Belief(side.batch.take(kept), spread=side.spread) for side in (joint.secret, joint.output))
    return Joint(secret, output)


def one_by_one(joint: Joint) -> Joint:
    """Return equally weighted samples of a joint whose pairs stand for several each: all of them, or a million."""
    if joint.weights is None or joint.secret.squares is None:
        return joint
    samples = round(joint.effective_samples)
    counts = np.rint(joint.weights * samples).astype(np.int64)
    if samples > MOST_ONE_BY_ONE:
        counts = np.random.default_rng(0).multinomial(MOST_ONE_BY_ONE, joint.weights)
    places = np.repeat(np.arange(len(counts)), counts)
    secret, output = (Belief(side.batch.take(places), spread=side.spread) for side in (joint.secret, joint.output))
    return Joint(secret, output)


def coordinates(batch: Batch) -> Array | None:
    """Return a number or a row of ranks for each sample; None if some part is not a number."""
    arrays = [column.array for column in batch.columns]
    if any(column.levels is not None or column.array.dtype.kind not in "bif" for column in batch.columns):
        return None
    if len(arrays) == 1 and arrays[0].ndim == 1 and arrays[0].dtype.kind != "f":
        return arrays[0].astype(float)
    table = np.column_stack([array.reshape(len(batch), -1).astype(float) for array in arrays])
    if np.isnan(table).any():
        raise ArgumentError("some values are not a number (NaN); leave those samples out")
    return table[:, 0] if table.shape[1] == 1 else np.column_stack([_ranks(column) for column in table.T])


def _ranks(values: Array) -> Array:
    ordered = np.sort(values)
    ranks: Array = (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")) / 2
    return ranks
