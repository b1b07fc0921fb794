"""Attackers made of data: what the table says, whatever library or file it comes from."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

import privug as pv
from privug.prior import population
from privug.prior.frame import frame_of

PEOPLE = {
    "zip": ["2300", "2300", "2100", "2100", "2100", "2450"],
    "ill": [True, True, False, False, True, False],
    "visits": [3, 1, 0, 2, 3, 1],
}


def distribution(variable, **given):
    """The exact distribution of one quantity."""
    result = pv.Attack(lambda x: x, prior={"x": variable}, secret="x").run(engine="exact")
    return {value: float(p) for value, p in result.prior.distribution().items()}


def cells(frame):
    return {column.name: column.cells() for column in frame.columns}


@pytest.mark.parametrize(
    "data",
    [
        PEOPLE,
        pd.DataFrame(PEOPLE),
        pl.DataFrame(PEOPLE),
        pd.DataFrame(PEOPLE).astype({"zip": "category"}),
        pd.DataFrame(PEOPLE).convert_dtypes(),
        {name: np.array(values) for name, values in PEOPLE.items()},
        [dict(zip(PEOPLE, row, strict=True)) for row in zip(*PEOPLE.values(), strict=True)],
        [pv.Row(**dict(zip(PEOPLE, row, strict=True))) for row in zip(*PEOPLE.values(), strict=True)],
    ],
    ids=["dict", "pandas", "polars", "categorical", "nullable", "arrays", "dicts", "rows"],
)
def test_every_source_gives_the_same_columns(data):
    assert cells(frame_of(data)) == PEOPLE


def test_files_give_the_same_columns(tmp_path):
    numbers = {name: PEOPLE[name] for name in ("zip", "visits")}
    pd.DataFrame(numbers).to_csv(tmp_path / "people.csv", index=False)
    pd.DataFrame(numbers).to_parquet(tmp_path / "people.parquet")
    assert cells(frame_of(tmp_path / "people.csv", labels=["zip"])) == numbers
    assert cells(frame_of(str(tmp_path / "people.parquet"))) == numbers
    assert cells(frame_of(tmp_path / "people.csv", columns=["visits"])) == {"visits": PEOPLE["visits"]}


def test_leading_zeros_of_labels_survive(tmp_path):
    (tmp_path / "zips.csv").write_text("zip,ill\n02300,1\n02100,0\n")
    assert cells(frame_of(tmp_path / "zips.csv", labels=["zip"]))["zip"] == ["02300", "02100"]


def test_rows_with_missing_cells_are_refused_or_left_out(tmp_path):
    holes = pd.DataFrame({"age": [30.0, None, 50.0], "name": ["a", "b", None]})
    with pytest.raises(pv.PriorError, match=r"'age' has 1 missing values, the first in row 1"):
        frame_of(holes)
    assert cells(frame_of(holes, missing="drop")) == {"age": [30.0], "name": ["a"]}
    assert cells(frame_of(pl.from_pandas(holes), missing="drop")) == {"age": [30.0], "name": ["a"]}
    holes.to_csv(tmp_path / "holes.csv", index=False)
    holes.to_parquet(tmp_path / "holes.parquet")
    with pytest.raises(pv.ArgumentError, match="is empty"):
        frame_of(tmp_path / "holes.csv")
    for name in ("holes.csv", "holes.parquet"):
        assert cells(frame_of(tmp_path / name, missing="drop")) == {"age": [30.0], "name": ["a"]}
    with pytest.raises(pv.PriorError, match="every row"):
        frame_of({"a": [None, None]}, missing="drop")


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ({"since": [datetime.timedelta(days=1)]}, {}, "of which no model is made"),
        ({"a": [1, "x"]}, {}, "holds labels and numbers"),
        ({"a": [1, True]}, {}, "holds booleans and numbers"),
        ({"a": [np.inf, 1.0]}, {}, "finite"),
        ({"a": [1, 2], "b": [1]}, {}, "equally long"),
        ({}, {}, "at least one column"),
        ({"a": []}, {}, "at least one column"),
        ({"a": [1]}, {"columns": ["b"]}, "columns names 'b'"),
        ({"a": [1]}, {"columns": "a"}, "list of names"),
        ({"a": [1]}, {"labels": ["b"]}, "labels names 'b'"),
        ({"a": [1]}, {"missing": "fill"}, "missing must be"),
        ({"a": "abc"}, {}, "must be a list of values"),
        ([{"a": 1}, {"b": 1}], {}, "same columns"),
        (3, {}, "must be a pandas or polars data frame"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), {}, "more than one column 'a'"),
        ({"a": [[1], [2]]}, {}, "no model is made"),
        ("nowhere.csv", {}, "nowhere.csv"),
    ],
)
def test_bad_data_is_refused_with_a_reason(data, options, message):
    with pytest.raises(pv.ArgumentError, match=message):
        frame_of(data, **options)


def test_independent_columns_have_the_frequencies_of_the_data():
    table = pv.Records.from_frame(PEOPLE)
    assert len(table) == 6
    assert distribution(table[3].zip) == pytest.approx({"2100": 3 / 6, "2300": 2 / 6, "2450": 1 / 6}, abs=1e-12)
    assert distribution(table[3].ill) == pytest.approx({True: 0.5, False: 0.5}, abs=1e-12)
    row = table[0]
    assert distribution(pv.lift(lambda z, ill: z == "2300" and ill)(row.zip, row.ill))[True] == pytest.approx(1 / 6)


def test_smoothing_gives_unseen_values_a_chance():
    table = pv.Records.from_frame(PEOPLE, smoothing=1, values={"visits": range(6)})
    expected = {0: 2 / 12, 1: 3 / 12, 2: 2 / 12, 3: 3 / 12, 4: 1 / 12, 5: 1 / 12}
    assert distribution(table[0].visits) == pytest.approx(expected, abs=1e-12)


def test_observed_rows_stay_together():
    row = pv.Records.from_frame(PEOPLE, model="rows")[0]
    both = distribution(pv.lift(lambda z, ill: (z, ill))(row.zip, row.ill))
    expected = {("2300", True): 2 / 6, ("2100", False): 2 / 6, ("2100", True): 1 / 6, ("2450", False): 1 / 6}
    assert both == pytest.approx(expected, abs=1e-12)


def test_a_tree_keeps_pairs_of_columns():
    """A tree of two columns is their joint distribution."""
    two = {name: PEOPLE[name] for name in ("zip", "ill")}
    row = pv.Records.from_frame(two, model="tree")[0]
    both = distribution(pv.lift(lambda z, ill: (z, ill))(row.zip, row.ill))
    expected = {("2300", True): 2 / 6, ("2100", False): 2 / 6, ("2100", True): 1 / 6, ("2450", False): 1 / 6}
    assert both == pytest.approx(expected, abs=1e-12)


def markov_chain():
    """Rows in which c depends on b and b on a, with the exact frequencies of such a chain."""
    rows = []
    for a, b, c in np.ndindex(2, 2, 2):
        times = 100 * (0.5) * (0.9 if a == b else 0.1) * (0.8 if b == c else 0.2)
        rows += [(int(a), int(b), int(c))] * round(times)
    return rows


@pytest.mark.parametrize("listed", [20_000, 0], ids=["rows listed", "conditional tables"])
def test_a_tree_finds_a_chain_and_conditions_on_both_ends(listed, monkeypatch):
    monkeypatch.setattr(population, "MOST_ROWS", listed)
    rows = markov_chain()
    data = {"c": [r[2] for r in rows], "a": [r[0] for r in rows], "b": [r[1] for r in rows]}
    target = pv.Records.from_frame(data, model="tree", target={"a": 1, "c": 0})[0]
    agreeing = [b for a, b, c in rows if (a, c) == (1, 0)]
    assert (target.a, target.c) == (1, 0)
    assert distribution(target.b)[1] == pytest.approx(np.mean(agreeing), abs=1e-12)
    row = pv.Records.from_frame(data, model="tree")[0]
    joint = distribution(pv.lift(lambda a, b, c: (a, b, c))(row.a, row.b, row.c))
    assert joint == pytest.approx({r: rows.count(r) / len(rows) for r in set(rows)}, abs=1e-12)


def test_a_smoothed_table_falls_back_on_the_column_where_little_is_known():
    data = {"group": ["x"] * 8 + ["y"] * 2, "ill": [0] * 4 + [1] * 4 + [1, 1]}
    target = pv.Records.from_frame(data, model="tree", smoothing=0.5, values={"group": ["z"]}, target={"group": "z"})[0]
    overall = (6 + 0.5) / (10 + 2 * 0.5)
    assert distribution(target.ill)[1] == pytest.approx(overall, abs=1e-12)
    seen = pv.Records.from_frame(data, model="tree", smoothing=0.5, target={"group": "y"})[0]
    assert distribution(seen.ill)[1] == pytest.approx((2 + 1.0 * overall) / (2 + 1.0), abs=1e-12)


@pytest.mark.parametrize("model", ["rows", "tree"])
def test_a_target_of_whom_all_is_known(model):
    target = pv.Records.from_frame(PEOPLE, model=model, target=pv.Row(zip="2450", ill=False, visits=1))[0]
    assert target == pv.Row(zip="2450", ill=False, visits=1)


def test_the_target_may_stand_anywhere():
    table = pv.Records.from_frame(PEOPLE, target={"zip": "2450"}, position=3)
    assert table[3].zip == "2450"
    assert distribution(table[0].zip)["2450"] == pytest.approx(1 / 6, abs=1e-12)


def test_the_target_may_have_a_distribution_of_its_own():
    target = pv.Records.from_frame(PEOPLE, target={"visits": pv.Binomial(18, 0.5), "zip": "2450"})[0]
    assert target.zip == "2450"
    belief = pv.Attack(lambda x: x, prior={"x": target.visits}, secret="x").run().prior
    assert float(belief.mean()) == pytest.approx(9, abs=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "magic"}, "model must be one of"),
        ({"smoothing": -1}, "smoothing must be"),
        ({"smoothing": 1, "model": "rows"}, "smoothing and values need"),
        ({"values": {"visits": [9]}}, "only with smoothing"),
        ({"values": {"age": [9]}, "smoothing": 1}, "values names 'age'"),
        ({"values": {"visits": ["many"]}, "smoothing": 1}, "holds labels and numbers"),
        ({"families": {"age": pv.Normal}}, "families names 'age'"),
        ({"families": {"visits": pv.Normal}, "model": "tree"}, "families need model='independent'"),
        ({"target": {"age": 3}}, "target names 'age'"),
        ({"target": 3}, "target must be a pv.Row"),
        ({"target": {"ill": True}, "position": 6}, "position must be that of a row"),
        ({"target": {"ill": True}, "position": -1}, "position must be that of a row"),
        ({"target": {"zip": "9999"}, "model": "rows"}, "no row of the data has zip='9999'"),
        (
            {"columns": ["zip", "ill"], "target": {"zip": "2300", "ill": False}, "model": "tree"},
            "does not allow zip='2300' and ill=False",
        ),
        ({"model": "copula"}, "needs numbers, but column 'zip'"),
        ({"size": -1}, "size must be"),
    ],
)
def test_wrong_options_are_refused_with_a_reason(options, message):
    with pytest.raises(pv.PriorError, match=message):
        pv.Records.from_frame(PEOPLE, **options)


def test_too_many_values_for_a_conditional_table():
    with pytest.raises(pv.PriorError, match="'x' has 300 different values"):
        pv.Records.from_frame({"x": list(range(300)), "y": [0, 1] * 150}, model="tree")


def test_the_size_may_be_random_or_another():
    assert len(pv.Records.from_frame(PEOPLE, size=40)) == 40
    table = pv.Records.from_frame(PEOPLE, size=pv.DiscreteUniform(2, 3), target={"ill": True})
    attack = pv.Attack(
        lambda records: sum(r.ill for r in records), prior={"records": table}, secret=lambda records: records[1].ill
    )
    posterior = attack.run(observe=pv.equals(3), engine="exact").posterior
    assert posterior.distribution()[True].value == pytest.approx(1.0, abs=1e-12)


def test_one_who_knows_all_but_one_learns_from_the_others_only():
    table = pv.Records.knows_all_but(PEOPLE, 4, unknown=["ill"])
    assert table[0] == pv.Row(zip="2300", ill=True, visits=3)
    assert table[4].zip == "2100"
    assert distribution(table[4].ill)[True] == pytest.approx(2 / 5, abs=1e-12)
    everything = pv.Records.knows_all_but(PEOPLE, 0)
    assert distribution(everything[0].zip)["2300"] == pytest.approx(1 / 5, abs=1e-12)


def test_a_count_gives_the_last_row_away():
    table = pv.Records.knows_all_but(PEOPLE, 4, unknown=["ill"])
    attack = pv.Attack(
        lambda records: sum(row.ill for row in records),
        prior={"records": table},
        secret=lambda records: records[4].ill,
    )
    assert float(attack.run(observe=pv.equals(3)).posterior.distribution()[True]) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    ("row", "options", "message"),
    [
        (6, {}, "row must be a position from 0 to 5"),
        (True, {}, "row must be a position"),
        (0, {"unknown": "ill"}, "unknown must be a list"),
        (0, {"unknown": ["age"]}, "unknown names 'age'"),
        (5, {"unknown": ["zip"]}, r"row 5 \(zip='2450'\) is impossible"),
        (5, {"unknown": ["zip"], "model": "rows"}, "no row of the data has ill=False and visits=1"),
        (4, {"unknown": ["ill", "visits"], "model": "rows"}, "is impossible"),
        (4, {"unknown": ["ill", "visits"], "model": "tree", "columns": ["zip", "ill"]}, "unknown names 'visits'"),
    ],
)
def test_what_cannot_be_learned_from_the_others_is_refused(row, options, message):
    with pytest.raises(pv.PriorError, match=message):
        pv.Records.knows_all_but(PEOPLE, row, **options)


def test_a_value_that_only_this_row_has_needs_smoothing():
    table = pv.Records.knows_all_but(
        PEOPLE, 5, unknown=["zip"], smoothing=1, values={"zip": ["2450", "2300", "2100", "2200"]}
    )
    assert distribution(table[5].zip)["2450"] == pytest.approx(1 / 9, abs=1e-12)


def test_a_copula_keeps_margins_and_correlation():
    rng = np.random.default_rng(1)
    x = rng.normal(50, 10, 400)
    data = {"x": x, "y": np.exp(0.03 * x + rng.normal(0, 0.2, 400)), "n": rng.poisson(3, 400)}
    table = pv.Records.from_frame(data, model="copula", size=1)
    attack = pv.Attack(lambda records: records[0].y, prior={"records": table}, secret=lambda records: records[0].x)
    result = attack.run(samples=20_000, seed=1)
    assert np.mean(x) in result.prior.mean().widened(2)
    assert np.median(data["y"]) in result.prediction.median().widened(2)
    drawn = result.joint
    ranks = [np.argsort(np.argsort(b.batch.numbers())) for b in (drawn.secret, drawn.output)]
    wanted = [np.argsort(np.argsort(data[name])) for name in ("x", "y")]
    assert np.corrcoef(*ranks)[0, 1] == pytest.approx(np.corrcoef(*wanted)[0, 1], abs=0.02)
    counts = result.belief(lambda records: records[0].n).distribution()
    assert all(np.mean(data["n"] == value) in share.widened(2) for value, share in counts.items())


def test_a_known_value_moves_the_others_of_a_copula():
    """Of a bivariate normal, the conditional mean is a straight line."""
    rng = np.random.default_rng(2)
    x = rng.normal(0, 1, 4000)
    y = 0.8 * x + 0.6 * rng.normal(0, 1, 4000)
    table = pv.Records.from_frame({"x": x, "y": y}, model="copula", target={"x": 1.0}, size=1)
    belief = pv.Attack(lambda y: y, prior={"y": table[0].y}, secret="y").run(samples=20_000).prior
    assert float(belief.mean()) == pytest.approx(0.8, abs=0.05)
    assert float(belief.std()) == pytest.approx(0.6, abs=0.03)
    with pytest.raises(pv.PriorError, match="outside the data"):
        pv.Records.from_frame({"x": x, "y": y}, model="copula", target={"x": 99.0})


def test_copies_of_conditional_tables_are_independent(monkeypatch):
    """Beside a target, rows are copies of one row: their columns stay together, and rows apart."""
    monkeypatch.setattr(population, "MOST_ROWS", 0)
    two = {name: PEOPLE[name] for name in ("zip", "ill")}
    table = pv.Records.from_frame(two, model="tree", target={"zip": "2300"}, size=3)
    first, second = table[1], table[2]
    apart = distribution(pv.lift(lambda a, b: (a, b))(first.ill, second.ill))
    assert apart[True, True] == pytest.approx(0.25, abs=1e-12)
    together = distribution(pv.lift(lambda a, b: (a, b))(first.zip, first.ill))
    assert together["2300", True] == pytest.approx(1 / 3, abs=1e-12)
    assert ("2300", False) not in together


def test_exact_inference_applies_to_learned_tables():
    """A count over 200 learned rows, the target's among them, against the binomial formula."""
    rng = np.random.default_rng(3)
    data = {"group": rng.integers(0, 3, 300).tolist(), "ill": (rng.random(300) < 0.3).tolist()}
    for model in ("independent", "tree", "rows"):
        table = pv.Records.from_frame(data, model=model, size=200)
        attack = pv.Attack(
            lambda records: pv.count(records, lambda row: row.ill),
            prior={"records": table},
            secret=lambda records: records[0].ill,
        )
        result = attack.run(observe=pv.equals(70), engine="exact")
        assert float(result.posterior.distribution()[True]) == pytest.approx(70 / 200, abs=1e-9)


def test_fitted_columns_share_uncertain_parameters():
    """Two rows of a fitted table are alike: knowing one tells about the parameters, and so about the other."""
    data = {"age": [40.0, 44.0, 60.0, 52.0]}
    table = pv.Records.from_frame(data, families={"age": pv.Normal}, uncertainty=True, size=2)
    attack = pv.Attack(lambda records: records[0].age, prior={"records": table}, secret=lambda records: records[1].age)
    result = attack.run(samples=20_000, seed=1)
    both = np.column_stack([result.joint.secret.batch.numbers(), result.joint.output.batch.numbers()])
    ranks = np.argsort(np.argsort(both, axis=0), axis=0)
    assert np.corrcoef(ranks, rowvar=False)[0, 1] > 0.1
    plain = pv.Records.from_frame(data, families={"age": pv.Normal}, size=2)
    exact = pv.Attack(
        lambda records: records[0].age + records[1].age, prior={"records": plain}, secret=lambda records: records[0].age
    )
    assert exact.run(engine="exact").prediction.mean().value == pytest.approx(2 * 49.0, abs=1e-9)
