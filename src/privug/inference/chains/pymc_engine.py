"""The engine 'pymc': chains of PyMC over the random roots, by gradients where there are any.

Which sampler: nutpie, if it is installed, or PyMC's own NUTS where all roots are continuous and the observation can be
written in PyMC; Gibbs and Metropolis steps for discrete roots beside that; steps without gradients (differential
evolution, Metropolis) where the observation holds or does not, or the program is a black box.
"""

import importlib
import importlib.util
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Unpack

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

from privug import interruption, settings
from privug.errors import UnsuitableEngine
from privug.inference.answer import Options, SampledAnswer
from privug.inference.chains import diagnosis
from privug.inference.chains.diagnosis import Chains, check_against_prior, draws_of_each, finished
from privug.inference.chains.problem import Problem, is_differentiable
from privug.inference.chains.sizes import directly, prepare, starting_points, summed_out, trimmed
from privug.inference.chains.translation import Backend, Functions, Untranslatable, log_density, resolved, translate
from privug.inference.question import Question
from privug.model.node import Array, Kind, Node
from privug.model.plan import Plan
from privug.model.traits import traits_of
from privug.observation.observations import Observation
from privug.prior.family import Family, family_of
from privug.progress import ProgressMeter
from privug.runtime.critical import quietly


class PyTensor(Backend):
    """How expressions are written in PyTensor."""

    formulas = Functions(lambda name: resolved(traits_of(name).pytensor or name, name, pt))

    def constant(self, array: Array | float) -> Any:
        return pt.as_tensor_variable(np.asarray(array))

    def cast(self, value: Any, dtype: np.dtype[Any]) -> Any:
        if value.dtype == dtype.name:
            return value
        return pt.neq(value, 0) if dtype.kind == "b" else pt.cast(value, dtype.name)

    def function(self, name: str) -> Callable[..., Any]:
        return resolved(traits_of(name).pytensor, name, pt)

    def own_density(self, family: Family, value: Any, parameters: Sequence[Any]) -> Any | None:
        named = family.pymc(*parameters)
        return None if named is None else pm.logp(getattr(pm, named[0]).dist(**named[1]), value)


def build(problem: Problem) -> tuple[Any, bool]:
    """Return the PyMC model of a problem, and whether the observation had to be left to a black box."""
    values: dict[Node, Any] = {}
    with pm.Model() as model:
        for name, root in zip(problem.names, problem.roots, strict=True):
            try:
                parameters = translate(root.parents, PyTensor(), values)
                values[root] = _variable(name, root, parameters)
            except Untranslatable as error:
                raise UnsuitableEngine(
                    f"engine='pymc' has no counterpart of {error}, on which the input {name!r} depends; "
                    "choose engine='sample' or 'rare'"
                ) from None
        opaque = _observe(problem, values)
    return model, opaque


def _variable(name: str, root: Node, parameters: Sequence[Any]) -> Any:
    """Make the PyMC variable of a root; the result is its value as it stands in our batches."""
    family = family_of(root)
    named = family.pymc(*parameters)
    if named is not None:
        return getattr(pm, named[0])(name, **named[1], shape=root.shape)
    if family.table is not None:
        weights = parameters[0] if parameters else np.full(len(family.table), 1.0 / len(family.table))
        return pt.as_tensor_variable(family.table)[pm.Categorical(name, p=weights, shape=root.shape)]
    if family.factor is not None:
        standard = pm.Normal(name, 0.0, 1.0, shape=root.shape)
        return parameters[0] + pt.dot(standard, family.factor.T)
    if family.kind is Kind.MIXED:
        raise Untranslatable(f"the distribution {family.name}")
    return _custom(name, root, family, parameters)


