"""Programs on pandas frames as data analysts write them, each with a prior under which edge cases are common."""

from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

import privug as pv
from corpus.programs import Entry

REGIONS = pd.DataFrame(
    {"zip": ["2300", "2450", "8000"], "region": ["Capital", "Capital", "North"], "inhabitants": [900, 400, 700]}
)

# --- Averages and totals ------------------------------------------------------------------------


def mean_age(df: pd.DataFrame):
    """Mean age."""
    return df["age"].mean()


def mean_of_the_ill(df: pd.DataFrame):
    """Mean age of the ill, NaN if there are none."""
    return df[df.ill].age.mean()


def summary_dict(df: pd.DataFrame):
    """Number, mean, standard deviation and extremes of incomes."""
    s = df["income"]
    return {"n": len(s), "mean": s.mean(), "sd": s.std(), "min": s.min(), "max": s.max()}


def described(df: pd.DataFrame):
    """The table of describe()."""
    return df[["age", "income"]].describe()


def median_and_quartiles(df: pd.DataFrame):
    """Median and quartiles of incomes."""
    return [df.income.quantile(0.25), df.income.median(), df.income.quantile(0.75)]


def ninetieth_percentile_of_adults(df: pd.DataFrame):
    """Ninetieth percentile of the incomes of adults."""
    return round(df.loc[df.age >= 30, "income"].quantile(0.9), 1)


def weighted_mean(df: pd.DataFrame):
    """Income weighted by age."""
    return (df.income * df.age).sum() / df.age.sum()


def several_means(df: pd.DataFrame):
    """Means of all columns of numbers."""
    return df[["age", "income"]].mean()


def aggregated(df: pd.DataFrame):
    """Two summaries of two columns by agg()."""
    return df[["age", "income"]].agg(["mean", "max"])


def z_scores(df: pd.DataFrame):
    """The largest z-score of incomes."""
    z = (df.income - df.income.mean()) / df.income.std()
    return z.abs().max()


def winsorized_mean(df: pd.DataFrame):
    """Mean of incomes clipped to fixed bounds."""
    return df.income.clip(lower=1, upper=5).mean()


def log_mean(df: pd.DataFrame):
    """Mean logarithm of incomes by NumPy."""
    return np.log(df.income + 1).mean()


def numpy_of_columns(df: pd.DataFrame):
    """NumPy's functions on columns."""
    return float(np.mean(df["age"])), float(np.max(df["income"])), int(np.sum(df["ill"]))


# --- Counts, shares and rates -------------------------------------------------------------------


def count_ill(df: pd.DataFrame):
    """How many are ill."""
    return int(df["ill"].sum())


def count_by_mask(df: pd.DataFrame):
    """How many are ill and at least 40."""
    return len(df[(df["ill"]) & (df["age"] >= 40)])


def count_by_query(df: pd.DataFrame):
    """How many pass a query."""
    return df.query("age >= 30 and zip in ['2300', '2450'] and not ill").shape[0]


def share_in_band(df: pd.DataFrame):
    """Share of people between 30 and 50 in per cent."""
    return round(100 * df.age.between(30, 50).mean(), 1)


def rate_per_thousand(df: pd.DataFrame):
    """Cases per 1,000 people."""
    return 1000 * df["ill"].sum() / len(df)


def rates_by_zip(df: pd.DataFrame):
    """Cases per 1,000 people by zip."""
    return (df.groupby("zip")["ill"].mean() * 1000).round(0)


def number_of_zips(df: pd.DataFrame):
    """How many different zips occur."""
    return df["zip"].nunique()


def any_and_all(df: pd.DataFrame):
    """Whether any or all are ill, and whether nobody is old."""
    return df.ill.any(), df.ill.all(), df[df.age > 50].empty


# --- Group-bys ----------------------------------------------------------------------------------


def mean_income_by_zip(df: pd.DataFrame):
    """Mean income by zip."""
    return df.groupby("zip")["income"].mean()


