"""The report as a page: one file without scripts, which needs no network. The one file that needs Jinja2."""

import datetime
import importlib
import importlib.metadata
import inspect
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from privug.arguments import represented
from privug.digits import number_text, percent_text
from privug.errors import ArgumentError, PrivugError
from privug.escaping import inert
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.joint import Joint
from privug.inference.question import Case, Question
from privug.leakage.information import mutual_information
from privug.markup import text
from privug.model.batch import Batch
from privug.model.node import ConstantValue, Kind, Node, ancestors
from privug.model.structure import random_leaves
from privug.observation.observations import Between, Equals, Near, Noisy, Observation, Structured, SuchThat
from privug.pictures import plots
from privug.program.staged import Staged
from privug.report.summary import ReportSummary, listed, shown_text
from privug.report.text import changes_html, comparison_html, leakage_html

MOST_LINES = 200


@dataclass(frozen=True)
class SourceLine:
    """A line of a program, and whether something was computed there from the secret, on the way to the output."""

    number: int
    text: str
    matters: bool


def lines_that_matter(question: Question, case: Case, secrets: Any) -> list[int]:
    """Return the lines at which something was computed from what secrets are made of, on the way to the output."""
    made_at = question.lines(case)
    behind = ancestors([leaf.node for leaf in random_leaves(secrets)])
    sources = {node for node in behind if not isinstance(node.operation, ConstantValue)}  # which carry nothing
    reached: set[Node] = set()
    for node in ancestors([leaf.node for leaf in random_leaves(case.output)]) if made_at else ():
        if node in sources or not reached.isdisjoint(node.parents):
            reached.add(node)
    return sorted({made_at[node] for node in reached if node in made_at})


def source_of_program(question: Question) -> Sequence[SourceLine]:
    """Return the program line by line; nothing if its source is not at hand, as with programs in other languages."""
    program: Any = question.program
    while isinstance(program, Staged):
        program = program.program
    try:
        lines, first = inspect.getsourcelines(program)
    except (TypeError, OSError):
        return ()
    case = question.case(question.typical_sizes)
    important = set(lines_that_matter(question, case, case.secret)) if program is question.program else set()
    numbered = enumerate(lines[:MOST_LINES], max(first, 1))
    return [SourceLine(number, text.rstrip("\n"), number in important) for number, text in numbered]


class Picture(NamedTuple):
    """An SVG element, or the reason why there is none."""

    svg: str | None
    reason: str = ""


def picture_of(result: Any, alt: str) -> Picture:
    """Draw the beliefs before and after; `alt` says in words what is seen."""
    try:
        return Picture(plots().inline_svg(result.plot(), alt))
    except PrivugError as error:
        return Picture(None, str(error))


LONGEST_CODE = 400


class Advice(NamedTuple):
    """A way to protect people, when it suits, and the code that measures what it does to this attack."""

    name: str
    when: str
    code: str


ROUNDINGS = (0.5, 1.0, 2.0)
"""Steps of rounding that a page measures, as multiples of the output's standard deviation."""


def measured_roundings(joint: Joint) -> list[tuple[float, Estimate]]:
    """Return steps to which a single number could be rounded, each with the mutual information that is left.

    They are measured on the pairs of secret and output that are known already: no program is run.
    """
    numbers = joint.output.batch.numbers()
    if numbers is None or numbers.dtype.kind not in "if" or joint.output.curve is not None:
        return []
    try:
        spread = float(joint.output.std())
        steps = dict.fromkeys(float(f"{factor * spread:.0e}") for factor in ROUNDINGS)
        coarser = [step for step in steps if step > (numbers.dtype.kind == "i")]  # integers are rounded already
        return [(step, mutual_information(_rounded_output(joint, numbers, step))) for step in coarser]
    except PrivugError:
        return []


def _rounded_output(joint: Joint, numbers: Any, step: float) -> Joint:
    output = joint.output
    batch = Batch.of_values(np.round(numbers / step) * step)
    rounded = Belief(batch, output.weights, output.exact, output.label, Kind.DISCRETE, error=output.error,
                     groups=output.groups)  # fmt: skip
    return Joint(joint.secret, rounded)


