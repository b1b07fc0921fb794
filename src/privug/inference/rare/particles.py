"""Particles: points in the space of normal numbers, with what the model gave for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug.model.node import Array


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
        return Particles(
            self.latents[chosen],
            self.distance[chosen],
            self.log_likelihood[chosen],
            [column[chosen] for column in self.columns],
            self.failed[chosen],
            self.side[chosen],
        )

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
        return Particles(
            np.concatenate([part.latents for part in parts]),
            np.concatenate([part.distance for part in parts]),
            np.concatenate([part.log_likelihood for part in parts]),
            [np.concatenate(columns) for columns in zip(*(part.columns for part in parts), strict=True)],
            np.concatenate([part.failed for part in parts]),
            np.concatenate([part.side for part in parts]),
        )
