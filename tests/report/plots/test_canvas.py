"""What pictures are drawn on: labels that only show, plain digits, files, and SVG to stand inside a page."""

import re
import sys
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from matplotlib import pyplot
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cbook import is_math_text

import privug as pv
from privug.escaping import inert
from privug.inference.belief import Belief
from privug.inference.measure.curve import Curve
from privug.report import plots
from privug.report.plots.canvas import digits, label, tick, wrapped

HOSTILE = (
    "_$x^{\\frac$ <script>alert(1)</script> --> ]]> & \x1b[31m \n \r \t \x00 \u202e \ud800 日本 😀 %s {0} \\$ "
    + "w" * 500
)

ACTING = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2028\u2029\ud800-\udfff]")


def texts_of(svg):
    """Return the texts of a picture as a reader sees them; the XML must be well-formed for that."""
    root = ElementTree.fromstring(svg)
    return ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]


NUMBER = pv.Estimate(0.5, 0.4, 0.6, unit=HOSTILE)
TOLD = Belief.of([HOSTILE, "b"], probabilities=[0.7, 0.3])
COUNT = Belief.of([1, 2], probabilities=[0.4, 0.6])
JOINT = pv.Joint.from_channel([0.5, 0.5], [[1, 0], [0, 1]], secrets=[HOSTILE, "b"], outputs=[HOSTILE, "c"])
TWO = [NUMBER] * 2
# A picture of each kind, in which a text from outside appears wherever one can.
PICTURES = {
    "categories": lambda name: plots.beliefs([(name, TOLD, TOLD), (name, TOLD, None)], name=name),
    "numbers": lambda name: plots.beliefs([(name, COUNT, COUNT), (name, COUNT, None)], name=name),
    "density": lambda name: plots.belief(Belief.of_curve(Curve.normal(0, 1)), name=name),
    "joint": lambda name: JOINT.named(name, name).plot(observation=pv.equals(name)),
    "heat map": lambda name: plots.heat_map(name, [name], [name, "b"], [TWO]),
    "sweep": lambda name: plots.sweep_lines(
        name, [1, 2], {name: {name: TWO, "b": TWO}, f"{name}2": {name: [None] * 2}}
    ),
    "trade-off": lambda name: plots.trade_off(name, [name, 2], (name, {name: TWO}), (name, {name: TWO})),
    "calibration": lambda name: plots.calibration(name, [(1.0, NUMBER), (2.0, NUMBER)], (name, 0.5), (1.0, (1.0, 2.0))),
    "bars": lambda name: plots.bars([(name, NUMBER, 0.5), ("b", NUMBER)], name=name),
    "sequence": lambda name: plots.sequence([("before", TOLD), (name, TOLD, True)], name=name),
}


@pytest.mark.parametrize("kind", PICTURES)
def test_texts_from_outside_are_shown_in_pictures_and_do_nothing(kind):
    svg = plots.inline_svg(PICTURES[kind](HOSTILE), HOSTILE)
    assert "<script" not in svg
    assert not ACTING.search(svg.replace("\n", ""))
    told = [text for text in texts_of(svg) if "x^" in text]
    assert told
    assert all(text.strip().startswith("_$x^{\\fra") for text in told if text.strip().startswith("_"))
    assert max(map(len, texts_of(svg))) <= 100


@given(st.text(), st.integers(2, 60))
@example(HOSTILE, 60)
@example("$a$ \\$ $", 60)
def test_labels_are_texts_and_no_formulas(text, longest):
    for shown in (label(text, longest), tick(text), *wrapped(text, longest).split("\n")):
        assert not ACTING.search(shown)
        assert not is_math_text(shown)
    shown = label(text, longest).replace(r"\$", "$")
    assert len(shown.removeprefix(" ")) <= longest
    assert inert(text).startswith(shown.removesuffix("…")) or shown.startswith(" _")


def test_a_long_text_leaves_room_for_the_picture(tmp_path):
    axes = Belief.of([HOSTILE, "b"], probabilities=[0.7, 0.3]).plot(tmp_path / "long.png", name=HOSTILE)
    axes.figure.canvas.draw()
    assert axes.get_position().width > 0.4