def what_to_try(
    questions: Mapping[str, float], measured: Sequence[tuple[float, Estimate]] = (), before: str = ""
) -> list[Advice]:
    """Return ways to protect people, each with code that runs as it stands on an attack of the name `attack`.

    `questions` are the attack's, each with how probable it is before anything is seen. `measured` are steps of rounding
    with the mutual information that is left of what was there `before`.
    """
    told = [f"{left.number()} {left.unit} to multiples of {number_text(step)}" for step, left in measured]
    found = f" An output tells {before} about the secret on average; rounded, {listed(told)}." if told else ""
    step = number_text(measured[len(measured) // 2][0]).replace(",", "") if measured else "5"
    release = {
        "rounding": f"pv.mechanisms.rounded(attack.question.program, to={step})",
        "noise": "pv.mechanisms.laplace(attack.question.program, sensitivity=1, epsilon=0.5)",
        "suppression": "pv.mechanisms.suppressed(attack.question.program, fewer_than=5)",
    }
    again = {name: _again(made) for name, made in release.items()}
    policy = "pv.policy.max_belief(at_most=0.9)"
    for claim, probability in list(questions.items())[:1]:
        policy = f"pv.policy.belief(attack.questions[{claim!r}], at_most={(1 + probability) / 2:.2g})"
    return [
        Advice("Rounding", "For numbers: coarser ones tell less about each person. Rounding promises nothing in "
               f"itself, so measure what is left.{found} The step to= is yours to choose.", again["rounding"]),
        Advice("Noise", "For numbers that may be a little off: differential privacy bounds what any attacker learns. "
               "Fill in sensitivity=, by how much one person can change the output, and choose epsilon=: less is more "
               "protection.", again["noise"]),
        Advice("Suppression", "For counts and tables: cells of few people are not shown. The threshold fewer_than= is "
               "yours to choose.", again["suppression"]),
        Advice("The smallest change that is enough", "State the limit at_most=, and Privug searches for the release "
               "that satisfies it at the least cost.",
               f"policy = {policy}\nprint(pv.policy.enforce(attack, policy))"),
    ]  # fmt: skip


def _again(release: str) -> str:
    """Return code that asks the same about another release, and prints what it tells on average."""
    return f"release = {release}\nsafer = attack.replace(program=release, observe=None)\nprint(safer.run().leakage())"


def observation_code(observation: Observation | None) -> str:
    """Return an observation as one writes it; an ellipsis where there is no short way.

    >>> import privug as pv
    >>> print(observation_code(pv.near(55.3, within=0.005)), observation_code(Structured({"a": pv.equals(1)})))
    pv.near(55.3, within=0.005) {'a': pv.equals(1)}
    """
    code = _code(observation)
    return code if len(code) <= LONGEST_CODE else "..."


def _code(observation: Observation | None) -> str:
    match observation:
        case Equals(value=value, distance=None):
            return f"pv.equals({represented(value)})"
        case Near(value=value, within=within):
            return f"pv.near({value!r}, within={within!r})"
        case Between(low=low, high=high):
            return f"pv.between({low!r}, {high!r})"
        case Noisy(value=value, sd=sd):
            return f"pv.noisy({value!r}, sd={sd!r})"
        case SuchThat(predicate=predicate) if getattr(predicate, "__name__", "<lambda>").isidentifier():
            return f"pv.such_that({predicate.__name__})"
        case Structured(parts=parts, length=None):
            return "{" + ", ".join(f"{key!r}: {_code(part)}" for key, part in parts.items()) + "}"
        case Structured(parts=parts):
            return "[" + ", ".join(_code(part) for part in parts.values()) + "]"
        case None:
            return "None"
    return "..."


def run_code(observation: Observation | None, options: Mapping[str, Any]) -> str:
    """Return the call that gives the same result again."""
    seen = [] if observation is None else [f"observe={observation_code(observation)}"]
    arguments = ", ".join([*seen, *(f"{name}={value!r}" for name, value in options.items())])
    return f'result = attack.run({arguments})\nresult.save("report.html")'


def run_command(options: Mapping[str, Any]) -> str:
    """Return the command that runs all attacks of a file in the same way."""
    known = [f"--{name} {value}" for name, value in options.items() if name in ("engine", "samples", "seed", "budget")]
    return " ".join(["privug analyze FILE", *known, "-o report.html"])


LIBRARIES = ("privug", "numpy", "scipy", "numba")
ALIKE = 1.05  # ratio of widths below which ranges are not called narrower
_CONTEXT = ("attacker knows", "attacker assumes", "attacker sees")


class Chapter(NamedTuple):
    """What a page says about one result."""

    number: int
    summary: ReportSummary
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
            comparison=None if alone else safe(_comparison(results, named)),
            environment=_versions(),
            date=datetime.date.today().isoformat(),
        )
    )


