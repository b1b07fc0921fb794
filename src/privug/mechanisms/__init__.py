"""Programs that protect people: noise and other releases, each together with what it promises."""

from privug.mechanisms import anonymisers
from privug.mechanisms.disclosure import clamped, rounded, suppressed
from privug.mechanisms.guarantee import Guarantee
from privug.mechanisms.mechanism import Mechanism, from_factory, together
from privug.mechanisms.noise import discrete_gaussian, discrete_laplace, gaussian, laplace
from privug.mechanisms.privacy_audit import Audit, Finding, audit
from privug.mechanisms.response import randomized_response
from privug.mechanisms.selection import exponential, report_noisy_max, sparse_vector
from privug.mechanisms.subsampling import subsample, swapped

__all__ = [
    "Audit",
    "Finding",
    "Guarantee",
    "Mechanism",
    "anonymisers",
    "audit",
    "clamped",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential",
    "from_factory",
    "gaussian",
    "laplace",
    "randomized_response",
    "report_noisy_max",
    "rounded",
    "sparse_vector",
    "subsample",
    "suppressed",
    "swapped",
    "together",
]


def __dir__() -> list[str]:
    return __all__