def _custom(name: str, root: Node, family: Family, parameters: Sequence[Any]) -> Any:
    """Make a PyMC variable with the log density and the draws of a family that PyMC does not have."""

    def logp(value: Any, *own: Any) -> Any:
        return log_density(PyTensor(), family, value, own)

    def random(*own: Any, rng: Any = None, size: Any = None) -> Any:
        arrays = [np.asarray(p)[np.newaxis] for p in own]
        shape = root.shape if size is None else tuple(size)
        generator = rng if rng is not None else np.random.default_rng(0)
        placed = [_at_rank(a, len(shape), family.chooses and k == 0) for k, a in enumerate(arrays)]
        return family.draw(generator, 1, shape, placed)[0]

    return pm.CustomDist(
        name, *parameters, logp=logp, random=random, shape=root.shape, dtype=family.dtype.name,
        ndims_params=[int(family.chooses), *(0 for _ in parameters[1:])], ndim_supp=0,
    )  # fmt: skip


def _at_rank(array: Array, rank: int, is_vector: bool) -> Array:
    return array if is_vector else array.reshape(1, *(1,) * max(0, rank - (array.ndim - 1)), *array.shape[1:])


def _observe(problem: Problem, values: dict[Node, Any]) -> bool:
    """Add the observation to the model at hand; say whether it had to be left to a black box."""
    try:
        weight, *conditions = translate([problem.log_weight, *problem.conditions], PyTensor(), dict(values))
    except Untranslatable:
        present = [root for root in problem.roots if root in values]
        pm.Potential("observation", BlackBox(problem, present)(*(values[root] for root in present)))
        return True
    for condition in conditions:
        weight = pt.where(condition, weight, -np.inf)
    pm.Potential("observation", weight)
    return False


class BlackBox(Op):  # type: ignore[misc]
    """The log weight of one sample as Privug itself computes it; nothing is known of its gradient."""

    def __init__(self, problem: Problem, roots: Sequence[Node]) -> None:
        self.roots = list(roots)
        self.plan = Plan([problem.log_weight, *problem.conditions], self.roots)
        self.rng = np.random.Generator(np.random.SFC64(0))

    def make_node(self, *inputs: Any) -> Any:
        """Describe inputs and output to PyTensor."""
        return Apply(self, [pt.as_tensor_variable(value) for value in inputs], [pt.dscalar()])

    def perform(self, node: Any, inputs: Sequence[Array], outputs: Any) -> None:
        """Compute the log weight."""
        values = {root: np.asarray(value)[np.newaxis] for root, value in zip(self.roots, inputs, strict=True)}
        failed = np.zeros(1, np.bool_)
        weight, *conditions = self.plan.run(1, self.rng, values, failed=failed)
        holds = not failed[0] and all(condition[0] for condition in conditions) and not np.isnan(weight[0])
        outputs[0][0] = np.asarray(weight[0] if holds else -np.inf, dtype=np.float64)


CHAINS = 8  # so many that all of them seldom start towards the same one of several modes
WARM_UP = 1000
THINNING = 10  # steps for each draw that is kept, where not all of them follow gradients
MOST_SMC_NUMBERS = 50  # beyond, populations agree with each other on a wrong answer
FEWEST_LEFT = 100
_COMPILED = {"mode": "NUMBA"}
_INTERPRETED = {"mode": "FAST_COMPILE"}  # a black box gains nothing from compiling
_NUTS_OPTIONS = {"init": "adapt_diag", "target_accept": 0.9}


def infer(
    question: Question,
    observation: Observation | None,
    *,
    sampler: str | None = None,
    chains: int = CHAINS,
    **options: Unpack[Options],
) -> SampledAnswer:
    """Answer by Markov chains; `sampler` is one of 'nutpie', 'nuts', 'metropolis' and 'smc'."""
    started, samples, seed = time.perf_counter(), options["samples"], options["seed"]
    problem = prepare(question, observation, seed, samples)
    if sampler not in ("metropolis", "smc"):
        problem = summed_out(problem)
    if not problem.roots:
        raise UnsuitableEngine("nothing here is random, so there is nothing to sample; choose engine='exact'")
    direct = directly(problem, chains, draws_of_each(problem.roots, samples, chains)) if sampler is None else None
    if direct is not None:
        return finished(problem.evaluate, direct, "pymc", started, options)
    threadpools = importlib.import_module("threadpoolctl")
    with _quiet(), threadpools.threadpool_limits(1):  # more threads are a hundred times slower
        chosen, drawn = _sampled(problem, sampler, samples, chains, seed)
    return finished(problem.evaluate, drawn, f"pymc:{chosen}", started, options)


