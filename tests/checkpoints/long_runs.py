"""Runs to be killed: each is long for what it computes, and tells its final bits. Run by itself: NAME PATH."""

import hashlib
import sys
import time

import numpy as np

import privug as pv
from privug.checkpoints import checkpoint

SCALE = 1


def digits(ages):
    """Do what only a call can tell."""
    time.sleep(2e-4)
    total = sum(hash(age) * 0 + int(str(int(age))[::-1]) for age in ages)
    return round(total / max(1, len(ages)), 1), "high" if total > 200 else "low"


def longest(records):
    time.sleep(1e-4)
    return max((hash(r.age) * 0 + int(str(int(r.age))[::-1]) for r in records), default=0)


def called(path):
    attack = pv.Attack(digits, {"ages": pv.Array(pv.DiscreteUniform(10, 99), 4)}, secret=lambda ages: ages[0])
    return bits(
        attack.run(
            pv.such_that(lambda o: o[1] == "low"), engine="sample", samples=3000 // SCALE, seed=3, checkpoint=path
        )
    )


def sizes(path):
    records = pv.Records(pv.Binomial(4, 0.5), pv.Row(age=pv.DiscreteUniform(10, 99)))
    attack = pv.Attack(longest, {"records": records}, secret=lambda records: len(records))
    return bits(attack.run(pv.between(40, 80), engine="sample", samples=2500 // SCALE, seed=4, checkpoint=path))


def rare(path):
    attack = pv.Attack(lambda x, y: x + 2 * y, {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)}, secret="x")
    return bits(attack.run(pv.between(11.0, 11.5), engine="rare", samples=500, seed=5, checkpoint=path))


def noisy(epsilon):
    def release(x):
        time.sleep(1e-5)
        return x + int(pv.sample(pv.DiscreteLaplace(1 / epsilon)))

    return pv.Attack(release, {"x": pv.DiscreteUniform(0, 3)}, "x")


def sweep(path):
    found = pv.sweep(noisy, epsilon=[0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 9.0], measures=["bayes_risk"],
                     engine="sample", samples=300, checkpoint=path)  # fmt: skip
    return hashlib.sha256(repr(found.to_dict()).encode()).hexdigest()


def bits(result):
    """Return a hash of the samples of secret and output, their weights, and the evidence."""
    told = hashlib.sha256(repr(result.diagnostics.evidence).encode())
    for batch in result._answer.quantities:
        told.update(repr(batch.values()).encode())
    if result._answer.log_weights is not None:
        told.update(np.ascontiguousarray(result._answer.log_weights).tobytes())
    return told.hexdigest()


RUNS = {run.__name__: run for run in (called, sizes, rare, sweep)}

if __name__ == "__main__":
    checkpoint.SECONDS_BETWEEN = 0.0
    pv.configure(progress=False, workers=2)
    print(RUNS[sys.argv[1]](sys.argv[2] if len(sys.argv) > 2 else None))
