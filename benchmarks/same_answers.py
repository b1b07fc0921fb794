"""Whether a change of the code changed any answer: bits of many attacks, through every engine, before and after.

    python benchmarks/same_answers.py before.json [exact sample auto rare pymc numpyro]     # on the old code
    python benchmarks/same_answers.py after.json [exact sample auto rare pymc numpyro]      # on the new code
    python benchmarks/same_answers.py --compare before.json after.json

The questions are those of `tests/engine_questions.py` and `tests/agreement_questions.py`. Answers are hashed bit by
bit, so they are the same only on one machine and with the same libraries; refusals are compared by their words.
"""

import hashlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import privug as pv

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from agreement_questions import posed
from engine_questions import QUESTIONS

OPTIONS: dict[str, dict[str, Any]] = {
    "exact": {},
    "sample": {"samples": 500, "budget": 100_000},
    "auto": {"samples": 500, "budget": 100_000},
    "rare": {"samples": 200},
    "pymc": {"samples": 1000},
    "numpyro": {"samples": 1000},
}
FEW = {
    "rare": ["maximum", "two dice", "an atom", "a branch", "six deviations", "product", "randomized response"],
    "pymc": ["a population's mean", "sum of normals in a window", "laplace noise"],
    "numpyro": ["a population's mean", "sum of normals in a window", "laplace noise"],
}


def questions() -> list[tuple[str, pv.Attack, Any]]:
    """Return the questions, each with its name and what is seen."""
    known = [(question.name, question.attack, question.observation) for question in QUESTIONS]
    drawn = [(f"random question {number}", posed(number)) for number in range(40)]
    return known + [(name, question.attack, question.observation) for name, question in drawn]


def bits(belief: pv.Belief) -> str:
    """Return a hash of a belief's values and weights, to the last bit."""
    weights = b"" if belief.weights is None else np.ascontiguousarray(belief.weights).tobytes()
    return hashlib.sha256(repr(belief.batch.values()).encode() + weights).hexdigest()[:16]


def answer(attack: pv.Attack, observation: Any, engine: str) -> dict[str, str]:
    """Ask an engine and return what it says, as hashes and words."""
    try:
        result = attack.run(observe=observation, engine=engine, seed=3, **OPTIONS[engine])
    except pv.PrivugError as refusal:
        return {"refused": f"{type(refusal).__name__}: {refusal}"}
    found = {"engine": result.engine, "evidence": repr(result.diagnostics.evidence)}
    found |= {"posterior": bits(result.posterior), "prior": bits(result.prior)}
    for measure in ("mutual_information", "bayes_risk"):
        try:
            found[measure] = repr(getattr(pv.leakage, measure)(result.joint))
        except pv.PrivugError as refusal:
            found[measure] = f"{type(refusal).__name__}: {refusal}"
    return found


def main(arguments: list[str]) -> int:
    """Write the answers down, or compare what was written."""
    if arguments[0] == "--compare":
        before, after = (json.loads(Path(name).read_text()) for name in arguments[1:])
        differing = [name for name in before if before[name] != after.get(name)]
        for name in differing:
            print(name, *(f"  {key}: {value} -> {after.get(name, {}).get(key)}" for key, value in before[name].items()
                          if after.get(name, {}).get(key) != value), sep="\n")  # fmt: skip
        print(f"{len(before) - len(differing)} of {len(before)} answers are the same")
        return bool(differing)
    warnings.simplefilter("ignore")
    written, engines = {}, arguments[1:] or list(OPTIONS)
    for name, attack, observation in questions():
        for engine in engines:
            if engine not in FEW or name in FEW[engine]:
                written[f"{name}, {engine}"] = answer(attack, observation, engine)
    Path(arguments[0]).write_text(json.dumps(written, indent=1))
    print(f"{len(written)} answers")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