def filtered_group_means(df: pd.DataFrame):
    """Mean income by zip of those at least 40."""
    return df[df["age"] >= 40].groupby("zip")["income"].mean().to_dict()


def sizes_by_zip(df: pd.DataFrame):
    """How many people in each zip."""
    return df.groupby("zip").size()


def two_keys(df: pd.DataFrame):
    """Total income by zip and illness."""
    return df.groupby(["zip", "ill"])["income"].sum()


def named_aggregation(df: pd.DataFrame):
    """Named aggregates by zip."""
    return df.groupby("zip").agg(people=("age", "size"), oldest=("age", "max"), income=("income", "mean"))


def dict_aggregation(df: pd.DataFrame):
    """Aggregates by zip from a dict."""
    return df.groupby("zip").agg({"age": "mean", "income": "sum"})


def list_aggregation(df: pd.DataFrame):
    """Several aggregates of one column by zip."""
    return df.groupby("zip")["age"].agg(["min", "max", "count"])


def spread_by_zip(df: pd.DataFrame):
    """Standard deviation by zip, missing where there is one person."""
    return df.groupby("zip")["income"].std()


def median_by_illness(df: pd.DataFrame):
    """Median age of the ill and the healthy."""
    return df.groupby("ill").age.median()


def groupby_apply(df: pd.DataFrame):
    """Range of incomes in each zip by apply with a lambda."""
    return df.groupby("zip")["income"].apply(lambda s: s.max() - s.min())


def apply_on_groups(df: pd.DataFrame):
    """Share of income earned by the ill in each zip."""
    return df.groupby("zip").apply(lambda g: g.loc[g.ill, "income"].sum() / g["income"].sum())


def loop_over_groups(df: pd.DataFrame):
    """Mean age by illness in a loop over groups."""
    found = {}
    for ill, part in df.groupby("ill"):
        found[ill] = part["age"].mean()
    return found


def deviation_from_group(df: pd.DataFrame):
    """Largest distance of an income from its zip's mean, by transform."""
    return (df["income"] - df.groupby("zip")["income"].transform("mean")).abs().max()


def large_groups_only(df: pd.DataFrame):
    """Mean income of people in zips with at least three of them."""
    return df.groupby("zip").filter(lambda g: len(g) >= 3)["income"].mean()


def one_group(df: pd.DataFrame):
    """Mean income of one zip, if it has three people."""
    part = df[df.zip == "2300"]
    if len(part) < 3:
        return None
    return round(part.income.mean(), 2)


def best_zip(df: pd.DataFrame):
    """The zip with the highest total income."""
    return df.groupby("zip")["income"].sum().idxmax()


def rollup_by_region(df: pd.DataFrame):
    """Total income by region, zips mapped by a dict."""
    df["region"] = df["zip"].map({"2300": "Capital", "2450": "Capital", "8000": "North"})
    return df.groupby("region")["income"].sum()


# --- Frequency tables and suppression -----------------------------------------------------------


def frequency_table(df: pd.DataFrame):
    """How often each zip occurs."""
    return df["zip"].value_counts()


def frequencies_suppressed(df: pd.DataFrame):
    """Frequencies of zips with at least three people."""
    counts = df["zip"].value_counts()
    return counts[counts >= 3].to_dict()


def shares_of_zips(df: pd.DataFrame):
    """Shares of zips, rounded."""
    return df["zip"].value_counts(normalize=True).round(2).to_dict()


def suppressed_by_where(df: pd.DataFrame):
    """Counts by zip, those below three missing."""
    counts = df.groupby("zip").size()
    return counts.where(counts >= 3)


def rounded_to_five(df: pd.DataFrame):
    """Counts by zip rounded to base five."""
    return (df.groupby("zip").size() / 5).round() * 5


def smallest_cell(df: pd.DataFrame):
    """Size of the smallest group of zip and illness."""
    return df.groupby(["zip", "ill"]).size().min()


def suppressed_in_loop(df: pd.DataFrame):
    """Counts by zip in a dict comprehension, small ones left out."""
    return {zip: n for zip, n in df.zip.value_counts().items() if n >= 2}


