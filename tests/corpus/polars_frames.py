"""Programs on polars frames as data analysts write them, under the priors of those on pandas frames."""

from collections.abc import Callable
from typing import Any

import polars as pl

from corpus.frames import few, people, visits
from corpus.programs import Entry

REGIONS = pl.DataFrame(
    {"zip": ["2300", "2450", "8000"], "region": ["Capital", "Capital", "North"], "inhabitants": [900, 400, 700]}
)
REGION_OF = {"2300": "Capital", "2450": "Capital", "8000": "North"}


# --- Averages, shares and rates -----------------------------------------------------------------


def pl_mean_of_the_ill(df: pl.DataFrame):
    """Mean age of the ill, None if there are none."""
    return df.filter(pl.col("ill"))["age"].mean()


def pl_summary(df: pl.DataFrame):
    """Number, mean, standard deviation and extremes of incomes in one select."""
    income = pl.col("income")
    return df.select(n=pl.len(), mean=income.mean(), sd=income.std(), low=income.min(), high=income.max())


def pl_described(df: pl.DataFrame):
    """The table of describe()."""
    return df.select("age", "income").describe()


def pl_percentiles(df: pl.DataFrame):
    """Quartiles and the ninetieth percentile of incomes."""
    return [df["income"].quantile(q) for q in (0.25, 0.5, 0.75, 0.9)]


def pl_rate_per_thousand(df: pl.DataFrame):
    """Cases per 1,000 people."""
    return df.select((pl.col("ill").sum() / pl.len() * 1000).round(1)).item()


def pl_share_in_band(df: pl.DataFrame):
    """Share of people between 30 and 50 in per cent."""
    return round(100 * df["age"].is_between(30, 50).mean(), 1)


def pl_count(df: pl.DataFrame):
    """How many are ill and at least 40."""
    return df.filter((pl.col("age") >= 40) & pl.col("ill")).height


# --- Group-bys ----------------------------------------------------------------------------------


def pl_means_by_zip(df: pl.DataFrame):
    """Mean income and number of people by zip, as polars gives them."""
    return df.group_by("zip").agg(pl.col("income").mean().alias("mean_income"), pl.len().alias("n"))


def pl_filtered_means(df: pl.DataFrame):
    """Mean income by zip of those at least 40, in order."""
    return df.filter(pl.col("age") >= 40).group_by("zip").agg(pl.col("income").mean()).sort("zip")


def pl_means_as_dict(df: pl.DataFrame):
    """Mean income by zip as a dict."""
    means = df.group_by("zip").agg(pl.col("income").mean()).sort("zip")
    return dict(zip(means["zip"], means["income"], strict=True))


def pl_two_keys(df: pl.DataFrame):
    """Total income by zip and illness as rows."""
    return df.group_by("zip", "ill").agg(pl.col("income").sum()).sort("zip", "ill").rows()


def pl_first_come(df: pl.DataFrame):
    """Counts by zip in the order of first appearance."""
    return df.group_by("zip", maintain_order=True).len()


def pl_rollup_by_region(df: pl.DataFrame):
    """Total income by region, zips mapped by a dict."""
    return (
        df.with_columns(region=pl.col("zip").replace_strict(REGION_OF))
        .group_by("region")
        .agg(pl.col("income").sum())
        .sort("region")
        .to_dicts()
    )


def pl_rates_by_zip(df: pl.DataFrame):
    """Cases per 1,000 people by zip."""
    return df.group_by("zip").agg(rate=(pl.col("ill").mean() * 1000).round(0)).sort("zip")


def pl_deviation_from_group(df: pl.DataFrame):
    """Largest distance of an income from its zip's mean, by over()."""
    return df.select((pl.col("income") - pl.col("income").mean().over("zip")).abs().max()).item()


def pl_z_scores(df: pl.DataFrame):
    """The largest z-score of incomes among the ill and among the healthy."""
    income = pl.col("income")
    z = (income - income.mean().over("ill")) / income.std().over("ill")
    return df.select(z.abs().max()).item()


def pl_lazily(df: pl.DataFrame):
    """The same as a lazy query: mean age by illness of those with an income."""
    return df.lazy().filter(pl.col("income") > 0).group_by("ill").agg(pl.mean("age")).sort("ill").collect()


# --- Frequency tables, suppression, pivots ------------------------------------------------------


def pl_frequency_table(df: pl.DataFrame):
    """How often each zip occurs."""
    return df["zip"].value_counts()


def pl_suppressed(df: pl.DataFrame):
    """Counts by zip, small groups left out, the largest first."""
    return df.group_by("zip").len().filter(pl.col("len") >= 3).sort("len", "zip", descending=[True, False])


def pl_small_cells_missing(df: pl.DataFrame):
    """Counts by zip and illness, those below two missing."""
    counts = df.group_by("zip", "ill").agg(n=pl.len())
    return counts.with_columns(pl.when(pl.col("n") >= 2).then(pl.col("n"))).sort("zip", "ill")


def pl_rounded_to_five(df: pl.DataFrame):
    """Counts by zip rounded to base five."""
    return df.group_by("zip").agg(n=(pl.len() / 5).round() * 5).sort("zip")


def pl_shares(df: pl.DataFrame):
    """Shares of zips."""
    return df.group_by("zip").len().with_columns(share=(pl.col("len") / pl.col("len").sum()).round(2)).sort("zip")


def pl_pivot(df: pl.DataFrame):
    """Mean income by zip and illness as a pivot table."""
    return df.pivot("ill", index="zip", values="income", aggregate_function="mean").sort("zip")


