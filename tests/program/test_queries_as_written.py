"""Queries as they come: what must be refused, what names mean, types of columns, texts of logs and models of dbt."""

import itertools
import math
from datetime import date, datetime, time

import numpy as np
import pytest

import privug as pv
from privug.program.sql.parsing import statements_of

ROWS = [{"zip": "A", "n": 1}, {"zip": "B", "n": 0}, {"zip": "A", "n": 0}]


@pytest.mark.parametrize(
    ("text", "dialect", "words"),
    [
        ("SELECT zip FROM people USING SAMPLE 1", None, "another value each time"),
        ("SELECT zip FROM people TABLESAMPLE BERNOULLI (50)", None, "another value each time"),
        ("SELECT zip FROM people SAMPLE (10)", "snowflake", "another value each time"),
        ("SELECT current_localtimestamp() AS t FROM people", None, "another value each time"),
        ("SELECT date('now') AS t FROM people", "sqlite", "another value each time"),
        ("SELECT date() AS t FROM people", "sqlite", "another value each time"),
        ("SELECT strftime('%f', 'now') AS t FROM people", "sqlite", "another value each time"),
        *((f"SELECT {name}(zip) AS x FROM people", None, "order of rows") for name in ("FIRST", "ANY_VALUE", "MODE")),
        ("SELECT ARG_MAX(zip, n) AS x FROM people", None, "order of rows"),
        ("SELECT GROUP_CONCAT(zip) AS x FROM people", "sqlite", "order of rows"),
        ("SELECT zip, n FROM people GROUP BY zip", "sqlite", "neither a key"),
        ("SELECT zip, MAX(n) AS n FROM people", "sqlite", "neither a key"),
        ("SELECT COUNT(*) FROM people WHERE zip SIMILAR TO 'A%'", "postgres", "mean the same"),
        ("SELECT COUNT(*) FROM people WHERE zip LIKE 'a\\_b'", "postgres", "mean the same"),
        (r"SELECT COUNT(*) FROM people WHERE zip LIKE r'a\_b'", "bigquery", "mean the same"),
        ("SELECT CAST(n AS TEXT) AS x FROM people", "postgres", "mean the same"),
        ("SELECT MAX(COLUMNS(*)) FROM people", None, "not supported"),
        ("SELECT n FROM people WHERE zip = ?", None, "not supported"),
        ("SELECT COUNT(*) FROM class", None, "cannot be a parameter"),
        ('SELECT COUNT(*) FROM "my table"', None, "cannot be a parameter"),
    ],
)
def test_what_has_no_one_meaning_is_refused_in_one_line(text, dialect, words):
    with pytest.raises(pv.PrivugError, match=words) as refused:
        pv.sql(text, dialect)(ROWS)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "dialect", "answer"),
    [
        ("SELECT STRING_AGG(zip, ',') FROM people", None, "A,A,B"),
        ("SELECT STRING_AGG(DISTINCT zip, ',') FROM people", None, "A,B"),
        ("SELECT STRING_AGG(zip, ',' ORDER BY n DESC) FROM people", None, "A,A,B"),
        ("SELECT LIST(zip ORDER BY n) FROM people", None, ["A", "B", "A"]),
        ("SELECT FIRST(zip ORDER BY n) FROM people", None, "A"),
        ("WITH people AS (SELECT * FROM people WHERE zip = 'A') SELECT COUNT(*) FROM people", None, 2),
        ("WITH p AS (SELECT * FROM People), people AS (SELECT zip FROM p) SELECT COUNT(*) FROM people", None, 3),
        ("SELECT COUNT(*) FROM PEOPLE a JOIN people b ON a.zip = b.zip", None, 5),
        ("SELECT COUNT(*) FROM people; -- done", None, 3),
        ("\ufeffSELECT COUNT(*) FROM people", None, 3),
        ('SELECT COUNT(*) FROM "order"', None, 3),
        ("SELECT UPPER(zip) AS u, COUNT(*) AS c FROM people GROUP BY UPPER(zip)", "sqlite",
         [{"u": "A", "c": 2}, {"u": "B", "c": 1}]),
    ],
)  # fmt: skip
def test_what_the_form_of_a_query_leaves_open_is_completed(text, dialect, answer):
    query = pv.sql(text, dialect)
    for rows in itertools.permutations(ROWS):
        assert query(list(rows)) == answer
    assert query.call_many([((list(rows),), {}) for rows in itertools.permutations(ROWS)]) == [answer] * 6


