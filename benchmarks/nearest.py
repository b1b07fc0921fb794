"""Nearest neighbours on a line: a million votes against those of scikit-learn, for one neighbour and for a thousand.

Both sides learn from a million samples and answer for a million more, or as many fewer as the peer can do in
reasonable time: it lists every neighbour. Their answers must be the same.
"""

import numpy as np
from measuring import Bar, Outcome, compare

from privug.leakage.nearest import nearest_votes

SAMPLES = 1_000_000


def against_scikit_learn(k: int, asked: int, rounds: int) -> Outcome:
    from sklearn.neighbors import KNeighborsClassifier

    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, SAMPLES)
    train, test = rng.normal(size=SAMPLES) + labels, rng.normal(0.5, 1.2, asked)

    def ours() -> object:
        return nearest_votes(train, labels, test, k).label

    def theirs() -> object:
        return KNeighborsClassifier(k).fit(train[:, np.newaxis], labels).predict(test[:, np.newaxis])

    same = np.array_equal(np.asarray(ours()), np.asarray(theirs()))
    timing = compare(theirs, ours, rounds)
    detail = f"k={k}, {SAMPLES:,} known and {asked:,} asked; answers {'agree' if same else 'DIFFER'}; {timing}"
    return Outcome(f"nearest-k{k}", timing.ratio, Bar(5, at_least=True), detail)


BENCHMARKS = {
    "nearest-k1": lambda: against_scikit_learn(1, SAMPLES, 5),
    "nearest-k1000": lambda: against_scikit_learn(1000, 20_000, 3),
}
