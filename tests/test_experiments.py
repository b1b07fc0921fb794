"""The experiments of the paper: the framework they share, and what they find."""

import json
import math
import re

import pytest

import privug as pv
from privug.cli.reproduce import experiments as module

experiment = module("experiment")
findings = module("findings")
runner = module("runner")
Line, Findings = findings.Line, findings.Findings
ALL = list(experiment.experiments())


@pytest.mark.parametrize(
    ("found", "exact", "verdict"),
    [
        (pv.Estimate.exactly(0.2002690), 0.200269, True),
        (pv.Estimate.exactly(0.2002702), 0.200269, False),  # an exact answer has no interval to hide in
        (pv.Estimate(0.3, 0.2, 0.4), 0.399, True),
        (pv.Estimate(0.3, 0.2, 0.4), 0.401, False),  # and a sampled one is not widened
        (pv.Estimate.exactly(63.3066), "63.307", True),
        (pv.Estimate.exactly(63.3066), 63.307, False),
        (pv.Estimate.exactly(math.inf), math.inf, True),
        (12.0, math.inf, False),
        (0.0, 0.0, True),
        (1e-9, 0.0, False),  # zero has no last digit
        (pv.Estimate(0.0, 0.0, 0.0004), 1e-9, True),
        (pv.Estimate.undefined("no mean"), 1.0, True),  # leaves everything open, and says so
        ("3.2 s", 1.0, None),
        (0.5, None, None),
    ],
)
def test_agreement_is_to_the_printed_digits_or_inside_the_interval(found, exact, verdict):
    assert Line("a", found, exact).agrees is verdict


def test_closed_forms_are_those_of_counting():
    governor = module("governor")
    from itertools import product

    rows = list(product(range(3), repeat=5))
    alone = sum(all(row.count(value) != 1 for value in range(3)) for row in rows)
    assert governor.none_alone(5, 3) == pytest.approx(alone / len(rows), rel=1e-14)
    assert governor.all_ill(1_000, ("zip",)) == pytest.approx(0.01824, abs=5e-6)


def test_quadrature_gives_the_published_exact_values():
    belief = module("ages").KnowsABit(3.5)
    assert (round(belief.mean, 3), round(belief.sd, 3), round(belief.below(18), 5)) == (63.307, 16.673, 0.00447)
    assert round(belief.mutual_information, 3) == 0.912


def test_the_spectrum_of_one_income_and_noise_is_the_closed_form():
    spectrum = module("differential_privacy").Spectrum(0, 2.0)
    grid, density = spectrum.on_grid
    assert density.sum() * (grid[1] - grid[0]) == pytest.approx(1, abs=1e-12)
    assert (density * (grid - 82.875) ** 2).sum() * 0.02 == pytest.approx(8 + 195 * 100 / 12 / 200**2, rel=1e-9)


def test_the_appendix_from_the_run_to_the_page(tmp_path):
    code = runner.reproduce([experiment.experiments()["appendix"]], tmp_path)
    stored = json.loads((tmp_path / "appendix.json").read_text(encoding="utf-8"))
    values = {line["quantity"]: line["privug"]["value"] for line in stored["lines"]}
    assert code == 0
    assert values["P(o = 1)"] == pytest.approx(3 / 9, rel=1e-12)
    assert values["P(o = 2)"] == pytest.approx(1 / 9, rel=1e-12)
    assert all(line["agrees"] for line in stored["lines"])
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 1
    assert (tmp_path / "appendix-1.svg").read_text(encoding="utf-8") in page
    assert not re.search(r'(?:src|href)="(?!#)', page.replace('xlink:href="#', ""))  # nothing from elsewhere


def test_five_who_share_a_zip():
    lines = module("sensitive_attribute").run().lines
    assert [float(line.privug) for line in lines] == pytest.approx([0.4096, 0.4096, 0.1536, 0.0256, 0.0016], rel=1e-9)
    assert all(line.agrees for line in lines)


def broken(name, run, monkeypatch):
    monkeypatch.setattr(module(name), "run", run)
    return experiment.experiments()[name]


def test_an_experiment_that_fails_is_reported_and_others_go_on(tmp_path, monkeypatch, capsys):
    def fail():
        raise ZeroDivisionError("<b>\x1b[31m")

    failing = broken("linking", fail, monkeypatch)
    code = runner.reproduce([failing, experiment.experiments()["appendix"]], tmp_path)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert code == 1
    assert r"ZeroDivisionError: &lt;b&gt;\x1b[31m" in page
    assert "5 of 5 exact values met" in page
    assert "failed: linking" in capsys.readouterr().err


def test_a_missed_value_is_an_exit_code_and_stands_out(tmp_path, monkeypatch, capsys):
    missed = broken("linking", lambda: Findings([Line("wrong", 1.0, 2.0), Line("right", 2.0, 2.0)]), monkeypatch)
    assert runner.reproduce([missed], tmp_path) == 1
    assert '<td class="missed">NO</td>' in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "NO" in capsys.readouterr().out


def test_numbers_are_there_without_matplotlib(tmp_path, monkeypatch, capsys):
    drawing = module("drawing")

    def missing():
        raise ModuleNotFoundError("No module named 'matplotlib'")

    monkeypatch.setattr(drawing, "canvas", missing)
    assert runner.reproduce([experiment.experiments()["appendix"]], tmp_path) == 0
    shown = capsys.readouterr()
    assert "pip install 'privug[report]'" in shown.err
    assert "0.333333 (exact)" in shown.out
    assert (tmp_path / "index.html").exists()
    assert not list(tmp_path.glob("*.svg"))


def test_ctrl_c_keeps_what_was_found(tmp_path, monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    stopped = broken("linking", interrupted, monkeypatch)
    assert runner.reproduce([experiment.experiments()["appendix"], stopped], tmp_path) == 130
    assert "Half the sum" in (tmp_path / "index.html").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_every_exact_value_is_met(name, tmp_path):
    assert runner.reproduce([experiment.experiments()[name]], tmp_path) == 0
