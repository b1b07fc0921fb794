"""Queries one after the other: each is answered only if the policy stays kept whatever the answer."""

import itertools
import json
import math
import random
from collections import Counter
from pathlib import Path

import pytest

import privug as pv
from privug.policy.monitoring.decisions import Judge
from privug.policy.monitoring.queries import MonitoredQuery
from privug.policy.monitoring.sampled_decisions import LIFELONG, SamplingPlan, share_of_error

CASES = {case["id"]: case for case in json.loads((Path(__file__).parents[1] / "oracles/cases.json").read_text())}


class Untouchable:
    """Data that must not be looked at."""

    def __getattribute__(self, name):
        raise AssertionError("the truth was looked at")

    __iter__ = __len__ = __getitem__ = __bool__ = __contains__ = None


def birthday_this_week(bday):
    return 260 <= bday < 267


def birthday_next_day(bday):
    return 261 <= bday < 268


def birthday_prior():
    described = CASES["dkbp-bday12-policy"]["prior"]
    return {name: pv.DiscreteUniform(of["low"], of["high"]) for name, of in described.items()}


def birthday_monitor(secret="bday", **options):
    limit = CASES["dkbp-bday12-policy"]["policy"]["threshold"]
    return pv.policy.Monitor(birthday_prior(), secret, pv.policy.max_belief(at_most=limit), **options)


def test_the_second_birthday_query_is_refused_though_its_true_answer_is_harmless():
    monitor = birthday_monitor()
    first = monitor.ask(birthday_this_week, truth={"bday": 100, "byear": 1980})
    assert first
    assert first.value is False
    assert first.verdict.worst.value == pytest.approx(1 / 7)
    second = monitor.ask(birthday_next_day, truth={"bday": 100, "byear": 1980})
    assert not second
    assert second.value is None
    assert second.verdict.worst.value == pytest.approx(CASES["dkbp-bday12-false-true"]["expected"])
    assert "may become 1" in second.reason


def test_what_is_believed_after_an_answer():
    monitor = birthday_monitor()
    monitor.ask(birthday_this_week, truth={"bday": 100})
    found = monitor.belief.probability(lambda bday: bday < 260)
    assert found.value == pytest.approx(CASES["dkbp-bday1-before"]["expected"], abs=1e-12)


def test_the_year_is_as_good_as_unknown_to_a_policy_about_both():
    monitor = birthday_monitor(["bday", "byear"])
    for query in (birthday_this_week, birthday_next_day):  # 1 / 37 at worst: the year stays unknown
        assert monitor.ask(query, truth={"bday": 100, "byear": 1980})
    assert monitor.history[0].verdict.worst.value == pytest.approx(CASES["dkbp-bday1-max-belief"]["expected"])
    assert monitor.history[1].verdict.worst.value == pytest.approx(1 / 37)


@pytest.mark.parametrize(("limit", "answered"), [(0.2, True), (0.1, False)])
def test_the_photo_query(limit, answered):
    case = CASES["dkbp-photo-max-belief"]
    session = {}
    exec(case["program"], session)
    prior = {name: pv.DiscreteUniform(of["low"], of["high"]) for name, of in case["prior"].items()}
    monitor = pv.policy.Monitor(prior, case["secret"], pv.policy.max_belief(at_most=limit))
    found = monitor.ask(session["program"], truth={"birth_year": 1985, "gender": 1, "rel": 3})
    assert found.answered is answered
    assert found.verdict.worst.value == pytest.approx(case["expected"])


@pytest.mark.parametrize(("limit", "answered"), [(0.2, True), (0.19, False)])
def test_the_travel_query(limit, answered):
    """Is somebody from one of five countries, at least 21 years old and has finished school (Mardziel et al. 2013)?"""

    def travel(country, birth_year, school):
        speaks = country == 1 or country == 3 or country == 8 or country == 10 or country == 18
        return speaks and school == 1 and 2010 - birth_year >= 21

    prior = {"country": pv.DiscreteUniform(1, 200), "birth_year": pv.DiscreteUniform(1900, 2011)}
    prior["school"] = pv.DiscreteUniform(0, 1)
    monitor = pv.policy.Monitor(prior, "country", pv.policy.max_belief(at_most=limit))
    found = monitor.ask(travel, truth={"country": 77, "birth_year": 1980, "school": 1})
    assert found.answered is answered
    assert found.verdict.worst.value == pytest.approx(1 / 5)  # a yes leaves five countries, alike
    share = 224 / (44_800 - 450) if answered else 1 / 200  # a no rules out 90 years of five countries
    assert monitor.belief.distribution()[77].value == pytest.approx(share)


