"""What is known of the typical releases without Privug: plain draws, closed forms, quadrature and enumeration.

    python tools/oracles_of_releases.py            # compare with what is stored
    python tools/oracles_of_releases.py --write    # store, in tests/oracles/releases/releases.json

Draws take a quarter of an hour; with `--closed` those that are stored are not drawn again. For each release there are

    probability, probability_error    the posterior probability of the query, from draws, and its standard error
    evidence, evidence_error          the probability of what was seen (given the facts), likewise
    closed_probability, closed_evidence    the same by a closed form or a second method, to about 1e-11
    information                       the mutual information of secret and output in bits, to about 1e-11
"""

import json
import sys
import zlib
from pathlib import Path

import numpy as np
from releases import closed, closed_more
from releases.draws import DRAWS
from releases.information import INFORMATION

CLOSED = closed.CLOSED | closed_more.CLOSED
STORED = Path(__file__).parents[1] / "tests" / "oracles" / "releases" / "releases.json"
TOTAL, CHUNK = 2_000_000, 10_000


def drawn(name: str) -> dict[str, float]:
    """Return the shares among all draws, with the standard errors of ratios of averages."""
    rows = []
    for chunk in range(TOTAL // CHUNK):
        rng = np.random.default_rng([zlib.crc32(name.encode()), chunk])
        seen, asked, *known = DRAWS[name](rng, CHUNK)
        rows.append(np.stack([seen, seen * asked, known[0] if known else np.ones(CHUNK)]).astype(float))
    seen, both, known = np.concatenate(rows, axis=1)
    probability, probability_error = _ratio(both * known, seen * known)
    evidence, evidence_error = _ratio(seen * known, known)
    return {
        "probability": probability,
        "probability_error": probability_error,
        "evidence": evidence,
        "evidence_error": evidence_error,
    }


def _ratio(above: np.ndarray, below: np.ndarray) -> tuple[float, float]:
    ratio = above.sum() / below.sum()
    return float(ratio), float(np.sqrt(((above - ratio * below) ** 2).sum()) / below.sum())


def computed(name: str) -> dict[str, float]:
    """Return what closed forms and second methods give."""
    found: dict[str, float] = {}
    if name in CLOSED:
        both, seen, *known = CLOSED[name]()
        found["closed_probability"] = float(both / seen)
        found["closed_evidence"] = float(seen / known[0] if known else seen)
    if name in INFORMATION:
        found["information"] = float(INFORMATION[name]())
    return found


def compare(name: str, fresh: dict[str, float], stored: dict[str, float]) -> None:
    """Print how closed values differ from draws, in standard errors, and from what is stored."""
    told = []
    for what in ("probability", "evidence"):
        if f"closed_{what}" in fresh and fresh.get(f"{what}_error"):
            apart = (fresh[what] - fresh[f"closed_{what}"]) / fresh[f"{what}_error"]
            told.append(f"{what} {fresh[what]:.5g} is {apart:+.2f} standard errors off")
    worst = max((abs(fresh[key] / stored[key] - 1) for key in fresh if stored.get(key)), default=float("nan"))
    print(f"{name:52s} {'; '.join(told)}; from stored {worst:.0e}", flush=True)


def main(arguments: list[str]) -> None:
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    found = dict(stored)
    for name in dict.fromkeys([*DRAWS, *CLOSED]):
        before = stored.get(name, {})
        if name not in DRAWS:
            draws: dict[str, float] = {}
        elif "--closed" in arguments and "probability" in before:
            draws = {key: before[key] for key in before if not key.startswith(("closed", "information"))}
        else:
            draws = drawn(name)
        found[name] = draws | computed(name)
        compare(name, found[name], before)
        if "--write" in arguments:
            STORED.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
