"""Finite quantities: sums, channels and joints against qif and dit; counting pairs against sorting."""

from functools import cache, partial
from typing import Any

import numpy as np
from harness.tasks import Answer, Growth, Task, Work, register, sized

import privug as pv

Array = np.ndarray
LARGEST = sized(100, 20)
LARGE = sized(10_000, 500)
GIBIBYTE = 1 << 30


def bits(joint: Array) -> float:
    """Return the mutual information of a joint, by its definition."""
    product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    there = joint > 0
    return float((joint[there] * np.log2(joint[there] / product[there])).sum())


# sum-of-two: x + y, both uniform on 0..n. The answer: P(x + y = n), what the sum tells about x in bits, and Bayes risk.
def sum_of_two(n: int, **options: Any) -> Work:
    def work() -> list[float] | Answer:
        prior = {"x": pv.DiscreteUniform(0, n), "y": pv.DiscreteUniform(0, n)}
        result = pv.Attack(lambda x, y: x + y, prior, "x", observe=pv.equals(n)).run(**options, seed=1)
        leak, evidence = pv.leakage, result.diagnostics.evidence
        return [float(evidence), float(leak.mutual_information(result.joint)), float(leak.bayes_risk(result.joint))]

    return work


@cache
def truth_of_sum(n: int) -> list[float]:
    """Return closed forms: the entropy of the sum is that of a triangle, that of x + y given x is log2 (n + 1)."""
    counts = np.concatenate([np.arange(1, n + 2), np.arange(n, 0, -1)]) / (n + 1) ** 2
    information = float(-(counts * np.log2(counts)).sum() - np.log2(n + 1))
    return [1 / (n + 1), information, 1 - (2 * n + 1) / (n + 1) ** 2]


def channel_of_sum(n: int) -> Array:
    matrix = np.zeros((n + 1, 2 * n + 1))
    for x in range(n + 1):
        matrix[x, x : x + n + 1] = 1 / (n + 1)
    return matrix


def sum_by_qif() -> Work:
    from qif import measure

    def work() -> list[float]:
        prior, matrix = np.full(LARGEST + 1, 1 / (LARGEST + 1)), channel_of_sum(LARGEST)
        evidence = float((prior @ matrix)[LARGEST])
        return [evidence, measure.shannon.add_leakage(prior, matrix), measure.bayes_risk.posterior(prior, matrix)]

    return work


def sum_by_dit() -> Work:
    import dit

    def work() -> list[float]:
        joint = channel_of_sum(LARGEST) / (LARGEST + 1)
        made = dit.Distribution.from_ndarray(joint)
        risk = 1 - float(joint.max(axis=0).sum())  # dit has no Bayes risk
        return [float(joint.sum(axis=0)[LARGEST]), float(dit.shannon.mutual_information(made, [0], [1])), risk]

    return work


def sum_by_hand() -> Work:
    def work() -> list[float]:
        joint = channel_of_sum(LARGEST) / (LARGEST + 1)
        return [float(joint.sum(axis=0)[LARGEST]), bits(joint), 1 - float(joint.max(axis=0).sum())]

    return work


def sum_by_loop() -> Work:
    from collections import Counter
    from math import log2

    def work() -> list[float]:
        pairs = Counter((x, x + y) for x in range(LARGEST + 1) for y in range(LARGEST + 1))
        total = (LARGEST + 1) ** 2
        sums: Counter[int] = Counter()
        best: dict[int, int] = {}
        for (_, output), count in pairs.items():
            sums[output] += count
            best[output] = max(best.get(output, 0), count)
        information = sum(c / total * log2(c * (LARGEST + 1) / sums[o]) for (_, o), c in pairs.items())
        return [sums[LARGEST] / total, information, 1 - sum(best.values()) / total]

    return work


# channel and joint: matrices whose rows are drawn from a Dirichlet distribution.
CHANNEL, JOINT = sized(500, 50), sized(50, 10)


