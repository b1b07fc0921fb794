"""Policies in TOML files: the limits they set, and the messages that name file and key."""

import textwrap

import pytest

import privug as pv


@pytest.fixture
def toml(tmp_path):
    def write(text):
        path = tmp_path / "privug.toml"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return write


def the_attack():
    return pv.Attack(
        lambda x, y: x + y, {"x": pv.DiscreteUniform(0, 2), "y": pv.DiscreteUniform(0, 2)}, secret="x", name="sum"
    )


ALL_KINDS = """
    [[policy]]
    name = "small"
    kind = "belief"
    predicate = "secret < 1"
    at_most = 0.5

    [[policy]]
    name = "moved"
    kind = "change"
    predicate = "secret == 1"
    by = "factor"
    at_most = 3

    [[policy]]
    name = "sure"
    kind = "max_belief"
    at_most = 0.6

    [[policy]]
    name = "wide"
    kind = "bounds"
    interval_width_at_least = 1
    probability = 0.9

    [[policy]]
    name = "information"
    kind = "measure"
    measure = "mutual_information"
    at_most = 0.7
"""


def test_each_kind_is_the_policy_of_the_same_name_in_python(toml):
    read = pv.policy.read(toml(ALL_KINDS))
    written = {
        "small": pv.policy.belief(lambda s: s < 1, at_most=0.5, claim="secret < 1"),
        "moved": pv.policy.change(lambda s: s == 1, at_most=3, by="factor", claim="secret == 1"),
        "sure": pv.policy.max_belief(at_most=0.6),
        "wide": pv.policy.bounds(1, probability=0.9),
        "information": pv.policy.measure("mutual_information", at_most=0.7),
    }
    assert list(read) == list(written)
    for name, policy in written.items():
        one, other = (pv.policy.check(the_attack(), p) for p in (read[name], policy))
        assert str(one) == str(other)


def test_worst_beliefs_are_those_of_plain_counting(toml):
    checks = pv.policy.read_checks(toml(ALL_KINDS), {"total": the_attack()})
    verdicts = {check.name: check.run() for check in checks}
    pairs = [(x, x + y) for x in range(3) for y in range(3)]
    after = {o: [x for x, output in pairs if output == o] for o in range(5)}
    small = max(sum(x < 1 for x in xs) / len(xs) for xs in after.values())
    assert verdicts["total/small"].worst.value == pytest.approx(small)
    assert verdicts["total/sure"].worst.value == 1.0
    assert verdicts["total/wide"].worst.value == 0.0
    # H(x + y) - H(y), in bits
    assert verdicts["total/information"].worst.value == pytest.approx(0.6122, abs=1e-4)
    assert [str(v.status) for v in verdicts.values()] == ["violated", "violated", "violated", "violated", "holds"]


def test_attacks_are_named_or_all(toml):
    path = toml("""
        [[policy]]
        name = "every"
        kind = "max_belief"
        at_most = 1
        [[policy]]
        name = "some"
        attack = ["b", "c", "b"]
        kind = "max_belief"
        at_most = 1
        [[policy]]
        attack = "a"
        kind = "max_belief"
        at_most = 1
    """)
    names = [check.name for check in pv.policy.read_checks(path, dict.fromkeys("abc", the_attack()))]
    assert names == ["a/every", "b/every", "c/every", "b/some", "c/some", "a/policy 3"]


@pytest.mark.parametrize(
    ("observe", "worst"),
    [("0", 1.0), ("1", 0.5), ("{ near = 1, within = 1 }", 3 / 6), ("{ between = [1, 2] }", 2 / 5)],
)
def test_observations(toml, observe, worst):
    """Of the sums 0 to 2, in six pairs, x = 0 is in three; of 1 and 2, in five pairs, no x is in more than two."""
    path = toml(f'[[policy]]\nname = "seen"\nkind = "max_belief"\nat_most = 0.1\nobserve = {observe}')
    (check,) = pv.policy.read_checks(path, {"a": the_attack()})
    assert check.run().worst.value == pytest.approx(worst)


def test_rare_outputs_may_be_excepted(toml):
    """Sums 0 and 4 tell x; each has probability 1/9. Elsewhere the best guess is right with 1/2 at most."""
    text = '[[policy]]\nname = "rare"\nkind = "max_belief"\nat_most = 0.5\nexcept_probability = {}'
    statuses = []
    for share in (0.2, 0.23):
        (check,) = pv.policy.read_checks(toml(text.format(share)), {"a": the_attack()})
        statuses.append(str(check.run().status))
    assert statuses == ["violated", "holds"]


