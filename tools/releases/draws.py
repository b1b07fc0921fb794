"""Each release again by hand on a batch of plain NumPy draws: what was seen, what is asked, and what is known.

A function takes a generator and a number of draws, and returns for each draw whether it agrees with what was seen
(or how likely it makes that) and whether the query holds; where there are facts, also whether they hold.
"""

import numpy as np

from releases.register import Register

DRAWS = Register()
of = DRAWS.of


@of("count over 60")
def _(rng, n):
    ages = rng.normal(50, 15, (n, 25))
    return (ages > 60).sum(1) == 9, ages[:, 0] > 60


@of("share over 65 in per cent")
def _(rng, n):
    ages = rng.gamma(6, 8, (n, 40))
    share = 100 * (ages > 65).mean(1)
    return (share >= 9) & (share <= 16), ages[:, 0] > 70


@of("whether anyone is over 90")
def _(rng, n):
    ages = rng.uniform(20, 100, (n, 12))
    return (ages > 60).sum(1) == 4, (ages > 90).any(1)


@of("true count under a noisy one")
def _(rng, n):
    count = (rng.gamma(2, 15, (n, 30)) > 50).sum(1)
    return abs(count + rng.laplace(0, 2, n) - 7) <= 0.5, count >= 6


@of("noisy count in a table of random size")
def _(rng, n):
    size = np.maximum(rng.binomial(60, 0.4, n), 1)  # nobody has probability 5e-14
    bmi = rng.normal(27, 4, (n, 60))
    count = ((bmi > 30) & (np.arange(60) < size[:, None])).sum(1)
    published = count + rng.laplace(0, 1.5, n)
    return (published >= 8) & (published <= 9), bmi[:, 0] > 30


@of("histogram with small cells suppressed")
def _(rng, n):
    ages = rng.normal(42, 15, (n, 30))
    young, middle = (ages < 30).sum(1), ((ages >= 30) & (ages < 50)).sum(1)
    late, old = ((ages >= 50) & (ages < 70)).sum(1), (ages >= 70).sum(1)
    return (young == 6) & (middle == 15) & (late == 8) & (old < 3), ages[:, 0] >= 50


@of("one cell of a histogram, label asked")
def _(rng, n):
    marks = rng.normal(62, 15, (n, 80))
    while (outside := (marks < 0) | (marks > 100)).any():
        marks[outside] = rng.normal(62, 15, outside.sum())
    return (marks >= 75).sum(1) == 20, marks[:, 0] >= 75


@of("histogram with Laplace noise")
def _(rng, n):
    ages = rng.uniform(18, 80, (n, 15))
    young, old = (ages < 35).sum(1), (ages >= 60).sum(1)
    counts = np.stack([young, 15 - young - old, old], 1)
    return (abs(counts + rng.laplace(0, 1, (n, 3)) - [6, 5, 3]) <= 1).all(1), ages[:, 0] < 35


@of("randomised response about a threshold")
def _(rng, n):
    above = rng.lognormal(3.5, 0.7, (n, 20)) > 50
    answers = np.where(rng.random((n, 20)) < 0.75, above, rng.random((n, 20)) < 0.5)
    return answers.sum(1) == 9, above[:, 0]


@of("small count replaced by a sentinel")
def _(rng, n):
    calls = rng.exponential(5, (n, 50))
    return (calls > 12).sum(1) < 5, calls[:, 0] > 10


@of("count of a thousand in tens")
def _(rng, n):
    incomes = 40 * rng.weibull(1.5, (n, 1000))
    return 10 * np.rint((incomes < 15).sum(1) / 10) == 240, incomes[:, 0] < 15


@of("risk of each behind an illness")
def _(rng, n):
    risks = rng.beta(2, 8, (n, 15))
    return (rng.random((n, 15)) < risks).sum(1) == 6, risks[:, 0] > 0.3


@of("risk of all behind an illness")
def _(rng, n):
    risk = rng.beta(2, 8, n)
    return (rng.random((n, 20)) < risk[:, None]).sum(1) == 6, risk > 0.3


