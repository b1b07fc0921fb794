"""The graph kit: ranges of rebuilt nodes, structurally equal nodes, counting loops."""

import numpy as np
import pytest

import privug as pv
from privug.model.graph import UniqueTable, is_made_alike, operation_key, rewritten, substitute
from privug.model.numpy_functions import as_addition, cast
from privug.model.operations import Elementwise, constant
from privug.model.plan import Plan
from privug.model.variable import as_node


def drawn(node, samples=50):
    return Plan([node]).run(samples, np.random.default_rng(0))[0]


def test_a_rebuilt_node_has_the_range_of_its_new_parents():
    small, large = as_node(pv.DiscreteUniform(0, 9)), as_node(pv.DiscreteUniform(2**61, 2**62))
    total = pv.DiscreteUniform(0, 9) * 3 + 1
    root = total.node.parents[0].parents[0]
    assert total.node.bound == 28
    assert not total.node.operation.may_overflow
    (tame,) = substitute([total.node], {root: small})
    assert tame.bound == 28
    assert not tame.operation.may_overflow
    (wild,) = substitute([total.node], {root: large})
    assert wild.bound is None
    with pytest.raises(pv.ProgramError, match="64-bit"):  # and not numbers that wrapped around
        drawn(wild)


def test_what_is_not_replaced_is_shared():
    x, y = pv.Normal(0, sd=1), pv.Normal(0, sd=1)
    untouched = (y * 2).node
    other = as_node(pv.Normal(5, sd=1))
    (total,) = substitute([(x + pv.RandomVariable(untouched)).node], {x.node: other})
    assert total.parents == (other, untouched)


def test_a_rule_sees_what_the_parents_became():
    x = pv.DiscreteUniform(0, 3)
    program = ((x + 1) * (x + 1)).node
    doubled = constant(2)
    (made,) = rewritten([program], lambda node, parents: doubled if node in program.parents else None, {})
    assert made.parents == (doubled, doubled)
    assert np.all(drawn(made) == 4)


def test_structurally_equal_nodes_are_one_and_draws_are_not():
    x, y = pv.Normal(0, sd=1), pv.Normal(0, sd=1)
    ones = [np.exp(x + 1), np.exp(x + 1), np.exp(y + 1), np.exp(x + 2), np.log(abs(x) + 1)]
    images = UniqueTable().images([one.node for one in ones])
    found = [images[one.node] for one in ones]
    assert found[0] is found[1] is ones[0].node
    assert len({id(node) for node in found}) == 4
    assert images[x.node] is x.node
    assert images[y.node] is y.node


def test_two_traces_are_alike_if_they_draw_alike_and_use_the_same_inputs_in_the_same_places():
    x, y = pv.Normal(0, sd=1), pv.Normal(0, sd=1)
    assert is_made_alike([x - y, {"n": 1}], [x - y, {"n": 1}])
    assert not is_made_alike(x - y, y - x)  # of one distribution, but not the same inputs
    assert not is_made_alike([x, 1], [x, 1.0])
    assert not is_made_alike(x, [x])
    assert is_made_alike(x + pv.Laplace(0, scale=1), x + pv.Laplace(0, scale=1))
    assert not is_made_alike(x + pv.Laplace(0, scale=1), x + pv.Laplace(0, scale=2))
    one = pv.Laplace(0, scale=1)
    assert not is_made_alike(one - one, pv.Laplace(0, scale=1) - pv.Laplace(0, scale=1))


def test_functions_made_anew_have_the_same_key_unless_what_they_hold_differs():
    def scaled(factor):
        return Elementwise("scaled", lambda values: values * factor)

    assert operation_key(scaled(2)) == operation_key(scaled(2)) != operation_key(scaled(3))
    assert operation_key(scaled(np.arange(3))) == operation_key(scaled(np.arange(3)))
    assert operation_key(scaled({})) is None  # cannot be told
    x = pv.Normal(0, sd=1)
    assert operation_key(cast(x.node, np.dtype(int)).operation) == operation_key(cast(x.node, np.dtype(int)).operation)
    assert is_made_alike(x.astype(int) + 1, x.astype(int) + 1)


@pytest.mark.parametrize("more", [1, 3, 2.5])
def test_counting_under_a_condition_is_adding(more):
    count, condition = pv.DiscreteUniform(0, 5), pv.Normal(0, sd=1) > 0
    chosen = np.where(condition, count + more, count).node
    assert chosen.operation.name == "add"
    assert count.node in chosen.parents
    plain = Plan([chosen, count.node, condition.node]).run(200, np.random.default_rng(1))
    assert np.array_equal(plain[0], np.where(plain[2], plain[1] + more, plain[1]))
    assert as_addition(condition.node, (count * more).node, count.node) is None