def dominance_rule(df: pd.DataFrame):
    """Totals by zip where nobody has more than 80 % of them."""
    by = df.groupby("zip")["income"]
    total, largest = by.sum(), by.max()
    return total[largest <= 0.8 * total]


# --- Cross tables and pivots --------------------------------------------------------------------


def cross_table(df: pd.DataFrame):
    """Counts by zip and illness by crosstab."""
    return pd.crosstab(df["zip"], df["ill"])


def pivot_of_means(df: pd.DataFrame):
    """Mean income by zip and illness as a pivot table."""
    return df.pivot_table(values="income", index="zip", columns="ill", aggfunc="mean")


def pivot_with_margins(df: pd.DataFrame):
    """Total income by zip and illness with margins."""
    return df.pivot_table(values="income", index="zip", columns="ill", aggfunc="sum", margins=True)


def unstacked_counts(df: pd.DataFrame):
    """Counts by zip and illness, unstacked and filled with zeros."""
    return df.groupby(["zip", "ill"]).size().unstack(fill_value=0)


# --- Bands and generalisation -------------------------------------------------------------------


def age_bands(df: pd.DataFrame):
    """Counts by age band by cut with labels."""
    bands = pd.cut(df["age"], bins=[0, 25, 45, 120], labels=["young", "middle", "old"])
    return bands.value_counts().sort_index().to_dict()


def mean_by_band(df: pd.DataFrame):
    """Mean income by age band."""
    df["band"] = pd.cut(df["age"], [0, 30, 50, 120], labels=["<=30", "31-50", ">50"])
    return df.groupby("band", observed=True)["income"].mean().to_dict()


