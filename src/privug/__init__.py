"""Privug: a debugger for privacy."""

from privug import leakage
from privug.attack import Attack, Result, side_by_side
from privug.errors import (
    ArgumentError,
    ImpossibleObservation,
    InferenceError,
    LiftingWarning,
    ObservationError,
    PriorError,
    PrivugError,
    ProgramError,
    QuestionError,
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
    Exponential,
    Gamma,
    Laplace,
    LogNormal,
    Normal,
    StudentT,
    TruncatedNormal,
    Uniform,
)
from privug.prior.discrete import Bernoulli, Binomial, DiscreteLaplace, DiscreteUniform, Geometric, Poisson
from privug.prior.mixture import Mixture, MvNormal
from privug.prior.table import Array, Records
from privug.program.batched import batched
from privug.program.drawing import sample
from privug.program.external import External
from privug.program.lifting import explain, lift
from privug.program.logic import count, exists, forall, where
from privug.settings import configure, limited

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "Array",
    "Attack",
    "Belief",
    "Bernoulli",
    "Beta",
    "Binomial",
    "Cauchy",
    "Choice",
    "Constant",
    "DiscreteLaplace",
    "DiscreteUniform",
    "Empirical",
    "Estimate",
    "Exponential",
    "External",
    "Gamma",
    "Geometric",
    "ImpossibleObservation",
    "InferenceError",
    "Joint",
    "Laplace",
    "LiftingWarning",
    "LogNormal",
    "Mixture",
    "MvNormal",
    "Normal",
    "Observation",
    "ObservationError",
    "Poisson",
    "PriorError",
    "PrivugError",
    "ProgramError",
    "QuestionError",
    "RandomVariable",
    "Records",
    "Result",
    "Row",
    "StudentT",
    "TooFewSamples",
    "TruncatedNormal",
    "Uniform",
    "UnsuitableEngine",
    "Untraceable",
    "batched",
    "between",
    "bind",
    "configure",
    "count",
    "equals",
    "exists",
    "explain",
    "forall",
    "given",
    "leakage",
    "lift",
    "limited",
    "near",
    "noisy",
    "sample",
    "side_by_side",
    "such_that",
    "unit",
    "where",
]