def test_the_truth_is_not_touched_by_a_refusal():
    monitor = birthday_monitor()
    assert not monitor.ask(lambda bday: bday, truth=Untouchable())
    with pytest.raises(AssertionError, match="looked at"):
        monitor.ask(birthday_this_week, truth=Untouchable())
    assert monitor.belief.distribution()[3].value == pytest.approx(1 / 365)


def random_queries(rng, count):
    """Queries on two numbers from 0 to 3, as tables of their answers."""
    tables = [{pair: rng.randrange(rng.choice([2, 2, 3])) for pair in itertools.product(range(4), repeat=2)}]
    tables += [{pair: (pair[rng.randrange(2)] + k) % (2 + k % 3) for pair in tables[0]} for k in range(count)]
    rng.shuffle(tables)
    return [query_of(table) for table in tables[:count]]


def query_of(table):
    def answer(x, y):
        return table[x, y]

    return answer


def limited_by_enumeration(queries, limit, truth):
    """Return which queries are answered, by the definition."""
    possible, decisions = list(itertools.product(range(4), repeat=2)), []
    for query in queries:
        answers = Counter(query(*pair) for pair in possible)
        worst = max(
            Counter(x for x, y in possible if query(x, y) == answer).most_common(1)[0][1] / count
            for answer, count in answers.items()
        )
        decisions.append(worst <= limit + 1e-12)
        if decisions[-1]:
            possible = [pair for pair in possible if query(*pair) == query(*truth)]
    return decisions, possible


@pytest.mark.parametrize("seed", range(4))
def test_decisions_are_those_of_the_definition_and_the_same_for_all_secrets_that_fit_the_answers(seed):
    rng = random.Random(seed)
    queries, limit = random_queries(rng, 4), rng.choice([0.4, 0.5, 0.67])
    taken = {}
    for truth in rng.sample(list(itertools.product(range(4), repeat=2)), 3):
        monitor = pv.policy.Monitor(
            {"x": pv.DiscreteUniform(0, 3), "y": pv.DiscreteUniform(0, 3)}, "x", pv.policy.max_belief(at_most=limit)
        )
        found = [monitor.ask(query, truth=dict(zip("xy", truth, strict=True))) for query in queries]
        decisions, possible = limited_by_enumeration(queries, limit, truth)
        assert [one.answered for one in found] == decisions
        shares = Counter(x for x, _ in possible)
        known = monitor.belief.distribution()
        assert {x: known[x].value for x in known} == pytest.approx({x: n / len(possible) for x, n in shares.items()})
        # What was decided follows from the answers alone.
        story = ()
        for one in found:
            assert taken.setdefault(story, one.answered) == one.answered
            story = (*story, one.value)


def test_changes_count_from_the_very_beginning():
    prior = {"x": pv.DiscreteUniform(0, 9), "noise": pv.DiscreteUniform(0, 3), "more": pv.DiscreteUniform(0, 3)}
    monitor = pv.policy.Monitor(prior, "x", pv.policy.change(lambda x: x < 5, at_most=0.3))
    # each is right with 3/4: 0.5 becomes 0.75, and that 0.9 in the next step, a change of 0.15 by itself
    first = monitor.ask(lambda x, noise: (x < 5) == (noise > 0), truth={"x": 1, "noise": 1})
    assert first.value is True
    assert first.verdict.worst.value == pytest.approx(0.25)
    second = monitor.ask(lambda x, more: (x < 5) == (more > 0), truth=Untouchable())
    assert not second
    assert second.verdict.worst.value == pytest.approx(0.4)


def count_ill(people):
    return sum(person.ill for person in people)


def count_ill_but_last(people):
    return sum(person.ill for person in people[:-1])


def test_counts_of_all_and_of_all_but_one_are_not_answered_both():
    people = pv.Records(6, pv.Row(ill=pv.Bernoulli(0.4)))
    truth = {"people": [{"ill": k % 2} for k in range(6)]}

    def noisy_count(people):
        return count_ill(people) + pv.sample(pv.DiscreteUniform(-40, 40))

    policy = pv.policy.belief(lambda ill: ill == 1, at_most=0.99, at_least=0.0001)
    monitor = pv.policy.Monitor({"people": people}, lambda people: people[5].ill, policy)
    assert not monitor.ask(count_ill, truth=Untouchable())  # all may be ill, or none
    assert not monitor.ask(noisy_count, truth=Untouchable())  # the largest sum says that all are ill
    assert monitor.ask(lambda people: 2 <= count_ill(people) <= 4, truth=truth)
    assert monitor.ask(noisy_count, truth=truth)  # 4 of 6 at most, whatever it says
    assert monitor.ask(count_ill, truth=truth).value == 3
    assert monitor.belief.distribution()[1].value == pytest.approx(3 / 6)
    refused = monitor.ask(count_ill_but_last, truth=Untouchable())
    assert not refused
    assert refused.verdict.worst.value in (0.0, 1.0)
    assert monitor.ask(lambda people: count_ill(people[:2]), truth=truth).value == 1
    assert monitor.belief.distribution()[1].value == pytest.approx(2 / 4)