def to_pymc(question: Question, observation: Observation | None) -> Any:
    """Return the PyMC model of a question, given the observation."""
    return build(prepare(question, observation, 0, 0))[0]


def _sampled(problem: Problem, sampler: str | None, samples: int, chains: int, seed: int) -> tuple[str, Chains]:
    model, opaque = build(problem)
    chosen = _chosen(problem, sampler, opaque)
    follows = chosen in ("nutpie", "nuts")  # draws of the others are thinned, and worth more
    draws = draws_of_each(
        problem.roots, samples, chains, diagnosis.FEWEST_DRAWS if follows else diagnosis.FEWEST_LARGE_DRAWS
    )
    run = {"nutpie": _nutpie, "smc": _smc}.get(chosen, _steps)
    compiling = pytensor.config.change_flags(**(_INTERPRETED if opaque else _COMPILED))
    with compiling, ProgressMeter(f"pymc ({chosen})", chains * (draws + _warm_up(draws))) as meter:
        raw = run(problem, model, chosen, (chains, draws, seed), meter)
    roots = _root_values(problem, raw.draws)
    chains_of_roots = trimmed(problem, roots, raw.divergences, raw.remarks)
    check_against_prior(problem, chains_of_roots, f"pymc:{chosen}")
    return chosen, chains_of_roots


def _chosen(problem: Problem, sampler: str | None, opaque: bool) -> str:
    smooth = is_differentiable(problem) and not opaque
    # Beside inputs that move along gradients there may be others, but not alone.
    led = not opaque and not problem.conditions and any(root.kind is not Kind.DISCRETE for root in problem.roots)
    if sampler is None:
        if not smooth:
            return "nuts" if led else "metropolis"
        return "nuts" if importlib.util.find_spec("nutpie") is None else "nutpie"
    if (sampler == "nuts" and not led) or (sampler == "nutpie" and not smooth):
        what = "the program is a black box" if opaque else "it holds or does not, or some input is discrete"
        raise UnsuitableEngine(
            f"engine='pymc:{sampler}' follows gradients, which the observation does not have ({what}); "
            "choose engine='pymc', which picks its steps, or 'rare'"
        )
    if sampler == "smc":
        _check_smc(problem)
    return sampler


def _check_smc(problem: Problem) -> None:
    size = sum(int(np.prod(root.shape)) for root in problem.roots)
    if size > MOST_SMC_NUMBERS:
        raise UnsuitableEngine(
            f"engine='pymc:smc' is known to agree with itself on wrong answers for many inputs, and here are {size:,}; "
            "choose engine='pymc'"
        )
    if problem.conditions:
        raise UnsuitableEngine(
            "engine='pymc:smc' needs an observation with a density, not one that holds or does not; "
            "choose engine='rare'"
        )


class Raw(NamedTuple):
    """Draws by the names of PyMC's variables, as arrays of chains by draws."""

    draws: dict[str, Array]
    divergences: int = 0
    remarks: tuple[str, ...] = ()


Size = tuple[int, int, int]  # chains, draws, seed


