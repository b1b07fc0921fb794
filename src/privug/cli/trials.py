"""What `privug doctor` tries, each in a process of its own: a small job whose answer is known."""

from __future__ import annotations  # what they name is imported when it is needed

import io
import math
import sys
import tempfile
from importlib import import_module
from pathlib import Path

import privug as pv


def _attack() -> pv.Attack:
    prior = {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)}
    return pv.Attack(lambda x, y: x + y, prior, "x")


def _agree(found: float, truth: float, tolerance: float = 1e-9) -> None:
    if not math.isclose(found, truth, abs_tol=tolerance):
        raise ValueError(f"the answer is {found}, not {truth}")


def exact() -> None:
    """Half of a sum of two alike."""
    _agree(_attack().run(pv.equals(2.0), engine="exact").posterior.mean().value, 1.0)


def native() -> None:
    """A compiled function."""
    _agree(import_module("numba").njit(lambda x: x + 1)(1), 2)


def _frame(form: str) -> None:
    table = pv.Records(2, lambda _: pv.Row(ill=pv.Bernoulli(0.5))).as_frame(form)
    result = pv.Attack(lambda t: t["ill"].sum(), {"t": table}, lambda t: t["ill"].sum()).run()
    _agree(pv.leakage.mutual_information(result.joint).value, 1.5)  # one, two or none of two: 1.5 bits


def pandas() -> None:
    """A sum of a column of pandas."""
    _frame("pandas")


def polars() -> None:
    """A sum of a column of polars."""
    _frame("polars")


def sql() -> None:
    """A count by a query."""
    query = pv.sql("SELECT COUNT(*) FROM t WHERE ill")
    result = pv.Attack(query, {"t": pv.Records(2, pv.Row(ill=pv.Bernoulli(0.5)))}, lambda t: t[0].ill).run()
    _agree(result.prediction.probability(lambda n: n == 2).value, 0.25)


def parquet() -> None:
    """A file that is written and read."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.parquet")
        import_module("pyarrow.parquet").write_table(import_module("pyarrow").table({"x": [1, 2]}), path)
        _agree(sum(pv.read_columns(path)["x"]), 3)


def plot() -> None:
    """A picture."""
    with tempfile.TemporaryDirectory() as folder:
        _attack().run(pv.equals(2.0)).plot(Path(folder, "x.svg"))
        if b"<svg" not in Path(folder, "x.svg").read_bytes():
            raise ValueError("no picture was drawn")


def _chains(engine: str) -> None:
    found = _attack().run(pv.noisy(3.0, sd=1), engine=engine, samples=2000).posterior.mean()
    _agree(found.value, 1.0, 0.2)  # a third of what was seen; its standard error is 0.02


def pymc() -> None:
    """Chains of PyMC."""
    _chains("pymc:nuts")


def numpyro() -> None:
    """Chains of NumPyro."""
    _chains("numpyro:nuts")


def dask() -> None:
    """A cluster of one process, which draws what is drawn here."""
    distributed = import_module("distributed")
    attack = pv.Attack(lambda x: len(str(x)), {"x": pv.DiscreteUniform(0, 99)}, "x")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        there, here = (attack.run(engine="sample", samples=600, seed=1, on=on) for on in (client, "local"))
        _agree(there.posterior.mean().value, here.posterior.mean().value)


def opendp() -> None:
    """A mechanism of OpenDP."""
    dp = import_module("opendp.prelude")
    dp.enable_features("contrib")
    if not isinstance(dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), 1.0)(3), int):
        raise TypeError("noise on an integer is no integer")


if __name__ == "__main__":
    sys.stdout = io.StringIO()  # libraries greet
    globals()[sys.argv[1]]()
