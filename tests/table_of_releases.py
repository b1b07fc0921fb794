"""What is exact and what is not: the table in docs/explanation/exact.md, from releases and the engine's own words.

python tests/table_of_releases.py            # print it
python tests/table_of_releases.py --write    # put it into the page
"""

import inspect
import linecache
import re
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import privug as pv
from oracles.releases import RELEASES, Release
from oracles.releases.beyond import BEYOND
from oracles.releases.kinds import KINDS, LONG_JOINT, NO_JOINT, REFUSED

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "exact.md"
START, STOP = "<!-- table of releases: start -->", "<!-- table of releases: stop -->"
SERVED = "| what is published | for example by | answered exactly | mutual information |\n|---|---|---|---|"
NOT_SERVED = "| refused | for example by | because |\n|---|---|---|"
TOLD = re.compile(r"engine='exact' cannot answer this: (.*?)( at line (\d+))?; engine='sample' can")


def obstacle(release: Release) -> tuple[str, str]:
    """Return what stands in the way of an exact answer, in the engine's words, and the line that it names, as code."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pv.LiftingWarning)
        try:
            release.attack().run(observe=release.observation, engine="exact")
        except pv.UnsuitableEngine as refusal:
            told = TOLD.fullmatch(str(refusal))
            if told is None:
                raise
            code = inspect.getsourcefile(release.program)
            named = linecache.getline(str(code), int(told[3])) if told[2] else ""
            return told[1], as_code(named) if named else returned(release)
    raise ValueError(f"{release.name!r} is answered exactly")


def returned(release: Release) -> str:
    """Return the line with which a program returns what is published, as code."""
    lines = inspect.getsource(release.program).splitlines()
    start = max(place for place, line in enumerate(lines) if line.strip().startswith("return"))
    return as_code(" ".join(lines[start:]))


def as_code(source: str) -> str:
    source = " ".join(source.split()).removeprefix("return ")
    return f"`{source}`".replace("|", "\\|")


def information(names: Sequence[str]) -> str:
    """Return for which releases the mutual information of secret and output is exact."""
    sampled = [name for name in names if name in NO_JOINT]
    long = [name for name in names if name in LONG_JOINT]
    if len(sampled) == len(names):
        return "sampled"
    told = [f"sampled for: {'; '.join(sampled)}"] if sampled else []
    told += [f"takes minutes for: {'; '.join(long)}"] if long else []
    return ", but ".join(["exact", " and ".join(told)]) if told else "exact"


def table() -> str:
    """Return two tables: a line for each kind of release that is served, and one for each release that is not."""
    served, refused = [SERVED], [NOT_SERVED]
    for kind, names in KINDS.items():
        exact = [name for name in names if name not in REFUSED]
        served.append(f"| {kind} | {returned(RELEASES[exact[0]])} | {'; '.join(exact)} | {information(exact)} |")
    for release in (*(RELEASES[name] for name in REFUSED), *BEYOND):
        reason, code = obstacle(release)
        refused.append(f"| {release.name} | {code} | {reason} |")
    return "\n".join([*served, "", *refused])


def between(page: str) -> str:
    """Return what stands between the two marks of a page."""
    return page.partition(START)[2].partition(STOP)[0].strip()


def main(arguments: list[str]) -> None:
    if "--write" not in arguments:
        print(table())
        return
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.partition(START)[0], page.partition(STOP)[2]
    PAGE.write_text(f"{before}{START}\n\n{table()}\n\n{STOP}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
