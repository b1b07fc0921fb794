"""Programs on tables of people: group-bys, anonymisers, and the seven columns that tell a governor apart."""

import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from harness.tasks import Answer, Task, Work, register, sized

import privug as pv
from privug.mechanisms.anonymisers import k_ano

Rng = np.random.Generator
PLACES = ["1000", "2000", "3000", "4000"]
ZIPS = [f"{2000 + k}" for k in range(200)]
SEXES = ["f", "m"]
ILL = 0.2
COLUMNS = ("zip", "day", "sex")
SUBSETS = [subset for size in (1, 2, 3) for subset in combinations(COLUMNS, size)]
CARDINALITIES = {"zip": 200, "day": 100, "sex": 2}
TOWN = sized(14_000, 1_000)


class Patient(NamedTuple):
    """A health record."""

    zip: str
    day: int
    sex: str
    ill: bool


class Citizen(NamedTuple):
    """A row with a place and an age."""

    zip: str
    age: int


# group-by: traced once for all rows, against calls.
def counts(rs: Any) -> Any:
    """How many people live in each place."""
    found: dict[str, int] = {}
    for r in rs:
        found[r.zip] = found.get(r.zip, 0) + 1
    return found


def most_common(rs: Any) -> Any:
    """The most common place."""
    return Counter(r.zip for r in rs).most_common(1)


def grouped(program: Callable[[Any], Any], rows: int, samples: int) -> Work:
    """Tracing, checks and samples of a new attack."""
    pv.configure(workers=1)

    def work() -> Answer:
        people = pv.Records(rows, pv.Row(zip=pv.Choice(PLACES), age=pv.DiscreteUniform(18, 90)))
        attack = pv.Attack(program, {"rs": people}, lambda rs: rs[0].age)
        return Answer(effective=len(attack.run(engine="sample", samples=samples, seed=1).prediction.batch.values()))

    return work


def grouped_by_loop(program: Callable[[Any], Any], rows: int, samples: int) -> Work:
    def work() -> Answer:
        rng = np.random.Generator(np.random.SFC64(1))
        for _ in range(samples):
            places, ages = rng.integers(4, size=rows).tolist(), rng.integers(18, 91, rows).tolist()
            program([Citizen(PLACES[place], age) for place, age in zip(places, ages, strict=True)])
        return Answer(effective=samples)

    return work


