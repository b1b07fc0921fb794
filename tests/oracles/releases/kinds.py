"""The typical releases by kind, and what is known not to be exact about them.

`test_releases.py` holds the engine to these lists; `tools/exact_table.py` makes a table of them for the docs.
"""

KINDS: dict[str, tuple[str, ...]] = {
    "a count, a share or a vote; small counts suppressed": (
        "count over 60",
        "share over 65 in per cent",
        "whether anyone is over 90",
        "small count replaced by a sentinel",
        "count of a thousand in tens",
        "outcome of a vote",
    ),
    "a histogram, shares by group": (
        "histogram with small cells suppressed",
        "one cell of a histogram, label asked",
        "unemployment by region, one seen",
    ),
    "a count with noise, randomised response": (
        "true count under a noisy one",
        "noisy count in a table of random size",
        "histogram with Laplace noise",
        "randomised response about a threshold",
        "count with discrete noise of a mechanism",
    ),
    "a count that depends on a risk, a rate or a level, which is the secret": (
        "shared rate behind a suppressed count",
        "risk of each behind an illness",
        "risk of all behind an illness",
        "a boom that all share",
        "a level that all share",
    ),
    "a sum or mean over a subgroup, with suppression": (
        "mean over a subgroup, suppressed below 2",
        "sum over a subgroup",
        "mean over a subgroup, a sentinel below 4",
        "mean of those above a threshold",
        "cost of illness, the number of ill known",
    ),
    "a clamped or capped sum or mean, rounded or with noise": (
        "clamped mean with Laplace noise",
        "clamped mean",
        "clamped sum, far in the tail",
        "clamped mean with Gaussian noise, rounded",
        "capped sum of 200 with Gaussian noise",
        "top-coded salaries, rounded",
        "exact value of a capped sum and noise",
        "exact value of payouts above a deductible",
    ),
    "a sum or mean of quantities of any distribution": (
        "lognormal salaries",
        "mixture of grades",
        "seven exponential times",
        "mean of Student's t",
        "one of two numbers by a flag",
        "price times quantity",
        "noisy value of a sum of unlike parts",
        "mean square deviation",
    ),
    "a rounded mean, a sum of rounded numbers, tables of random size": (
        "rounded mean in a table of random size",
        "band of a mark behind a rounded mean",
        "sum of rounded cells",
        "number of claims behind their sum",
    ),
    "a weighted mean": (
        "weighted mean, discrete weights",
        "weighted mean, continuous weights",
    ),
    "several sums, means or counts together": (
        "rounded mean and count together",
        "count and sum in a table of a thousand",
        "means by group",
        "two rounded means, with and without one person",
        "mean and variance together",
    ),
    "a median, a quantile, a rank, a range": (
        "median of eleven rents",
        "third quartile of nine",
        "third largest of fifteen",
        "range of eight",
        "largest of a summary, the rest unseen",
    ),
    "a mean, with facts about rows, or about two of them": (
        "mean wage, nobody below the minimum",
        "mean of three, Alice older than Bob",
        "whether Alice earns more than Bob",
    ),
    "continuous numbers, seen to all digits": (
        "exact value of a square",
        "exact value in one of two units",
        "exact values of a pair in order",
        "exact values of a size and a sum",
    ),
}
"""What is published, and the releases that are of that kind."""

REFUSED = (
    "weighted mean, continuous weights",
    "mean and variance together",
)
"""Releases that are known not to be answered exactly."""

NO_JOINT = (
    "histogram with Laplace noise",  # several numbers together
    "means by group",
    "two rounded means, with and without one person",
    "exact values of a pair in order",
    "exact values of a size and a sum",
    "cost of illness, the number of ill known",  # facts
    "mean wage, nobody below the minimum",
    "mean of three, Alice older than Bob",
    "whether Alice earns more than Bob",  # a secret made of two continuous numbers
    "mean of Student's t",  # would take too fine a grid
    "top-coded salaries, rounded",  # not to be had to 1e-9
    "range of eight",  # a continuous secret beside two ranks
    "largest of a summary, the rest unseen",  # order statistics and sums of the same rows
)
"""Releases whose joint of secret and output, and so the mutual information, is known not to be had exactly."""

LONG_JOINT = (
    "histogram with small cells suppressed",
    "mean over a subgroup, a sentinel below 4",
    "weighted mean, discrete weights",
    "mean of those above a threshold",
    "count and sum in a table of a thousand",
)
"""Releases whose joint of secret and output took more than two minutes when it was tried: no test waits for it."""

LONG = (
    "mean of three, Alice older than Bob",
    "mean of those above a threshold",
    "a level that all share",
    "mean square deviation",
    "whether Alice earns more than Bob",
)
"""Releases whose posterior takes more than some seconds."""

LONG_INFORMATION = (
    "shared rate behind a suppressed count",
    "clamped mean with Laplace noise",
    "risk of all behind an illness",
    "one cell of a histogram, label asked",
)
"""Releases whose mutual information takes more than some seconds."""