@of("shared rate behind a suppressed count")
def _(rng, n):
    rate = rng.gamma(3, 0.8, n)
    return rng.poisson(rate[:, None], (n, 4)).sum(1) == 13, rate > 3


@of("unemployment by region, one seen")
def _(rng, n):
    north = rng.random((n, 20)) < 0.4
    hours = rng.exponential(6, (n, 20))
    people, seeking = north.sum(1), (north & (hours < 1)).sum(1)
    return (people > 0) & (4 * seeking == people), hours[:, 0] < 1


@of("outcome of a vote")
def _(rng, n):
    views = np.column_stack([rng.normal(1.5, 1, n), rng.normal(-0.1, 2, (n, 20))])
    return (views > 0).sum(1) <= 10, views[:, 0] > 0


@of("mean over a subgroup, suppressed below 2")
def _(rng, n):
    ages, members = rng.normal(30, 5, (n, 12)), rng.random((n, 12)) < 0.5
    count = members.sum(1)
    mean = (ages * members).sum(1) / np.maximum(count, 1)
    return (count >= 2) & (abs(mean - 31) <= 0.5), ages[:, 0] > 32


@of("sum over a subgroup")
def _(rng, n):
    alice = rng.uniform(20, 100, n)
    others = rng.normal(50, 8, (n, 9)) * (rng.random((n, 9)) < 0.3)
    return abs(alice + others.sum(1) - 230) <= 5, alice > 70


@of("mean over a subgroup, a sentinel below 4")
def _(rng, n):
    wards = rng.integers(1, 5, (n, 20))
    return (wards == 2).sum(1) < 4, wards[:, 0] == 2


@of("clamped mean")
def _(rng, n):
    ages = rng.normal(40, 25, (n, 8))
    return abs(ages.clip(18, 90).mean(1) - 48) <= 1, ages[:, 0] > 60


@of("clamped mean with Laplace noise")
def _(rng, n):
    ages = rng.normal(40, 25, (n, 15))
    return abs(ages.clip(18, 90).mean(1) + rng.laplace(0, 4.8, n) - 50) <= 1, ages[:, 0] > 60


@of("clamped mean with Gaussian noise, rounded")
def _(rng, n):
    scores = 60 + 20 * rng.standard_t(4, (n, 30))
    return np.rint(scores.clip(0, 100).mean(1) + rng.normal(0, 2, n)) == 63, scores[:, 0] >= 100


@of("capped sum of 200 with Gaussian noise")
def _(rng, n):
    claims = rng.exponential(4, (n, 200))
    return abs(claims.clip(max=10).sum(1) + rng.normal(0, 20, n) - 770) <= 10, claims[:, 0] > 10


@of("lognormal salaries")
def _(rng, n):
    salaries = rng.lognormal(3.5, 0.6, (n, 20))
    return abs(salaries.mean(1) - 46) <= 1, salaries[:, 0] > 80


@of("top-coded salaries, rounded")
def _(rng, n):
    salaries = rng.lognormal(3.6, 0.8, (n, 10))
    return np.rint(salaries.clip(max=80).sum(1)) == 430, salaries[:, 0] > 80


@of("rounded mean in a table of random size")
def _(rng, n):
    size = np.maximum(rng.poisson(30, n), 1)  # nobody has probability 9e-14
    alice = rng.uniform(20, 80, n)
    others = rng.normal(45, 6, (n, size.max() - 1)) * (np.arange(1, size.max()) < size[:, None])
    return np.rint((alice + others.sum(1)) / size) == 46, alice > 65


@of("rounded mean and count together")
def _(rng, n):
    ages = rng.normal(50, 12, (n, 10))
    return (np.rint(ages.mean(1)) == 53) & ((ages > 60).sum(1) == 3), ages[:, 0] > 60


@of("means by group")
def _(rng, n):
    groups = np.column_stack([rng.integers(0, 3, n), rng.choice(3, (n, 11), p=[0.5, 0.3, 0.2])])
    pay = np.column_stack([rng.normal(60, 10, n), rng.normal(45, 5, (n, 11))])
    seen = np.ones(n, bool)
    for group, value in enumerate([46, 48, 45]):
        members = groups == group
        seen &= abs((pay * members).sum(1) / np.maximum(members.sum(1), 1) - value) <= 1.5
    return seen, groups[:, 0] == 1


