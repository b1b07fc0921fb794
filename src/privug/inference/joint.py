"""Joint: secret and output together. Engines produce it, measures consume it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privug.arguments import check_kind, kinds_checked
from privug.errors import ArgumentError
from privug.estimate import Estimate
from privug.inference.arguments import as_list, as_numbers
from privug.inference.belief import Belief
from privug.inference.channel import Channel
from privug.inference.classes import Classes
from privug.model.batch import Batch
from privug.model.comparable import described, incomparable
from privug.model.node import Array
from privug.observation.observations import Observation
from privug.pictures import plots


@dataclass(frozen=True, eq=False)
class Joint:
    """The joint distribution of secret and output: weighted pairs, exact or sampled.

    Pairs of an exact joint are its support, or cells of quadrature where a side has a `curve`: sums over them are
    exact up to rounding. `information` is the mutual information in bits where that is known in closed form; if
    it is infinite, its method says why. A `channel` stands in for pairs that are too many to list; `secret` and
    `output` are then the marginal beliefs, each with values of its own. `prior` is the exact belief about the secret of
    a sampled joint, where that is known. `classes` holds the same pairs, with secrets that are alike counted together,
    where an engine found them so.

    >>> joint = Joint.from_channel([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]])
    >>> print(joint.output.probability(lambda o: o == 0))
    0.55 (exact)
    """

    secret: Belief
    output: Belief
    information: Estimate | None = None
    channel: Channel | None = None
    prior: Belief | None = None
    classes: Classes | None = None

    def __post_init__(self) -> None:
        for side in (self.secret, self.output):
            if not isinstance(side, Belief):
                raise ArgumentError(f"a joint is made of two beliefs, not of {side!r:.80}; see Joint.from_samples")
        if self.channel is None and len(self.secret.batch) != len(self.output.batch):
            counts = f"{len(self.secret.batch)} and {len(self.output.batch)}"
            raise ArgumentError(f"secrets and outputs must come in pairs, but there are {counts}")

    @property
    def exact(self) -> bool:
        """Whether the pairs are the whole support with its probabilities."""
        return self.secret.exact

    @property
    def weights(self) -> Array | None:
        """The probability of each pair; None means all equal."""
        if self.channel is not None:
            raise ArgumentError(
                f"this joint has some {self.channel.states:,} pairs of secret and output, too many to list; ask for "
                "mutual_information, bayes_vulnerability or bayes_risk, or for joint.secret and joint.output"
            )
        return self.secret.weights

    @property
    def effective_samples(self) -> float:
        """How many independent, equally weighted pairs this joint is worth."""
        return self.secret.effective_samples

    @classmethod
    def from_samples(cls, secrets: Sequence[Any], outputs: Sequence[Any]) -> "Joint":
        """Make a joint of observed pairs."""
        secrets, outputs = as_list("from_samples: secrets", secrets), as_list("from_samples: outputs", outputs)
        if not len(secrets) or len(secrets) != len(outputs):
            counts = f"{len(secrets)} and {len(outputs)}"
            raise ArgumentError(f"from_samples: secrets and outputs must be equally many and not empty, not {counts}")
        for name, values in dict[str, Any](secrets=secrets, outputs=outputs).items():
            part = incomparable(values if isinstance(values, np.ndarray) else list(values))
            if part is not None:
                raise ArgumentError(f"from_samples: {name} hold {described(part)}")
        return cls(Belief(Batch.of_values(secrets)), Belief(Batch.of_values(outputs)))

    @classmethod
    def from_channel(
        cls,
        prior: Sequence[float],
        matrix: Any,
        *,
        secrets: Sequence[Any] | None = None,
        outputs: Sequence[Any] | None = None,
    ) -> "Joint":
        """Make an exact joint of a prior and a channel: row s of the matrix holds P(output | secret s)."""
        pi, channel = as_numbers("from_channel: the prior", prior), as_numbers("from_channel: the matrix", matrix)
        if pi.ndim != 1 or channel.ndim != 2 or len(pi) != len(channel) or not channel.size:
            raise ArgumentError(
                f"from_channel: a prior of n numbers needs n rows, not shapes {pi.shape} and {channel.shape}"
            )
        sums = np.append(channel.sum(axis=1), pi.sum())
        if not (np.all(pi >= 0) and np.all(channel >= 0) and np.all(np.abs(sums - 1) < 1e-9)):
            raise ArgumentError(
                "from_channel: the prior and every row of the matrix must be probabilities that sum to one"
            )
        names = list(as_list("from_channel: secrets", range(channel.shape[0]) if secrets is None else secrets))
        labels = list(as_list("from_channel: outputs", range(channel.shape[1]) if outputs is None else outputs))
        if (len(names), len(labels)) != channel.shape:
            raise ArgumentError(f"from_channel: {channel.shape} values of secret and output must be named")
        weights = (pi[:, np.newaxis] * channel).reshape(-1)
        rows, columns = (index.reshape(-1) for index in np.indices(channel.shape))
        possible = weights > 0
        pairs = weights[possible]
        return cls(
            Belief.listed(Batch.of_values([names[i] for i in rows[possible]]), pairs),
            Belief.listed(Batch.of_values([labels[j] for j in columns[possible]]), pairs),
        )

    @kinds_checked
    def named(self, secret: str, output: str) -> "Joint":
        """Return the same joint with what its two quantities are called."""
        return replace(self, secret=self.secret.named(secret), output=self.output.named(output))

    def plot(self, ax: Any = None, observation: Observation | None = None) -> Any:
        """Draw how likely secret and output are together, darker where more; `observation` is marked if one is given.

        `ax` is matplotlib axes or the path of a picture to write.
        """
        if observation is not None:
            check_kind("plot", "observation", observation, (Observation,))
        return plots().joint(self, ax, observation)

    def __repr__(self) -> str:
        return f"<Joint: {self.secret.kind.value} secret, {self.output.kind.value} output, {self.secret.method}>"