def _nutpie(problem: Problem, model: Any, sampler: str, size: Size, meter: ProgressMeter) -> Raw:
    try:
        nutpie = importlib.import_module("nutpie")
    except ModuleNotFoundError:
        raise UnsuitableEngine("engine='pymc:nutpie' needs nutpie: pip install nutpie, or write 'pymc:nuts'") from None
    chains, draws, seed = size
    compiled = nutpie.compile_pymc_model(model, default_initialization_strategy="prior")
    options = {"chains": chains, "draws": draws, "tune": _warm_up(draws), "seed": _seeds(seed, 1)[0]}
    cores = min(chains, settings.current().workers)
    running = nutpie.sample(compiled, **options, cores=cores, progress_bar=False, save_warmup=False, blocking=False)
    try:
        trace = _waited_for(running, meter)
    except KeyboardInterrupt:
        trace = running.abort()
        return _cut_short({name: np.asarray(trace.posterior[name].values) for name in problem.names})
    draws_by_name = {name: np.asarray(trace.posterior[name].values) for name in problem.names}
    return Raw(draws_by_name, int(np.asarray(trace.sample_stats["diverging"].values).sum()))


def _cut_short(draws: dict[str, Array]) -> Raw:
    """Return what chains drew by the time they were interrupted; nutpie fills up the shorter ones with NaN."""
    made = [~np.isnan(array).any(axis=tuple(range(2, array.ndim))) for array in draws.values()]
    usable, shortest, remarks = _long_enough(np.logical_and.reduce(made).sum(axis=1), FEWEST_LEFT)
    return Raw({name: array[usable, :shortest] for name, array in draws.items()}, remarks=remarks)


def _long_enough(lengths: Array, fewest: int) -> tuple[Array, int, tuple[str, ...]]:
    """Return which interrupted chains are worth keeping, how long all of them are, and a remark; raise if none is."""
    usable = np.flatnonzero(lengths >= fewest)
    if len(usable) < 2:
        raise interruption.interruption()
    return usable, int(lengths[usable].min()), (interruption.taken_note("the draws made so far were kept"),)


def _waited_for(running: Any, meter: ProgressMeter) -> Any:
    started = time.monotonic()
    while True:
        try:
            return running.wait(timeout=0.1)
        except TimeoutError:
            meter.update(0, f"{time.monotonic() - started:.0f} s")


def _steps(problem: Problem, model: Any, sampler: str, size: Size, meter: ProgressMeter) -> Raw:
    """Run PyMC's own samplers, one chain after the other."""
    chains, draws, seed = size
    gradients = sampler == "nuts"
    thinning = 1 if gradients and is_differentiable(problem) else THINNING
    starts = [_initial(problem, point) for point in starting_points(problem, chains, seed)]
    counted = _Counter(meter, (draws + _warm_up(draws)) * thinning, thinning)
    with model:
        options: dict[str, Any] = _NUTS_OPTIONS if gradients else {"step": _gradient_free(model)}
        try:
            trace = pm.sample(
                draws=draws * thinning,
                tune=_warm_up(draws) * thinning,
                chains=chains,
                cores=1,
                initvals=starts,
                random_seed=_seeds(seed, chains),
                progressbar=False,
                callback=counted,
                compute_convergence_checks=False,
                return_inferencedata=False,
                **options,
            )
        except ValueError:
            if counted.is_interrupted:  # during the warm-up of all chains: PyMC has no trace to give then
                raise interruption.interruption() from None
            raise
    chosen, length = list(trace.chains), draws * thinning
    remarks: tuple[str, ...] = ()
    lengths = np.array([len(trace._straces[chain]) for chain in trace.chains])
    if len(lengths) < chains or lengths.min() < length:  # PyMC leaves out chains that hardly began
        usable, length, remarks = _long_enough(lengths, FEWEST_LEFT * thinning)
        chosen = [trace.chains[place] for place in usable]

    def values(name: str) -> Array:
        return np.stack([trace._straces[c].get_values(name)[:length:thinning] for c in chosen])

    return Raw({name: values(name) for name in problem.names}, _divergences(trace, chosen), remarks)


def _divergences(trace: Any, chains: Sequence[int]) -> int:
    if "diverging" not in trace.stat_names:
        return 0
    return int(sum(np.asarray(trace.get_sampler_stats("diverging", chains=[c])).sum() for c in chains))


