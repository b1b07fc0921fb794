"""Small programs exactly as data analysts write them, each with a prior under which edge cases are common."""

import bisect
import functools
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import privug as pv

# --- Averages -------------------------------------------------------------------------------------


def mean_age(records):
    """Mean age."""
    return sum(row.age for row in records) / len(records)


def median_income(records):
    """Median income by sorting."""
    incomes = sorted(row.income for row in records)
    middle = len(incomes) // 2
    if len(incomes) % 2 == 1:
        return incomes[middle]
    return (incomes[middle - 1] + incomes[middle]) / 2


def trimmed_mean(records):
    """Mean income without the lowest and the highest."""
    incomes = sorted(row.income for row in records)
    kept = incomes[1:-1]
    return sum(kept) / len(kept)


def weighted_mean(records):
    """Income weighted by age, zero if all weights are zero."""
    total = weight = 0
    for row in records:
        total += row.income * row.age
        weight += row.age
    return total / weight if weight > 0 else 0.0


def mean_of_the_ill(records):
    """Mean age of the ill, minus one if there are none."""
    ages = [row.age for row in records if row.ill]
    if not ages:
        return -1.0
    return sum(ages) / len(ages)


def statistics_summary(records):
    """Mean, median and standard deviation by the statistics module."""
    ages = [row.age for row in records]
    return statistics.mean(ages), statistics.median(ages), statistics.stdev(ages)


def geometric_mean(records):
    """Geometric mean of incomes shifted by one."""
    return math.exp(sum(math.log(row.income + 1) for row in records) / len(records))


def running_mean(values):
    """Mean updated value by value."""
    mean = 0.0
    for position, value in enumerate(values, start=1):
        mean += (value - mean) / position
    return mean


# --- Counts and histograms --------------------------------------------------------------------------


def count_ill(records):
    """How many are ill."""
    return sum(1 for row in records if row.ill == 1)


def share_of_adults(records):
    """Share of adults in per cent, rounded to one digit."""
    adults = len([row for row in records if row.age >= 18])
    return round(100 * adults / len(records), 1)


