"""Tables of counts as statistical offices write them: cross tables, suppression, margins, rounding, rates and ranks."""

from collections import Counter, defaultdict

import numpy as np
import pandas as pd
import polars as pl

import privug as pv
from corpus.programs import Entry

ZIPS = ["A", "B", "C"]
ROWS = 6


def people():
    """Six people of whom zip, illness, sex and a score are not known."""
    person = pv.Row(zip=pv.Choice(ZIPS), ill=pv.Bernoulli(0.3), sex=pv.Choice(["f", "m"]), score=pv.Choice([1, 2, 5]))
    return {"df": pv.Records(ROWS, person)}


# Python and NumPy.
def counted_in_a_loop(df):
    """Counts of the ill by zip in a dict, zeros for zips without any."""
    table = dict.fromkeys(ZIPS, 0)
    for row in df:
        table[row.zip] += row.ill
    return table


def suppressed_in_a_comprehension(df):
    """Counts by zip by a Counter, those below three left out."""
    return {zip: n for zip, n in sorted(Counter(row.zip for row in df).items()) if n >= 3}


def starred(df):
    """Counts by zip and illness as nested dicts, a star where there are fewer than two."""
    table = {zip: [0, 0] for zip in ZIPS}
    for row in df:
        table[row.zip][row.ill] += 1
    return {zip: ["*" if n < 2 else n for n in counts] for zip, counts in table.items()}


def by_pairs(df):
    """Counts by zip and sex with a total of each row by a Counter of pairs."""
    counts = Counter((row.zip, row.sex) for row in df)
    return {zip: [counts[zip, "f"], counts[zip, "m"], counts[zip, "f"] + counts[zip, "m"]] for zip in ZIPS}


def mean_scores_in_a_loop(df):
    """Mean score by zip from lists in a defaultdict, of zips with at least two people."""
    scores = defaultdict(list)
    for row in df:
        scores[row.zip].append(row.score)
    return {zip: sum(scores[zip]) / len(scores[zip]) for zip in sorted(scores) if len(scores[zip]) >= 2}


def bins_of_scores(df):
    """Counts of scores by np.bincount."""
    return np.bincount(df.score, minlength=6)


def bins_of_the_ill(df):
    """Total score of the ill and the others by np.bincount with weights."""
    return np.bincount(df.ill, weights=df.score, minlength=2)