class _Counter:
    """Counts steps for the progress meter, and ends all chains once one was interrupted."""

    def __init__(self, meter: ProgressMeter, steps: int, thinning: int) -> None:
        self._meter = meter
        self._steps = steps
        self._thinning = thinning
        self._done = 0
        self.is_interrupted = False

    def __call__(self, trace: Any, draw: Any) -> None:
        if self._done < draw.chain * self._steps:
            self.is_interrupted = True
            raise KeyboardInterrupt
        self._done += 1
        self._meter.update(self._done / self._thinning, f"chain {draw.chain + 1}")


def _gradient_free(model: Any) -> list[Any]:
    """Return steps for all variables: continuous ones together, discrete ones by PyMC's choice for each."""
    continuous = [variable for variable in model.free_RVs if variable.dtype.startswith("float")]
    discrete = [variable for variable in model.free_RVs if not variable.dtype.startswith("float")]
    steps = [_discrete_step(variable) for variable in discrete]
    joint = pm.Metropolis if discrete else pm.DEMetropolisZ  # which fails beside other steps
    return ([joint(continuous)] if continuous else []) + steps


def _discrete_step(variable: Any) -> Any:
    name = type(variable.owner.op).__name__
    if name == "BernoulliRV":
        return pm.BinaryGibbsMetropolis([variable])
    if name == "CategoricalRV":
        return pm.CategoricalGibbsMetropolis([variable])
    return pm.Metropolis([variable])


def _smc(problem: Problem, model: Any, sampler: str, size: Size, meter: ProgressMeter) -> Raw:
    chains, draws, seed = size
    meter.update(0, "populations that approach the observation")
    with model:
        trace = pm.sample_smc(
            draws=draws,
            chains=chains,
            cores=1,
            random_seed=_seeds(seed, chains),
            progressbar=False,
            compute_convergence_checks=False,
            return_inferencedata=False,
        )
    return Raw({name: np.stack(trace.get_values(name, combine=False, squeeze=False)) for name in problem.names})


def _initial(problem: Problem, point: dict[Node, Array]) -> dict[str, Array]:
    """Return a starting point by the names of PyMC's variables, in their terms."""
    named: dict[str, Array] = {}
    for name, root in zip(problem.names, problem.roots, strict=True):
        family, value = family_of(root), point[root]
        if family.table is not None:
            named[name] = np.argmax(value[..., np.newaxis] == family.table, axis=-1)
        elif family.factor is None:
            named[name] = value
    return named


def _root_values(problem: Problem, draws: dict[str, Array]) -> dict[Node, Array]:
    """Return what PyMC drew as values of our own roots, as arrays of chains by draws."""
    values: dict[Node, Array] = {}
    for name, root in zip(problem.names, problem.roots, strict=True):
        family, array = family_of(root), draws[name]
        if family.table is not None:
            array = family.table[array]
        elif family.factor is not None:
            flat = {node: known.reshape(-1, *known.shape[2:]) for node, known in values.items()}
            unused = np.random.Generator(np.random.SFC64(0))
            mean = Plan([root.parents[0]], list(flat)).run(array.shape[0] * array.shape[1], unused, flat)[0]
            array = mean.reshape(array.shape[0], array.shape[1], -1) + array @ family.factor.T
        values[root] = array.astype(root.dtype, copy=False)
    return values


def _warm_up(draws: int) -> int:
    return min(WARM_UP, max(300, draws))


def _seeds(seed: int, count: int) -> list[int]:
    return [int(state) for state in np.random.SeedSequence(seed).generate_state(count)]


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep PyMC from writing its own log and warnings: what matters is in the diagnostics.

    Its settings, and the levels of logs, are those of the whole process: one thread at a time may have them changed.
    """
    loggers = [logging.getLogger(name) for name in ("pymc", "pymc.sampling", "pymc.stats.convergence")]
    with quietly():
        levels = [logger.level for logger in loggers]
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
