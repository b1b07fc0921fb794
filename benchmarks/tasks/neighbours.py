"""Nearest neighbours: mutual information of continuous samples, and votes, against scikit-learn and brute force."""

import math
from functools import cache, partial

import numpy as np
from harness.tasks import Answer, Growth, Task, Work, register, sized

from privug.leakage.black_box import nearest_votes
from privug.leakage.neighbours import point_information

NEIGHBOURS = 3
SAMPLES = sized(1_000_000, 10_000)
CHECKED = 200  # answers that are compared with brute force
Array = np.ndarray


def pair(samples: int) -> tuple[Array, Array]:
    x, noise = np.random.default_rng(0).normal(size=(2, samples))
    y = 0.6 * x + 0.8 * noise
    return x / x.std(), y / y.std()


def by_privug(samples: int) -> Work:
    x, y = pair(samples)
    return lambda: point_information(x[:, np.newaxis], y[:, np.newaxis], NEIGHBOURS)[0]


def by_scikit_learn(samples: int) -> Work:
    from sklearn.feature_selection._mutual_info import _compute_mi_cc  # what mutual_info_regression calls

    x, y = pair(samples)
    return lambda: float(_compute_mi_cc(x, y, NEIGHBOURS)) / math.log(2)


def by_brute_force(samples: int) -> Work:
    """All distances, a few points at a time: the definition of the estimator of Kraskov, Stoegbauer and Grassberger."""
    from scipy.special import digamma

    x, y = pair(samples)

    def work() -> float:
        total = 0.0
        for start in range(0, samples, 250):
            near_x = np.abs(x - x[start : start + 250, np.newaxis])
            near_y = np.abs(y - y[start : start + 250, np.newaxis])
            radius = np.partition(np.maximum(near_x, near_y), NEIGHBOURS, axis=1)[:, NEIGHBOURS, np.newaxis]
            inside = [np.count_nonzero(near < radius, axis=1) for near in (near_x, near_y)]  # the point itself counts
            total += float(sum(digamma(count).sum() for count in inside))
        return float(digamma(samples) + digamma(NEIGHBOURS) - total / samples) / math.log(2)

    return work


@cache
def questions(asked: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, SAMPLES)
    return rng.normal(size=SAMPLES) + labels, labels, rng.normal(0.5, 1.2, asked)


def brute_votes(k: int, asked: int) -> list[float]:
    """Answer the first few questions by all distances."""
    train, labels, test = questions(asked)
    nearest = (np.argpartition(np.abs(train - one), k - 1)[:k] for one in test[:CHECKED])
    return [float(2 * labels[index].sum() > k) for index in nearest]


def votes(k: int, asked: int) -> Work:
    train, labels, test = questions(asked)
    return lambda: np.asarray(nearest_votes(train, labels, test, k).label)[:CHECKED].tolist()


def votes_by_scikit_learn(k: int, asked: int) -> Work:
    """Every neighbour is listed: of many neighbours, few are asked for."""
    from sklearn.neighbors import KNeighborsClassifier

    train, labels, test = questions(asked)
    few = test[: asked if k == 1 else max(CHECKED, asked // 100)]

    def work() -> Answer:
        fitted = KNeighborsClassifier(k).fit(train[:, np.newaxis], labels)
        return Answer(fitted.predict(few[:, np.newaxis])[:CHECKED].tolist(), share=len(few) / asked)

    return work


def votes_by_brute_force(k: int, asked: int) -> Work:
    questions(asked)
    return lambda: Answer(brute_votes(k, asked), share=CHECKED / asked)


def voting(k: int) -> Task:
    """An odd number of neighbours, so that there are no ties."""
    makers = {"privug": votes, "scikit-learn": votes_by_scikit_learn, "brute-force": votes_by_brute_force}
    return Task(
        f"nearest-k{k}",
        f"votes of the {k} nearest of {SAMPLES:,} numbers for as many more",
        {tool: partial(make, k, SAMPLES) for tool, make in makers.items()},
        partial(brute_votes, k, SAMPLES),
        bars={"scikit-learn": 5},
    )


TASKS = register(
    Growth(
        "ksg",
        "mutual information of continuous samples, three neighbours",
        sized((1_000, 10_000, 100_000, 1_000_000), (1_000, 10_000)),
        {"privug": by_privug, "scikit-learn": by_scikit_learn, "brute-force": by_brute_force},
        lambda samples: [-math.log2(1 - 0.36) / 2],
        up_to={"scikit-learn": 100_000, "brute-force": 10_000},
        within=0.1,
        bars={"scikit-learn": 3},
    ),
    voting(1),
    voting(sized(1001, 101)),
)