def test_means_of_all_and_of_all_but_one_are_not_answered_both():
    prior = {"pay": pv.Array(pv.Normal(40, sd=10), 20)}
    truth = {"pay": [30.0 + k for k in range(20)]}
    policy = pv.policy.bounds(interval_width_at_least=10.0)
    monitor = pv.policy.Monitor(prior, lambda pay: pay[19], policy)
    assert monitor.ask(lambda pay: pay.mean(), truth=truth).value == pytest.approx(39.5)
    width = 2 * 1.959963984540054 * 10 * math.sqrt(1 - 1 / 20)
    assert monitor.history[0].verdict.worst.value == pytest.approx(width)
    refused = monitor.ask(lambda pay: pay[:19].mean(), truth=Untouchable())
    assert not refused
    assert refused.verdict.worst.value == pytest.approx(0, abs=1e-9)
    assert monitor.ask(lambda pay: pay.sum() / 20, truth=truth)  # nothing new
    assert monitor.ask(lambda pay: pay[:10].mean(), truth=truth)
    # Of the others, 10 are left: what is known of them together is their sum.
    assert monitor.belief.std().value == pytest.approx(10 * math.sqrt(1 - 1 / 10))
    total = 20 * 39.5 - 10 * 34.5
    assert monitor.belief.mean().value == pytest.approx(total / 10)


def test_in_the_other_order_too_and_for_everyone():
    prior = {"people": pv.Records(5, pv.Row(pay=pv.Normal(40, sd=10)))}
    truth = {"people": [{"pay": 30.0 + k} for k in range(5)]}
    policy = pv.policy.bounds(10.0, for_each=lambda people: [person.pay for person in people])
    monitor = pv.policy.Monitor(prior, lambda people: people[0].pay, policy)
    assert monitor.ask(lambda people: sum(person.pay for person in people[1:]) / 4, truth=truth)
    assert not monitor.ask(lambda people: sum(person.pay for person in people), truth=Untouchable())
    assert not monitor.ask(lambda people: people[2].pay, truth=Untouchable())
    assert monitor.ask(lambda people: people[1].pay - people[1].pay + 3.0, truth=truth).value == 3.0


def test_noise_on_each_mean_makes_more_of_them_possible():
    prior = {"pay": pv.Array(pv.Normal(40, sd=10), 3)}
    truth = {"pay": [30.0, 40.0, 50.0]}
    monitor = pv.policy.Monitor(prior, lambda pay: pay[2], pv.policy.bounds(20.0))
    noisy = lambda pay: pay.sum() + pv.sample(pv.Normal(0, sd=20))
    answered = [bool(monitor.ask(noisy, truth=truth)) for _ in range(6)]
    # After n answers: noise of variance 400 / n on the sum of three
    variances = [100 * (1 - 100 / (300 + 400 / n)) for n in range(1, 7)]
    assert answered == [2 * 1.959964 * math.sqrt(variance) >= 20.0 for variance in variances]
    assert monitor.belief.std().value == pytest.approx(math.sqrt(variances[5]))


def test_answers_of_a_mechanism_add_up_and_do_not_tell_how_they_came_about():
    response = pv.mechanisms.randomized_response(lambda ill: ill, epsilon=1.0)
    monitor = pv.policy.Monitor({"ill": pv.Bernoulli(0.5)}, "ill", pv.policy.max_belief(at_most=0.9))
    balance = 0
    for _ in range(12):
        found = monitor.ask(response, truth={"ill": 1})
        assert found.answered is (1 / (1 + math.exp(-abs(balance) - 1)) <= 0.9)
        if found:
            assert type(found.value) is int  # True or 1 would say whether it is the truth
            balance += 1 if found.value else -1
        now = 1 / (1 + math.exp(-balance))
        assert monitor.belief.probability(lambda ill: ill == 1).value == pytest.approx(now)
    assert sum(one.answered for one in monitor.history) >= 2