@of("mean square deviation")
def _(rng, n):
    scores = rng.normal(53, 10, (n, 10))
    return abs(((scores - 50) ** 2).mean(1) - 160) <= 10, scores[:, 0] > 60


@of("mixture of grades")
def _(rng, n):
    low = rng.random((n, 20)) < 0.4
    grades = np.where(low, rng.normal(4, 1, (n, 20)), rng.normal(8, 0.7, (n, 20)))
    return abs(grades.mean(1) - 6) <= 0.1, grades[:, 0] < 5.5


@of("one of two numbers by a flag")
def _(rng, n):
    managers = rng.random((n, 9)) < 0.3
    pay = np.where(managers, rng.normal(90, 20, (n, 9)), rng.normal(50, 10, (n, 9)))
    return abs(pay.sum(1) - 600) <= 10, managers[:, 0]


@of("weighted mean, discrete weights")
def _(rng, n):
    weights, x = rng.choice([1, 2, 5], (n, 8)), rng.normal(20, 6, (n, 8))
    return abs((weights * x).sum(1) / weights.sum(1) - 26) <= 1, weights[:, 0] == 5


@of("weighted mean, continuous weights")
def _(rng, n):
    weights, x = rng.uniform(0.5, 1.5, (n, 6)), rng.normal(20, 6, (n, 6))
    return abs((weights * x).sum(1) / weights.sum(1) - 22) <= 0.5, x[:, 0] > 25


@of("sum of rounded cells")
def _(rng, n):
    cells = rng.normal(12, 5, (n, 12))
    return (5 * np.rint(cells / 5)).sum(1) == 160, cells[:, 0] > 20


@of("two rounded means, with and without one person")
def _(rng, n):
    alice, others = rng.uniform(20, 90, n), rng.normal(40, 10, (n, 9)).sum(1)
    return (np.rint((alice + others) / 10) == 43) & (np.rint(others / 9) == 41), alice > 60


@of("seven exponential times")
def _(rng, n):
    times = rng.exponential(10, (n, 7))
    return abs(times.mean(1) - 12) <= 0.5, times[:, 0] > 20


@of("mean of Student's t")
def _(rng, n):
    grades = 50 + 10 * rng.standard_t(3, (n, 5))
    return abs(grades.mean(1) - 60) <= 1, grades[:, 0] > 75


@of("price times quantity")
def _(rng, n):
    prices, quantities = rng.normal(20, 4, (n, 6)), rng.integers(1, 6, (n, 6))
    return abs((prices * quantities).sum(1) - 420) <= 10, quantities[:, 0] >= 4


@of("band of a mark behind a rounded mean")
def _(rng, n):
    marks = rng.normal(58, 18, (n, 25))
    while (outside := (marks < 0) | (marks > 100)).any():
        marks[outside] = rng.normal(58, 18, outside.sum())
    return np.rint(marks.mean(1)) == 61, marks[:, 0] >= 70


@of("whether Alice earns more than Bob")
def _(rng, n):
    pay = np.column_stack([rng.normal(60, 10, n), rng.normal(50, 12, (n, 5))])
    return abs(pay.mean(1) - 56) <= 1, pay[:, 0] > pay[:, 1]


@of("number of claims behind their sum")
def _(rng, n):
    number = rng.poisson(4, n)
    amounts = rng.exponential(3, (n, max(number.max(), 1))) * (np.arange(max(number.max(), 1)) < number[:, None])
    return abs(amounts.sum(1) - 15) <= 1, number >= 5


@of("mean and variance together")
def _(rng, n):
    xs = rng.normal(50, 10, (n, 12))
    return (abs(xs.mean(1) - 52) <= 1) & (abs(xs.var(1) - 120) <= 15), xs[:, 0] > 60


