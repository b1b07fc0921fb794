"""The report as a page: one file that needs no script and nothing from a network. The one file that needs Jinja2."""

import datetime
import importlib
import importlib.metadata
import platform
from collections.abc import Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from privug.digits import number_text, percent_text
from privug.errors import ArgumentError
from privug.escaping import inert
from privug.estimate import Estimate
from privug.report.advice import run_code, run_command, what_to_try
from privug.report.fragments import changes_html, comparison_html, leakage_html
from privug.report.picture import picture_of
from privug.report.source import source_of_program
from privug.report.summary import Summary, shown_text

LIBRARIES = ("privug", "numpy", "scipy", "numba")
ALIKE = 1.05  # ratio of widths below which ranges are not called narrower
_CONTEXT = ("attacker knows", "attacker assumes", "attacker sees")


class Chapter(NamedTuple):
    """What a page says about one result."""

    number: int
    summary: Summary
    picture: Any
    caption: str
    without_picture: str
    context: Sequence[tuple[str, str]]
    how: Sequence[tuple[str, str]]
    left_out: Sequence[tuple[str, str]]
    source: Sequence[Any]
    changes: Any
    leakage: Any
    risks: Sequence[tuple[str, str]]
    advice: Sequence[Any]
    code: str
    command: str


def page(results: Sequence[Any], title: str = "") -> str:
    """Return a report about one or several results as a page of its own."""
    try:
        jinja2 = importlib.import_module("jinja2")
    except ImportError:
        missing = "a report in HTML needs Jinja2: pip install 'privug[report]'; .txt and .json do without"
        raise ArgumentError(missing) from None
    folder = files("privug.report").joinpath("templates")
    templates = {name: folder.joinpath(name).read_text(encoding="utf-8") for name in ("report.html", "report.css")}
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(templates),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if hasattr(value, "__html__") else inert(str(value), keep="\n"),
    )
    safe = jinja2.utils.markupsafe.Markup
    named = [_named(results, place) for place in range(len(results))]
    numbered = enumerate(zip(results, named, strict=True), 1)
    chapters = [_chapter(result, summary, number, safe) for number, (result, summary) in numbered]
    alone = len(results) == 1
    return str(
        environment.get_template("report.html").render(
            title=title or (named[0].title if alone else "Privug: what several attackers learn"),
            chapters=chapters,
            comparison=None if alone else safe(comparison_html(named)),
            environment=_versions(),
            date=datetime.date.today().isoformat(),
        )
    )


def _named(results: Sequence[Any], place: int) -> Summary:
    """Return the summary of a result under the name of its attack, told apart from others of that name."""
    summary: Summary = results[place].content.harmless()
    if len(results) == 1:
        return summary
    names = [result.attack.name for result in results]
    name = names[place] if names.count(names[place]) == 1 else f"{names[place]} ({place + 1})"
    return Summary(**{**vars(summary), "title": name}).harmless()


def _chapter(result: Any, summary: Summary, number: int, safe: Any) -> Chapter:
    facts = list(summary.facts)
    caption, alt = _in_words(result, summary)
    drawn = picture_of(result, alt)
    return Chapter(
        number,
        summary,
        None if drawn.svg is None else safe(drawn.svg),
        caption,
        drawn.reason,
        [fact for fact in facts if fact[0] in _CONTEXT],
        [fact for fact in facts if fact[0] not in _CONTEXT],
        summary.leakage.left_out,
        source_of_program(result.attack.question),
        safe(changes_html(summary)),
        safe(leakage_html(summary)),
        _risks(result, summary),
        what_to_try(_beliefs_before(result, summary)),
        run_code(result.observation, result.options),
        run_command(result.options),
    )


def _beliefs_before(result: Any, summary: Summary) -> dict[str, float]:
    """Return the attack's questions, with how probable each is before anything is seen."""
    lines = [line.before for line in summary.questions]
    return {claim: float(e) for claim, e in zip(result.attack.questions, lines, strict=True) if isinstance(e, Estimate)}


def _in_words(result: Any, summary: Summary) -> tuple[str, str]:
    """Say what the picture is of, and for those who cannot see it what it shows."""
    lines = [f"{line.label} {' before and '.join(summary.cells(line))}" for line in summary.comparisons[:4]]
    seen = " before and after the observation" if result.observation is not None else " before any observation"
    caption = f"The attacker's belief about the secret{seen}"
    return f"{caption}.", f"{caption}: {'; '.join(lines) or 'a picture'}."


def _risks(result: Any, summary: Summary) -> list[tuple[str, str]]:
    """Say what a result means for the three risks of Opinion 05/2014 of the Article 29 Working Party."""
    return [
        ("Inference", " ".join(summary.sentences)),
        ("Singling out", _singling_out(result, summary)),
        (
            "Linkability",
            "Not measured by this attack, which looks at one release. Whether rows can be linked with another table is "
            "asked by pv.reidentification.link, and what several releases tell together by an attack on a program that "
            "returns all of them.",
        ),
    ]


def _singling_out(result: Any, summary: Summary) -> str:
    """Say how closely the secret is pinned down: by the best guess of one value, or by the range that is left."""
    found = {(row.name, row.about): row.estimate for row in summary.leakage}
    before, here = found.get(("bayes_vulnerability", "before")), found.get(("min_entropy", "here"))
    worst = found.get(("max_posterior_belief", ""))
    told = []
    if before is not None and here is not None:
        told.append(
            f"The best guess of the value is right with probability {percent_text(before.value)} before and "
            f"{percent_text(2.0**-here.value)} after this observation."
        )
    if worst is not None:
        told.append(f"After the worst output it is {_certainty(worst)}.")
    ranges = [line for line in summary.comparisons if line.label.endswith("90 % of belief lies in")]
    for line in ranges[:1] if not told else ():
        told.append(_narrowing(line))
    unique = "Whether a combination of columns is unique is asked by pv.reidentification.quasi_identifiers."
    return " ".join([*told, unique])


def _certainty(worst: Estimate) -> str:
    return percent_text(worst.value) if worst.exact else f"about {percent_text(worst.value)}"


def _narrowing(line: Any) -> str:
    before, after = line.before, line.after
    if after is None:
        return f"90 % of the belief lies in {shown_text(before)}."
    widths = [end.high.value - end.low.value for end in (before, after)]
    told = f"The range that holds 90 % of the belief goes from {shown_text(before)} to {shown_text(after)}"
    narrower = widths[0] / widths[1] if widths[1] > 0 else 1.0
    return f"{told}, {number_text(float(f'{narrower:.2g}'))} times narrower." if narrower >= ALIKE else f"{told}."


def _versions() -> list[tuple[str, str]]:
    """Return what the numbers were computed with."""
    known = [("Python", f"{platform.python_version()} on {platform.system()} ({platform.machine()})")]
    for name in LIBRARIES:
        try:
            known.append((name, importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:
            known.append((name, "not installed as a package"))
    return known
