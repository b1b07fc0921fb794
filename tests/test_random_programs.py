"""Random programs: what tracing builds equals plain calls, without the self-check's help."""

import numpy as np
import pytest

import privug as pv
from privug.model.plan import Plan
from privug.model.plated_tables import PlatedTable
from privug.model.structure import flatten
from privug.program.inputs import Arguments
from privug.program.tracing import trace
from random_programs import PlateWriter, TableWriter, Writer, random_program

SAMPLES = 300


def numbers():
    return [pv.DiscreteUniform(-3, 3) for _ in range(3)]


def table():
    def row(position):
        name, zip_code = pv.Choice(["Ann", "Bob", "Eve"]), pv.Choice(["2300", "2450", "2310"])
        return pv.Row(name=name, age=pv.DiscreteUniform(0, 6), zip=zip_code)

    return [pv.Records(4, row).table()]


def plated_table():
    """One row of its own, and eight that are alike."""

    def row(position):
        names = ["Ann", "Bob"] if position == 0 else ["Ann", "Bob", "Eve"]
        zip_code = pv.Choice(["2300", "2450", "2310"])
        return pv.Row(name=pv.Choice(names), age=pv.DiscreteUniform(0, 6), zip=zip_code)

    made = pv.Records(9, row).plated()
    assert isinstance(made, PlatedTable)
    return [made]


INPUTS = {Writer: numbers, TableWriter: table, PlateWriter: plated_table}
FEWEST_TRACED = {Writer: 70, TableWriter: 70, PlateWriter: 50}  # few are refused


def traced_equals_plain(writer, seed: int) -> bool:
    """Compare one random program with plain calls; False if it is refused."""
    source, program = random_program(seed, writer)
    inputs = INPUTS[writer]()
    traced = trace(program, inputs, {})
    if traced.obstacle is not None:
        return False
    both = Arguments(*flatten((inputs, traced.output)))
    arrays = Plan(both.nodes).run(SAMPLES, np.random.Generator(np.random.SFC64(seed)))
    for values, output in both.plain(arrays, SAMPLES):
        assert output == program(*values), f"seed {seed}, inputs {values}\n{source}"
    return True


@pytest.mark.parametrize("writer", INPUTS)
def test_some_random_programs(writer):
    traced = [traced_equals_plain(writer, seed) for seed in range(30)]
    assert sum(traced) >= 0.3 * FEWEST_TRACED[writer]


@pytest.mark.slow
@pytest.mark.parametrize("writer", INPUTS)
@pytest.mark.parametrize("hundred", range(30))
def test_thousands_of_random_programs(writer, hundred):
    traced = [traced_equals_plain(writer, seed) for seed in range(100 * hundred, 100 * (hundred + 1))]
    assert sum(traced) >= FEWEST_TRACED[writer]