def _comparison(results: Sequence[Any], named: Sequence[ReportSummary]) -> str:
    """Return what several attackers learn about one secret; beliefs about different ones are not compared."""
    secrets = list(dict.fromkeys(result.attack.question.secret_name for result in results))
    if len(secrets) == 1:
        return comparison_html(named)
    return f"<p>{text(f'The secrets differ ({listed(secrets)}), so the numbers are not compared.')}</p>"


def _named(results: Sequence[Any], place: int) -> ReportSummary:
    """Return the summary of a result under the name of its attack, told apart from others of that name."""
    summary: ReportSummary = results[place].content.harmless()
    if len(results) == 1:
        return summary
    names = [result.attack.name for result in results]
    name = names[place] if names.count(names[place]) == 1 else f"{names[place]} ({place + 1})"
    return ReportSummary(**{**vars(summary), "title": name}).harmless()


def _chapter(result: Any, summary: ReportSummary, number: int, safe: Any) -> Chapter:
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
        _advice(result, summary),
        run_code(result.observation, result.options),
        run_command(result.options),
    )


def _advice(result: Any, summary: ReportSummary) -> list[Advice]:
    """Return what to try, with alternatives measured where the joint is known."""
    rows = [row.estimate for row in summary.leakage if row.name == "mutual_information"]
    before = f"{rows[0].number()} {rows[0].unit}" if rows else ""
    return what_to_try(_beliefs_before(result, summary), measured_roundings(result.joint) if rows else (), before)


def _beliefs_before(result: Any, summary: ReportSummary) -> dict[str, float]:
    """Return the attack's questions, with how probable each is before anything is seen."""
    lines = [line.before for line in summary.questions]
    return {claim: float(e) for claim, e in zip(result.attack.questions, lines, strict=True) if isinstance(e, Estimate)}


def _in_words(result: Any, summary: ReportSummary) -> tuple[str, str]:
    """Return what the picture is of, and for those who cannot see it what it shows."""
    lines = [f"{line.label} {' before and '.join(summary.cells(line))}" for line in summary.comparisons[:4]]
    seen = " before and after the observation" if result.observation is not None else " before any observation"
    caption = f"The attacker's belief about the secret{seen}"
    return f"{caption}.", f"{caption}: {'; '.join(lines) or 'a picture'}."


def _risks(result: Any, summary: ReportSummary) -> list[tuple[str, str]]:
    """Return what a result means for the three risks of Opinion 05/2014 of the Article 29 Working Party."""
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


def _singling_out(result: Any, summary: ReportSummary) -> str:
    """Return how closely the secret is pinned down: by the best guess of one value, or by the range that is left."""
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
    ranges = [line for line in summary.comparisons if line.label.endswith("90 % credible interval")]
    for line in ranges[:1] if not told else ():
        told.append(_narrowing(line))
    unique = "Whether a combination of columns is unique is asked by pv.reidentification.quasi_identifiers."
    return " ".join([*told, unique])


def _certainty(worst: Estimate) -> str:
    return percent_text(worst.value) if worst.exact else f"about {percent_text(worst.value)}"


def _narrowing(line: Any) -> str:
    before, after = line.before, line.after
    if after is None:
        return f"The 90 % credible interval is {shown_text(before)}."
    widths = [end.high.value - end.low.value for end in (before, after)]
    told = f"The 90 % credible interval was {shown_text(before)} and becomes {shown_text(after)}"
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