def test_sums_that_differ_by_rounding_are_one_answer():
    prior = {"parts": [pv.Choice([0.1, 0.2, 0.3]) for _ in range(3)]}
    monitor = pv.policy.Monitor(prior, lambda parts: parts[0], pv.policy.max_belief(at_most=1.0))
    outcomes = set()
    for parts in itertools.permutations([0.1, 0.2, 0.3]):
        fresh = pv.policy.Monitor(prior, lambda parts: parts[0], pv.policy.max_belief(at_most=1.0))
        outcomes.add(fresh.ask(sum_of_parts, truth={"parts": list(parts)}).value)
    assert len({sum_of_parts(parts) for parts in itertools.permutations([0.1, 0.2, 0.3])}) == 2
    assert len(outcomes) == 1
    assert monitor.ask(sum_of_parts, truth={"parts": [0.1, 0.2, 0.3]})
    assert {x: p.value for x, p in monitor.belief.distribution().items()} == pytest.approx(
        {0.1: 2 / 7, 0.2: 3 / 7, 0.3: 2 / 7}
    )


def sum_of_parts(parts):
    return parts[0] + parts[1] + parts[2]


def test_uniform_means_are_refused_as_no_later_query_could_know_of_them():
    prior = {"pay": pv.Array(pv.Uniform(0, 100), 3)}
    monitor = pv.policy.Monitor(prior, lambda pay: pay[2], pv.policy.bounds(1.0))
    refused = monitor.ask(lambda pay: pay.mean(), truth=Untouchable())
    assert not refused
    assert "continuous" in refused.reason


def test_attackers_who_collude_and_who_do_not():
    truth = {"bday": 100}
    pooled = birthday_monitor()
    assert pooled.ask(birthday_this_week, truth=truth, attacker="Ann")
    assert not pooled.ask(birthday_next_day, truth=truth, attacker="Bob")
    apart = birthday_monitor(colluding=False)
    assert apart.ask(birthday_this_week, truth=truth, attacker="Ann")
    assert apart.ask(birthday_next_day, truth=truth, attacker="Bob")
    assert not apart.ask(birthday_next_day, truth=truth, attacker="Ann")
    assert len(apart.belief_of("Ann").distribution()) == 358
    assert len(apart.belief_of("Eve").distribution()) == 365


def test_facts_are_known_to_the_attacker():
    monitor = birthday_monitor(assume=lambda bday: bday < 264)
    assert not monitor.ask(birthday_this_week, truth=Untouchable())  # 260 to 263: 1 / 4
    with pytest.raises(pv.QuestionError):
        birthday_monitor(assume=lambda bday: bday > 400)


def test_programs_that_can_only_be_called_are_monitored_by_samples_where_they_are_not_listed():
    prior = {"x": pv.DiscreteUniform(0, 39), "y": pv.Normal(0, sd=1)}

    def query(x, y):
        hash(y)  # one plain value is needed: the program is called
        return (int(str(x)[0]) + int(y > 0)) % 3

    policy = pv.policy.max_belief(at_most=0.2)
    monitor = pv.policy.Monitor(prior, "x", policy, samples=5_000, seed=1)
    found = monitor.ask(query, truth={"x": 17, "y": 0.5})
    assert found.value == 2
    assert not found.verdict.worst.exact
    again = monitor.ask(lambda x, y: str(x) == str(17) and y < 9, truth=Untouchable())
    assert not again
    assert again.verdict.violated
    exactly = 1 / sum(1 for x in range(40) for up in (0, 1) if (int(str(x)[0]) + up) % 3 == 2)
    assert monitor.belief.probability(lambda x: x == 17).value == pytest.approx(exactly, abs=0.02)


class SampledJudge(Judge):
    """A judge who never finds an exact answer."""

    def _exactly(self, query, history, tasks):
        raise pv.UnsuitableEngine("not exactly")


def test_samples_never_answer_what_the_exact_monitor_refuses():
    rng, decisions = random.Random(3), Counter()
    prior, policy = {"x": pv.DiscreteUniform(0, 399)}, pv.policy.max_belief(at_most=0.1)
    for life in range(4):
        exact = pv.policy.Monitor(prior, "x", policy)
        sampled = pv.policy.Monitor(prior, "x", policy, samples=5_000, seed=life)
        sampled.judge = SampledJudge(prior, "x", policy)
        for _ in range(5):
            query = random_query(rng.randrange(400), rng.randrange(1, 60), rng.randrange(2, 4))
            allowed = exact.judge.decide(
                MonitoredQuery.of(query, ["x"]), exact.answers_known_to(""), SamplingPlan(1, 0, 0.05)
            ).accepted
            found = sampled.ask(query, truth={"x": 123})
            assert found.verdict.worst is None or not found.verdict.worst.exact
            decisions[allowed, found.answered] += 1
            if found:
                assert exact.ask(query, truth={"x": 123}).value == found.value
    assert decisions[False, True] == 0
    assert decisions[True, True] >= 4
    assert decisions[False, False] >= 4