def test_people_are_listed_by_an_expression(toml):
    attack = pv.Attack(
        lambda records: records[1].age,
        {"records": pv.Records(2, lambda i: pv.Row(age=pv.DiscreteUniform(0, 3)))},
        secret=lambda records: records[0].age,
    )
    path = toml("""
        [[policy]]
        name = "first"
        kind = "max_belief"
        at_most = 0.9
        [[policy]]
        name = "everyone"
        kind = "max_belief"
        at_most = 0.9
        for_each = "[row.age for row in records]"
    """)
    verdicts = [check.run() for check in pv.policy.read_checks(path, {"second": attack})]
    assert [verdict.worst.value for verdict in verdicts] == [0.25, 1.0]


GOOD = 'name = "p"\nkind = "max_belief"\nat_most = 0.5\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[policy]\n", "is no TOML file"),
        ("", "has no policies"),
        ("policy = []", "has no policies"),
        ("policy = 3", "in two pairs of brackets"),
        ("[policy]\n" + GOOD, "in two pairs of brackets"),
        ("[[policies]]\n" + GOOD, "'policies' is not known"),
        ("[[policy]]\nat_most = 1", "'policy 1', kind: it is missing; it is one of belief, change"),
        ('[[policy]]\nname = "a"\nkind = "beleif"', "'a', kind: it is 'beleif', but it must be one of belief"),
        ("[[policy]]\nkind = 3", "kind: it is 3"),
        ("[[policy]]\nname = 3\n", "policy 1, name: a text is needed, not 3"),
        ("[[policy]]\n" + GOOD + "[[policy]]\n" + GOOD, "two policies are called 'p'"),
        ('[[policy]]\nkind = "max_belief"', "at_most: it is missing"),
        ('[[policy]]\nkind = "belief"\npredicate = "secret < 1"', "a limit is needed"),
        ('[[policy]]\nkind = "belief"\nat_most = 0.5', "predicate: it is missing"),
        ('[[policy]]\nkind = "belief"\npredicate = 3\nat_most = 0.5', "predicate: an expression in quotes"),
        ('[[policy]]\nkind = "belief"\npredicate = "os.x"\nat_most = 0.5', "predicate: 'os' is not known"),
        ('[[policy]]\nkind = "belief"\npredicate = "secret <"\nat_most = 0.5', "predicate: .* no Python expression"),
        ("[[policy]]\n" + GOOD + 'for_each = "open(1)"', r"for_each: open\(...\) is called"),
        ("[[policy]]\n" + GOOD.replace("0.5", '"half"'), "at_most"),
        ("[[policy]]\n" + GOOD.replace("0.5", "50"), "at_most must be a number between 0 and 1, not 50"),
        ("[[policy]]\n" + GOOD.replace("0.5", "true"), "at_most"),
        ("[[policy]]\n" + GOOD.replace("0.5", "nan"), "at_most"),
        ("[[policy]]\n" + GOOD + "at_mots = 3", "at_mots: a policy of kind 'max_belief' takes at_most"),
        ("[[policy]]\n" + GOOD + "attack = 3", "attack: the name of an attack is needed"),
        ("[[policy]]\n" + GOOD + 'attack = "b"', "there is no attack 'b'; there is a"),
        ("[[policy]]\n" + GOOD + "except_probability = 1", "except_probability: a probability below 1"),
        ("[[policy]]\n" + GOOD + "observe = { near = 3 }", "observe: a value is needed"),
        ("[[policy]]\n" + GOOD + "observe = { near = 3, within = -1 }", "observe: "),
        ("[[policy]]\n" + GOOD + "observe = []", "observe: a value is needed"),
        ('[[policy]]\nkind = "measure"\nat_most = 1', "measure: it is missing"),
        ('[[policy]]\nkind = "measure"\nmeasure = "guess"\nat_most = 1', "'guess' is none of those"),
    ],
)
def test_mistakes_are_told_with_file_and_key(toml, text, message):
    path = toml(text)
    with pytest.raises(pv.ArgumentError, match=message) as caught:
        pv.policy.read_checks(path, {"a": the_attack()})
    assert str(path) in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(pv.ArgumentError, match="cannot be read"):
        pv.policy.read(tmp_path / "nothing.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(pv.ArgumentError, match="is no TOML file"):
        pv.policy.read(tmp_path / "bytes.toml")
    with pytest.raises(pv.ArgumentError):
        pv.policy.read(3)
