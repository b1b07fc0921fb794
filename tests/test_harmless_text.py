"""Text from data is shown and does nothing: no escapes of terminals, no turned writing, no markup, no formulas."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

import privug as pv
from privug.escaping import inert

NASTY = (
    "\x1b[31mred\x1b]0;title\x07 \x00nul \x9bcsi \u202eright-to-left\u2066 \u200bnothing \ufeff \ud800half \u2028line "
    "\r\x08\x7f [bold]rich[/bold] :smile: <script>alert(1)</script> & $x^{$ \t\n two"
)


def acts(text, keep="\n"):
    """Return the characters of a text that do something rather than show something."""
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in keep}


def program(x):
    return x


program.__name__ = NASTY


def attack(**options):
    named = {"questions": {NASTY: lambda x: x == "a"}, "name": NASTY, **options}
    return pv.Attack(program, {"x": pv.Choice([NASTY, "a", "b"])}, "x", **named)


def table():
    return [pv.Row(**{NASTY: NASTY, "age": age, "ill": ill}) for age, ill in ((1, NASTY), (2, "no"), (2, NASTY))]


def risks():
    return pv.reidentification.three_risks(table(), ["age"], NASTY, person=0)


def linked():
    public = [{"who": NASTY, "age": 1}, {"who": "b", "age": 2}]
    return pv.reidentification.link(table(), public, ["age"], "ill", name="who")


TEXTS = {
    "result": lambda: str(attack().run(pv.equals(NASTY))),
    "html": lambda: attack().run()._repr_html_(),
    "side by side": lambda: pv.side_by_side(NASTY, [attack().run(), attack(name="x").run()]),
    "json": lambda: attack().run().to_json(),
    "repr": lambda: repr(attack().run()),
    "observation": lambda: str(pv.such_that(program)),
    "estimate": lambda: str(attack().run().prior.probability(lambda x: x == NASTY)),
    "leakage": lambda: str(attack().run().leakage()),
    "lifting": lambda: str(pv.explain(lambda x: {}[x + NASTY], x=pv.Choice(["a", "b"]))),
    "sweep": lambda: str(pv.sweep(lambda n: attack(name=n), n=[NASTY], measures=["mutual_information"])),
    "sweep html": lambda: pv.sweep(lambda n: attack(name=n), n=[NASTY], measures=["bayes_risk"])._repr_html_(),
    "sweep json": lambda: pv.sweep(lambda n: attack(name=n), n=[NASTY], measures=["bayes_risk"]).to_json(),
    "comparison": lambda: str(_compared()),
    "comparison html": lambda: _compared()._repr_html_(),
    "comparison json": lambda: _compared().to_json(),
    "risks": lambda: str(risks()),
    "quasi-identifiers": lambda: str(pv.reidentification.quasi_identifiers(table(), person=0)),
    "linked": lambda: str(linked()),
    "audit": lambda: str(pv.mechanisms.audit(_mechanism(), [(NASTY, "a")])),
}  # fmt: skip


def _compared():
    priors = {NASTY: {"x": pv.Choice(["a", "b"])}}
    return pv.compare(attackers=priors, programs={NASTY: lambda x: x}, secret="x", measures=["bayes_risk"])


def _mechanism():
    return pv.mechanisms.randomized_response(program, epsilon=1.0, values=[NASTY, "a"])


@pytest.mark.parametrize("case", TEXTS)
def test_every_text_is_harmless(case):
    text = TEXTS[case]()
    assert acts(text) == set()
    text.encode()
    if "html" in case:
        assert "<script>" not in text
    elif case in ("result", "sweep", "comparison"):
        assert "[bold]rich[/bold] :smile:" in text


def test_json_keeps_the_text_as_it_was():
    assert json.loads(attack().run().to_json())["attack"] == NASTY


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: pv.Attack(program, {NASTY: 1}, "x"),
        lambda: attack().run(engine=NASTY),
        lambda: attack().run(pv.equals(f"not {NASTY}")),
        lambda: pv.Records.from_frame({NASTY: [1, None]}),
        lambda: pv.Records.from_frame({"a": [1]}, columns=[NASTY]),
        lambda: pv.read_columns(f"/tmp/{NASTY.replace(chr(0), '')}"),
        lambda: pv.reidentification.three_risks(table(), ["age"], f"no {NASTY}", person=0),
        lambda: attack().run().save(NASTY),
    ],
)
def test_every_error_is_harmless(wrong):
    with pytest.raises(pv.PrivugError) as caught:
        wrong()
    assert acts(str(caught.value)) == set()


@given(st.text())
def test_inert_text_only_shows_and_plain_text_stays(text):
    assert acts(inert(text), keep="") == set()
    assert acts(inert(text, keep="\n")) == set()
    if not acts(text, keep=""):
        assert inert(text) == text


def test_saved_reports_are_harmless(tmp_path):
    for ending in ("html", "htm", "txt", "json", "TXT"):
        path = attack().run().save(tmp_path / f"report.{ending}")
        assert acts(path.read_text(encoding="utf-8")) == set()


@pytest.mark.parametrize("name", ["report.pdf", "report.png", "report", "report.docx", ".html.pdf"])
def test_a_report_is_not_written_in_a_format_that_is_not_known(tmp_path, name):
    with pytest.raises(pv.ArgumentError, match=r"\.html, \.htm, \.txt, \.json"):
        attack().run().save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