def random_channel(size: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(1)
    return rng.dirichlet(np.ones(size)), rng.dirichlet(np.ones(size) / 10, size)


@cache
def truth_of_channel(size: int) -> list[float]:
    prior, matrix = random_channel(size)
    joint = prior[:, np.newaxis] * matrix
    guessed = joint.max(axis=0).sum()
    return [float(1 - guessed), float(np.log2(guessed / prior.max())), bits(joint)]


def channel_by_privug(size: int) -> Work:
    prior, matrix = random_channel(size)

    def work() -> list[float]:
        joint = pv.Joint.from_channel(prior, matrix)
        measures = (pv.leakage.bayes_risk, pv.leakage.min_entropy_leakage, pv.leakage.mutual_information)
        return [float(measure(joint)) for measure in measures]

    return work


def channel_by_qif(size: int) -> Work:
    from qif import measure

    prior, matrix = random_channel(size)
    risk, leakage = measure.bayes_risk.posterior, measure.bayes_vuln.min_entropy_leakage
    return lambda: [risk(prior, matrix), leakage(prior, matrix), measure.shannon.add_leakage(prior, matrix)]


def channel_by_hand(size: int) -> Work:
    return lambda: truth_of_channel.__wrapped__(size)  # type: ignore[no-any-return]


def joint_by_privug() -> Work:
    prior, matrix = random_channel(JOINT)

    def work() -> list[float]:
        joint = pv.Joint.from_channel(prior, matrix)
        return [float(pv.leakage.entropy(joint.secret)), float(pv.leakage.mutual_information(joint))]

    return work


def joint_by_dit() -> Work:
    import dit

    prior, matrix = random_channel(JOINT)

    def work() -> list[float]:
        made = dit.Distribution.from_ndarray(prior[:, np.newaxis] * matrix)
        return [float(dit.shannon.entropy(made, [0])), float(dit.shannon.mutual_information(made, [0], [1]))]

    return work


def joint_by_qif() -> Work:
    from qif import measure

    prior, matrix = random_channel(JOINT)
    return lambda: [measure.shannon.prior(prior), measure.shannon.add_leakage(prior, matrix)]


def truth_of_joint() -> list[float]:
    prior, matrix = random_channel(JOINT)
    return [float(-(prior * np.log2(prior)).sum()), bits(prior[:, np.newaxis] * matrix)]


# discrete: measures of many pairs, which should cost little more than sorting the data once.
def drawn(pairs: int, divisors: tuple[int, int]) -> tuple[Array, Array]:
    """Draw whole numbers, or fractions that repeat."""
    rng = np.random.default_rng(0)
    secrets = rng.integers(0, 100, pairs)
    outputs = secrets + rng.integers(0, 101, pairs)
    return (secrets, outputs) if divisors == (1, 1) else (secrets / divisors[0], outputs / divisors[1])


@cache
def truth_of_pairs(pairs: int) -> list[float]:
    """Return the mutual information of what is drawn, not of what happened to come up: in closed form."""
    output = np.convolve(np.full(100, 1 / 100), np.full(101, 1 / 101))
    return [float(-(output * np.log2(output)).sum() - np.log2(101))]


def pairs_by_privug(divisors: tuple[int, int], pairs: int) -> Work:
    secrets, outputs = drawn(pairs, divisors)
    leak = pv.leakage
    of_joints = (
        leak.conditional_entropy,
        leak.bayes_vulnerability,
        leak.bayes_risk,
        leak.min_entropy_leakage,
        leak.multiplicative_leakage,
        leak.additive_leakage,
        leak.bayes_security,
        leak.posterior_guessing_entropy,
        leak.max_posterior_belief,
    )
    of_beliefs = (leak.entropy, leak.min_entropy, leak.guessing_entropy, partial(leak.renyi_entropy, order=2))

    def work() -> list[float]:
        joint = pv.Joint.from_samples(secrets, outputs)
        for of_joint in of_joints:
            of_joint(joint)
        for of_belief in of_beliefs:
            of_belief(joint.secret)
        return [float(leak.mutual_information(joint))]

    return work


def pairs_sorted(divisors: tuple[int, int], pairs: int) -> Work:
    secrets, outputs = drawn(pairs, divisors)

    def work() -> None:
        np.sort(secrets)
        np.sort(outputs)

    return work


def pairs_by_scikit_learn(pairs: int) -> Work:
    """One of the measures: scikit-learn has no other."""
    from sklearn.metrics import mutual_info_score

    secrets, outputs = drawn(pairs, (1, 1))

    def work() -> Answer:
        return Answer([mutual_info_score(secrets, outputs) / np.log(2)], note="mutual information only")

    return work


def pairs_by_loop(pairs: int) -> Work:
    from collections import Counter

    secrets, outputs = (values.tolist() for values in drawn(pairs, (1, 1)))

    def work() -> Answer:
        Counter(zip(secrets, outputs, strict=True)), Counter(secrets), Counter(outputs)
        return Answer(note="counts only")

    return work


COUNTING = {
    "privug": partial(pairs_by_privug, (1, 1)),
    "scikit-learn": pairs_by_scikit_learn,
    "loop": pairs_by_loop,
    "numpy": partial(pairs_sorted, (1, 1)),
}
PAIRS = sized((100_000, 1_000_000, 10_000_000), (20_000, 100_000))
TASKS = register(
    Task(
        "sum-of-two",
        f"x + y uniform on 0..{LARGEST}: P(x + y = {LARGEST}), mutual information, Bayes risk",
        {
            "privug": lambda: sum_of_two(LARGEST),
            **dict.fromkeys(("pymc", "nutpie", "numpyro"), "exact value of a discrete sum"),
            "qif": sum_by_qif,
            "dit": sum_by_dit,
            "loop": sum_by_loop,
            "numpy": sum_by_hand,
        },
        lambda: truth_of_sum(LARGEST),
        within=1e-9,
    ),
    Task(
        "exact-sum-of-two",
        f"the same on 0..{LARGE}",
        {"privug": lambda: sum_of_two(LARGE), **dict.fromkeys(("qif", "dit", "loop", "numpy"), "too large")},
        lambda: truth_of_sum(LARGE),
        within=1e-9,
        memory=2 * GIBIBYTE,
    ),
    Task(
        "channel",
        f"Bayes risk, min-entropy leakage and mutual information of a channel of {CHANNEL} by {CHANNEL}",
        {
            "privug": lambda: channel_by_privug(CHANNEL),
            "qif": lambda: channel_by_qif(CHANNEL),
            "dit": "too large",
            "numpy": lambda: channel_by_hand(CHANNEL),
        },
        lambda: truth_of_channel(CHANNEL),
        within=1e-9,
    ),
    Task(
        "joint",
        f"entropy and mutual information of a joint of {JOINT} by {JOINT}",
        {"privug": joint_by_privug, "qif": joint_by_qif, "dit": joint_by_dit, "numpy": lambda: truth_of_joint},
        truth_of_joint,
        within=1e-9,
    ),
    Growth(
        "discrete-integers",
        "14 measures of pairs of whole numbers; by hand means np.sort of both columns, without measures",
        PAIRS,
        COUNTING,
        truth_of_pairs,
        up_to={"loop": 1_000_000, "scikit-learn": 1_000_000},
        within=0.5,  # plain counts overrate it where there are few pairs
        bars={"numpy": 1 / 3},
    ),
    Task(
        "discrete-floats",
        f"the same for {PAIRS[-1]:,} pairs of fractions that repeat",
        {
            tool: partial(make, (3, 7), PAIRS[-1])
            for tool, make in (("privug", pairs_by_privug), ("numpy", pairs_sorted))
        },
        lambda: truth_of_pairs(PAIRS[-1]),
        within=0.5,
        bars={"numpy": 1 / 3},
    ),
)
