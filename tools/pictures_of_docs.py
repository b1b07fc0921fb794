"""The pictures of the docs, drawn from the programs that the pages show, by Privug's own plots.

python tools/pictures_of_docs.py            # into docs/pictures, as SVG
python tools/pictures_of_docs.py FOLDER     # into another folder, as PNG too
python tools/pictures_of_docs.py FOLDER first-report bits    # only these
"""

import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import diagrams
import matplotlib
import numpy as np
import scipy.stats
from diagrams import BLUE, GREEN, GREY, ORANGE
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import privug as pv
from privug import mechanisms, reidentification
from privug.cli import running_example
from privug.mechanisms import anonymisers

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
STYLE = {
    "font.size": 10.5, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "privug",
    "axes.titlesize": 10.5, "legend.frameon": False,
}  # fmt: skip
NARROW, WIDE = (6.4, 3.2), (9.2, 3.2)


def first_report(axes: Axes) -> None:
    team = [*(pv.Normal(60_000, sd=10_000) for _ in range(4)), 58_000]
    mean = pv.Attack(lambda pay: round(sum(pay) / len(pay)), {"pay": team}, secret=lambda pay: pay[0])
    mean.run(pv.equals(66_000)).plot(axes)
    axes.set(xlabel="Bob's salary")


def bi_query(axes: Axes) -> None:
    def patient(place: int) -> pv.Row:
        others = pv.Choice(["centre", "north", "island"], p=[0.6, 0.35, 0.05])
        return pv.Row(district=others if place else "island", illness=pv.Bernoulli(0.1))

    patients = pv.Records(60, patient)
    tile = pv.sql("SELECT district, COUNT(*) AS treated FROM patients WHERE illness GROUP BY district")
    attack = pv.Attack(tile, {"patients": patients}, secret=lambda patients: patients[0].illness)
    treated = {"centre": 4, "island": 1, "north": 2}
    result = attack.run([{"district": name, "treated": number} for name, number in treated.items()])
    beliefs = [float(belief.probability(lambda ill: ill == 1)) for belief in (result.prior, result.posterior)]
    axes.bar(["before", "after seeing the tile"], beliefs, color=[GREY, ORANGE], width=0.5)
    axes.set(ylabel="belief that Alice was treated", ylim=(0, 1))


def yes_count(answers: Any) -> Any:
    return sum(answers)


def survey(epsilon: float, rate: float = 0.3) -> pv.Attack:
    noisy = mechanisms.discrete_laplace(yes_count, sensitivity=1, epsilon=epsilon)
    return pv.Attack(noisy, {"answers": pv.Array(pv.Bernoulli(rate), 5)}, secret=lambda answers: answers[0])


def said_yes(result: pv.Result) -> pv.Estimate:
    return result.posterior.probability(lambda answer: answer == 1)


def choosing_epsilon(axes: Axes) -> None:
    epsilons = [0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10]
    found = pv.sweep(survey, epsilon=epsilons, observe=pv.equals(4), measures={"belief": said_yes})
    found.plot([axes])
    axes.axhline(0.3, color=GREY, linewidth=1, linestyle="--")
    axes.text(10, 0.31, "before: 0.3", color=GREY, ha="right")
    axes.set(xlabel="epsilon", ylabel="belief in a yes, after a 4", ylim=(0.25, 0.85))


TABLE = [
    {"zip": "2300", "born": 1954, "sex": "F"}, {"zip": "2300", "born": 1957, "sex": "F"},
    {"zip": "2305", "born": 1954, "sex": "M"}, {"zip": "2310", "born": 1988, "sex": "M"},
    {"zip": "2310", "born": 1988, "sex": "F"}, {"zip": "2310", "born": 1985, "sex": "M"},
]  # fmt: skip


