"""What two attackers learn of Alice's age from a mean."""

import math

import privug as pv

from .ages import KnowsABit, knows_a_bit, knows_a_lot
from .findings import Findings, Line

PAPER = "Table 1"
NAMES = ("mean", "sd", "P(age < 18)", "differential entropy", "KL divergence", "mutual information")
NOTHING = ("",) * len(NAMES)
WIDTH = 0.04  # of the ages that four rows and a mean between 55.295 and 55.305 leave: 55.58 to 55.62


def lines(who, result, exact, paper=NOTHING) -> list[Line]:
    posterior = result.posterior
    found = (
        posterior.mean(),
        posterior.std(),
        posterior.probability(lambda age: age < 18),
        pv.leakage.entropy(posterior),
        pv.leakage.kl_divergence(posterior, result.prior),
        pv.leakage.mutual_information(result.joint),
    )
    return [Line(f"{who}: {name}", *rest) for name, *rest in zip(NAMES, found, exact, paper, strict=True)]


def of_a_bit(who, var, share=0.3, paper=NOTHING) -> list[Line]:
    belief = KnowsABit(var, share)
    entropy = belief.entropy
    exact = (belief.mean, belief.sd, belief.below(18), entropy, math.log2(100) - entropy, belief.mutual_information)
    return lines(who, knows_a_bit(var, share), exact, paper)


def run() -> Findings:
    prior = knows_a_lot().prior
    printed = ("64.0", "14.0", "0.004", "5.83", "0.77", "0.60")
    return Findings(
        [
            Line("before: mean", prior.mean(), 50.0, "about 50"),
            Line("before: sd", prior.std(), 100 / math.sqrt(12), "about 29"),
            Line("before: P(age < 18)", prior.probability(lambda age: age < 18), 0.18, "0.17"),
            Line("before: differential entropy", pv.leakage.entropy(prior), math.log2(100), "6.67"),
            *lines(
                "knows a lot",
                knows_a_lot(),
                (55.6, WIDTH / math.sqrt(12), 0.0, math.log2(WIDTH), math.log2(100 / WIDTH), math.inf),
                ("55.60", "0.01", "0.00", "-3.08", "5.64", "9.37"),
            ),
            *of_a_bit("knows a bit, variance 3.5", 3.5, paper=printed),
            *of_a_bit("knows a bit, sd 3.5", 3.5**2),
            *of_a_bit("knows a bit, variance 3.5, a third of 300 rows", 3.5, 1 / 3),
        ],
        notes=[
            "The paper gives neither errors nor sizes of samples. Its entropies, divergences and informations are off: "
            "most of all for the attacker who knows a lot, where an estimate by neighbours cannot be infinite.",
            "Its normal distribution of ages, N(55.2, 3.5), fits its numbers only if 3.5 is the variance. "
            "As a standard deviation, which is how Figaro's name reads, much less is learned.",
            "Its text says a third of 300 rows and its code 0.3; the numbers it prints are near those of 0.3.",
            "Its formula of the entropy lacks a minus sign, and its likelihood of what is seen should be 1/0.01.",
        ],
    )