def random_query(low, width, step):
    return lambda x: (low <= x < low + width) + 2 * (x % step)


def test_the_shares_of_the_error_add_up():
    assert sum(share_of_error(k) for k in range(1, 100_000)) == pytest.approx(LIFELONG, rel=1e-4)


def test_an_answer_that_was_not_foreseen_closes_the_monitor():
    prior, policy = {"x": pv.DiscreteUniform(0, 1_000_000)}, pv.policy.max_belief(at_most=0.5)
    monitor = pv.policy.Monitor(prior, "x", policy, samples=2_000, seed=1)
    monitor.judge = SampledJudge(prior, "x", policy)
    found = monitor.ask(lambda x: x == 77, truth={"x": 77})
    assert not found
    assert "closes itself" in found.reason
    assert not monitor.ask(lambda x: x < 1000, truth=Untouchable())
    assert "closed" in str(monitor)


def test_queries_that_fail_on_possible_inputs_are_refused():
    monitor = pv.policy.Monitor({"x": pv.DiscreteUniform(0, 3)}, "x", pv.policy.max_belief(at_most=1.0))
    refused = monitor.ask(lambda x: 6 // x, truth=Untouchable())
    assert not refused
    assert "fails" in refused.reason
    assert monitor.ask(lambda x: x > 0, truth={"x": 2})
    assert monitor.ask(lambda x: 6 // x, truth={"x": 2}).value == 3  # zero is out of the question by now


def test_either_limit_will_do_after_each_answer():
    policy = pv.policy.max_belief(at_most=0.3) | pv.policy.belief(lambda x: x == 0, at_most=0.0)
    monitor = pv.policy.Monitor({"x": pv.DiscreteUniform(0, 3)}, "x", policy)
    assert monitor.ask(lambda x: x == 3, truth={"x": 3}) is not None
    assert not monitor.history[0]  # after False: 1/3 for each, zero among them
    assert not pv.policy.Monitor({"x": pv.DiscreteUniform(0, 3)}, "x", policy).ask(lambda x: x < 1, truth=Untouchable())


def test_policies_on_average_say_nothing_of_answers():
    with pytest.raises(pv.ArgumentError, match="average"):
        pv.policy.Monitor({"x": pv.Bernoulli(0.5)}, "x", pv.policy.measure("mutual_information", at_most=0.1))


@pytest.mark.parametrize(
    ("query", "truth", "problem"),
    [
        (lambda height: height, {"bday": 3}, "asks for 'height'"),
        (3, {"bday": 3}, "function"),
        (birthday_this_week, {}, "lacks 'bday'"),
        (birthday_this_week, [100], "must be a dict"),
        (birthday_this_week, {"bday": 3, "name": "Ann"}, "names 'name'"),
        (birthday_this_week, {"bday": 400}, "impossible under the prior"),
        (birthday_this_week, {"bday": 3.5}, "integer"),
        (birthday_this_week, {"bday": "soon"}, "a number"),
    ],
)
def test_bad_queries_and_truths(query, truth, problem):
    monitor = birthday_monitor()
    with pytest.raises(pv.ArgumentError, match=problem):
        monitor.ask(query, truth=truth)
    assert monitor.history == []


def test_data_that_contradicts_earlier_answers_is_refused():
    monitor = birthday_monitor()
    monitor.ask(birthday_this_week, truth={"bday": 100})
    with pytest.raises(pv.ArgumentError, match="contradicts an earlier answer"):
        monitor.ask(lambda bday: bday < 180, truth={"bday": 263})


def test_bad_monitors():
    policy = pv.policy.max_belief(at_most=0.5)
    for prior, secret, wrong in [(3, "x", policy), ({"x": pv.Bernoulli(0.5)}, "y", policy), ({}, "x", policy)]:
        with pytest.raises(pv.ArgumentError):
            pv.policy.Monitor(prior, secret, wrong)
    with pytest.raises(pv.ArgumentError, match="policy"):
        pv.policy.Monitor({"x": pv.Bernoulli(0.5)}, "x", 0.5)


def test_the_story_in_words():
    monitor = birthday_monitor()
    monitor.ask(birthday_this_week, truth={"bday": 100})
    monitor.ask(birthday_next_day, truth={"bday": 100}, attacker="Bob", name="tomorrow?")
    assert str(monitor).splitlines()[1:3] == [
        "1 of 2 queries were answered",
        "  1. birthday_this_week is answered: False",
    ]
    assert "2. tomorrow? is refused to Bob: " in str(monitor)