def age_histogram(records):
    """Counts in four bins as a list."""
    bins = [0, 0, 0, 0]
    for row in records:
        bins[min(row.age // 25, 3)] += 1
    return bins


def zip_histogram(records):
    """Counts for each known zip in a dict."""
    counts = {"2300": 0, "2450": 0, "8000": 0}
    for row in records:
        counts[row.zip] += 1
    return counts


def two_way_table(records):
    """Counts by zip and illness as nested lists."""
    zips = ["2300", "2450", "8000"]
    table = [[0, 0] for _ in zips]
    for row in records:
        table[zips.index(row.zip)][row.ill] += 1
    return table


def numpy_histogram(ages):
    """Counts in ten-year bins by np.histogram."""
    counts, _ = np.histogram(ages, bins=[0, 20, 40, 60, 100])
    return counts.tolist()


# --- Group-bys --------------------------------------------------------------------------------------


def largest_group(records):
    """Size of the largest group of one zip, by dict.get."""
    counts = {}
    for row in records:
        counts[row.zip] = counts.get(row.zip, 0) + 1
    return max(counts.values())


def smallest_group(records):
    """Size of the smallest group of one zip, by `in`."""
    counts = {}
    for row in records:
        if row.zip not in counts:
            counts[row.zip] = 0
        counts[row.zip] += 1
    return min(counts.values())


def ill_in_zip(records):
    """How many are ill in one zip, by defaultdict(int)."""
    ill = defaultdict(int)
    for row in records:
        ill[row.zip] += row.ill
    return ill["2300"]


def mean_income_of_groups(records):
    """Mean income of each zip, by setdefault; zero for absent ones."""
    groups = {}
    for row in records:
        groups.setdefault(row.zip, []).append(row.income)
    means = {zip_code: sum(incomes) / len(incomes) for zip_code, incomes in groups.items()}
    return [means.get(zip_code, 0.0) for zip_code in ("2300", "2450", "8000")]


def oldest_by_group(records):
    """Highest age in each zip, by defaultdict(list)."""
    ages = defaultdict(list)
    for row in records:
        ages[row.zip].append(row.age)
    return {zip_code: max(ages[zip_code], default=0) for zip_code in ("2300", "2450")}


def counter_of_zips(records):
    """Counts of two zips by Counter."""
    counts = Counter(row.zip for row in records)
    return counts["2300"], counts["2450"]


def group_totals(records):
    """Income of each zip as the dict that arose."""
    totals = {}
    for row in records:
        totals[row.zip] = totals.get(row.zip, 0.0) + row.income
    return totals


def pandas_mean_by_zip(records):
    """Mean income by zip with pandas."""
    frame = pd.DataFrame([{"zip": row.zip, "income": row.income} for row in records])
    return frame.groupby("zip")["income"].mean().to_dict()


# --- Top-k and mode ---------------------------------------------------------------------------------


def most_common_zip(records):
    """The most common zip, the first seen among equals."""
    counts = {}
    for row in records:
        counts[row.zip] = counts.get(row.zip, 0) + 1
    return max(counts, key=counts.get)


def most_common_by_counter(records):
    """Zip and count of the most common zip."""
    return Counter(row.zip for row in records).most_common(1)[0]


def mode_of_ages(records):
    """The most common age group by statistics.mode."""
    return statistics.mode([row.age // 20 for row in records])


def top_two_incomes(records):
    """The two highest incomes."""
    return sorted((row.income for row in records), reverse=True)[:2]


def richest_person(records):
    """Name of the person with the highest income."""
    return max(records, key=lambda row: row.income).name


def youngest_two(records):
    """Names of the two youngest, by a stable sort."""
    return [row.name for row in sorted(records, key=lambda row: row.age)[:2]]


def ranking(records):
    """Names by income in descending order, then by age."""
    ordered = sorted(records, key=lambda row: (-row.income, row.age))
    return [row.name for row in ordered]


def sort_in_place(records):
    """Spread between the extremes, by list.sort."""
    incomes = [row.income for row in records]
    incomes.sort(reverse=True)
    return incomes[0] - incomes[-1]


# --- Suppression, rounding, generalisation ----------------------------------------------------------


def suppressed_count(records):
    """Count of the ill, zero if it is below three."""
    count = sum(row.ill for row in records)
    return count if count >= 3 else 0


def suppressed_cells(records):
    """Counts by zip, None for cells below two."""
    cells = []
    for zip_code in ("2300", "2450", "8000"):
        n = sum(1 for row in records if row.zip == zip_code)
        cells.append(n if n == 0 or n >= 2 else None)
    return cells


def published_groups(records):
    """Groups of at least two as a dict."""
    counts = Counter(row.zip for row in records)
    return {zip_code: n for zip_code, n in counts.items() if n >= 2}


def number_of_small_groups(records):
    """How many groups have fewer than two people."""
    counts = Counter(row.zip for row in records)
    return sum(1 for n in counts.values() if n < 2)


def round_to_base_five(records):
    """Sum of ages rounded to base five."""
    return 5 * round(sum(row.age for row in records) / 5)


def age_band(age):
    """Age band by an if/elif chain."""
    if age < 18:
        return "0-17"
    elif age < 30:
        return "18-29"
    elif age < 65:
        return "30-64"
    return "65+"


def age_bands(records):
    """Age band of everyone by a helper function."""
    return [age_band(row.age) for row in records]


def decades(records):
    """Decade of each age by whole division."""
    return [row.age // 10 * 10 for row in records]


def bisected_bands(records):
    """Age bands by bisect."""
    return [bisect.bisect([18, 30, 65], row.age) for row in records]


def generalised_rows(records):
    """Rows with banded age and truncated zip."""
    return [(row.zip[:2] + "**", 20 * (row.age // 20), row.ill) for row in records]


def is_two_anonymous(records):
    """Whether each pair of truncated zip and age band occurs at least twice."""
    groups = {}
    for row in records:
        key = (row.zip[:1], "old" if row.age >= 40 else "young")
        groups[key] = groups.get(key, 0) + 1
    return all(n >= 2 for n in groups.values())


def is_unique(records):
    """Whether the first person's zip is theirs alone."""
    return [row.zip for row in records].count(records[0].zip) == 1


def capped_incomes(records):
    """Total income, each capped at 2000."""
    return sum(min(row.income, 2000.0) for row in records)


# --- Two tables -------------------------------------------------------------------------------------


def join_by_loops(people, visits):
    """Total cost of visits of people over 30, by nested loops."""
    total = 0
    for person in people:
        for visit in visits:
            if visit.name == person.name and person.age > 30:
                total += visit.cost
    return total


def join_by_dict(people, visits):
    """Total cost of the old, with a dict of ages; the last row of a name counts."""
    ages = {person.name: person.age for person in people}
    return sum(visit.cost for visit in visits if ages.get(visit.name, 0) >= 65)


def unmatched(people, visits):
    """How many visits are of people not in the table."""
    return len([visit for visit in visits if visit.name not in [person.name for person in people]])


def overlap(people, visits):
    """How many distinct names are in both tables, by sets."""
    return len({person.name for person in people} & {visit.name for visit in visits})


# --- Strings ----------------------------------------------------------------------------------------


def births_in_spring(dates):
    """How many dates fall into March to May, by slicing and int."""
    return sum(3 <= int(date[5:7]) <= 5 for date in dates)


def years_apart(dates):
    """Years between the first two dates, by split."""
    first, second = (int(date.split("-")[0]) for date in dates[:2])
    return abs(first - second)


def capital_region(records):
    """Who lives in the capital, by startswith."""
    return [row.zip.startswith("2") for row in records]


def labels(records):
    """Labels by string concatenation and upper."""
    return [row.name.upper() + "@" + row.zip for row in records]


def formatted(records):
    """A sentence by an f-string."""
    return f"{sum(row.ill for row in records)} of {len(records)} are ill"


def formatted_categories(records):
    """The first row's name and zip by an f-string."""
    return f"{records[0].name} ({records[0].zip[:2]}xx)"


def region(zip_code):
    """Region of a zip by a match statement."""
    match zip_code[0]:
        case "2":
            return "east"
        case "8" | "9":
            return "west"
        case _:
            return "unknown"


def regions(records):
    """Region of everyone."""
    return [region(row.zip) for row in records]


# --- Loops ------------------------------------------------------------------------------------------


def first_ill(records):
    """Position of the first ill person, by return inside a loop."""
    for position, row in enumerate(records):
        if row.ill:
            return position
    return -1


def ages_until_ill(records):
    """Sum of ages before the first ill person, by break."""
    total = 0
    for row in records:
        if row.ill:
            break
        total += row.age
    return total


def income_of_healthy_adults(records):
    """Sum of incomes, skipping by continue."""
    total = 0.0
    for row in records:
        if row.ill:
            continue
        if row.age < 18:
            continue
        total += row.income
    return total


def anyone_rich(records):
    """Whether anyone is rich, by for-else."""
    for row in records:
        if row.income > 30_000:
            found = True
            break
    else:
        found = False
    return found


def longest_streak(records):
    """Longest run of ill people."""
    longest = current = 0
    for row in records:
        current = current + 1 if row.ill else 0
        longest = max(longest, current)
    return longest


def running_maxima(values):
    """Running maximum at each position."""
    best = values[0]
    maxima = []
    for value in values:
        if value > best:
            best = value
        maxima.append(best)
    return maxima


def records_needed(values):
    """How many values it takes to reach 100, by while."""
    total, position = 0, 0
    while position < len(values) and total < 100:
        total += values[position]
        position += 1
    return position


def fixed_while(records):
    """Sum of every other age, by a while loop with a fixed bound."""
    total, k = 0, 0
    while k < len(records):
        total += records[k].age
        k += 2
    return total


def halvings(value):
    """How often a number can be halved until it is at most one."""
    steps = 0
    while value > 1:
        value = value // 2
        steps += 1
    return steps


def alternating_sum(records):
    """Alternating sum over zip and reversed."""
    return sum(a.age - b.age for a, b in zip(records, reversed(records), strict=True) if a.age > b.age)


def close_pairs(records):
    """How many pairs are at most two years apart, by nested ranges."""
    pairs = 0
    for i in range(len(records)):
        for j in range(i + 1, len(records)):
            if abs(records[i].age - records[j].age) <= 2:
                pairs += 1
    return pairs


# --- Functions, closures, recursion, classes --------------------------------------------------------


def recursive_sum(records):
    """Sum of ages by recursion over slices."""
    if not records:
        return 0
    return records[0].age + recursive_sum(records[1:])


def gcd(a, b):
    """Greatest common divisor by recursion on values."""
    return a if b == 0 else gcd(b, a % b)


def closure_threshold(records):
    """Counts above two thresholds by a closure."""

    def above(threshold):
        return lambda row: row.age > threshold

    old, older = above(60), above(90)
    return sum(map(old, records)), sum(map(older, records))


def clipped_sum(records, low=1000.0, high=20_000.0):
    """Sum of incomes clipped to default bounds."""
    return sum(max(low, min(high, row.income)) for row in records)


def map_filter_reduce(records):
    """Product of one plus illness over adults, by map, filter and reduce."""
    adults = filter(lambda row: row.age >= 18, records)
    return functools.reduce(lambda total, n: total * n, map(lambda row: 1 + row.ill, adults), 1)  # noqa: C417


@dataclass
class Person:
    """A row as a dataclass."""

    age: int
    income: float

    def taxed(self, rate=0.1):
        """Income after tax."""
        if self.age >= 65:
            return self.income
        return self.income * (1 - rate)


def dataclass_rows(records):
    """Total income after tax by methods of a dataclass."""
    people = [Person(row.age, row.income) for row in records]
    return sum(person.taxed() for person in people)


class Tally:
    """A counter with a method."""

    def __init__(self):
        self.count = 0
        self.total = 0

    def add(self, value):
        """Take a value into account, unless it is zero."""
        if value:
            self.count += 1
            self.total += value


def tally_class(records):
    """Count and total of positive ages by a class with state."""
    tally = Tally()
    for row in records:
        tally.add(row.age)
    return tally.count, tally.total


# --- Logic ------------------------------------------------------------------------------------------


def any_minor_all_insured(records):
    """Whether there is a minor, and whether all have an income."""
    return any(row.age < 18 for row in records), all(row.income > 0 for row in records)


def working_age(records):
    """How many are of working age, by a chained comparison."""
    return sum(18 <= row.age < 65 for row in records)


def eligible(records):
    """Flags by and, or, not."""
    return [(row.age >= 65 or row.ill == 1) and not row.income > 30_000 for row in records]


def risk_flag(records):
    """A boolean flag set in a loop."""
    flagged = False
    for row in records:
        if row.ill and row.age >= 65:
            flagged = True
    return flagged


def distinct_zips(records):
    """How many distinct zips there are, by a set."""
    return len({row.zip for row in records})


def distinct_names_seen(records):
    """How many names occur again, with a set of those seen."""
    seen = set()
    repeated = 0
    for row in records:
        if row.name in seen:
            repeated += 1
        seen.add(row.name)
    return repeated


# --- NumPy ------------------------------------------------------------------------------------------


def numpy_masked_mean(ages, ill):
    """Share of age mass among the ill, by a mask."""
    return (ages * (ill == 1)).sum() / (ages.sum() + 1)


def numpy_boolean_index(ages):
    """Sum of the ages above 40, by boolean indexing."""
    return ages[ages > 40].sum()


def numpy_where(ages):
    """Number of minors, by np.where."""
    return np.where(ages < 18, 1, 0).sum()


def numpy_percentiles(ages):
    """Quartiles."""
    return np.percentile(ages, 25), np.percentile(ages, 75)


def numpy_clip_cumsum(ages):
    """Cumulative sums of clipped ages."""
    return np.cumsum(np.clip(ages, 18, 65))


def standardised(ages):
    """How many standard deviations the maximum lies above the mean."""
    spread = np.std(ages)
    if spread == 0:
        return 0.0
    return (np.max(ages) - np.mean(ages)) / spread


def position_of_oldest(ages):
    """Position of the highest age."""
    return int(np.argmax(ages))


def column_means(records):
    """Mean and maximum of columns of the table."""
    return records.age.mean(), records.income.max()


# --- Errors -----------------------------------------------------------------------------------------


def safe_ratio(records):
    """Ratio of incomes, zero where it cannot be had, by try/except."""
    try:
        return records[0].income / records[1].income
    except ZeroDivisionError:
        return 0.0


def mean_of_ill_or_error(records):
    """Mean age of the ill; fails if there are none."""
    ages = [row.age for row in records if row.ill]
    return sum(ages) / len(ages)


def checked_mean(records):
    """Mean age; raises on impossible ages, which do not occur."""
    for row in records:
        if row.age < 0:
            raise ValueError(f"impossible age {row.age}")
    return sum(row.age for row in records) / len(records)


def raises_for_small_groups(records):
    """Number of ill; raises if it is one."""
    count = sum(row.ill for row in records)
    if count == 1:
        raise ValueError("too few to publish")
    return count


# --- Priors -----------------------------------------------------------------------------------------

AGES = [0, 5, 17, 18, 29, 30, 31, 40, 64, 65, 99]
INCOMES = [0.0, 1000.0, 2000.0, 2500.5, 40_000.0]
ZIPS = ["2300", "2450", "8000"]
NAMES = ["Ann", "Bob", "Cem"]


def people(rows: int = 4) -> dict[str, Any]:
    """A table of people among whom ties, zeros and boundaries are common."""
    return {"records": _people(rows)}


def _people(rows: int) -> pv.Records:
    return pv.Records(
        rows,
        pv.Row(
            name=pv.Choice(NAMES),
            age=pv.Choice(AGES),
            zip=pv.Choice(ZIPS),
            income=pv.Choice(INCOMES),
            ill=pv.DiscreteUniform(0, 1),
        ),
    )


def two_tables() -> dict[str, Any]:
    """People and their visits."""
    visits = pv.Records(3, pv.Row(name=pv.Choice([*NAMES, "Dee"]), cost=pv.DiscreteUniform(0, 3)))
    return {"people": _people(3), "visits": visits}


def ages() -> dict[str, Any]:
    """An array of ages."""
    return {"ages": pv.Array(pv.Choice(AGES), 5)}


def ages_and_ill() -> dict[str, Any]:
    """Two arrays of one length."""
    return {"ages": pv.Array(pv.Choice(AGES), 4), "ill": pv.Array(pv.DiscreteUniform(0, 1), 4)}


def values() -> dict[str, Any]:
    """An array of numbers."""
    return {"values": pv.Array(pv.Choice(AGES), 5)}


def dates() -> dict[str, Any]:
    """A list of dates as text."""
    days = ["1990-02-28", "1990-03-01", "1985-05-31", "1985-06-01", "2001-12-24"]
    return {"dates": [pv.Choice(days) for _ in range(3)]}


def one_number() -> dict[str, Any]:
    """One whole number."""
    return {"value": pv.DiscreteUniform(0, 40)}


def two_numbers() -> dict[str, Any]:
    """Two whole numbers."""
    return {"a": pv.DiscreteUniform(0, 12), "b": pv.DiscreteUniform(0, 12)}


# --- The corpus -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A program, what is known about its inputs, how it is lifted, and what happens where it raises."""

    program: Callable[..., Any]
    prior: Callable[[], dict[str, Any]] = people
    tier: str = "traced"
    on_error: str = "raise"

    @property
    def name(self) -> str:
        """The program's name."""
        return self.program.__name__


THEMES: dict[str, list[Entry]] = {
    "Averages": [
        Entry(mean_age), Entry(median_income), Entry(trimmed_mean), Entry(weighted_mean), Entry(mean_of_the_ill),
        Entry(statistics_summary), Entry(geometric_mean), Entry(running_mean, values),
    ],
    "Counts and histograms": [
        Entry(count_ill), Entry(share_of_adults), Entry(age_histogram), Entry(zip_histogram), Entry(two_way_table),
        Entry(numpy_histogram, ages),
    ],
    "Group-bys": [
        Entry(largest_group), Entry(smallest_group), Entry(ill_in_zip), Entry(mean_income_of_groups),
        Entry(oldest_by_group), Entry(counter_of_zips), Entry(group_totals),
        Entry(pandas_mean_by_zip, tier="python"),
    ],
    "Top-k and mode": [
        Entry(most_common_zip), Entry(most_common_by_counter), Entry(mode_of_ages),
        Entry(top_two_incomes), Entry(richest_person), Entry(youngest_two), Entry(ranking), Entry(sort_in_place),
    ],
    "Suppression, rounding, generalisation": [
        Entry(suppressed_count), Entry(suppressed_cells), Entry(published_groups),
        Entry(number_of_small_groups), Entry(round_to_base_five), Entry(age_bands), Entry(decades),
        Entry(bisected_bands), Entry(generalised_rows), Entry(is_two_anonymous), Entry(is_unique),
        Entry(capped_incomes),
    ],
    "Two tables": [
        Entry(join_by_loops, two_tables), Entry(join_by_dict, two_tables), Entry(unmatched, two_tables),
        Entry(overlap, two_tables),
    ],
    "Strings": [
        Entry(births_in_spring, dates), Entry(years_apart, dates), Entry(capital_region), Entry(labels),
        Entry(formatted), Entry(formatted_categories), Entry(regions),
    ],
    "Loops": [
        Entry(first_ill), Entry(ages_until_ill), Entry(income_of_healthy_adults), Entry(anyone_rich),
        Entry(longest_streak), Entry(running_maxima, values), Entry(records_needed, values), Entry(fixed_while),
        Entry(halvings, one_number), Entry(alternating_sum), Entry(close_pairs),
    ],
    "Functions and classes": [
        Entry(recursive_sum), Entry(gcd, two_numbers, "python"), Entry(closure_threshold), Entry(clipped_sum),
        Entry(map_filter_reduce), Entry(dataclass_rows), Entry(tally_class),
    ],
    "Logic and sets": [
        Entry(any_minor_all_insured), Entry(working_age), Entry(eligible), Entry(risk_flag), Entry(distinct_zips),
        Entry(distinct_names_seen),
    ],
    "NumPy": [
        Entry(numpy_masked_mean, ages_and_ill), Entry(numpy_boolean_index, ages), Entry(numpy_where, ages),
        Entry(numpy_percentiles, ages), Entry(numpy_clip_cumsum, ages), Entry(standardised, ages),
        Entry(position_of_oldest, ages), Entry(column_means),
    ],
    "Errors": [
        Entry(safe_ratio), Entry(mean_of_ill_or_error, tier="python", on_error="exclude"),
        Entry(checked_mean), Entry(raises_for_small_groups, tier="python", on_error="exclude"),
    ],
}  # fmt: skip

CORPUS = [entry for entries in THEMES.values() for entry in entries]