def grouping(program: Callable[[Any], Any], rows: int) -> Task:
    samples = sized(1_000, 200)
    return Task(
        f"group-by-{program.__name__.replace('_', '-')}-{rows}",
        f"{samples:,} samples of {program.__name__} of {rows:,} rows, tracing included",
        {
            "privug": partial(grouped, program, rows, samples),
            "loop": partial(grouped_by_loop, program, rows, samples // 10),
        },
        samples=samples,
        bars={"loop": 10},
    )


# k-ano: an anonymiser, called.
def masked(records):  # type: ignore[no-untyped-def]
    """Release a 2-anonymous table; what is kept of it is which columns it still shows."""
    released = k_ano(records, 2, COLUMNS)
    return [released[0].zip == "*", released[0].day == "*", released[0].sex == "*"]


def patient(position: int) -> pv.Row:
    if position == 0:
        return pv.Row(zip=ZIPS[0], day=0, sex="m", ill=True)
    columns = {"zip": pv.Choice(ZIPS), "day": pv.DiscreteUniform(0, 99), "sex": pv.Choice(SEXES)}
    return pv.Row(**columns, ill=pv.Bernoulli(ILL))


def drawn_patients(rng: Rng, rows: int) -> list[Patient]:
    zips, sexes = rng.integers(200, size=rows).tolist(), rng.integers(2, size=rows).tolist()
    days, ill = rng.integers(100, size=rows).tolist(), (rng.random(rows) < ILL).tolist()
    columns = [ZIPS[k] for k in zips], days, [SEXES[k] for k in sexes], ill
    return [Patient(ZIPS[0], 0, "m", True), *map(Patient._make, zip(*columns, strict=True))][:rows]


def anonymised(workers: int, rows: int, samples: int) -> Work:
    pv.configure(workers=workers, native=False)
    attack = pv.Attack(masked, {"records": pv.Records(rows, patient)}, lambda records: records[1].ill)
    return lambda: Answer(effective=len(attack.run(engine="sample", samples=samples, seed=1).prediction.batch.values()))


def block_by_hand(rows: int, samples: int, seed: int) -> list[Any]:
    rng = np.random.Generator(np.random.SFC64(seed))
    return [masked(drawn_patients(rng, rows)) for _ in range(samples)]


def anonymised_by_loop(workers: int, rows: int, samples: int) -> Work:
    import multiprocessing

    def work() -> Answer:
        call = partial(block_by_hand, rows, 250)
        blocks = range(samples // 250)
        if workers == 1:
            found = [call(block) for block in blocks]
        else:
            with multiprocessing.get_context("fork").Pool(workers) as pool:
                found = list(pool.imap(call, blocks))
        return Answer(effective=250 * len(found))

    return work


def anonymiser(workers: int) -> Task:
    rows, samples = 500, sized(2_000, 500)
    makers = {"privug": anonymised, "loop": anonymised_by_loop}
    return Task(
        f"k-ano-{workers}",
        f"{samples:,} samples of k-anonymity on {rows} rows, {workers} worker(s)",
        {tool: partial(make, workers, rows, samples) for tool, make in makers.items()},
        samples=samples,
        bars={"loop": 1 / 1.2},
    )


# anonymisation: is everybody ill who has the governor's zip, day, sex, or several of them?
def all_ill(columns: tuple[str, ...]) -> Callable[[Any], bool]:
    def program(records):  # type: ignore[no-untyped-def]
        me = records[0]
        return all(r.ill for r in records if all(r[column] == me[column] for column in columns))

    return program


def seven_answers(records):  # type: ignore[no-untyped-def]
    me = records[0]
    bad = [0, 0, 0, 0, 0, 0, 0]
    for r in records:
        healthy = not r.ill
        same_zip, same_day, same_sex = r.zip == me.zip, r.day == me.day, r.sex == me.sex
        if healthy and same_zip:
            bad[0] += 1
        if healthy and same_day:
            bad[1] += 1
        if healthy and same_sex:
            bad[2] += 1
        if healthy and same_zip and same_day:
            bad[3] += 1
        if healthy and same_zip and same_sex:
            bad[4] += 1
        if healthy and same_day and same_sex:
            bad[5] += 1
        if healthy and same_zip and same_day and same_sex:
            bad[6] += 1
    return [count == 0 for count in bad]


def citizen(position: int) -> pv.Row:
    columns = {"zip": pv.Choice(ZIPS), "day": pv.DiscreteUniform(0, 99), "sex": pv.Choice(SEXES)}
    return pv.Row(**columns, ill=1 if position == 0 else pv.Bernoulli(ILL))


def town(program: Callable[[Any], Any]) -> pv.Attack:
    return pv.Attack(program, {"records": pv.Records(TOWN, citizen)}, lambda records: records[0].sex)


def disclosed() -> Work:
    """All seven, exactly."""
    queries = [town(all_ill(columns)) for columns in SUBSETS]

    def work() -> list[float]:
        results = (query.run(engine="exact") for query in queries)
        return [float(result.prediction.probability(lambda answer: answer)) for result in results]

    return work


def disclosed_by_samples() -> Work:
    attack, samples = town(seven_answers), sized(1_000, 200)

    def work() -> Answer:
        batch = attack.run(engine="sample", samples=samples, seed=1).prediction.batch.values()
        return Answer(np.mean(batch, axis=0).tolist(), samples)

    return work


def disclosed_by_loop() -> Work:
    samples = 20

    def work() -> Answer:
        rng = np.random.Generator(np.random.SFC64(1))
        found = [seven_answers(drawn_patients(rng, TOWN)) for _ in range(samples)]
        return Answer(np.mean(found, axis=0).tolist(), samples)

    return work


def truth_of_disclosure() -> list[float]:
    """No other row is healthy and has the same values."""
    alike = [math.prod(CARDINALITIES[column] for column in columns) for columns in SUBSETS]
    return [(1 - (1 - ILL) / count) ** (TOWN - 1) for count in alike]


# quasi-identifiers: the share of unique rows for every set of eight columns.
CENSUS = sized(30_000, 1_000)
CENSUS_COLUMNS = {"zip": 500, "day": 366, "sex": 2, "age": 90, "job": 40, "children": 6, "cars": 4, "club": 10}


def shares() -> dict[str, Any]:
    """Uneven distributions, so that nothing is easy."""
    rng = np.random.default_rng(1)
    return {name: rng.dirichlet(np.ones(count)) for name, count in CENSUS_COLUMNS.items()}


def quasi_identifiers() -> Work:
    from privug import reidentification

    cells = {name: pv.Choice(range(len(p)), p=p) for name, p in shares().items()}
    table = pv.Records(CENSUS, pv.Row(**cells))
    return lambda: reidentification.quasi_identifiers(table) and None


def quasi_identifiers_by_pandas() -> Work:
    """In one table that was drawn, set by set."""
    import pandas as pd

    rng = np.random.default_rng(2)
    frame = pd.DataFrame({name: rng.choice(len(p), CENSUS, p=p) for name, p in shares().items()})
    sets = [list(s) for size in range(1, 9) for s in combinations(CENSUS_COLUMNS, size)]

    def work() -> Answer:
        for columns in sets:
            (frame.groupby(columns, sort=False).size() == 1).sum()
        return Answer(note="one drawn table, by pandas")

    return work


TASKS = register(
    *(grouping(program, rows) for program in (counts, most_common) for rows in sized((500, 5_000), (500,))),
    anonymiser(1),
    anonymiser(2),
    Task(
        "anonymisation",
        f"seven disclosure queries about a table of {TOWN:,} rows",
        {
            "privug": disclosed,
            "privug-sampling": disclosed_by_samples,
            **dict.fromkeys(("pymc", "nutpie", "numpyro"), "discrete"),
            "loop": disclosed_by_loop,
        },
        truth_of_disclosure,
        scale=0.5,  # the largest deviation of a yes/no answer
        samples=1_000,
        bars={"privug-sampling": 1, "loop": 20},
    ),
    Task(
        "quasi-identifiers",
        f"share of unique rows for all 255 sets of columns, {CENSUS:,} rows",
        {"privug": quasi_identifiers, "numpy": quasi_identifiers_by_pandas},
        bars={"numpy": 1},
    ),
)
