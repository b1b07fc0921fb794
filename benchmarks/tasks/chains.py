"""PyMC, nutpie and NumPyro on a model of a posterior: two chains each, compiled beforehand, tuning counted once.

Each takes a function that makes the model with that library and names the quantity asked for `secret`.
"""

import logging
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from harness.tasks import Answer, Work, sized

CHAINS = 2
TUNE = sized(1_000, 200)
DRAWS = sized(2_000, 200)  # of each chain
Model = Callable[[Any], None]


def found(secrets: np.ndarray, effective: float, seconds: float | None = None) -> Answer:
    """Return a posterior mean; tuning would not be done again for further draws."""
    fixed = (seconds or 0.0) * TUNE / (TUNE + DRAWS)
    return Answer([float(secrets.mean())], effective, fixed, seconds)


def by_pymc(model: Model) -> Work:
    import arviz
    import pymc as pm

    logging.getLogger("pymc").setLevel(logging.ERROR)
    with pm.Model() as made:
        model(pm)
    options = {"chains": CHAINS, "cores": CHAINS, "random_seed": 1, "nuts_sampler": "pymc", "var_names": ["secret"]}

    def work() -> Answer:
        with made:
            trace = pm.sample(DRAWS, tune=TUNE, **options, progressbar=False, compute_convergence_checks=False)
        secrets = trace.posterior["secret"].values
        return found(secrets, float(arviz.ess(secrets)), trace.posterior.attrs["sampling_time"])

    return work


def by_nutpie(model: Model) -> Work:
    import arviz
    import nutpie
    import pymc as pm

    with pm.Model() as made:
        model(pm)
    compiled = nutpie.compile_pymc_model(made)

    def work() -> Answer:
        started = time.perf_counter()
        trace = nutpie.sample(compiled, draws=DRAWS, tune=TUNE, chains=CHAINS, cores=CHAINS, progress_bar=False, seed=1)
        spent = time.perf_counter() - started
        secrets = trace.posterior["secret"].values
        return found(secrets, float(arviz.ess(secrets)), spent)

    return work


def by_numpyro(model: Callable[[Any, Any], None]) -> Work:
    import numpyro

    numpyro.enable_x64()  # in 32 bits chains have been seen to diverge
    import jax
    from numpyro import distributions
    from numpyro.diagnostics import effective_sample_size
    from numpyro.infer import MCMC, NUTS

    chains = MCMC(
        NUTS(lambda: model(numpyro, distributions)),
        num_warmup=TUNE,
        num_samples=DRAWS,
        num_chains=CHAINS,
        chain_method="vectorized",
        progress_bar=False,
    )

    @jax.jit  # as a whole: left to itself, each run would be compiled anew
    def sampled(key: Any) -> Any:
        chains.run(key)
        return chains.get_samples(group_by_chain=True)["secret"]

    def work() -> Answer:
        started = time.perf_counter()
        secrets = np.asarray(sampled(jax.random.PRNGKey(1)))
        return found(secrets, float(effective_sample_size(secrets)), time.perf_counter() - started)

    return work
