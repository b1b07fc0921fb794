"""The soak finds nothing in a short while, and would say so if it did."""

import importlib.util
import random
import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parents[1] / "tools" / "soak.py"


@pytest.fixture
def soak(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec = importlib.util.spec_from_file_location("soak", SOAK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_wrong_answer_is_noticed(soak, monkeypatch, tmp_path):
    seeds = range(4)
    assert not [problem for seed in seeds for problem in soak.pipeline(random.Random(seed), tmp_path)]
    right = soak.posterior_by_listing

    def wrong(*arguments):
        posterior, evidence = right(*arguments)
        first = min(posterior)
        return {**posterior, first: posterior[first] * 0.7}, evidence

    monkeypatch.setattr(soak, "posterior_by_listing", wrong)
    problems = [problem for seed in seeds for problem in soak.pipeline(random.Random(seed), tmp_path)]
    assert {problem.partition(":")[0] for problem in problems} == {"exact", "sample"}


@pytest.mark.slow
def test_a_short_soak_finds_nothing():
    ended = subprocess.run([sys.executable, SOAK, "--seconds", "20"], capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "0 problems" in ended.stdout