def test_axes_have_plain_digits():
    belief = Belief.of(np.random.default_rng(1).normal(96_840, 9000, 2000))
    axes = belief.plot(name="salary")
    FigureCanvasAgg(axes.figure).draw()
    written = [text.get_text() for text in axes.get_xticklabels()]
    assert "100,000" in written
    assert axes.xaxis.get_offset_text().get_text() == ""
    assert [digits(number) for number in (0.0, -1500.5, 2.5e7, 1e-3, 1e20)] == [
        "0", "-1,500.5", "25,000,000", "0.001", "1e+20",
    ]  # fmt: skip
    assert digits(-0.25) == "-0.25"


def test_ticks_and_wrapped_names():
    assert tick(("a", 1, 2.5)) == "a, 1, 2.5"
    assert tick("a" * 100) == "a" * 23 + "…"
    assert wrapped("one two three four", 8) == "one two\nthree f…"
    assert label("_hidden") == " _hidden"  # matplotlib leaves out of legends what begins with an underscore


def test_svg_for_a_page_is_the_same_each_time_and_needs_nothing_from_elsewhere():
    def drawn(alt):
        result = pv.Attack(lambda bit: bit, {"bit": pv.Bernoulli(0.3)}, "bit").run(pv.equals(1))
        return plots.inline_svg(result.plot(), alt)

    one, other = drawn('says "<b>"'), drawn("another")
    assert one == drawn('says "<b>"')
    assert one.startswith('<svg role="img" aria-label="says &quot;&lt;b&gt;&quot;"')
    root = ElementTree.fromstring(one)
    assert root.find("{http://www.w3.org/2000/svg}title").text == 'says "<b>"'
    assert not re.search(r"metadata|<style|<!DOCTYPE|<\?xml|20\d\d-\d\d", one)
    assert set(re.findall(r"https?://[^\"]*", one)) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    references = re.findall(r"(?:url\(|href=\")([^)\"]*)", one)
    assert references
    assert all(reference.startswith("#") for reference in references)
    ids = re.findall(r' id="([^"]*)"', one + other)
    assert len(ids) == len(set(ids))  # two pictures on a page do not take each other's patterns


def test_the_users_settings_do_not_change_pictures():
    belief = Belief.of([1, 2], probabilities=[0.5, 0.5])
    plain = plots.inline_svg(belief.plot(), "x")
    with matplotlib.rc_context({"axes.facecolor": "black", "font.size": 30, "text.parse_math": False}):
        assert plots.inline_svg(belief.plot(), "x") == plain


def test_a_path_that_cannot_be_written(tmp_path):
    belief = Belief.of([1, 2], probabilities=[0.5, 0.5])
    for path in (tmp_path / "no" / "such.png", tmp_path / "picture.xyz"):
        with pytest.raises(pv.ArgumentError, match="cannot be written"):
            belief.plot(path)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    belief = Belief.of([1, 2], probabilities=[0.5, 0.5])
    for name in [name for name in sys.modules if name.startswith("privug.report.plots")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(pv.ArgumentError, match=r"pip install 'privug\[plot\]'"):
        belief.plot()


def test_where_figures_are_shown_at_once_they_are_pyplots():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    belief = Belief.of([1, 2], probabilities=[0.5, 0.5])
    assert belief.plot().figure.number is None if hasattr(belief.plot().figure, "number") else True
    with matplotlib.rc_context({"interactive": True}):
        axes = belief.plot()
    assert pyplot.fignum_exists(axes.figure.number)
    pyplot.close(axes.figure)


def test_ink_and_paper_follow_the_page():
    svg = plots.inline_svg(pv.Attack(lambda x: x, {"x": pv.Uniform(0, 1)}, "x").run().plot(), "a belief")
    assert "currentColor" in svg
    assert "var(--paper, #ffffff)" in svg
    assert ": #000000" not in svg


def test_a_picture_shows_itself_in_a_notebook():
    """A notebook asks the last value of a cell for its picture; pyplot's own figures it shows without being asked."""
    belief = pv.Attack(lambda x: x, {"x": pv.Uniform(0, 1)}, "x").run().prior
    assert belief.plot()._repr_png_().startswith(b"\x89PNG")
    figure, axes = pyplot.subplots()
    assert not hasattr(belief.plot(ax=axes), "_repr_png_")
    pyplot.close(figure)
