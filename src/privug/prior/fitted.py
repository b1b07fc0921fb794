"""What data says about the parameters of a family, and what is computed from data on the way."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from privug.errors import PriorError
from privug.model.node import Array
from privug.model.variable import RandomVariable

JEFFREYS = 0.5
NO_PREDICTIVE = "no distribution here is its average over the parameters; write uncertainty=True or False"


class Fitted(NamedTuple):
    """Ways to make a distribution that data comes from, or why there is none."""

    most_likely: Callable[[], RandomVariable]
    random: Callable[[], RandomVariable] | str
    """Its parameters are random variables, spread as the data leaves them open."""
    predictive: Callable[[], RandomVariable] | str = NO_PREDICTIVE
    """It has the parameters averaged out."""


def check_spread(name: str, numbers: Array) -> None:
    """Refuse data of which all values are the same."""
    if len(numbers) < 2 or np.ptp(numbers) == 0:
        raise PriorError(f"fit: {name} needs at least two different values; write pv.Constant for a fixed one")


def middle_and_width(numbers: Array) -> tuple[float, float]:
    """Return the median, and half the distance of the quartiles."""
    low, middle, high = (float(q) for q in np.quantile(numbers, [0.25, 0.5, 0.75]))
    return middle, (high - low) / 2 or float(numbers.std())
