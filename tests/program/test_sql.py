"""SQL queries as programs: traced, and what DuckDB gives on every table there may be."""

import itertools
import pickle
import random
from pathlib import Path

import duckdb
import polars as pl
import pytest
from scipy import stats

import privug as pv
from corpus.queries import CALLED, TRACED
from enumerated_tables import difference_on_every_table
from privug.program.sql import answering
from random_queries import QueryWriter

DISTRICTS = pl.DataFrame({"zip": ["A", "B"], "region": ["north", "south"], "weight": [1, 3]})
CELLS = {"zip": ["A", "B", "C"], "ill": [True, False], "age": [20, 35, 50], "pay": [10, 30, None]}
CHANCES = {"zip": [0.5, 0.3, 0.2], "ill": [0.3, 0.7], "age": [0.2, 0.5, 0.3], "pay": [0.3, 0.5, 0.2]}


def columns_of(query):
    """Return the columns that a query names."""
    every = "*" in query.text[:9]
    return [name for name in CELLS if name in query.text or every] or ["zip"]


def table_of(query, rows=3):
    """Return tables of which all values can be gone through."""
    names = columns_of(query)
    row = pv.Row(**{name: pv.Choice(CELLS[name], p=CHANCES[name]) for name in names})
    people = pv.Records(rows if len(names) < 3 and "visits" not in query.tables else 2, row)
    visit = pv.Row(zip=pv.Choice(["A", "B", None]), cost=pv.Choice([10, 35, None]))
    tables = {"people": people, "districts": DISTRICTS, "visits": pv.Records(1 if len(names) > 2 else 2, visit)}
    return {name: tables[name] for name in query.tables}


@pytest.mark.parametrize("name", TRACED)
def test_a_traced_query_gives_what_the_engine_gives_on_every_table(name, monkeypatch):
    query = pv.sql(TRACED[name])
    assert difference_on_every_table(query, table_of(query), monkeypatch) is None


def believed(query, names, seen):
    """Return the evidence and the belief about the first person's first column, through all tables of two people."""
    rows = [
        (dict(zip(names, cells, strict=True)), chance)
        for cells, chance in zip(
            itertools.product(*(CELLS[name] for name in names)),
            map(_product, itertools.product(*(CHANCES[name] for name in names))),
            strict=True,
        )
    ]
    schema = {"zip": pl.String, "ill": pl.Boolean, "age": pl.Int64, "pay": pl.Int64}
    others = [DISTRICTS] if "districts" in query.tables else []
    belief = {}
    for (one, p), (two, q) in itertools.product(rows, rows):
        people = pl.DataFrame([one, two], schema={name: schema[name] for name in names})
        tables = [people, *others] if query.tables[0] == "people" else [*others, people]
        if query(*tables) == seen:
            belief[one[names[0]]] = belief.get(one[names[0]], 0.0) + p * q
    total = sum(belief.values())
    return total, {value: share / total for value, share in belief.items()}


def _product(numbers):
    total = 1.0
    for number in numbers:
        total *= number
    return total


@pytest.mark.parametrize("name", [name for name in [*TRACED][::2] if "visits" not in TRACED[name]])
def test_a_belief_is_that_of_all_tables(name):
    query = pv.sql(TRACED[name])
    names = columns_of(query)
    first, second = ({name: CELLS[name][place] for name in names} for place in (0, 1))
    given = {"people": [first, second]} | ({"districts": DISTRICTS} if "districts" in query.tables else {})
    seen = query(**given)
    evidence, belief = believed(query, names, seen)
    secret = names[0]
    attack = pv.Attack(query, table_of(query, 2), lambda people: people[0][secret])
    result = attack.run(pv.equals(seen), engine="exact")
    assert float(result.diagnostics.evidence) == pytest.approx(evidence, rel=1e-9)
    for value, share in belief.items():
        assert float(result.posterior.probability(lambda s, v=value: s == v)) == pytest.approx(share, rel=1e-9)


@pytest.mark.parametrize("name", CALLED)
def test_other_queries_are_called(name):
    query = pv.sql(CALLED[name])
    attack = pv.Attack(query, table_of(query, 2), lambda people: people[0].zip)
    assert attack.lifting.tier == "batched"
    assert "in SQL" in attack.lifting.reason