def different_scores(df):
    """Scores with their counts by np.unique."""
    values, counts = np.unique(df.score, return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def smallest_bin(df):
    """The least count of a score that occurs, by np.unique."""
    return np.unique(df.score, return_counts=True)[1].min()


def histogram(df):
    """Counts of scores in two bands by np.histogram."""
    return np.histogram(df.score, bins=[0, 2, 6])[0]


def histogram_of_two(df):
    """Counts by illness and band of score by np.histogram2d."""
    return np.histogram2d(df.ill, df.score, bins=[[0, 1, 2], [0, 2, 6]])[0]


def unique_people(df):
    """How many combinations of zip, sex and illness only one person has."""
    return sum(n == 1 for n in Counter((row.zip, row.sex, row.ill) for row in df).values())


def counted_by_masks(df):
    """Counts by zip and illness by sums of masks over arrays."""
    return [[int(((df.zip == zip) & (df.ill == ill)).sum()) for ill in (0, 1)] for zip in ZIPS]


# pandas: one-way tables.
def filled_counts(df: pd.DataFrame):
    """Counts by zip, zero for zips that do not occur, by reindex."""
    return df.groupby("zip").size().reindex(ZIPS, fill_value=0)


def filled_value_counts(df: pd.DataFrame):
    """Counts by zip by value_counts and reindex."""
    return df["zip"].value_counts().reindex(ZIPS, fill_value=0)


def filled_cases(df: pd.DataFrame):
    """The ill by zip, zero where there are none, by filter and reindex."""
    return df[df.ill == 1].groupby("zip").size().reindex(ZIPS).fillna(0).astype(int)


def cases_by_and(df: pd.DataFrame):
    """How many are ill in a zip, by & with a column of zeros and ones."""
    return len(df[(df.zip == "A") & df.ill])


def starred_counts(df: pd.DataFrame):
    """Counts by zip with stars for those below three."""
    counts = df.groupby("zip").size().reindex(ZIPS, fill_value=0)
    return counts.where(counts >= 3).fillna("*")


def masked_counts(df: pd.DataFrame):
    """Counts by zip, zero where they are below three, by mask."""
    counts = df["zip"].value_counts().sort_index()
    return counts.mask(counts < 3, 0)


def rounded_counts(df: pd.DataFrame):
    """Counts by zip rounded to base three."""
    return (df.groupby("zip").size() / 3).round() * 3


def rounded_to_ten(df: pd.DataFrame):
    """Counts by zip rounded to tens."""
    return df["zip"].value_counts().sort_index().round(-1)


def top_coded(df: pd.DataFrame):
    """Counts by zip, at most four."""
    return df.groupby("zip").size().clip(upper=4)


def shares(df: pd.DataFrame):
    """Shares of zips in per cent, zero for those that do not occur."""
    return df["zip"].value_counts(normalize=True).mul(100).round(1).reindex(ZIPS, fill_value=0.0)


def rates(df: pd.DataFrame):
    """Rates of illness by zip, where there are at least two people."""
    groups = df.groupby("zip")["ill"]
    return groups.mean().where(groups.count() >= 2).round(2)


def mean_scores(df: pd.DataFrame):
    """Mean score by zip, missing for zips that do not occur."""
    return df.groupby("zip")["score"].mean().reindex(ZIPS)


def most_common(df: pd.DataFrame):
    """The most common zip, the first of those that are equally common."""
    return df.groupby("zip").size().idxmax()


def least_common(df: pd.DataFrame):
    """The least common zip of a full table."""
    return df.groupby("zip").size().reindex(ZIPS, fill_value=0).idxmin()


def ranks_of_counts(df: pd.DataFrame):
    """Ranks of zips by their counts."""
    return df.groupby("zip").size().rank(ascending=False, method="min")


def two_of_them(df: pd.DataFrame):
    """Counts of two zips of a full table by loc with a list."""
    return df.groupby("zip").size().reindex(ZIPS, fill_value=0).loc[["A", "C"]]


def counts_as_array(df: pd.DataFrame):
    """Counts by zip of a full table as an array."""
    return df.groupby("zip").size().reindex(ZIPS, fill_value=0).to_numpy()


def with_other_labels(df: pd.DataFrame):
    """Counts by zip under the names of places."""
    return df.groupby("zip").size().reindex(ZIPS, fill_value=0).rename({"A": "North", "B": "South", "C": "West"})


def counts_and_total(df: pd.DataFrame):
    """Counts by zip with their total, put together by pd.concat."""
    counts = df.groupby("zip").size().reindex(ZIPS, fill_value=0)
    return pd.concat([counts, pd.Series({"Total": counts.sum()})])


def counts_and_total_set(df: pd.DataFrame):
    """Counts by zip with their total, set by its label."""
    counts = df.groupby("zip").size().reindex(ZIPS, fill_value=0)
    counts["Total"] = counts.sum()
    return counts


def number_of_zips(df: pd.DataFrame):
    """How many zips have at least two people."""
    return int((df["zip"].value_counts() >= 2).sum())


# pandas: two-way tables.
def cross_table(df: pd.DataFrame):
    """Counts by zip and illness by crosstab."""
    return pd.crosstab(df["zip"], df["ill"])


def full_cross_table(df: pd.DataFrame):
    """Counts by zip and illness with all rows and columns, by reindex."""
    return pd.crosstab(df["zip"], df["ill"]).reindex(index=ZIPS, columns=[0, 1], fill_value=0)


def suppressed_cross_table(df: pd.DataFrame):
    """Counts by zip and illness, those below three missing, by where on the whole table."""
    table = pd.crosstab(df["zip"], df["ill"])
    return table.where(table >= 3)


def masked_cross_table(df: pd.DataFrame):
    """Counts by zip and illness, minus one where there are one or two, by mask on the whole table."""
    table = pd.crosstab(df["zip"], df["ill"])
    return table.mask((table > 0) & (table < 3), -1)


def starred_cross_table(df: pd.DataFrame):
    """Counts by zip and illness with stars in place of small ones."""
    table = df.groupby(["zip", "ill"]).size().unstack(fill_value=0)
    return table.where(table >= 2).fillna("*")


def suppressed_with_margins(df: pd.DataFrame):
    """Counts by zip and illness with margins, small cells missing."""
    table = pd.crosstab(df["zip"], df["ill"], margins=True)
    return table.where(table >= 2)


def rounded_cross_table(df: pd.DataFrame):
    """Counts by zip and illness rounded to base five."""
    return (5 * (pd.crosstab(df["zip"], df["ill"]) / 5).round()).astype(int)


def rounded_by_whole_division(df: pd.DataFrame):
    """Counts by zip and illness rounded down to base three."""
    return pd.crosstab(df["zip"], df["ill"]) // 3 * 3


def clipped_cross_table(df: pd.DataFrame):
    """Counts by zip and illness, at most two."""
    return pd.crosstab(df["zip"], df["ill"]).clip(upper=2)


def row_totals(df: pd.DataFrame):
    """Row totals of a cross table."""
    return pd.crosstab(df["zip"], df["ill"]).sum(axis=1)


def column_totals(df: pd.DataFrame):
    """Column totals of a cross table."""
    return pd.crosstab(df["zip"], df["ill"]).sum(axis=0)


def shares_of_rows(df: pd.DataFrame):
    """Shares within zips by div along rows."""
    table = pd.crosstab(df["zip"], df["ill"])
    return table.div(table.sum(axis=1), axis=0).round(2)


def largest_cell(df: pd.DataFrame):
    """The largest cell of a cross table."""
    return pd.crosstab(df["zip"], df["ill"]).max().max()


def largest_of_all(df: pd.DataFrame):
    """The largest cell of a full table by way of an array."""
    return pd.crosstab(df["zip"], df["ill"]).reindex(index=ZIPS, columns=[0, 1], fill_value=0).to_numpy().max()


def transposed(df: pd.DataFrame):
    """Counts by illness and zip by the transpose of a cross table."""
    return pd.crosstab(df["zip"], df["ill"]).T


def stacked(df: pd.DataFrame):
    """A full cross table as one column of pairs."""
    return pd.crosstab(df["zip"], df["ill"]).reindex(index=ZIPS, columns=[0, 1], fill_value=0).stack()


def as_dicts(df: pd.DataFrame):
    """A full cross table as a dict of dicts."""
    return pd.crosstab(df["zip"], df["ill"]).reindex(index=ZIPS, columns=[0, 1], fill_value=0).to_dict()


def cells_one_by_one(df: pd.DataFrame):
    """A cross table put together from lookups with a default."""
    counts = df.groupby(["zip", "ill"]).size()
    return {zip: [int(counts.get((zip, ill), 0)) for ill in (0, 1)] for zip in ZIPS}


def looked_up(df: pd.DataFrame):
    """One cell of a full cross table by loc."""
    return pd.crosstab(df["zip"], df["ill"]).reindex(index=ZIPS, columns=[0, 1], fill_value=0).loc["A", 1]


def one_row(df: pd.DataFrame):
    """One row of a full cross table as a list."""
    return pd.crosstab(df["zip"], df["ill"]).reindex(index=ZIPS, columns=[0, 1], fill_value=0).loc["A"].tolist()


def some_rows(df: pd.DataFrame):
    """Two rows of a full cross table by loc with a list."""
    return pd.crosstab(df["zip"], df["ill"]).reindex(index=ZIPS, columns=[0, 1], fill_value=0).loc[["B", "C"]]


def published_rows(df: pd.DataFrame):
    """Rows of a cross table with at least three people."""
    table = df.groupby(["zip", "ill"]).size().unstack(fill_value=0).reindex(columns=[0, 1], fill_value=0)
    return table[table.sum(axis=1) >= 3]


def renamed_columns(df: pd.DataFrame):
    """A cross table with other names of its columns."""
    return pd.crosstab(df["zip"], df["ill"]).rename(columns={0: "healthy", 1: "ill"})


def pivot_of_counts(df: pd.DataFrame):
    """Counts by zip and illness by pivot_table."""
    return df.pivot_table(index="zip", columns="ill", values="score", aggfunc="count", fill_value=0)


def pivot_of_sizes(df: pd.DataFrame):
    """Counts by zip and illness by pivot_table with size."""
    return df.pivot_table(index="zip", columns="ill", aggfunc="size", fill_value=0)


def pivot_of_means(df: pd.DataFrame):
    """Mean score by zip and sex, missing where there are fewer than two people."""
    means = df.pivot_table(index="zip", columns="sex", values="score", aggfunc="mean")
    return means.where(pd.crosstab(df["zip"], df["sex"]) >= 2)


def pivot_with_totals(df: pd.DataFrame):
    """Total score by zip and sex with margins, rounded to fives."""
    table = df.pivot_table(index="zip", columns="sex", values="score", aggfunc="sum", fill_value=0, margins=True)
    return (table / 5).round() * 5


def suppressed_by_function(df: pd.DataFrame):
    """Counts by zip and illness, columns one by one, those below two zero."""
    return pd.crosstab(df["zip"], df["ill"]).apply(lambda column: column.where(column >= 2, 0))


def how_many_suppressed(df: pd.DataFrame):
    """How many cells of a cross table are below three."""
    return int((pd.crosstab(df["zip"], df["ill"]) < 3).sum().sum())


def with_total_column(df: pd.DataFrame):
    """A cross table with a column of totals."""
    table = pd.crosstab(df["zip"], df["ill"]).reindex(columns=[0, 1], fill_value=0)
    table["total"] = table.sum(axis=1)
    return table


def with_total_row(df: pd.DataFrame):
    """A full cross table with a row of totals, set by its label."""
    table = pd.crosstab(df["zip"], df["ill"]).reindex(index=ZIPS, columns=[0, 1], fill_value=0)
    table.loc["Total"] = table.sum()
    return table


def unlike_people(df: pd.DataFrame):
    """How many people are the only ones with their zip, sex and illness."""
    return int((df.groupby(["zip", "sex", "ill"]).size() == 1).sum())


def smallest_class(df: pd.DataFrame):
    """Size of the smallest class of zip and sex (k-anonymity)."""
    return int(df.value_counts(["zip", "sex"]).min())


def linked_tables(df: pd.DataFrame):
    """Two tables of the same people: by zip, and by zip and sex, each with suppression."""
    one, two = df.groupby("zip").size(), df.groupby(["zip", "sex"]).size()
    return one[one >= 2], two[two >= 2]


def published_twice(df: pd.DataFrame):
    """Counts by zip without the last person, and with everybody."""
    return df.iloc[:-1]["zip"].value_counts().sort_index(), df["zip"].value_counts().sort_index()


def difference_of_two(df: pd.DataFrame):
    """The difference of two full tables, of which one has a person more."""
    before = df.iloc[:-1].groupby("zip").size().reindex(ZIPS, fill_value=0)
    return df.groupby("zip").size().reindex(ZIPS, fill_value=0) - before


def means_and_counts(df: pd.DataFrame):
    """Counts and mean scores by zip, the means missing where there are fewer than two people."""
    table = df.groupby("zip").agg(n=("score", "size"), mean=("score", "mean"))
    table["mean"] = table["mean"].where(table["n"] >= 2)
    return table.reindex(ZIPS)


# polars.
def pl_counts(df: pl.DataFrame):
    """Counts by zip, missing where below three."""
    counts = df.group_by("zip").len().sort("zip")
    return counts.with_columns(pl.when(pl.col("len") >= 3).then(pl.col("len")).alias("len"))


def pl_starred(df: pl.DataFrame):
    """Counts by zip as texts, with stars for those below three."""
    counts = df.group_by("zip").len().sort("zip")
    return counts.with_columns(
        pl.when(pl.col("len") >= 3).then(pl.col("len").cast(pl.String)).otherwise(pl.lit("*")).alias("n")
    )


def pl_value_counts(df: pl.DataFrame):
    """Counts of zips of at least two people by value_counts."""
    return df["zip"].value_counts().filter(pl.col("count") >= 2).sort("zip")


def pl_cross_table(df: pl.DataFrame):
    """Counts by zip and illness by pivot, filled with zeros."""
    counts = df.group_by("zip", "ill").len()
    return counts.pivot("ill", index="zip", values="len", sort_columns=True).fill_null(0).sort("zip")


def pl_cross_table_of_rows(df: pl.DataFrame):
    """Counts by zip and sex by pivot with len."""
    return df.pivot("sex", index="zip", values="ill", aggregate_function="len", sort_columns=True).sort("zip")


def pl_cases(df: pl.DataFrame):
    """How many are ill in a zip, by a filter of two conditions."""
    return df.filter((pl.col("zip") == "A") & (pl.col("ill") == 1)).height


def pl_sums_of_masks(df: pl.DataFrame):
    """Counts of the ill and the healthy by zip by sums of comparisons."""
    table = df.group_by("zip").agg(ill=(pl.col("ill") == 1).sum(), healthy=(pl.col("ill") == 0).sum())
    return table.sort("zip")


def pl_filled(df: pl.DataFrame):
    """Counts by zip of all zips, joined with a list of them."""
    every = pl.DataFrame({"zip": ZIPS})
    return every.join(df.group_by("zip").len(), on="zip", how="left").fill_null(0)


def pl_rounded(df: pl.DataFrame):
    """Counts by zip rounded to base three."""
    counts = df.group_by("zip").agg(n=pl.len()).sort("zip")
    return counts.with_columns(n=(pl.col("n") / 3).round() * 3)


def pl_unpivoted(df: pl.DataFrame):
    """Cases and people by zip, one number a row, by unpivot."""
    table = df.group_by("zip").agg(n=pl.len(), cases=pl.col("ill").sum()).sort("zip")
    return table.unpivot(index="zip", on=["n", "cases"]).sort("zip", "variable")


def pl_totals(df: pl.DataFrame):
    """Cases by zip with a column of their share of all cases and one more."""
    table = df.group_by("zip").agg(cases=pl.col("ill").sum()).sort("zip")
    return table.with_columns(share=pl.col("cases") / (pl.col("cases").sum() + 1))


def pl_smallest_class(df: pl.DataFrame):
    """Size of the smallest class of zip and sex."""
    return df.group_by("zip", "sex").len()["len"].min()


def pl_unique_people(df: pl.DataFrame):
    """How many people are the only ones with their zip and sex."""
    return df.group_by("zip", "sex").len().filter(pl.col("len") == 1).height


def pl_ranks(df: pl.DataFrame):
    """Zips with the ranks of their counts."""
    counts = df.group_by("zip").len().sort("zip")
    return counts.with_columns(rank=pl.col("len").rank("min", descending=True))


def pl_most_common(df: pl.DataFrame):
    """The most common zip, the first of those that are equally common."""
    return df.group_by("zip").len().sort(["len", "zip"], descending=[True, False])["zip"][0]


def pl_with_total(df: pl.DataFrame):
    """Counts by zip with a row of their total below."""
    counts = df.group_by("zip").len().sort("zip")
    return pl.concat([counts, pl.DataFrame({"zip": ["Total"], "len": [df.height]}, schema=counts.schema)])


PROGRAMS = [
    one
    for name, one in list(globals().items())
    if callable(one) and getattr(one, "__module__", "") == __name__ and name != "people"
]
CALLED = (pivot_of_means, pl_filled, pl_unpivoted, pl_ranks, pl_with_total)
COUNT_TABLES = [Entry(program, people, "python" if program in CALLED else "traced") for program in PROGRAMS]
COUNT_THEMES = {
    "Tables of counts: Python and NumPy": COUNT_TABLES[: PROGRAMS.index(filled_counts)],
    "Tables of counts: pandas, one way": COUNT_TABLES[PROGRAMS.index(filled_counts) : PROGRAMS.index(cross_table)],
    "Tables of counts: pandas, two ways": COUNT_TABLES[PROGRAMS.index(cross_table) : PROGRAMS.index(pl_counts)],
    "Tables of counts: polars": COUNT_TABLES[PROGRAMS.index(pl_counts) :],
}