def decades(df: pd.DataFrame):
    """Counts by decade of age."""
    return df.groupby(df["age"] // 10 * 10).size()


def banded_by_where(df: pd.DataFrame):
    """Mean income of two bands made by np.where."""
    df["band"] = np.where(df["age"] < 40, "young", "old")
    return df.groupby("band")["income"].mean()


def rows_in_bands(df: pd.DataFrame):
    """Counts by a row function."""
    bands = df.apply(lambda row: "ill" if row.ill else "young" if row.age < 40 else "old", axis=1)
    return bands.value_counts().to_dict()


def values_in_bands(df: pd.DataFrame):
    """Counts by a function of one column."""
    return df["age"].apply(lambda age: "child" if age < 18 else "adult").value_counts().to_dict()


# --- Top-k, order and duplicates ----------------------------------------------------------------


def top_three(df: pd.DataFrame):
    """The three highest incomes."""
    return df["income"].nlargest(3).tolist()


def top_by_sorting(df: pd.DataFrame):
    """Mean income of the two with the highest."""
    return df.sort_values("income", ascending=False).head(2)["income"].mean()


def richest(df: pd.DataFrame):
    """Name of the person with the highest income."""
    return df.loc[df["income"].idxmax(), "name"]


def most_common_zip(df: pd.DataFrame):
    """The most common zip."""
    return df["zip"].mode()[0]


def deduplicated(df: pd.DataFrame):
    """How many different pairs of zip and illness there are."""
    return len(df.drop_duplicates(subset=["zip", "ill"]))


def cumulative(df: pd.DataFrame):
    """How many it takes, in order, to earn ten."""
    return int((df["income"].cumsum() < 10).sum()) + 1


# --- Joins --------------------------------------------------------------------------------------


def joined_by_region(df: pd.DataFrame):
    """Mean age by region after a join with a public table."""
    return df.merge(REGIONS, on="zip").groupby("region")["age"].mean()


def rate_of_inhabitants(df: pd.DataFrame):
    """Cases per 1,000 inhabitants of each zip."""
    cases = df.groupby("zip")["ill"].sum()
    public = REGIONS.set_index("zip")["inhabitants"]
    return (1000 * cases / public).round(1).to_dict()


# --- Texts and dates ----------------------------------------------------------------------------


def zip_areas(df: pd.DataFrame):
    """Counts by the first digit of the zip."""
    return df["zip"].str[0].value_counts().to_dict()


def zips_that_start(df: pd.DataFrame):
    """Mean age where the zip starts with 2."""
    return df[df["zip"].str.startswith("2")]["age"].mean()


def masked_zips(df: pd.DataFrame):
    """Counts by zips of which two digits are masked."""
    return df.groupby(df["zip"].str.slice(0, 2) + "**").size()


def by_quarter(df: pd.DataFrame):
    """Visits by quarter."""
    return df.groupby(df["visit"].dt.quarter).size()


def by_year(df: pd.DataFrame):
    """Mean cost by year of the visit."""
    return df.groupby(df.visit.dt.year)["cost"].mean()


def formatted(df: pd.DataFrame):
    """A sentence with a number."""
    return f"{len(df[df.ill])} of {len(df)} are ill"


# --- Missing values -----------------------------------------------------------------------------


def mean_of_known(df: pd.DataFrame):
    """Mean of the costs that are known."""
    return df["cost"].mean()


def filled_mean(df: pd.DataFrame):
    """Mean cost, zero where it is not known."""
    return df["cost"].fillna(0).mean()


def number_missing(df: pd.DataFrame):
    """How many cells are missing by column."""
    return df[["cost", "zip"]].isna().sum()


def complete_cases(df: pd.DataFrame):
    """How many rows are complete, and their mean cost."""
    complete = df.dropna()
    return len(complete), complete["cost"].mean()


def counts_by_known_zip(df: pd.DataFrame):
    """Known costs by zip, of those with a zip."""
    return df.groupby("zip")["cost"].agg(["size", "count", "mean"])


def imputed(df: pd.DataFrame):
    """Total cost with the mean in place of what is missing."""
    return df["cost"].fillna(df["cost"].mean()).sum()


# --- Rows one by one ----------------------------------------------------------------------------


def loop_over_rows(df: pd.DataFrame):
    """Total income of the ill in a loop over rows."""
    total = 0
    for row in df.itertuples():
        if row.ill:
            total += row.income
    return total


def loop_with_index(df: pd.DataFrame):
    """Counts in a loop over iterrows."""
    young = 0
    for _, row in df.iterrows():
        if row["age"] < 40:
            young += 1
    return young


def corrected(df: pd.DataFrame):
    """Mean age after ages above 60 were set to 60."""
    df.loc[df["age"] > 60, "age"] = 60
    return df["age"].mean()


def assigned(df: pd.DataFrame):
    """Total after tax by assign."""
    return df.assign(net=lambda d: d["income"] * 0.7)["net"].sum()


def alices_income(df: pd.DataFrame):
    """What the first person earns above the others' mean."""
    return df.loc[0, "income"] - df["income"].iloc[1:].mean()


def people() -> dict[str, Any]:
    """Nine people of whom the first has a name; the others are alike."""

    def person(i):
        return pv.Row(
            name="Alice" if i == 0 else pv.Choice(["Bo", "Cy", "Di"]),
            age=pv.Choice([17, 25, 40, 45, 61]),
            income=pv.Choice([0, 1, 2, 4, 9]),
            zip=pv.Choice(["2300", "2450", "8000"], p=[0.6, 0.3, 0.1]),
            ill=pv.Choice([True, False], p=[0.3, 0.7]),
        )

    return {"df": pv.Records(9, person)}


def few() -> dict[str, Any]:
    """Three people, each described by itself, with incomes that differ."""
    return {
        "df": pv.Records(
            3,
            lambda i: pv.Row(
                name=["Alice", "Bo", "Cy"][i],
                age=pv.DiscreteUniform(17, 70),
                income=pv.Uniform(0, 10),
                zip=pv.Choice(["2300", "2450", "8000"]),
                ill=pv.Choice([True, False]),
            ),
        )
    }


def visits() -> dict[str, Any]:
    """Four visits on dates of two years; costs and zips may be missing."""
    days = [date(2023, 1, 31), date(2023, 6, 1), date(2024, 12, 24)]
    return {
        "df": pv.Records(
            4,
            lambda i: pv.Row(
                visit=pv.Choice(days), cost=pv.Choice([10, 20.5, None]), zip=pv.Choice(["2300", "8000", None])
            ),
        )
    }


def pairs() -> dict[str, Any]:
    """Two people who are often the same: no row passes a filter, one group, groups of one."""

    def person(i):
        return pv.Row(
            name=["Alice", "Bo"][i],
            age=pv.Choice([17, 45]),
            income=pv.Choice([0, 4]),
            zip=pv.Choice(["2300", "8000"]),
            ill=pv.Choice([True, False]),
        )

    return {"df": pv.Records(2, person)}


def single_visit() -> dict[str, Any]:
    """One visit of which everything may be missing."""
    row = pv.Row(visit=pv.Choice([date(2024, 2, 29)]), cost=pv.Choice([10, None]), zip=pv.Choice(["2300", None]))
    return {"df": pv.Records(1, row)}


EDGES = {people: pairs, few: pairs, visits: single_visit}
"""For each prior one under which hardly anything is there."""


def _of(prior: Callable[[], dict[str, Any]], *programs: Callable[..., Any], tier: str = "traced") -> list[Entry]:
    return [Entry(program, prior, tier, "exclude" if program in WITHOUT_ANSWER else "raise") for program in programs]


WITHOUT_ANSWER = (
    mean_of_the_ill, ninetieth_percentile_of_adults, zips_that_start, large_groups_only, mean_of_known, complete_cases,
    rate_of_inhabitants, z_scores, weighted_mean, alices_income, deviation_from_group, top_by_sorting, imputed,
)  # fmt: skip
"""What is NaN for some inputs: no number, and so an error."""

FRAME_THEMES: dict[str, list[Entry]] = {
    "Frames: averages and totals": _of(
        people, mean_age, mean_of_the_ill, summary_dict, described, median_and_quartiles,
        ninetieth_percentile_of_adults, weighted_mean, several_means, aggregated, winsorized_mean, log_mean,
        numpy_of_columns,
    ) + _of(few, z_scores),
    "Frames: counts, shares and rates": _of(
        people, count_ill, count_by_mask, count_by_query, share_in_band, rate_per_thousand, rates_by_zip,
        number_of_zips, any_and_all,
    ),
    "Frames: group-bys": _of(
        people, mean_income_by_zip, filtered_group_means, sizes_by_zip, two_keys, named_aggregation, dict_aggregation,
        list_aggregation, spread_by_zip, median_by_illness, groupby_apply, apply_on_groups, loop_over_groups,
        deviation_from_group, large_groups_only, one_group, best_zip, rollup_by_region,
    ),
    "Frames: frequency tables and suppression": _of(
        people, frequency_table, frequencies_suppressed, shares_of_zips, suppressed_by_where, rounded_to_five,
        smallest_cell, suppressed_in_loop, dominance_rule,
    ),
    "Frames: cross tables and pivots": [
        *_of(people, cross_table, pivot_of_means, unstacked_counts, pivot_with_margins),
    ],
    "Frames: bands and generalisation": _of(
        people, age_bands, mean_by_band, decades, banded_by_where, rows_in_bands, values_in_bands
    ),
    "Frames: top-k, order and duplicates": _of(
        people, top_three, top_by_sorting, richest, most_common_zip, deduplicated, cumulative
    ),
    "Frames: joins": _of(people, joined_by_region, rate_of_inhabitants),
    "Frames: texts and dates": [
        *_of(people, zip_areas, zips_that_start, masked_zips), *_of(visits, by_quarter, by_year),
        *_of(people, formatted),
    ],
    "Frames: missing values": _of(
        visits, mean_of_known, filled_mean, number_missing, complete_cases, counts_by_known_zip, imputed
    ),
    "Frames: rows one by one": _of(people, loop_over_rows, loop_with_index, corrected, assigned, alices_income),
}  # fmt: skip

FRAME_CORPUS = [entry for entries in FRAME_THEMES.values() for entry in entries]
