"""Step 5: measures of what the attacker gained, one family to a file."""

from privug.leakage.black_box import Convergence, convergence, estimate_bayes_risk
from privug.leakage.channel import (
    Channel,
    Refinement,
    additive_bayes_capacity,
    bayes_capacity,
    epsilon,
    min_capacity,
    refines,
    shannon_capacity,
)
from privug.leakage.divergence import (
    cohens_d,
    entropy_drop,
    jensen_shannon,
    kl_divergence,
    probability_change,
    total_variation,
)
from privug.leakage.entropy import differential_entropy, entropy, guessing_entropy, min_entropy, renyi_entropy
from privug.leakage.information import conditional_entropy, mutual_information
from privug.leakage.register import LeakageRow, LeakageTable, leakage_table, measures
from privug.leakage.significance import Evidence, evidence_of_leak, samples_to_detect
from privug.leakage.vulnerability import (
    PointwiseLeakage,
    additive_leakage,
    bayes_risk,
    bayes_security,
    bayes_vulnerability,
    distance,
    g_leakage,
    g_vulnerability,
    guess_or_abstain,
    identity,
    max_posterior_belief,
    min_entropy_leakage,
    multiplicative_leakage,
    pointwise_leakage,
    posterior_guessing_entropy,
    property_of,
    tries,
    worst_output,
)

__all__ = [
    "Channel",
    "Convergence",
    "Evidence",
    "LeakageRow",
    "LeakageTable",
    "PointwiseLeakage",
    "Refinement",
    "additive_bayes_capacity",
    "additive_leakage",
    "bayes_capacity",
    "bayes_risk",
    "bayes_security",
    "bayes_vulnerability",
    "cohens_d",
    "conditional_entropy",
    "convergence",
    "differential_entropy",
    "distance",
    "entropy",
    "entropy_drop",
    "epsilon",
    "estimate_bayes_risk",
    "evidence_of_leak",
    "g_leakage",
    "g_vulnerability",
    "guess_or_abstain",
    "guessing_entropy",
    "identity",
    "jensen_shannon",
    "kl_divergence",
    "leakage_table",
    "max_posterior_belief",
    "measures",
    "min_capacity",
    "min_entropy",
    "min_entropy_leakage",
    "multiplicative_leakage",
    "mutual_information",
    "pointwise_leakage",
    "posterior_guessing_entropy",
    "probability_change",
    "property_of",
    "refines",
    "renyi_entropy",
    "samples_to_detect",
    "shannon_capacity",
    "total_variation",
    "tries",
    "worst_output",
]


def __dir__() -> list[str]:
    return __all__
