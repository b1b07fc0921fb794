"""The public names: as promised, sorted, documented, and quick to import."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import privug as pv

CONTRACT = [
    "Attack",
    "Array",
    "Bernoulli",
    "Beta",
    "Binomial",
    "Cauchy",
    "Choice",
    "Constant",
    "DiscreteLaplace",
    "DiscreteUniform",
    "Empirical",
    "Exponential",
    "Gamma",
    "Geometric",
    "Joint",
    "Laplace",
    "LogNormal",
    "Mixture",
    "MvNormal",
    "Normal",
    "Poisson",
    "Records",
    "Row",
    "StudentT",
    "TruncatedNormal",
    "Uniform",
    "between",
    "bind",
    "calibrate",
    "count",
    "equals",
    "exists",
    "fit",
    "forall",
    "given",
    "lift",
    "mechanisms",
    "near",
    "noisy",
    "reidentification",
    "sample",
    "such_that",
    "sweep",
    "tables",
    "unit",
    "where",
]


def test_all_is_sorted_and_real():
    assert pv.__all__ == sorted(pv.__all__, key=lambda name: (name[0].islower(), name))
    assert all(hasattr(pv, name) for name in pv.__all__)


@pytest.mark.parametrize(
    "module", [pv, pv.leakage, pv.policy, pv.mechanisms, pv.mechanisms.anonymisers, pv.reidentification, pv.tables]
)
def test_dir_lists_what_users_call_and_nothing_else(module):
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error():
    assert not hasattr(pv, "no_such_name")


def test_no_public_name_hides_a_module_of_the_same_name():
    root = Path(pv.__file__).parent
    modules = {path.stem for path in root.glob("*.py")} | {path.parent.name for path in root.glob("*/__init__.py")}
    assert {name for name in pv.__all__ if name in modules} == {n for n, home in pv._HOMES.items() if home == "privug"}


MEASURES = [
    "entropy", "min_entropy", "guessing_entropy", "conditional_entropy", "mutual_information", "kl_divergence",
    "total_variation", "bayes_vulnerability", "bayes_risk", "min_entropy_leakage", "multiplicative_leakage",
    "additive_leakage", "g_vulnerability", "g_leakage", "max_posterior_belief", "shannon_capacity", "bayes_capacity",
    "epsilon",
]  # fmt: skip


def test_the_measures_of_the_contract_are_there():
    assert set(MEASURES) <= set(pv.leakage.__all__)
    public = {name for name, value in vars(pv.leakage).items() if not name.startswith("_")}
    assert {name for name in public if not inspect.ismodule(getattr(pv.leakage, name))} == set(pv.leakage.__all__)


def test_contract_is_kept():
    assert set(CONTRACT) <= set(pv.__all__)


def test_everything_public_is_documented():
    undocumented = []
    for name in pv.__all__:
        value = getattr(pv, name)
        if not inspect.getdoc(value):
            undocumented.append(name)
        if inspect.isclass(value):
            members = inspect.getmembers(value, inspect.isfunction)
            own = {m: f for m, f in members if not m.startswith("_") and f.__module__.startswith("privug")}
            undocumented += [f"{name}.{member}" for member, function in own.items() if not inspect.getdoc(function)]
    assert undocumented == []


def test_import_leaves_everything_else_alone():
    code = "import sys, privug; print([n for n in sys.modules if n.startswith(('privug.', 'numpy', 'rich', 'click'))])"
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert outcome.stdout.strip() == "[]"


def test_attacks_leave_heavy_libraries_alone():
    heavy = [
        "scipy.stats", "numba", "pymc", "jax", "matplotlib", "pandas", "dask", "opendp", "arviz",
        "privug.mechanisms", "privug.studies", "privug.reidentification",
    ]  # fmt: skip
    code = f"import sys, privug; privug.Attack; print([name for name in {heavy} if name in sys.modules])"
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert outcome.stdout.strip() == "[]"