def test_what_is_not_traced_has_the_same_belief_from_samples():
    query = pv.sql("SELECT NTILE(2) OVER (ORDER BY age) AS half, age FROM people")
    row = pv.Row(age=pv.Choice([20, 35, 50], p=CHANCES["age"]))
    attack = pv.Attack(query, {"people": pv.Records(3, row)}, lambda people: people[0].age)
    seen = [{"half": 1, "age": 20}, {"half": 1, "age": 35}, {"half": 2, "age": 35}]
    found = attack.run(seen, samples=20_000, seed=1).posterior.probability(lambda age: age == 20)
    assert found.low <= 1 / 3 <= found.high


@pytest.mark.parametrize("name", [*TRACED, *CALLED])
def test_many_samples_at_once_have_the_answers_of_single_calls(name):
    query = pv.sql((TRACED | CALLED)[name])
    draws, names = random.Random(0), columns_of(query)
    schema = {"zip": pl.String, "ill": pl.Boolean, "age": pl.Int64, "pay": pl.Int64, "cost": pl.Int64}

    def drawn(cells, rows):
        data = [{name: draws.choice(values) for name, values in cells.items()} for _ in range(rows)]
        return pl.DataFrame(data, schema={name: schema[name] for name in cells})

    calls = []
    for size in (3, 0, 1, 4, 2):
        people = drawn({name: CELLS[name] for name in names}, size)
        tables = {"people": people, "districts": DISTRICTS}
        tables["visits"] = drawn({"zip": ["A", "B", None], "cost": [10, 35, None]}, 2)
        calls.append(([], {name: tables[name] for name in query.tables}))
    assert repr(query.call_many(calls)) == repr([query(**named) for _, named in calls])  # of nothing, a share is NaN


def test_there_are_many_queries():
    assert len(TRACED) >= 120


def test_a_table_of_counts_of_three_hundred_people():
    query = pv.sql("SELECT zip, ill, COUNT(*) AS n FROM people GROUP BY zip, ill HAVING COUNT(*) >= 5")
    row = pv.Row(zip=pv.Choice(["A", "B"], p=[0.6, 0.4]), ill=pv.Bernoulli(0.1))
    attack = pv.Attack(query, {"people": pv.Records(300, row)}, lambda people: people[0].ill)
    cells = {("A", 0): 160, ("A", 1): 20, ("B", 0): 110, ("B", 1): 10}
    result = attack.run([{"zip": z, "ill": i, "n": n} for (z, i), n in cells.items()])
    term = stats.multinomial.pmf([160, 20, 110, 10], 300, [0.54, 0.06, 0.36, 0.04])
    assert result.engine == "exact (counts)"
    assert float(result.diagnostics.evidence) == pytest.approx(term, rel=1e-9)
    assert float(result.posterior.mean()) == pytest.approx(0.1, rel=1e-9)


def test_columns_that_were_not_seen_can_be_left_out():
    query = pv.sql("SELECT zip, COUNT(*) AS n FROM people GROUP BY zip")
    attack = pv.Attack(
        query, {"people": pv.Records(3, pv.Row(zip=pv.Choice(["A", "B"])))}, lambda people: people[0].zip
    )
    result = attack.run([{"zip": "A"}])
    assert float(result.diagnostics.evidence) == pytest.approx(1 / 8)


def test_tables_of_random_size():
    attack = pv.Attack(
        pv.sql("SELECT COUNT(*) FROM people WHERE ill"),
        {"people": pv.Records(pv.DiscreteUniform(0, 3), pv.Row(ill=pv.Bernoulli(0.5)))},
        lambda people: len(people),
    )
    result = attack.run(pv.equals(2))
    weights = {2: 0.25, 3: 3 / 8}
    assert float(result.diagnostics.evidence) == pytest.approx(sum(weights.values()) / 4)
    assert float(result.posterior.probability(lambda n: n == 3)) == pytest.approx(0.6)


# SQLite

NOT_IN_SQLITE = {
    "median", "rollup", "grouping sets", "cube", "a table with margins", "margins, small cells left out", "variance",
    "rollup of two", "two releases together", "standard deviation", "integer division",
}  # fmt: skip
CALLED_IN_SQLITE = {
    "a ratio of counts", "group by bands", "rounded counts", "like", "share by group", "share with suppression",
    "ceiling", "percent with one digit", "shares of all",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in TRACED if name not in NOT_IN_SQLITE])