@pytest.mark.parametrize("text", ["SELECT STRING_AGG(zip, ',') AS s FROM people", "SELECT LIST(zip) AS s FROM people"])
def test_the_order_of_rows_is_not_told(text):
    rows = pv.Records(2, pv.Row(zip=pv.Choice(["A", "B"])))
    for person in (0, 1):
        attack = pv.Attack(pv.sql(text), {"people": rows}, secret=lambda people, person=person: people[person].zip)
        assert pv.leakage.mutual_information(attack.run().joint).value == pytest.approx(0.5, rel=1e-12)


def test_distinct_on_keeps_the_first_row_of_each_group_in_batches_too():
    rows = pv.Records(2, pv.Row(zip="A", age=pv.Choice([5, -7, 0])))
    query = pv.sql("SELECT DISTINCT ON (zip) zip, age FROM people ORDER BY zip, age")
    output = pv.Attack(query, {"people": rows}, secret=lambda people: people[0].age).run().joint.output
    shares = {dict(rows[0])["age"]: share.value for rows, share in output.distribution().items()}
    assert shares == {-7: pytest.approx(5 / 9), 0: pytest.approx(3 / 9), 5: pytest.approx(1 / 9)}


def test_a_large_value_does_not_make_small_ones_one():
    row = pv.Row(k=pv.Choice([1.0, 2.0, 1e14], p=[0.5, 0.3, 0.2]))
    query = pv.sql("SELECT POWER(k, 1) AS x FROM people")
    attack = pv.Attack(query, {"people": pv.Records(1, row)}, secret=lambda people: people[0].k)
    result = attack.run(observe=[{"x": 2.0}])
    assert result.diagnostics.evidence.value == pytest.approx(0.3)
    assert result.posterior.distribution()[2.0].value == pytest.approx(1.0)


def test_an_empty_answer_can_be_seen():
    row = pv.Row(zip=pv.Choice(["A", "B"]), ill=pv.Bernoulli(0.3))
    query = pv.sql("SELECT zip, COUNT(*) AS n FROM people WHERE ill GROUP BY zip HAVING COUNT(*) >= 2")
    result = pv.Attack(query, {"people": pv.Records(3, row)}, secret=lambda people: people[0].ill).run(observe=[])
    assert result.diagnostics.evidence.value == pytest.approx(0.343 + 0.441 + 0.189 / 2)
    assert result.posterior.mean().value == pytest.approx(0.3 * (0.49 + 0.21) / 0.8785)


def test_columns_have_the_types_of_their_values():
    query = pv.sql("SELECT t, d, x, SUM(n) AS n FROM people GROUP BY ALL")
    row = {"t": datetime(2024, 1, 2), "d": date(2024, 2, 29), "x": time(3, 4), "n": np.int64(2)}
    assert query([row, row]) == [{**row, "n": 4}]
    assert query.call_many([(([row],), {}), (([row, row],), {})]) == [[{**row, "n": 2}], [{**row, "n": 4}]]
    later = pv.sql("SELECT COUNT(*) FROM people WHERE d > '2024-01-01'", dialect="sqlite")
    assert later([{"d": date(2024, 2, 29)}]) == 1


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"n": 1}, {"m": 2}], "all rows of 'people' need the columns n"),
        ([{"n": 1}, {"n": "a"}], "BIGINT and VARCHAR"),
        ([{"n": b"x"}], "bytes"),
    ],
)
def test_rows_that_are_no_table_are_refused(rows, words):
    with pytest.raises(pv.ArgumentError, match=words):
        pv.sql("SELECT SUM(n) FROM people")(rows)


