"""Enforcing a policy: the smallest change of a release after which it holds (SPIRE; Kučera et al., CCS 2017)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from privug.arguments import check_kind, is_one_of, kinds_checked, shown
from privug.attack import Attack
from privug.errors import ArgumentError, InferenceError, NoRepair, PrivugError
from privug.escaping import inert
from privug.pictures import plots
from privug.policy.checking import SAMPLES, Effort
from privug.policy.policies import Policy
from privug.policy.repairs import (
    Noise,
    Program,
    Repair,
    Task,
    Trials,
    by_merging,
    by_noise,
    by_rounding,
    by_suppression,
    noise_of,
)
from privug.policy.usefulness import Utility, utility_of
from privug.policy.verdict import Verdict
from privug.program.staged import Staged
from privug.report.grid import grid_text

ANY = "any"
REPAIRS = ("merge", "round", "suppress", "noise")
MOST_SHOWN = 20  # classes in the text of an enforcement


@dataclass(frozen=True)
class Enforcement:
    """The smallest change of a release, of a given kind, after which a policy holds.

    `program` is the changed program, which is called on plain inputs as the original is, and `attack` the same attack
    on it; `verdict` is what a check of that found, and `before` what one of the original did. `repair` is the kind of
    change: 'merge', 'round', 'suppress' or 'noise', or 'none' if the policy held as it was. `classes` are the outputs
    that are told apart no longer, with the name that is released for each class; `value` is the step of rounding, the
    threshold, or the parameter of the noise, and `bracket` joins the nearest value tried with less protection. `method`
    says how sure it is that no smaller change will do, `utility` what is left of the output, `others` are the changes
    of other kinds that were found, and `notes` say why there are none of some kinds.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda a, b: a + b, {"a": pv.Bernoulli(0.5), "b": pv.Bernoulli(0.5)}, secret="a")
    >>> mended = pv.policy.enforce(attack, pv.policy.max_belief(at_most=0.7), repair="merge")
    >>> mended.program(1, 1), mended.verdict.status.value
    ('0 or 2', 'holds')
    """

    repair: str
    words: str
    program: Program
    attack: Attack
    before: Verdict
    verdict: Verdict
    utility: Utility
    classes: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    value: float | None = None
    bracket: tuple[float, float] | None = None
    trials: Trials = ()
    method: str = ""
    others: tuple["Enforcement", ...] = ()
    notes: tuple[str, ...] = ()

    def plot(self, ax: Any = None) -> Any:
        """Draw the number that the policy limits before and after the change; `ax` is matplotlib axes or a path."""
        verdicts = {"before": self.before, "after": self.verdict}
        rows = [(said, one.worst, one.bound) for said, one in verdicts.items() if one.worst is not None]
        return plots().bars(rows, ax, self.verdict.about)

    def __str__(self) -> str:
        if self.repair == "none":
            return inert(f"No change is needed: {self.verdict.sentence()}")
        lines = [f"{self.attack.name} with {self.words}", f"  before  {self.before.sentence()}"]
        lines += [f"  after   {self.verdict.sentence()}", f"  cost    {self.utility}"]
        lines += [f"  or      {other.words}: {other.utility}" for other in self.others]
        lines += [f"  note    {note}" for note in self.notes]
        return "\n".join([inert("\n".join(lines), keep="\n"), *self._table()])

    def _table(self) -> list[str]:
        if not self.classes:
            return []
        rows = [[", ".join(map(shown, members)), name] for name, members in self.classes[:MOST_SHOWN]]
        rows = [[text if len(text) <= 60 else f"{text[:56]} ...", name] for text, name in rows]
        left_out = len(self.classes) - len(rows)
        more = [f"and {left_out} more classes"] if left_out else []
        return [grid_text("", ["output", "released as"], rows, more).strip("\n")]


@kinds_checked
def enforce(
    attack: Attack,
    policy: Policy,
    *,
    repair: str = "any",
    noise: Callable[..., Any] | None = None,
    find: str = "largest",
    tolerance: float = 0.01,
    steps: Sequence[float] | None = None,
    thresholds: Sequence[float] | None = None,
    neighbours: bool = False,
    engine: str = "auto",
    samples: int = SAMPLES,
    seed: int = 0,
    seconds: float | None = None,
    **parameter: tuple[float, float],
) -> Enforcement:
    """Find the smallest change of a release after which a policy holds after every output.

    With `repair="merge"` outputs are merged into classes, and only the class is released: as many classes as possible
    and, of as many, such that outputs stay alone with the greatest probability. That is
    optimal for up to 12 outputs; with `neighbours` only numbers next to each other are merged, optimally at any number.
    `"round"` takes the finest of some `steps` to which numbers are rounded (by default 1, 2 and 5 times powers of ten),
    `"suppress"` the smallest of some `thresholds` below which counts are left out, and `"noise"` the least noise: a
    function `noise` of the program and of a parameter, which is named with its range, such as `epsilon=(0.01, 10)`; the
    `find="largest"` or `"smallest"` of it is the least noise. Finding that supposes that less noise protects less.
    `"any"` takes whichever of these leaves the most information about the original output.

    The changed program is always checked, and by the same rules as the original. If no change keeps the policy,
    `NoRepair` is raised; it says so if even to release nothing would not, as then the prior breaks the policy.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda x, y: x + y, secret="x",
    ...                    prior={"x": pv.DiscreteUniform(0, 2), "y": pv.DiscreteUniform(0, 2)})
    >>> mended = enforce(attack, pv.policy.max_belief(at_most=0.7), repair="merge")
    >>> [name for name, outputs in mended.classes]
    ['0 or 4', '1', '2', '3']
    >>> mended.program(2, 2)
    '0 or 4'
    """
    check_kind("enforce", "attack", attack, (Attack,))
    check_kind("enforce", "policy", policy, (Policy,))
    given = _asked_for(repair, noise, find, tolerance, parameter)
    task = Task(attack, policy, Effort(engine, samples, seed, seconds))
    return _mended(task, repair, given, steps, thresholds, neighbours)


def _asked_for(
    repair: str, noise: Callable[..., Any] | None, find: str, tolerance: float, parameter: Mapping[str, Any]
) -> Noise | None:
    """Return the noise that may be added, if any, or say what is wrong with what was asked for."""
    if not is_one_of(repair, (ANY, *REPAIRS)):
        raise ArgumentError(f"enforce: repair must be 'any' or one of {', '.join(REPAIRS)}, not {shown(repair)}")
    if noise is not None:
        return noise_of(noise, parameter, find, tolerance)
    if repair == "noise" or parameter:
        raise ArgumentError(
            "enforce: noise must say how it is made, such as noise=lambda program, epsilon: "
            "pv.mechanisms.laplace(program, sensitivity=1, epsilon=epsilon), epsilon=(0.01, 10)"
        )
    return None


def _mended(task: Task, repair: str, *options: Any) -> Enforcement:
    """Return the best of the repairs that there are."""
    program = task.program
    before = task.check(program)
    if before.holds:
        return Enforcement("none", "no change", program, task.attack, before, before, Utility(), method="optimal")
    found, notes = _found(task, repair, *options)
    if not found:
        raise NoRepair(_why_none(task, notes))
    mended = [_enforcement(task, before, one) for one in found]
    best = max(mended, key=_information)
    others = tuple(one for one in mended if one is not best)
    return replace(best, others=others, notes=tuple(notes))


def _found(
    task: Task, repair: str, noise: Noise | None, steps: Any, thresholds: Any, neighbours: bool
) -> tuple[list[Repair], list[str]]:
    """Return the repairs of the kinds asked for, and why there are none of others."""
    ways: dict[str, Callable[[], Repair]] = {
        "merge": lambda: by_merging(task, neighbours),
        "round": lambda: by_rounding(task, steps),
        "suppress": lambda: by_suppression(task, thresholds),
    }
    if noise is not None:
        ways["noise"] = lambda: by_noise(task, noise)
    if repair != ANY:
        try:
            return [ways[repair]()], []
        except NoRepair as error:
            return [], [str(error)]
    found, notes = [], []
    for kind, way in ways.items():
        try:
            found.append(way())
        except (NoRepair, InferenceError, ArgumentError) as error:
            notes.append(f"{kind}: {str(error).removeprefix('enforce: ')}")
    return found, notes


def _enforcement(task: Task, before: Verdict, repair: Repair) -> Enforcement:
    utility = utility_of(task.attack, repair.program.release, task.effort)
    release = repair.merged
    classes = () if release is None else tuple(zip(release.names, release.classes, strict=True))
    attack = task.attack_on(repair.program)
    return Enforcement(
        repair.kind, repair.words, repair.program, attack, before, repair.verdict, utility, classes,
        repair.value, repair.bracket, repair.trials, repair.method,
    )  # fmt: skip


def _information(mended: Enforcement) -> float:
    """Return how much of the output is left, for the choice among repairs; what cannot be told comes last."""
    return -1.0 if mended.utility.information is None else mended.utility.information.value


def _nothing(output: Any) -> int:
    return 0


def _why_none(task: Task, notes: Sequence[str]) -> str:
    """Say why there is no repair: because of the prior alone, or because of what was looked for."""
    told = "; ".join(notes)
    try:
        silent = task.check(Staged(task.program, _nothing))
    except PrivugError:
        return told
    if silent.holds:
        return f"{told}. To release nothing would keep it"
    found = "" if silent.worst is None else f" ({silent.worst})"
    verb = "violates" if silent.violated else "may violate"
    return f"no release can keep this policy: the prior itself {verb} it{found}, even if nothing is released. {told}"
