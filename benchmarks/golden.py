"""The golden record: what every engine answers to many questions, bit by bit, so that a change of the code is seen.

    make golden                                  # compare with the record in benchmarks/golden.json
    python benchmarks/golden.py --write          # write it anew: the commit says which answers changed, and why
    python benchmarks/golden.py --only releases  # some of the questions: releases cases counts engines random frames

Numbers are kept as hexadecimal floats, beliefs and draws as hashes of their bits. They are the same on one kind of
machine with the same libraries; elsewhere last digits differ, and the comparison says by how much. Refusals are
compared by their words.
"""

import argparse
import hashlib
import json
import math
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

import privug as pv

HERE = Path(__file__).parent
RECORD = HERE / "golden.json"
sys.path.insert(0, str(HERE.parent / "tests"))

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
MEASURES = ("mutual_information", "bayes_risk")
SLOW = ("a table of random size, rates",)  # takes longer than all others together

Posed = tuple[str, pv.Attack, Any, str]
"""The name of a question, the attack, what is seen, and the engine."""


def releases() -> Iterator[Posed]:
    """Yield the typical releases."""
    from oracles.releases import RELEASES

    for name, release in RELEASES.items():
        yield name, release.attack(), release.observation, "auto"


def cases() -> Iterator[Posed]:
    """Yield the published cases that have a prior; the others are samples or numbers alone."""
    from oracles.cases import CASES, attack, observation

    for name, case in CASES.items():
        if all(isinstance(law, dict) for law in case["prior"].values()):
            yield name, attack(case), observation(case), "auto"


def counts() -> Iterator[Posed]:
    """Yield the tables of counts."""
    from oracles.count_tables import TABLES

    for name, table in TABLES.items():
        if name not in SLOW:
            yield name, table.attack(), pv.equals(table.observed()), "auto"


def engines() -> Iterator[Posed]:
    """Yield questions for every engine, with one seed each."""
    from engine_questions import QUESTIONS

    for question in QUESTIONS:
        for engine in OPTIONS:
            if engine not in FEW or question.name in FEW[engine]:
                yield f"{question.name}, {engine}", question.attack, question.observation, engine


def random() -> Iterator[Posed]:
    """Yield random questions."""
    from agreement_questions import posed

    for number in range(40):
        question = posed(number)
        for engine in ("exact", "sample", "auto"):
            yield f"random question {number}, {engine}", question.attack, question.observation, engine


def frames() -> Iterator[Posed]:
    """Yield the programs of the corpora, of whose outputs draws are taken."""
    from corpus.table import ALL_THEMES

    for theme, entries in ALL_THEMES.items():
        for entry in entries:
            prior = entry.prior()
            yield (
                f"{theme}, {entry.name}",
                pv.Attack(entry.program, prior, list(prior), on_error=entry.on_error),
                None,
                "draws",
            )


GROUPS = {group.__name__: group for group in (releases, cases, counts, engines, random, frames)}


def estimate(found: pv.Estimate | None) -> str:
    """Return an estimate to the last bit."""
    if found is None:
        return "none"
    numbers = " ".join(float(number).hex() for number in (found.value, found.low, found.high))
    return f"{numbers} {found.unit} ({found.method})"


def bits(belief: pv.Belief) -> str:
    """Return a hash of a belief's values and weights, to the last bit, and its mean where it has one."""
    weights = b"" if belief.weights is None else np.ascontiguousarray(belief.weights).tobytes()
    hashed = hashlib.sha256(repr(belief.batch.values()).encode() + weights).hexdigest()[:16]
    try:
        return f"{hashed} mean {estimate(belief.mean())}"
    except pv.PrivugError:
        return hashed


def answer(attack: pv.Attack, observation: Any, engine: str) -> dict[str, str]:
    """Ask an engine and return what it says, as numbers, hashes and words."""
    try:
        if engine == "draws":
            result = attack.run(engine="sample", seed=3, samples=40)
            return {"tier": attack.lifting.tier, "draws": bits(result.prediction)}
        result = attack.run(observe=observation, engine=engine, seed=3, **OPTIONS[engine])
    except pv.PrivugError as refusal:
        return {"refused": f"{type(refusal).__name__}: {refusal}"}
    found = {"engine": result.engine, "evidence": estimate(result.diagnostics.evidence)}
    found |= {"posterior": bits(result.posterior), "prior": bits(result.prior)}
    for measure in MEASURES:
        try:
            found[measure] = estimate(getattr(pv.leakage, measure)(result.joint))
        except pv.PrivugError as refusal:
            found[measure] = f"{type(refusal).__name__}: {refusal}"
    return found


def answers_of(group: str, part: int, parts: int) -> dict[str, dict[str, str]]:
    """Return the answers to a part of a group of questions."""
    warnings.simplefilter("ignore")
    with pv.limited(progress=False, native=False):
        posed = [question for number, question in enumerate(GROUPS[group]()) if number % parts == part]
        return {f"{group}: {name}": answer(attack, seen, engine) for name, attack, seen, engine in posed}


def answered(groups: list[str]) -> dict[str, dict[str, str]]:
    """Return the answers to groups of questions, two processes at a time, in a fixed order."""
    tasks = [(group, part, 8) for group in groups for part in range(8)]
    with ProcessPoolExecutor(2, max_tasks_per_child=1) as pool:
        found = [pool.submit(answers_of, *task) for task in tasks]
        told = [item for future in found for item in future.result().items()]
    names = [name for name, _ in told]
    assert len(set(names)) == len(names), "two questions have one name"
    return dict(sorted(told, key=itemgetter(0)))


def by_how_much(before: str, after: str) -> float:
    """Return the largest relative difference of the numbers in two lines; infinite if the words differ."""
    pairs = list(zip(before.split(), after.split(), strict=False))
    if len(before.split()) != len(after.split()):
        return math.inf
    off = 0.0
    for one, other in pairs:
        if one == other or (len(one) == len(other) == 16):  # hashes tell nothing about how much
            continue
        try:
            numbers = float.fromhex(one), float.fromhex(other)
        except ValueError:
            return math.inf
        off = max(off, abs(numbers[0] - numbers[1]) / max(map(abs, numbers)))
    return off


def compared(before: dict[str, dict[str, str]], after: dict[str, dict[str, str]]) -> int:
    """Print which answers differ and by how much; return how many."""
    differing = [name for name in before if name in after and before[name] != after[name]]
    for name in differing:
        print(name)
        for key in before[name] | after[name]:
            old, new = before[name].get(key, ""), after[name].get(key, "")
            if old != new:
                print(f"  {key}, off by {by_how_much(old, new):.1e}:\n    {old}\n    {new}")
    missing = len(before.keys() - after.keys())
    print(f"{len(before) - len(differing) - missing} of {len(before)} answers are the same, {missing} are gone")
    return len(differing) + missing


def main() -> int:
    """Compare the answers with the record, or write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the record anew")
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS), help="some of the questions")
    arguments = parser.parse_args()
    found = answered(arguments.only)
    known = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    before = {name: told for name, told in known.items() if name.split(":")[0] in arguments.only}
    if arguments.write:
        kept = {name: told for name, told in known.items() if name not in before}
        RECORD.write_text(json.dumps(dict(sorted((kept | found).items())), indent=1) + "\n")
        print(f"{len(found)} answers")
        return 0
    return int(compared(before, found) > 0)


if __name__ == "__main__":
    sys.exit(main())