@of("cost of illness, the number of ill known")
def _(rng, n):
    ill = rng.random((n, 10)) < 0.2
    costs = (rng.gamma(2, 5, (n, 10)) * ill).sum(1)
    return (costs >= 30) & (costs <= 40), ill[:, 0], (ill.sum(1) >= 3) & (ill.sum(1) <= 4)


@of("median of eleven rents")
def _(rng, n):
    rents = rng.gamma(5, 2, (n, 11))
    return abs(np.median(rents, 1) - 10) <= 0.5, rents[:, 0] > 10.5


@of("third largest of fifteen")
def _(rng, n):
    fortunes = 10 * (1 + rng.pareto(2.5, (n, 15)))
    return abs(np.sort(fortunes, 1)[:, -3] - 21) <= 1, fortunes[:, 0] > 20


@of("range of eight")
def _(rng, n):
    ages = rng.normal(40, 10, (n, 8))
    return abs(ages.max(1) - ages.min(1) - 40) <= 2, ages[:, 0] > 55


@of("largest of a summary, the rest unseen")
def _(rng, n):
    pays = np.column_stack([rng.uniform(40, 200, n), rng.gamma(4, 15, (n, 9))])
    return abs(pays.max(1) - 120) <= 2, pays[:, 0] > 118


@of("third quartile of nine")
def _(rng, n):
    xs = rng.laplace(0, 1, (n, 9))
    return abs(np.sort(xs, 1)[:, 6] - 1) <= 0.1, xs[:, 0] > 0.5


@of("mean wage, nobody below the minimum")
def _(rng, n):
    wages = rng.exponential(10, (n, 6))
    return abs(wages.mean(1) - 25) <= 1, wages[:, 0] > 30, (wages >= 5).all(1)


@of("mean of three, Alice older than Bob")
def _(rng, n):
    alice, bob, carol = rng.normal(50, 15, n), rng.normal(55, 10, n), rng.normal(40, 8, n)
    return abs((alice + bob + carol) / 3 - 51) <= 0.5, alice > 60, alice > bob


@of("noisy value of a sum of unlike parts")
def _(rng, n):
    first = rng.uniform(0, 60, n)
    total = first + rng.normal(50, 6, n) + rng.triangular(10, 20, 40, n) + rng.exponential(5, n)
    return np.exp(-(((total - 120) / 4) ** 2) / 2) / np.sqrt(2 * np.pi) / 4, first > 45


@of("count with discrete noise of a mechanism")
def _(rng, n):
    pressures, p = rng.normal(128, 14, (n, 18)), -np.expm1(-0.7)
    noise = rng.geometric(p, n) - rng.geometric(p, n)
    return (pressures > 140).sum(1) + noise == 5, pressures[:, 0] > 130


@of("exact value of a capped sum and noise")
def _(rng, n):
    spending = rng.exponential(20, (n, 6))
    return np.exp(-abs(120 - spending.clip(max=50).sum(1)) / 10) / 20, spending[:, 0] >= 50


@of("a boom that all share")
def _(rng, n):
    boom = rng.random(n) < 0.4
    return (rng.normal(50 + 8 * boom[:, None], 6, (n, 12)) > 60).sum(1) >= 3, boom


@of("a level that all share")
def _(rng, n):
    level = rng.normal(50, 5, n)
    return (rng.normal(level[:, None], 10, (n, 25)) >= 60).sum(1) == 7, level > 53


@of("mean of those above a threshold")
def _(rng, n):
    sales = rng.exponential(20, (n, 200))
    count = (sales > 30).sum(1)
    mean = (sales * (sales > 30)).sum(1) / np.maximum(count, 1)
    return (count >= 10) & (abs(mean - 53) <= 0.5), sales[:, 0] > 60


@of("count and sum in a table of a thousand")
def _(rng, n):
    smokes, costs = rng.random((n, 1000), np.float32) < 0.2, rng.gamma(2, 5, n)
    count = smokes.sum(1)
    rest = rng.gamma(2 * np.maximum(count - smokes[:, 0], 1), 5)  # the costs of the other smokers, in one draw
    return (count == 205) & (abs(rest + costs * smokes[:, 0] - 2100) <= 50), costs > 20
