"""Leakage as LeakWatch, LeakiEst and F-BLEAU estimate it: from pairs of secret and output of calls on drawn inputs."""

import math

import numpy as np


def plug_in(secret: np.ndarray, output: np.ndarray) -> tuple[float, int, int, int]:
    """The mutual information in bits of the shares that were seen; how many pairs, secrets and outputs those are."""
    entropy, seen = [], []
    for codes in (secret * (int(output.max()) + 1) + output, secret, output):
        counts = np.unique(codes, return_counts=True)[1]
        share = counts / len(secret)
        entropy.append(-float(share @ np.log2(share)))
        seen.append(len(counts))
    return entropy[1] + entropy[2] - entropy[0], *seen


def leakiest(secret: np.ndarray, output: np.ndarray) -> float:
    """Mutual information less (|S| - 1)(|O| - 1) / 2N nats (Chatzikokolakis, Chothia and Guha, 2010).

    That is the bias if every secret can lead to every output. It is far too much where most pairs are impossible.
    """
    information, _, secrets, outputs = plug_in(secret, output)
    return information - (secrets - 1) * (outputs - 1) / (2 * len(secret) * math.log(2))


def miller_madow(secret: np.ndarray, output: np.ndarray) -> float:
    """Mutual information, corrected by the numbers of pairs, secrets and outputs that were seen (Miller, 1955)."""
    information, pairs, secrets, outputs = plug_in(secret, output)
    return information - (pairs - secrets - outputs + 1) / (2 * len(secret) * math.log(2))


def neighbours(secret: np.ndarray, output: np.ndarray) -> float:
    """Mutual information in bits of two continuous quantities: scikit-learn's estimator, three neighbours."""
    from sklearn.feature_selection import mutual_info_regression

    nats = mutual_info_regression(output[:, np.newaxis], secret, n_neighbors=3, random_state=0)
    return float(nats[0]) / math.log(2)


def frequentist_risk(secret: np.ndarray, output: np.ndarray) -> float:
    """How often the best guess for each output, learned from half of the pairs, is wrong about the other half.

    An output that was not seen is guessed by the most frequent secret of all: F-BLEAU's frequentist estimate.
    """
    half = len(secret) // 2
    best = dict.fromkeys(np.unique(output), _most_frequent(secret[:half]))
    pairs, counts = np.unique(np.stack((output[:half], secret[:half])), axis=1, return_counts=True)
    rising = np.argsort(counts, kind="stable")
    best.update(zip(pairs[0, rising].tolist(), pairs[1, rising].tolist(), strict=True))  # the last one is the largest
    return float(np.mean([best[seen] != truth for seen, truth in zip(output[half:], secret[half:], strict=True)]))


def nearest_neighbour_risk(secret: np.ndarray, output: np.ndarray) -> float:
    """The same with the guess of the nearest output that was seen: F-BLEAU's nearest-neighbour estimate."""
    half = len(secret) // 2
    order = np.argsort(output[:half], kind="stable")
    known, guesses = output[:half][order], secret[:half][order]
    above = np.searchsorted(known, output[half:]).clip(1, half - 1)
    nearer = output[half:] - known[above - 1] <= known[above] - output[half:]
    return float(np.mean(guesses[above - nearer] != secret[half:]))


def fbleau(secret: np.ndarray, output: np.ndarray) -> float:
    """The smaller of both: F-BLEAU reports the best rule that it found."""
    return min(frequentist_risk(secret, output), nearest_neighbour_risk(secret, output))


def _most_frequent(values: np.ndarray) -> int:
    distinct, counts = np.unique(values, return_counts=True)
    return int(distinct[counts.argmax()])
