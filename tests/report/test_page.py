"""The report as a page: what it says, that it needs nothing else, and that no text from data does anything."""

import functools
import itertools
import json
import math
import re
import unicodedata
from html.parser import HTMLParser

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import privug as pv
from privug.report.page import measured_roundings, page, what_to_try

pytest.importorskip("jinja2")
VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """What a browser makes of a page: elements with their attributes, headings, and the text that is shown."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.headings, self.shown, self.open = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open and re.fullmatch("h[1-6]", self.open[-1]):
            self.headings.append((int(self.open[-1][1]), text))
        self.shown.append(text)


def mean_age(records):
    known = 1  # a line that the secret does not go through
    return sum(row.age for row in records) / len(records) + 0 * known


def attack(name="curious", **options):
    def person(i):
        return pv.Row(age=pv.Uniform(0, 100) if i == 0 else pv.Normal(55.2, sd=3.5))

    questions = {"Alice is under 18": lambda age: age < 18}
    return pv.Attack(
        mean_age, {"records": pv.Records(10, person)}, lambda records: records[0].age, questions=questions, name=name
    )


@pytest.fixture(scope="module")
def result():
    return attack().run(pv.near(53.0, within=0.05))


def test_the_page_leads_with_the_verdict_and_says_all_that_an_assessor_asks(result, tmp_path):
    text = result.save(tmp_path / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    shown = " ".join(" ".join(page.shown).split())
    verdict = "becomes 7.3 % sure (was 18 %) that Alice is under 18."
    assert shown.index(verdict) < shown.index("ISO/IEC 27559")
    words = ("Inference", "Singling out", "Linkability", "context", "data", "identifiability", "mitigation")
    assert [word for word in words if word not in shown] == []
    for part in ("exact (sums)", "seed=0", "pv.near(53.0, within=0.05)", "--seed 0", "numpy", "Glossary", "33.2"):
        assert part in shown
    levels = [level for level, _ in page.headings]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    tags = [tag for tag, _ in page.elements]
    assert {"main", "header", "nav", "footer"} <= set(tags)
    assert all("scope" in attributes for tag, attributes in page.elements if tag == "th")
    marked = re.findall(r"<mark><i>\d+</i>(.*?)</mark>", text)
    assert marked == ["    return sum(row.age for row in records) / len(records) + 0 * known"]


def test_the_page_needs_no_script_and_nothing_from_elsewhere(result, tmp_path):
    page = Page(result.save(tmp_path / "report.html").read_text(encoding="utf-8"))
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in page.elements}
    for tag, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on")], tag
        for name in ("src", "href", "xlink:href", "action"):
            assert attributes.get(name, "#").startswith("#"), (tag, attributes)
    assert "@import" not in "".join(page.shown)
    pictures = [attributes for tag, attributes in page.elements if tag == "svg"]
    assert len(pictures) == 1
    assert "mean 50 before and 33.2" in pictures[0]["aria-label"]


def test_several_attacks_are_compared_first(result, tmp_path):
    other = attack("<b>other</b>").run(pv.near(56.0, within=0.05))
    text = pv.save_report(tmp_path / "r.html", [result, other], title="Two attackers").read_text(encoding="utf-8")
    headings = Page(text).headings
    assert [words for level, words in headings if level == 2][:3] == ["Comparison", "curious", "<b>other</b>"]
    assert headings[0] == (1, "Two attackers")
    plain = json.loads(pv.save_report(tmp_path / "r.json", [result, other]).read_text(encoding="utf-8"))
    assert [one["attack"] for one in plain] == ["curious", "<b>other</b>"]
    assert plain[0]["beliefs"][0]["after"]["value"] == result.posterior.probability(lambda age: age < 18).value
    told = pv.save_report(tmp_path / "r.txt", [result, other]).read_text(encoding="utf-8")
    assert "<b>other</b>: An attacker" in told
    with pytest.raises(pv.ArgumentError, match="a list of results"):
        pv.save_report(tmp_path / "r.html", [])


def missing():
    raise pv.ArgumentError("plot needs matplotlib: pip install 'privug[plot]'")


def test_without_matplotlib_there_is_a_report_without_a_picture(result, monkeypatch, tmp_path):
    monkeypatch.setattr("privug.report.page.plots", missing)
    text = result.save(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "There is no picture: plot needs matplotlib" in text
    assert "<svg" not in text


def test_without_jinja2_the_extra_is_named_and_notebooks_do_without(result, monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    with pytest.raises(pv.ArgumentError, match=r"pip install 'privug\[report\]'"):
        result.save(tmp_path / "report.html")
    assert "7.3 %" in result._repr_html_()


def test_what_the_report_suggests_runs_as_it_stands(capsys):
    prior = {"ages": pv.Array(pv.DiscreteUniform(10, 25), 2)}
    questions = {"the first is a child": lambda age: age < 18}
    asked = pv.Attack(lambda ages: sum(age < 18 for age in ages), prior, lambda ages: ages[0], questions=questions)
    for advice in what_to_try(dict.fromkeys(questions, 0.5)):
        exec(advice.code, {"pv": pv, "attack": asked})
        assert capsys.readouterr().out.strip(), advice.name


def test_what_the_report_suggests_asks_the_same_attacker(capsys):
    """Who knows that x > y holds x for 1, 2 or 3 with 1, 2 and 3 of 6 pairs: less to find out than among 0 to 3."""
    prior = {"x": pv.DiscreteUniform(0, 3), "y": pv.DiscreteUniform(0, 3)}
    asked = pv.Attack(lambda x, y: x + y, prior, "x", assume=lambda x, y: x > y, observe=pv.equals(3))
    entropy = -sum(k / 6 * math.log2(k / 6) for k in (1, 2, 3))
    for advice in what_to_try({})[:3]:
        exec(advice.code, {"pv": pv, "attack": asked})
        before = next(line for line in capsys.readouterr().out.splitlines() if "entropy before" in line)
        assert f"{entropy:.2f} bit" in before, advice.name


def test_one_sentence_without_questions():
    prior = {"x": pv.DiscreteUniform(0, 1), "y": pv.DiscreteUniform(0, 1)}
    seen = pv.Attack(lambda x, y: x + y, prior, "x")
    told = "An attacker who knows the distributions of x and y and sees that the output is 2 "
    assert seen.run(pv.equals(2)).summary() == told + "becomes 100 % sure (was 50 %) that x is 1."
    assert seen.run().summary().endswith("x is 0; nothing was observed, so this says nothing about what leaks.")
    salary = pv.Attack(lambda s: s, {"s": pv.Uniform(20_000, 120_000)}, "s").run(pv.between(90_000, 100_000))
    before = "where it was between 25,000 and 115,000 before."
    assert salary.summary().endswith(f"90 % sure that s lies between 90,500 and 99,500, {before}")
    assert "95,000" in str(salary)


def test_a_tuple_of_secrets_is_told_part_by_part():
    prior = {"age": pv.DiscreteUniform(0, 99), "ill": pv.Choice(["yes", "no"])}
    found = pv.Attack(lambda age, ill: age // 10, prior, ["age", "ill"]).run(pv.equals(3))
    lines = {line.label: line for line in found.content.comparisons}
    assert lines["age: mean"].after.value == pytest.approx(34.5)
    assert lines["ill: P('yes')"].after.value == pytest.approx(0.5)


@pytest.mark.parametrize(
    "shown",
    [
        lambda r: r.attack,
        lambda r: r,
        lambda r: r.posterior,
        lambda r: r.posterior.mean(),
        lambda r: pv.sweep(flip, p=[0.5], measures=["bayes_risk"]),
        lambda r: pv.compare(attackers={"a": {"x": pv.Bernoulli(0.5)}}, programs={"id": lambda x: x}, secret="x"),
        lambda r: pv.calibrate(flip, measure="mutual_information", at_most=0.7, find="smallest", p=(0.5, 0.99)),
        lambda r: pv.policy.check(flip(0.5), pv.policy.max_belief(at_most=0.6)),
        lambda r: pv.policy.Monitor({"x": pv.Bernoulli(0.5)}, "x", pv.policy.max_belief(at_most=0.9)),
    ],
)
def test_notebooks_show_every_object_as_whole_html(shown, result):
    page = Page(shown(result)._repr_html_())
    assert page.open == []
    assert "".join(page.shown).strip()


def flip(p):
    return pv.Attack(lambda x: x, {"x": pv.Bernoulli(p)}, "x")


@pytest.fixture
def no_pictures(monkeypatch):
    """Pictures are drawn by another test: they take most of the time."""
    monkeypatch.setattr("privug.report.page.plots", missing)


nasty = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        [
            "</td><script>alert(1)</script>",
            "'><img src=x onerror=alert(1)>",
            "\x1b]0;owned\x07\x1b[31m",
            "$\\frac{1}{$",
            "=cmd|' /C calc'!A0",
            "{{ 7 * 7 }}{% raw %}",
            "</style></pre><!--",
            "\u202eevil\u2066",
            "a" * 5000,
        ]
    ),
)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(nasty, nasty, nasty)
def test_no_text_does_anything(no_pictures, name, category, claim):
    """The same elements whatever the texts are, no control characters, and JSON that gives the texts back."""
    asked = pv.Attack(
        lambda x: x, {"x": pv.Choice(["a", f"b{category}"])}, "x", name=name, questions={claim: lambda x: x == "a"}
    )
    found = asked.run(pv.equals(f"b{category}"))
    text = pv.Result.formats[".html"]([found], "")
    page = Page(text)
    skeleton = Page(pv.Result.formats[".html"]([harmless()], "")).elements
    assert [tag for tag, _ in page.elements if tag in INERT] == [tag for tag, _ in skeleton if tag in INERT]
    assert not [a for _, attributes in page.elements for a in attributes if a.startswith("on")]
    for shown in (text, str(found), found._repr_html_(), found.to_json()):
        assert {c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")} <= {"\n"}
    assert json.loads(found.to_json())["attack"] == found.attack.name
    assert "a" * 2000 not in str(found)


INERT = {
    "script",
    "style",
    "img",
    "svg",
    "p",
    "table",
    "tr",
    "th",
    "td",
    "dt",
    "dd",
    "pre",
    "h1",
    "h2",
    "h3",
    "section",
}


@functools.cache
def harmless():
    asked = {"it is a": lambda x: x == "a"}
    return pv.Attack(lambda x: x, {"x": pv.Choice(["a", "b"])}, "x", questions=asked).run(pv.equals("b"))


def test_no_text_does_anything_in_a_picture():
    texts = ["</svg><script>", "$\\frac{$ \x1b[31m", "b" * 5000]
    text = pv.Result.formats[".html"]([pv.Attack(lambda x: x, {"x": pv.Choice(texts)}, "x").run()], "")
    page = Page(text)
    assert [tag for tag, _ in page.elements if tag in ("script", "svg")] == ["svg"]
    assert "\x1b" not in text
    assert "b" * 500 not in text


def test_roundings_are_measured_on_what_is_known():
    """The sum of two fair dice of four faces has a standard deviation of 1.58."""
    dice = pv.Attack(lambda x, y: x + y, {"x": pv.DiscreteUniform(1, 4), "y": pv.DiscreteUniform(1, 4)}, "x")
    measured = dict(measured_roundings(dice.run().joint))
    assert sorted(measured) == [2.0, 3.0]
    rounded = dice.replace(program=lambda x, y: round((x + y) / 2) * 2)
    truth = pv.leakage.mutual_information(rounded.run().joint)
    assert measured[2.0].value == pytest.approx(truth.value, abs=1e-12)
    assert measured[2.0].exact


def test_the_page_says_what_rounding_leaves_and_which_numbers_are_to_be_chosen():
    dice = pv.Attack(lambda x, y: x + y, {"x": pv.DiscreteUniform(1, 4), "y": pv.DiscreteUniform(1, 4)}, "x")
    text = page([dice.run()])
    assert "An output tells 0.656 bit about the secret on average; rounded, " in text
    assert "bit to multiples of 2" in text
    assert "The step to= is yours to choose." in text
    assert "pv.mechanisms.rounded(attack.question.program, to=3)" in text


def test_beliefs_about_different_secrets_are_not_compared():
    prior = {"x": pv.DiscreteUniform(0, 3), "y": pv.DiscreteUniform(0, 3)}
    one, other = (pv.Attack(lambda x, y: x + y, prior, secret, name=f"about {secret}") for secret in ("x", "y"))
    different = page([one.run(pv.equals(3)), other.run(pv.equals(3))])
    assert "The secrets differ (x and y), so the numbers are not compared." in different
    assert "What each attacker believes" not in different
    assert "What each attacker believes" in page([one.run(pv.equals(3)), one.run(pv.equals(4))])
