"""More programs on pandas frames: tables with margins, orders by several columns, duplicates, ranks and joins."""

import numpy as np
import pandas as pd

from corpus.frames import REGIONS, people, visits
from corpus.programs import Entry


def totals_with_margins(df: pd.DataFrame):
    """Total income by zip and illness with margins under a name of their own."""
    return df.pivot_table(
        values="income", index="zip", columns="ill", aggfunc="sum", fill_value=0, margins=True, margins_name="Total"
    )


def means_with_margins(df: pd.DataFrame):
    """Mean income by zip and illness with margins."""
    return df.pivot_table(values="income", index="zip", columns="ill", margins=True)


def cross_table_with_margins(df: pd.DataFrame):
    """Counts by zip and illness with margins."""
    return pd.crosstab(df.zip, df.ill, margins=True)


def shares_within_zips(df: pd.DataFrame):
    """Shares of the ill and the healthy in each zip by crosstab."""
    return pd.crosstab(df["zip"], df["ill"], normalize="index").round(2)


def shares_of_all(df: pd.DataFrame):
    """Shares of all people by zip and illness."""
    return pd.crosstab(df["zip"], df["ill"], normalize=True)


def oldest_of_the_richest(df: pd.DataFrame):
    """Age of the richest, the youngest of them, by an order of two columns."""
    return df.sort_values(["income", "age"], ascending=[False, True]).iloc[0]["age"]


def two_in_order(df: pd.DataFrame):
    """Mean age of the first two in an order of texts and numbers."""
    return df.sort_values(["zip", "income"], ascending=[True, False]).head(2)["age"].mean()


def k_anonymity(df: pd.DataFrame):
    """Size of the smallest group of quasi-identifiers."""
    return df.groupby(["zip", "age"]).size().min()


def l_diversity(df: pd.DataFrame):
    """The least number of different incomes in a zip."""
    return df.groupby("zip")["income"].nunique().min()


def published_sizes(df: pd.DataFrame):
    """How many people are in zips that are published, by reset_index with a name."""
    table = df.groupby("zip").size().reset_index(name="n")
    return table[table.n >= 3].n.sum()


def shares_of_income(df: pd.DataFrame):
    """Each zip's share of one more than all income."""
    return (df.groupby("zip").income.sum() / (1 + df.income.sum())).round(3)


def suppressed_means(df: pd.DataFrame):
    """Mean income by zip, missing where there are fewer than three people."""
    table = df.groupby("zip").agg(n=("income", "size"), mean=("income", "mean"))
    table.loc[table["n"] < 3, "mean"] = np.nan
    return table["mean"]


def first_rank(df: pd.DataFrame):
    """The rank of the first person's income."""
    return df.income.rank().iloc[0]


def largest_step(df: pd.DataFrame):
    """The largest difference of incomes of neighbouring rows."""
    return df.income.diff().abs().max()


def rises(df: pd.DataFrame):
    """How often an income is above the one before."""
    return (df.income > df.income.shift(1)).sum()


def repeated_rows(df: pd.DataFrame):
    """How many rows repeat a pair of zip and illness."""
    return int(df.duplicated(subset=["zip", "ill"]).sum())


def unique_rows(df: pd.DataFrame):
    """How many people are the only ones with their zip and age."""
    return int((~df.duplicated(["zip", "age"], keep=False)).sum())


def put_together(df: pd.DataFrame):
    """How many there are in two parts, one below the other."""
    return len(pd.concat([df[df.age >= 40], df[df.age < 25]]))


def above_their_zip(df: pd.DataFrame):
    """How many earn more than the mean of their zip, by a join with the means."""
    means = df.groupby("zip", as_index=False).income.mean().rename(columns={"income": "mean_income"})
    joined = df.merge(means, on="zip")
    return (joined.income > joined.mean_income).sum()


def above_their_zip_by_map(df: pd.DataFrame):
    """The same by map with the means."""
    return (df.income > df.zip.map(df.groupby("zip").income.mean())).sum()


def in_large_zips(df: pd.DataFrame):
    """How many live in a zip of at least three people, by map with counts."""
    return (df.zip.map(df.zip.value_counts()) >= 3).sum()


def counts_by_region(df: pd.DataFrame):
    """Counts by region, joined by pd.merge with a fixed table."""
    return pd.merge(df, REGIONS, on="zip").groupby("region").size()


def renamed_columns(df: pd.DataFrame):
    """Total income after columns got other names."""
    table = df[["age", "income"]].copy()
    table.columns = ["years", "earned"]
    return table.earned.sum()


def masked_frame(df: pd.DataFrame):
    """How many cells are left where people are at least 40."""
    return df[["age", "income"]].where(df.age >= 40).count()


def distinct_visits(df: pd.DataFrame):
    """How many different pairs of zip and cost there are; what is missing is alike."""
    return len(df[["zip", "cost"]].drop_duplicates())


def case_rates(df: pd.DataFrame):
    """Cases per 1,000 people by zip, from named aggregates."""
    table = df.groupby("zip").agg(cases=("ill", "sum"), n=("ill", "size"))
    table["rate"] = 1000 * table.cases / table.n
    return table.rate.round(0)


def quantile_bands(df: pd.DataFrame):
    """Counts of two bands of age by qcut."""
    return pd.qcut(df.age, 2, duplicates="drop").value_counts().tolist()


MORE_FRAMES = [
    totals_with_margins, means_with_margins, cross_table_with_margins, shares_within_zips, shares_of_all,
    oldest_of_the_richest, two_in_order, k_anonymity, l_diversity, published_sizes, shares_of_income, suppressed_means,
    first_rank, largest_step, rises, repeated_rows, unique_rows, put_together, above_their_zip, above_their_zip_by_map,
    in_large_zips, counts_by_region, renamed_columns, masked_frame, case_rates,
]  # fmt: skip

MORE_THEMES = {
    "Frames: margins, orders, duplicates and joins": [
        *(Entry(program, people, "traced") for program in MORE_FRAMES),
        Entry(distinct_visits, visits, "traced"),
        Entry(quantile_bands, people, "python"),
    ]
}