def test_a_traced_query_gives_what_sqlite_gives_on_every_table(name, monkeypatch):
    query = pv.sql(TRACED[name], dialect="sqlite")
    found = difference_on_every_table(query, table_of(query, 2), monkeypatch)
    assert (found or "").startswith("not traced") if name in CALLED_IN_SQLITE else found is None


def test_sqlite_has_no_truth_values():
    query = pv.sql("SELECT COUNT(*) > 1 AS several, 7 / 2 AS cut FROM people", dialect="sqlite")
    assert query([{"zip": "A"}, {"zip": "B"}]) == [{"several": 1, "cut": 3}]


# What a query is


def test_parameters_are_the_tables_in_order_of_occurrence():
    query = pv.sql("WITH t AS (SELECT * FROM b) SELECT * FROM a JOIN t ON a.x = t.x")
    assert set(query.tables) == {"a", "b"}
    assert pickle.loads(pickle.dumps(query)).text == query.text


def test_an_order_is_completed():
    query = pv.sql("SELECT zip, age FROM people ORDER BY age DESC")
    assert query.completed({"people": ["zip", "age"]}).endswith("ORDER BY age DESC, 1 ASC, 2 ASC")
    rows = [{"zip": "B", "age": 3}, {"zip": "A", "age": 3}, {"zip": "C", "age": 5}]
    assert [row["zip"] for row in query(rows)] == ["C", "A", "B"]


def test_a_query_in_a_file(tmp_path: Path):
    path = tmp_path / "report.sql"
    path.write_text("SELECT COUNT(*) FROM people")
    assert pv.sql(path)([{"zip": "A"}]) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELEC 1", "no query"),
        ("", "no query"),
        ("SELECT 1", "asks no table"),
        ("DROP TABLE people", "only SELECT"),
        ("INSERT INTO people VALUES (1)", "only SELECT"),
        ("ATTACH 'x.db' AS x", "only SELECT"),
        ("COPY people TO 'x.csv'", "only SELECT"),
        ("PRAGMA database_list", "only SELECT"),
        ("SELECT * FROM read_csv('x.csv')", "not known|must be one of those"),
        ("SELECT * FROM 'x.csv'", "must be one of those"),
        ("SELECT * FROM other.people", "must be one of those"),
        ("SELECT getenv('HOME') FROM people", "not known"),
        ("SELECT random() FROM people", "another value each time"),
        ("SELECT COUNT(*) FROM people; DROP TABLE people", "only SELECT"),
        ("INSTALL httpfs", "only SELECT"),
        ("LOAD httpfs", "only SELECT"),
        ("SET enable_external_access = true", "only SELECT"),
        ("EXPORT DATABASE 'x'", "only SELECT|no query"),
        ("CREATE TABLE x AS SELECT * FROM people", "only SELECT"),
        ("SELECT * FROM read_parquet('x')", "not known|must be one of those"),
        ("SELECT * FROM glob('*')", "not known|must be one of those"),
        ("SELECT * FROM read_text('/etc/passwd')", "not known|must be one of those"),
        ("SELECT * FROM sqlite_scan('x.db', 't')", "not known|must be one of those"),
        ("SELECT * FROM 'https://example.org/x.csv'", "must be one of those"),
        ("SELECT * FROM duckdb_settings()", "not known|must be one of those"),
        ("SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1 FROM read_csv('x'))", "not known|must be one of those"),
        ("WITH t AS (SELECT * FROM read_json('x')) SELECT COUNT(*) FROM t, people", "not known|must be one of those"),
        ("SELECT current_setting('threads') FROM people", "not known"),
        ("SELECT now() FROM people", "not known"),
    ],
)
def test_what_is_no_query_of_the_given_tables_is_refused_before_an_engine_sees_it(text, message):
    with pytest.raises(pv.ArgumentError, match=message):
        pv.sql(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT nothing FROM people", "nothing"),
        ("SELECT zip, zip FROM people", "name of its own"),
    ],
)
def test_what_does_not_fit_the_tables_is_refused_by_name(text, message):
    with pytest.raises(pv.ArgumentError, match=message):
        pv.sql(text)([{"zip": "A"}])