def test_what_rows_make_fail_is_an_error_of_one_line():
    with pytest.raises(ValueError, match=r"^sql: Conversion Error: .*$"):
        pv.sql("SELECT CAST(s AS DATE) AS d FROM people")([{"s": "x"}])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT a FROM t\nSELECT b FROM t", ["SELECT a FROM t", "SELECT b FROM t"]),
        ("SELECT a\nFROM t\nWHERE b", ["SELECT a FROM t WHERE b"]),
        ("SELECT a FROM t; -- x\nSELECT b FROM t;\n-- end", ["SELECT a FROM t", "SELECT b FROM t"]),
        ("SELECT a FROM t -- c; d\nSELECT b FROM t", ["SELECT a FROM t -- c; d", "SELECT b FROM t"]),
        ("SELECT ';' FROM t", ["SELECT ';' FROM t"]),
        ("SELECT a FROM t; DROP TABLE (", ["SELECT a FROM t", "DROP TABLE ("]),
    ],
)
def test_statements_of_a_log(text, found):
    assert statements_of(text) == found


def test_a_log_goes_on_after_what_is_no_query():
    people = pv.Records(3, pv.Row(ill=pv.Bernoulli(0.5)))
    monitor = pv.policy.Monitor({"people": people}, lambda people: people[0].ill, pv.policy.max_belief(at_most=0.8))
    log = ["DROP TABLE people", "SELECT COUNT(*) >= 0 AS some FROM people"]
    answers = pv.queries.replay(monitor, log, {"people": [{"ill": True}] * 3})
    assert [answer.answered for answer in answers] == [False, True]
    assert "only SELECT" in answers[0].reason


@pytest.fixture
def models(tmp_path):
    folder = tmp_path / "target" / "compiled" / "shop" / "models"
    folder.mkdir(parents=True)

    def written(**texts):
        for name, text in texts.items():
            (folder / f"{name}.sql").write_text(text, encoding="utf-8")
        return tmp_path / "target" / "compiled"

    return written


def test_a_common_table_of_a_model_is_not_the_model_of_that_name(models):
    folder = models(
        stg_people='select zip, ill from "wh"."raw"."people"',
        cases='with stg_people as (select * from "wh"."main"."stg_people" where ill) '
        "select count(*) as n from stg_people",
        imported='with people as (select * from "wh"."raw"."people") select count(*) as n from people',
    )
    found = pv.queries.dbt_models(folder)
    rows = [{"zip": "A", "ill": True}, {"zip": "B", "ill": False}]
    assert (found["cases"](rows), found["imported"](rows)) == (1, 2)
    prior = {"people": pv.Records(2, pv.Row(zip=pv.Choice(["A", "B"]), ill=pv.Bernoulli(0.3)))}
    attack = pv.Attack(found["cases"], prior, secret=lambda people: people[0].ill)

    def entropy(*shares):
        return -sum(share * math.log2(share) for share in shares)

    told = entropy(0.49, 0.42, 0.09) - entropy(0.3, 0.7)
    assert pv.leakage.mutual_information(attack.run().joint).value == pytest.approx(told, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("-- nothing", "no query"),
        ("select from where (", "no query in the dialect"),
        ('select a.x from "wh"."y23"."people" a join "wh"."y24"."people" b on a.x = b.x', "two tables of one name"),
        ('select * from "wh"."main"."odd"', "refers to itself"),
    ],
)
def test_a_model_that_is_not_understood_leaves_the_others_alone(models, text, words):
    folder = models(good='select count(*) as n from "wh"."raw"."people"', odd=text)
    assert list(pv.queries.dbt_models(folder)) == ["good"]
    with pytest.raises(pv.ArgumentError, match=words):
        pv.queries.attack_on(next(folder.rglob("odd.sql")), prior="people.toml")
