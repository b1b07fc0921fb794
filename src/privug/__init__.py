"""Privug: a debugger for privacy."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from privug import leakage
from privug.attack import Attack, Result
from privug.errors import (
    ArgumentError,
    ImpossibleObservation,
    InferenceError,
    LiftingWarning,
    NotConverged,
    ObservationError,
    OutOfTime,
    PriorError,
    PrivugError,
    ProgramError,
    QuestionError,
    RepeatedQuantityWarning,
    TooFewSamples,
    UnsuitableEngine,
    Untraceable,
)
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.joint import Joint
from privug.model.table import Row
from privug.model.variable import RandomVariable
from privug.observation.observations import Observation, between, equals, near, noisy, such_that
from privug.prior.choice import Choice, Constant, Empirical
from privug.prior.conditional import bind, given, unit
from privug.prior.continuous import (
    Beta,
    Cauchy,
    Laplace,
    LogNormal,
    Normal,
    StudentT,
    Triangular,
    TruncatedNormal,
    Uniform,
)
from privug.prior.counts import Hypergeometric, NegativeBinomial
from privug.prior.discrete import Bernoulli, Binomial, DiscreteLaplace, DiscreteUniform, Geometric, Poisson
from privug.prior.discrete_gaussian import DiscreteGaussian
from privug.prior.mixture import Mixture, MvNormal
from privug.prior.positive import Exponential, Gamma, Pareto, Weibull
from privug.prior.table import Array, Records
from privug.prior.vectors import Dirichlet, Multinomial
from privug.program.batched import batched
from privug.program.drawing import sample
from privug.program.external import External
from privug.program.lifting import explain, lift
from privug.program.logic import count, exists, forall, where
from privug.reports import save_report, side_by_side
from privug.settings import configure, limited

if TYPE_CHECKING:
    from privug import mechanisms, policy, reidentification
    from privug.prior.fitting import fit
    from privug.prior.reading import read_columns
    from privug.studies.calibration import Calibration, calibrate
    from privug.studies.comparison import ComparisonMatrix, compare
    from privug.studies.sweep import Sweep, sweep
    from privug.studies.utility import expected_error, output_divergence

__version__ = "0.1.0"

# What an attack itself does without is imported when it is first asked for.
_LATER = {
    "Calibration": "privug.studies.calibration",
    "ComparisonMatrix": "privug.studies.comparison",
    "Sweep": "privug.studies.sweep",
    "calibrate": "privug.studies.calibration",
    "compare": "privug.studies.comparison",
    "expected_error": "privug.studies.utility",
    "fit": "privug.prior.fitting",
    "mechanisms": "privug",
    "output_divergence": "privug.studies.utility",
    "policy": "privug",
    "read_columns": "privug.prior.reading",
    "reidentification": "privug",
    "sweep": "privug.studies.sweep",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'privug' has no attribute {name!r}")
    home = _LATER[name]
    value = import_module(f"privug.{name}") if home == "privug" else getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "ArgumentError",
    "Array",
    "Attack",
    "Belief",
    "Bernoulli",
    "Beta",
    "Binomial",
    "Calibration",
    "Cauchy",
    "Choice",
    "ComparisonMatrix",
    "Constant",
    "Dirichlet",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DiscreteUniform",
    "Empirical",
    "Estimate",
    "Exponential",
    "External",
    "Gamma",
    "Geometric",
    "Hypergeometric",
    "ImpossibleObservation",
    "InferenceError",
    "Joint",
    "Laplace",
    "LiftingWarning",
    "LogNormal",
    "Mixture",
    "Multinomial",
    "MvNormal",
    "NegativeBinomial",
    "Normal",
    "NotConverged",
    "Observation",
    "ObservationError",
    "OutOfTime",
    "Pareto",
    "Poisson",
    "PriorError",
    "PrivugError",
    "ProgramError",
    "QuestionError",
    "RandomVariable",
    "Records",
    "RepeatedQuantityWarning",
    "Result",
    "Row",
    "StudentT",
    "Sweep",
    "TooFewSamples",
    "Triangular",
    "TruncatedNormal",
    "Uniform",
    "UnsuitableEngine",
    "Untraceable",
    "Weibull",
    "batched",
    "between",
    "bind",
    "calibrate",
    "compare",
    "configure",
    "count",
    "equals",
    "exists",
    "expected_error",
    "explain",
    "fit",
    "forall",
    "given",
    "leakage",
    "lift",
    "limited",
    "mechanisms",
    "near",
    "noisy",
    "output_divergence",
    "policy",
    "read_columns",
    "reidentification",
    "sample",
    "save_report",
    "side_by_side",
    "such_that",
    "sweep",
    "unit",
    "where",
]