def test_bad_arguments():
    with pytest.raises(pv.ArgumentError, match="dialect must be one of"):
        pv.sql("SELECT COUNT(*) FROM people", dialect="oracle")
    with pytest.raises(pv.ArgumentError, match="must be a text, a path"):
        pv.sql(3)
    with pytest.raises(pv.ArgumentError, match="must be a polars frame"):
        pv.sql("SELECT COUNT(*) FROM people")(3)


def test_the_engine_itself_has_no_access_to_files(tmp_path):
    (tmp_path / "x.csv").write_text("a\n1\n")
    for text in (f"SELECT * FROM '{tmp_path}/x.csv'", f"SELECT * FROM read_text('{tmp_path}/x.csv')", "LOAD httpfs"):
        with pytest.raises((duckdb.Error, pv.ArgumentError)):
            answering._fetched(text, "duckdb")
    with pytest.raises(duckdb.Error, match="locked"):
        answering._fetched("SET enable_external_access = true", "duckdb")


# Other dialects


@pytest.mark.parametrize(
    ("dialect", "text", "same"),
    [
        ("postgres", "SELECT zip, COUNT(*) FILTER (WHERE ill) AS n FROM people GROUP BY zip ORDER BY zip DESC", None),
        ("postgres", "SELECT SUM(age) * 1.0 / NULLIF(COUNT(*), 0) AS mean FROM people", None),
        (
            "bigquery",
            "SELECT SAFE_DIVIDE(COUNTIF(ill), COUNT(*)) AS share FROM `people`",
            "SELECT COUNT(*) FILTER (WHERE ill) / NULLIF(COUNT(*), 0) AS share FROM people",
        ),
        (
            "snowflake",
            "SELECT zip, IFF(COUNT(*) > 1, COUNT(*), NULL) AS n FROM people GROUP BY zip",
            "SELECT zip, CASE WHEN COUNT(*) > 1 THEN COUNT(*) END AS n FROM people GROUP BY zip",
        ),
    ],
)
def test_queries_of_other_dialects_mean_what_they_mean_in_duckdb(dialect, text, same, monkeypatch):
    query, other = pv.sql(text, dialect=dialect), pv.sql(same or text)
    assert difference_on_every_table(query, table_of(query), monkeypatch) is None
    rows = [{"zip": "A", "ill": True, "age": 20}, {"zip": "A", "ill": False, "age": 35}]
    assert query(rows) == other(rows)


def test_missing_values_come_first_where_a_dialect_has_them_first():
    rows = [{"pay": 10}, {"pay": None}]
    text = "SELECT pay FROM people ORDER BY pay"
    assert pv.sql(text, dialect="bigquery")(rows) == [{"pay": None}, {"pay": 10}]
    assert pv.sql(text, dialect="postgres")(rows) == [{"pay": 10}, {"pay": None}]


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("postgres", "SELECT SUM(age) / COUNT(*) AS mean FROM people"),
        ("postgres", "SELECT CASE WHEN age > 1.5 THEN age ELSE 0 END / 2 AS half FROM people"),
        ("postgres", "SELECT age::int AS age FROM people"),
        ("postgres", "SELECT ROUND(AVG(age)) AS mean FROM people"),
        ("postgres", "SELECT zip ~ 'A' AS a FROM people"),
        ("postgres", "SELECT age % pay AS rest FROM people"),
        ("bigquery", "SELECT age / pay AS share FROM people"),
        ("bigquery", "SELECT GREATEST(age, pay) AS most FROM people"),
        ("snowflake", "SELECT AVG(age) AS mean FROM people"),
        ("snowflake", "SELECT SUM(age) / 2.0 AS half FROM people"),
    ],
)
def test_what_may_mean_something_else_is_refused(dialect, text):
    with pytest.raises(pv.ArgumentError, match="not known to mean the same"):
        pv.sql(text, dialect=dialect)


# Random queries


def differences(seeds, monkeypatch):
    """Return the random queries that give something else than the engine on some table, and how many were traced."""
    wrong, traced = [], 0
    for seed in seeds:
        query = pv.sql(QueryWriter(seed).query())
        try:
            found = difference_on_every_table(query, table_of(query, 2), monkeypatch)
        except duckdb.Error:  # of types that do not fit
            continue
        traced += found is None
        if found is not None and not found.startswith("not traced"):
            wrong.append((seed, query.text, found))
    return wrong, traced