def anonymous(figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    reidentification.quasi_identifiers(TABLE, ["zip", "born", "sex"]).plot(left)
    left.set_title("as it is")
    coarse = anonymisers.generalise(TABLE, zip=anonymisers.prefix(2), born=lambda year: year // 10 * 10)
    reidentification.quasi_identifiers(anonymisers.drop(coarse, "sex"), ["zip", "born"]).plot(right)
    right.set_title("two digits of the zip, the decade, no sex")
    right.set_xlim(left.get_xlim())


def published_table(axes: Axes) -> None:
    rows = [
        ["region \\ age", "0-17", "18-44", "45-64", "65+", "Total"], ["North", "*", "*", "31", "28", "69"],
        ["South", "*", "*", "*", "22", "36"], ["East", "25", "40", "*", "*", "80"],
        ["West", "18", "33", "*", "*", "69"], ["Total", "49", "88", "48", "69", "254"],
    ]  # fmt: skip
    pv.tables.audit(pv.tables.read(rows), repair=None).plot(axes)


def running(figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    for axes, attack in ((left, running_example.lot), (right, running_example.bit)):
        attack.run().plot(axes)
        axes.set(xlabel=f"Alice's age, for the attacker who {attack.name}")
    left.set_xlim(55, 56)


def data_frame(axes: Axes) -> None:
    import pandas as pd

    def mean_income(df: pd.DataFrame) -> Any:
        groups = df[df.age >= 30].groupby("zip").income
        return groups.mean()[groups.size() >= 3]

    row = pv.Row(age=pv.DiscreteUniform(18, 80), zip=pv.Choice(["2300", "8000"]), income=pv.Choice([20, 40, 90]))
    prior = {"df": pv.Records(6, row).as_frame("pandas")}
    attack = pv.Attack(mean_income, prior, secret=lambda df: df.income[0])
    attack.run({"8000": pv.near(66.7, within=0.1)}).plot(axes)
    axes.set(xlabel="income of the first person (thousands)")


def csv_file(axes: Axes) -> None:
    rng = np.random.default_rng(1)
    pin = rng.integers(0, 4, 6400)
    time = np.round(rng.normal(10 + pin, 1.5))
    counts = [100, 200, 400, 800, 1600, 3200, 6400]
    found = [pv.leakage.mutual_information(pv.Joint.from_samples(pin[:n], time[:n])) for n in counts]
    axes.plot(counts, [one.value for one in found], "o-", color=BLUE)
    axes.fill_between(counts, [one.low for one in found], [one.high for one in found], color=BLUE, alpha=0.2)
    axes.set(xscale="log", xlabel="recorded pairs", ylabel="mutual information [bit]", ylim=(0, None))
    axes.set_xticks(counts, [f"{n:,}" for n in counts])
    axes.minorticks_off()


def several_releases(figure: Figure) -> None:
    ages = {"ages": [pv.DiscreteUniform(20, 69) for _ in range(10)]}
    both = pv.Attack(lambda ages: (round(sum(ages[:9]) / 9, 2), round(sum(ages) / 10, 2)), ages, lambda ages: ages[9])
    for axes, (title, seen) in zip(
        figure.subplots(1, 3, sharex=True),
        {"January: 44.0": [44.0, None], "February: 45.1": [None, 45.1], "both": [44.0, 45.1]}.items(),
        strict=True,
    ):
        shares = both.run(seen).posterior.distribution()
        axes.bar(list(shares), [share.value for share in shares.values()], color=BLUE, width=1.0, linewidth=0)
        axes.set(title=title, xlabel="age of the newcomer", xlim=(19, 70))
        axes.set_ylim(0, 1.05 if title == "both" else 0.04)
    figure.axes[0].set_ylabel("probability")


def rare(axes: Axes) -> None:
    totals = np.linspace(-6, 12, 400)
    axes.semilogy(totals, scipy.stats.norm(0, math.sqrt(3)).pdf(totals), color=BLUE)
    for level in (2.2, 4.0, 5.5, 7.0, 8.5):
        axes.axvline(level, color=GREY, linewidth=1, linestyle=":")
    axes.axvspan(10, 12, color=ORANGE, alpha=0.35, linewidth=0)
    axes.text(9.9, 2e-1, "seen: 10 or more", ha="right", color=ORANGE)
    axes.text(5.4, 2e-13, "levels on the way", ha="center", color=GREY, bbox={"color": "white", "pad": 1})
    axes.set(xlabel="total", ylabel="density", ylim=(1e-13, 1), xlim=(-6, 12))


def slow(axes: Axes) -> None:
    prior = {"points": [pv.DiscreteUniform(0, 100) for _ in range(3)]}
    grades = pv.Attack(lambda points: sum(p >= 50 for p in points), prior, secret=lambda points: points[0] >= 50)
    counts = [100, 300, 1000, 3000, 10_000, 30_000, 100_000]
    found = [grades.run(pv.equals(2), engine="sample", samples=n, seed=1).posterior.mean() for n in counts]
    axes.plot(counts, [one.value for one in found], "o-", color=BLUE)
    axes.fill_between(counts, [one.low for one in found], [one.high for one in found], color=BLUE, alpha=0.2)
    axes.axhline(2 / 3, color=GREY, linewidth=1, linestyle="--")
    axes.set(xscale="log", xlabel="samples", ylabel="P(the first passed)")
    axes.set_xticks(counts, [f"{n:,}" for n in counts], fontsize=9)
    axes.minorticks_off()


def dp_library(axes: Axes) -> None:
    outputs = np.arange(-5, 15)
    for count, colour, shift in ((4, BLUE, -0.2), (5, ORANGE, 0.2)):
        weights = np.exp(-np.abs(outputs - count) / 2)
        axes.bar(outputs + shift, weights / weights.sum(), width=0.4, color=colour, label=f"{count} yeses")
    axes.legend()
    axes.set(xlabel="noisy count", ylabel="probability", xticks=range(-4, 15, 2))


def priors(figure: Figure) -> None:
    shown: list[tuple[str, Any, tuple[float, float]]] = [
        ("Uniform(0, 100)", scipy.stats.uniform(0, 100), (-10, 110)),
        ("Normal(40, sd=10)", scipy.stats.norm(40, 10), (0, 80)),
        ("TruncatedNormal(40, sd=10,\nlow=18)", scipy.stats.truncnorm(-2.2, np.inf, 40, 10), (0, 80)),
        ("LogNormal.of_mean(50_000,\nsd=20_000)", scipy.stats.lognorm(0.3853, scale=46424), (0, 150_000)),
        ("Pareto(1.2, 20_000)", scipy.stats.pareto(1.2, scale=20_000), (0, 100_000)),
        ("Triangular(10, 20, 60)", scipy.stats.triang(0.2, 10, 50), (0, 70)),
        ("Beta(2, 6)", scipy.stats.beta(2, 6), (0, 1)),
        ("Exponential(scale=10)", scipy.stats.expon(scale=10), (0, 50)),
        ("Binomial(30, 0.1)", scipy.stats.binom(30, 0.1), (0, 12)),
        ("Poisson(2)", scipy.stats.poisson(2), (0, 12)),
    ]
    for axes, (name, law, (low, high)) in zip(figure.subplots(2, 5).flat, shown, strict=True):
        if hasattr(law.dist, "pmf"):
            values = np.arange(low, high + 1)
            axes.bar(values, law.pmf(values), color=BLUE, width=0.8)
        else:
            values = np.linspace(low, high, 500)
            axes.fill_between(values, law.pdf(values), color=BLUE, alpha=0.75, linewidth=0)
        axes.set_title(name, fontsize=8.5)
        axes.set_yticks([])
        axes.tick_params(labelsize=8)
        axes.spines["left"].set_visible(False)
        axes.locator_params(axis="x", nbins=3)


def observations(axes: Axes) -> None:
    age = pv.Attack(lambda age: age, {"age": pv.Normal(40, sd=10)}, secret="age")
    ages = np.linspace(10, 75, 1300)
    axes.plot(ages, scipy.stats.norm(40, 10).pdf(ages), "--", color=GREY, label="before")
    seen = {"near(50, within=2)": pv.near(50, within=2), "between(50, 60)": pv.between(50, 60)}
    for (name, what), colour in zip(
        {**seen, "noisy(55, sd=5)": pv.noisy(55, sd=5)}.items(), (BLUE, ORANGE, GREEN), strict=True
    ):
        curve = age.run(what).posterior.curve
        density = curve.pdf(ages) if curve is not None else scipy.stats.norm(52, math.sqrt(20)).pdf(ages)
        axes.plot(ages, density, color=colour, label=name)
    axes.legend()
    axes.set(xlabel="age", ylabel="density", ylim=(0, None))


def limitations(axes: Axes) -> None:
    rates, epsilons = (0.01, 0.1, 0.5), [0.1, 0.2, 0.5, 1, 2, 5]
    for rate, colour in zip(rates, (BLUE, ORANGE, GREEN), strict=True):
        beliefs = [said_yes(survey(epsilon, rate).run(pv.equals(4))).value for epsilon in epsilons]
        axes.plot(epsilons, beliefs, "o-", color=colour, label=f"began with {rate:.0%}")
    axes.legend()
    axes.set(xscale="log", xlabel="epsilon", ylabel="belief in a yes, after a 4", ylim=(0, 0.9))
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()


def semantics(axes: Axes) -> None:
    dice = {"x": pv.DiscreteUniform(0, 2), "y": pv.DiscreteUniform(0, 2)}
    found = pv.Attack(lambda x, y: (x + y) / 2, dice, secret="x").run(engine="exact").prediction.distribution()
    axes.bar(list(found), [9 * share.value for share in found.values()], width=0.3, color=BLUE)
    axes.set(xlabel="mean of two numbers from 0, 1, 2", ylabel="ninths", yticks=[0, 1, 2, 3])


def matching_rows(figure: Figure) -> None:
    patient = pv.Row(
        zip=pv.Choice([f"{2000 + k}" for k in range(200)]), day=pv.DiscreteUniform(0, 99), sex=pv.Choice(["f", "m"])
    )
    for axes, known in zip(figure.subplots(1, 3), (["zip"], ["zip", "sex"], ["zip", "day"]), strict=True):
        rows = reidentification.matching_rows(pv.Records(1_000, patient), known).distribution()
        likely = {count: share.value for count, share in rows.items() if share.value > 1e-4}
        axes.bar(list(likely), list(likely.values()), color=BLUE)
        axes.set(title=" + ".join(known), xlabel="matching rows", xlim=(0, 15))
    figure.axes[0].set_ylabel("probability")


def noise(axes: Axes) -> None:
    outputs = np.linspace(-3, 9, 600)
    for count, colour in ((2, BLUE), (3, ORANGE)):
        axes.plot(outputs, scipy.stats.laplace(count, 2).pdf(outputs), color=colour, label=f"true count {count}")
    axes.legend()
    axes.set(xlabel="output with Laplace noise, epsilon 0.5", ylabel="density", ylim=(0, None))


def studies(figure: Figure) -> None:
    measures = {"belief in a yes, after a 4": said_yes}
    found = pv.sweep(
        survey, epsilon=[0.1, 0.2, 0.5, 1, 2, 5], observe=pv.equals(4), measures=measures, utility=yes_count
    )
    left, right = figure.subplots(1, 2)
    found.plot([left], measures=[found.measures[0]])
    error = next(name for name in found.measures if "error" in name)
    found.plot([right], measures=[error])
    right.set_ylabel("expected error of the count")


def policy(axes: Axes) -> None:
    people = {"records": pv.Records(10, lambda i: pv.Row(ill=pv.Bernoulli(0.4)))}
    count = pv.Attack(lambda records: sum(row.ill for row in records), people, lambda records: records[0].ill)
    beliefs = [
        max(count.run(pv.equals(k)).posterior.mean().value, 1 - count.run(pv.equals(k)).posterior.mean().value)
        for k in range(11)
    ]
    axes.bar(range(11), beliefs, color=[ORANGE if belief > 0.8 + 1e-9 else BLUE for belief in beliefs])
    axes.axhline(0.8, color=GREY, linestyle="--", linewidth=1)
    axes.text(5, 0.82, "limit", color=GREY, ha="center")
    axes.set(xlabel="published count of 10", ylabel="belief in the likeliest value", xticks=range(11))


def report(axes: Axes) -> None:
    people = {"records": pv.Records(8, lambda i: pv.Row(ill=pv.Bernoulli(0.1)))}
    count = pv.Attack(lambda records: sum(row.ill for row in records), people, lambda records: records[0].ill)
    count.run(pv.equals(4)).plot(axes)
    axes.set(xlabel="Alice", xticks=[0, 1])
    axes.set_xticklabels(["healthy", "ill"])


def attackers(axes: Axes) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
    import attackers_from_data as example

    pv.compare(
        attackers={name: {"records": table} for name, table in example.ATTACKERS.items()},
        programs={
            "count": example.dole,
            "noisy count": example.dole_noisy,
            "of graduates": example.dole_among_graduates,
        },
        secret=lambda records: records[example.VOTER].vote,
        measures={"chance of a right guess": lambda result: pv.leakage.bayes_vulnerability(result.joint)},
    ).plot(axes)


def planning(ax: Axes) -> None:
    """Hours for 10^12 draws over cores, from the costs that the page states."""
    page = (PICTURES.parent / "explanation" / "planning.md").read_text(encoding="utf-8")
    cores = np.array([1, 10_000])
    for name, nanoseconds in re.findall(r"^\| ([^|]+) \| ([\d,]+) \|", page, re.MULTILINE):
        hours = 1e12 * float(nanoseconds.replace(",", "")) * 1e-9 / 3600 / cores
        ax.plot(cores, hours, label=name)
    for hours, words in ((1, "an hour"), (24, "a day"), (24 * 365, "a year")):
        ax.axhline(hours, color="0.6", linewidth=0.8, linestyle=":")
        ax.text(1.1, hours * 1.15, words, color="0.4")
    ax.set(xscale="log", yscale="log", xlabel="cores", ylabel="hours for $10^{12}$ draws")
    ax.legend(loc="upper right", fontsize="small")


ON_AXES: dict[str, tuple[tuple[float, float], Callable[[Axes], None]]] = {
    "method": ((10, 2.5), diagrams.method),
    "lifting": ((9.5, 2.9), diagrams.lifting),
    "engines": ((8.5, 4.4), diagrams.engines),
    "answers": ((10.4, 4.4), diagrams.answers),
    "bits": ((7, 3.4), diagrams.bits),
    "black-box": ((9, 2.3), diagrams.black_box),
    "first-report": (NARROW, first_report),
    "choosing-epsilon": (NARROW, choosing_epsilon),
    "data-frame": (NARROW, data_frame),
    "csv-file": (NARROW, csv_file),
    "rare-observation": (NARROW, rare),
    "slow-program": (NARROW, slow),
    "dp-library": (NARROW, dp_library),
    "observations": (NARROW, observations),
    "limitations": (NARROW, limitations),
    "semantics": (NARROW, semantics),
    "noise": (NARROW, noise),
    "policy": (NARROW, policy),
    "attackers": (NARROW, attackers),
    "report": (NARROW, report),
    "planning": (NARROW, planning),
    "published-table": (NARROW, published_table),
    "bi-query": (NARROW, bi_query),
}
ON_FIGURES: dict[str, tuple[tuple[float, float], Callable[[Figure], None]]] = {
    "anonymous": ((9.6, 3.2), anonymous),
    "running-example": (WIDE, running),
    "several-releases": (WIDE, several_releases),
    "priors": ((10.5, 3.6), priors),
    "matching-rows": (WIDE, matching_rows),
    "studies": (WIDE, studies),
}


def drawn(names: list[str]) -> dict[str, Figure]:
    found = {}
    for name in names or [*ON_AXES, *ON_FIGURES]:
        size, draw = (ON_AXES | ON_FIGURES)[name]
        found[name] = Figure(figsize=size, layout="constrained")
        draw(found[name].subplots() if name in ON_AXES else found[name])  # type: ignore[arg-type]
    return found


def main(arguments: list[str]) -> None:
    if any(argument.startswith("-") for argument in arguments):
        sys.exit(__doc__)
    folder = Path(arguments[0]) if arguments else PICTURES
    folder.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(STYLE), pv.limited(progress=False):
        for name, figure in drawn(arguments[1:]).items():
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
            if arguments:
                figure.savefig(folder / f"{name}.png", dpi=80)


if __name__ == "__main__":
    main(sys.argv[1:])