def pl_cross_table(df: pl.DataFrame):
    """Counts by zip and illness, filled with zeros."""
    counts = df.group_by("zip", "ill").len().pivot("ill", index="zip", values="len")
    return counts.fill_null(0).sort("zip")


# --- Bands, order, joins, texts, dates ----------------------------------------------------------


def pl_age_bands(df: pl.DataFrame):
    """Counts and mean income by age band by cut with labels."""
    band = pl.col("age").cut([18, 40, 60], labels=["child", "young", "middle", "old"], left_closed=True)
    return df.group_by(band.alias("band")).agg(pl.len(), pl.col("income").mean()).sort("band")


def pl_bands_by_when(df: pl.DataFrame):
    """Mean income of two bands made by when()."""
    band = pl.when(pl.col("age") < 40).then(pl.lit("young")).otherwise(pl.lit("old"))
    return df.with_columns(band=band).group_by("band").agg(pl.col("income").mean())


def pl_top_three(df: pl.DataFrame):
    """The three highest incomes."""
    return df.top_k(3, by="income")["income"].to_list()


def pl_top_two_mean(df: pl.DataFrame):
    """Mean income of the two with the highest, by sorting."""
    return df.sort("income", descending=True).head(2)["income"].mean()


def pl_deduplicated(df: pl.DataFrame):
    """How many different pairs of zip and illness there are."""
    return df.select("zip", "ill").unique().height


def pl_joined_by_region(df: pl.DataFrame):
    """Mean age by region after a join with a public table."""
    return df.join(REGIONS, on="zip", how="left").group_by("region").agg(pl.col("age").mean()).sort("region")


def pl_rate_of_inhabitants(df: pl.DataFrame):
    """Cases per 1,000 inhabitants of each zip that has any."""
    cases = df.filter(pl.col("ill")).join(REGIONS, on="zip")
    return cases.group_by("zip").agg(rate=pl.len() / pl.col("inhabitants").max() * 1000).sort("zip")


def pl_zip_areas(df: pl.DataFrame):
    """Counts by the first two digits of the zip."""
    return df.group_by(pl.col("zip").str.slice(0, 2).alias("area")).len().sort("area")


def pl_by_quarter(df: pl.DataFrame):
    """Visits and their cost by quarter."""
    quarter = pl.col("visit").dt.quarter().alias("quarter")
    return df.group_by(quarter).agg(pl.len(), pl.col("cost").sum()).sort("quarter")


def pl_missing(df: pl.DataFrame):
    """How many values are missing, and the mean cost with zero in their place."""
    return df.null_count().to_dicts()[0], df["cost"].fill_null(0).mean()


def pl_complete_cases(df: pl.DataFrame):
    """Mean cost by zip of complete rows."""
    return df.drop_nulls().group_by("zip").agg(pl.col("cost").mean()).sort("zip")


def pl_by_zip_or_none(df: pl.DataFrame):
    """Known costs by zip, of which none is one."""
    return df.group_by("zip").agg(known=pl.col("cost").count(), total=pl.col("cost").sum())


def pl_loop_over_rows(df: pl.DataFrame):
    """Total income of the ill in a loop over rows."""
    total = 0
    for row in df.iter_rows(named=True):
        if row["ill"]:
            total += row["income"]
    return total


def pl_rows_kept(df: pl.DataFrame):
    """The incomes and zips of the ill themselves."""
    return df.filter(pl.col("ill")).select("zip", "income")


def pl_rolling(df: pl.DataFrame):
    """Largest mean of three incomes in a row."""
    return df["income"].rolling_mean(3).max()


def pl_sentence(df: pl.DataFrame):
    """A sentence with a number."""
    return f"{df['income'].mean():.1f} on average"


def _of(prior: Callable[[], dict[str, Any]], *programs: Callable[..., Any], tier: str = "traced") -> list[Entry]:
    return [Entry(program, prior, tier, "exclude" if program in WITHOUT_ANSWER else "raise") for program in programs]


WITHOUT_ANSWER = (pl_z_scores,)
"""What is NaN for some inputs: no number, and so an error."""

POLARS_THEMES: dict[str, list[Entry]] = {
    "Polars: averages, shares and rates": _of(
        people, pl_mean_of_the_ill, pl_summary, pl_described, pl_percentiles, pl_rate_per_thousand, pl_share_in_band,
        pl_count,
    ),
    "Polars: group-bys": _of(
        people, pl_means_by_zip, pl_filtered_means, pl_means_as_dict, pl_two_keys, pl_first_come, pl_rollup_by_region,
        pl_rates_by_zip, pl_deviation_from_group, pl_lazily,
    ) + _of(few, pl_z_scores),
    "Polars: frequency tables, suppression and pivots": _of(
        people, pl_frequency_table, pl_suppressed, pl_small_cells_missing, pl_rounded_to_five, pl_shares, pl_pivot,
        pl_cross_table,
    ),
    "Polars: bands, order, joins and texts": _of(
        people, pl_age_bands, pl_bands_by_when, pl_top_three, pl_top_two_mean, pl_deduplicated, pl_joined_by_region,
        pl_rate_of_inhabitants, pl_zip_areas,
    ),
    "Polars: dates, missing values and rows": [
        *_of(visits, pl_by_quarter, pl_missing, pl_complete_cases, pl_by_zip_or_none),
        *_of(people, pl_loop_over_rows, pl_rows_kept, pl_sentence), *_of(people, pl_rolling, tier="python"),
    ],
}  # fmt: skip

POLARS_CORPUS = [entry for entries in POLARS_THEMES.values() for entry in entries]