def test_random_queries(monkeypatch):
    wrong, traced = differences(range(60), monkeypatch)
    assert wrong == []
    assert traced >= 50


@pytest.mark.slow
@pytest.mark.parametrize("start", range(100, 2100, 200))
def test_thousands_of_random_queries(start, monkeypatch):
    wrong, _ = differences(range(start, start + 200), monkeypatch)
    assert wrong == []


@pytest.mark.parametrize("text", ["SELECT Zip, COUNT(*) AS N FROM people GROUP BY Zip", "SELECT * FROM people"])
def test_names_are_as_they_are_written(text, monkeypatch):
    query = pv.sql(text)
    people = pv.Records(2, pv.Row(Zip=pv.Choice(["A", "B"])))
    assert difference_on_every_table(query, {"people": people}, monkeypatch) is None
    assert next(iter(query([{"Zip": "A"}])[0])) == "Zip"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM people p ANTI JOIN districts region ON p.zip = region.zip",
        "SELECT COUNT(*) FROM people p SEMI JOIN districts zip ON p.zip = zip.zip",
        "SELECT COUNT(*) FROM people WHERE STARTS_WITH(zip, 'A')",
        "SELECT QUANTILE_CONT(age, 0.25) FROM people",
        "SELECT region, COUNT(*) AS n FROM people p JOIN (SELECT zip, region FROM districts) d USING (zip) GROUP BY 1",
    ],
)
def test_more_queries_give_what_the_engine_gives_on_every_table(text, monkeypatch):
    query = pv.sql(text)
    assert difference_on_every_table(query, table_of(query), monkeypatch) is None


def test_a_relation_over_a_frame_has_the_name_of_its_variable():
    people = pl.DataFrame({"zip": ["A", "A", "B"]})  # noqa: F841, a relation finds it by its name
    relation = duckdb.sql("SELECT zip, COUNT(*) AS n FROM people GROUP BY zip").filter("n > 1")
    query = pv.sql(relation)
    assert query.tables == ("people",)
    assert query([{"zip": "B"}, {"zip": "B"}, {"zip": "A"}]) == [{"zip": "B", "n": 2}]


def test_a_column_of_several_types_is_refused():
    row = pv.Row(x=pv.Choice([1, "a"]))
    attack = pv.Attack(pv.sql("SELECT COUNT(*) FROM t WHERE x = 1"), {"t": pv.Records(2, row)}, lambda t: t[0].x)
    with pytest.raises(pv.PriorError, match="'x' holds values of several types"):
        attack.run(pv.equals(1), samples=100)


def expressions_of_ibis(ibis):
    """Return expressions as analysts write them, by their names."""
    people = ibis.table({"zip": "string", "age": "int64", "ill": "boolean", "pay": "int64"}, name="people")
    districts = ibis.table({"zip": "string", "region": "string", "weight": "int64"}, name="districts")
    _ = ibis._
    return {
        "a count": people.filter(_.ill).count(),
        "groups": people.group_by("zip").aggregate(n=_.count(), mean=_.age.mean()),
        "having": people.group_by("zip").having(_.count() > 1).aggregate(n=_.count(where=_.ill)),
        "suppressed": people.group_by("zip").agg(n=_.count()).mutate(n=ibis.cases((_.n >= 2, _.n))),
        "a median": people.age.median(),
        "a join": people.join(districts, "zip").group_by("region").agg(n=_.count()),
        "a window": people.mutate(m=_.age - _.age.mean().over(group_by="zip")).select("zip", "m"),
        "ranks": people.mutate(r=ibis.rank().over(order_by=ibis.desc("age"))).select("age", "r"),
        "the largest": people.zip.topk(2),
        "bands": people.mutate(b=_.age.bucket([0, 30, 60])).group_by("b").agg(n=_.count()),
    }


def test_expressions_of_ibis_give_what_the_engine_gives_on_every_table(monkeypatch):
    ibis = pytest.importorskip("ibis", reason="ibis is not installed; pv.sql takes its expressions by their SQL")
    for name, expression in expressions_of_ibis(ibis).items():
        query = pv.sql(expression)
        assert difference_on_every_table(query, table_of(query), monkeypatch) is None, name
