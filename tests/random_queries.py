"""Random SQL queries over people and visits, some of whose cells are missing."""

import random

NUMBERS, TEXTS = ["age", "pay"], ["zip"]


class QueryWriter:
    """Writes a query from a seed, by a small grammar."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def _one(self, *options):
        return self._random.choice(options)

    def _number(self, depth: int = 0) -> str:
        if depth > 1 or self._random.random() < 0.5:
            return self._one("age", "pay", "age", str(self._random.randint(1, 40)))
        left, right = self._number(depth + 1), self._number(depth + 1)
        return self._one(
            f"({left} + {right})",
            f"({left} - {right})",
            f"({left} * 2)",
            f"COALESCE({left}, {right})",
            f"NULLIF({left}, {right})",
            f"CASE WHEN {self._condition(depth + 1)} THEN {left} ELSE {right} END",
            f"ABS({left} - {right})",
        )

    def _condition(self, depth: int = 0) -> str:
        if depth > 1 or self._random.random() < 0.6:
            return self._one(
                f"{self._number(2)} {self._one('<', '<=', '>', '>=', '=', '<>')} {self._number(2)}",
                f"zip = '{self._one('A', 'B', 'C')}'",
                "ill",
                f"pay IS {self._one('', 'NOT ')}NULL",
                f"zip {self._one('', 'NOT ')}IN ('A', 'C')",
                f"pay {self._one('', 'NOT ')}IN (10, 20)",
                f"age {self._one('', 'NOT ')}BETWEEN 25 AND 40",
            )
        left, right = self._condition(depth + 1), self._condition(depth + 1)
        return self._one(f"({left} AND {right})", f"({left} OR {right})", f"NOT ({left})")

    def _summary(self) -> str:
        value, condition = self._number(1), self._condition(1)
        found = self._one(
            "COUNT(*)",
            f"COUNT({value})",
            f"SUM({value})",
            f"MIN({value})",
            f"MAX({value})",
            f"AVG({value})",
            "COUNT(DISTINCT zip)",
            f"SUM(CASE WHEN {condition} THEN 1 ELSE 0 END)",
        )
        return f"{found} FILTER (WHERE {condition})" if self._random.random() < 0.2 else found

    def query(self) -> str:
        """Return the query."""
        if self._random.random() < 0.5:
            return self._one(self._joined, self._nested, self._ordered)()
        return self._of_one_table()

    def _joined(self) -> str:
        """Return a query over pairs of people and visits."""
        side = self._one("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN")
        more = f" AND {self._one('v.cost > 10', 'p.age > v.cost', 'p.pay <= v.cost')}"
        on = f" ON p.zip = v.zip{self._one('', more)}" if side != "CROSS JOIN" else ""
        where = f" WHERE {self._one('v.cost IS NULL', 'p.age > 30', 'p.age > v.cost', 'v.zip IS NOT NULL')}"
        tables = f"people p {side} visits v{on}{self._one('', where)}"
        summary = self._one("COUNT(*)", "SUM(v.cost)", "COUNT(v.cost)", "MAX(p.age)", "COUNT(DISTINCT v.zip)")
        if self._random.random() < 0.4:
            return f"SELECT {summary} AS s FROM {tables}"
        key = self._one("p.zip", "v.zip", "p.age", "v.cost IS NULL")
        having = self._one("", " HAVING COUNT(*) > 1")
        return f"SELECT {key} AS k, {summary} AS s FROM {tables} GROUP BY {key}{having}"

    def _nested(self) -> str:
        """Return a query about people with a subquery about visits or other people."""
        inner = self._one("v.zip = p.zip", "v.cost > p.age", "v.zip = p.zip AND v.cost > 10", "v.cost IS NULL")
        no, compared = self._one("", "NOT "), self._one("<", ">=", "=")
        condition = self._one(
            f"{no}EXISTS (SELECT 1 FROM visits v WHERE {inner})",
            f"p.zip {no}IN (SELECT zip FROM visits)",
            f"p.age {no}IN (SELECT cost FROM visits v WHERE {inner})",
            f"p.age {compared} (SELECT {self._one('MAX', 'SUM', 'MIN')}(cost) FROM visits v WHERE {inner})",
            f"p.age {compared} (SELECT AVG(q.age) FROM people q WHERE q.zip = p.zip)",
            f"(SELECT COUNT(*) FROM people q WHERE q.age > p.age) {compared} 1",
        )
        condition = self._one(condition, f"({condition} OR p.age > 30)", f"NOT ({condition})")
        summary = self._one("COUNT(*)", "SUM(p.age)", "MIN(p.age)", "COUNT(DISTINCT p.zip)")
        return f"SELECT {summary} AS s FROM people p WHERE {condition}"

    def _ordered(self) -> str:
        """Return a query of windows, or of some of the rows in an order."""
        key = self._one("age", "pay", "zip", "age DESC", "pay DESC", "pay NULLS FIRST", "age % 2, zip")
        part = self._one("", "PARTITION BY zip ", "PARTITION BY ill ", "PARTITION BY pay ")
        frame = self._one("", "", " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", " ROWS UNBOUNDED PRECEDING")
        window = self._one(
            f"ROW_NUMBER() OVER ({part}ORDER BY {key})",
            f"RANK() OVER ({part}ORDER BY {key})",
            f"DENSE_RANK() OVER ({part}ORDER BY {key})",
            f"LAG({self._one('age', 'pay')}) OVER ({part}ORDER BY {key})",
            f"LEAD(pay, 1, 0) OVER ({part}ORDER BY {key})",
            f"FIRST_VALUE(pay) OVER ({part}ORDER BY {key})",
            f"{self._one('SUM', 'COUNT', 'MAX', 'AVG')}({self._one('age', 'pay')}) OVER ({part}ORDER BY {key}{frame})",
            f"SUM(pay) OVER ({part.strip()})",
        )
        if self._random.random() < 0.3:
            return f"SELECT zip, pay FROM people ORDER BY {key} LIMIT 1 OFFSET {self._random.randint(0, 2)}"
        if self._random.random() < 0.3:
            return f"SELECT zip, age FROM people QUALIFY {window} {self._one('= 1', '> 1', 'IS NULL')}"
        return f"SELECT age, {window} AS w FROM people"

    def _of_one_table(self) -> str:
        where = f" WHERE {self._condition()}" if self._random.random() < 0.6 else ""
        shape = self._random.random()
        if shape < 0.3:
            listed = ", ".join(f"{self._summary()} AS s{place}" for place in range(self._random.randint(1, 2)))
            return f"SELECT {listed} FROM people{where}"
        if shape < 0.85:
            key = self._one("zip", "ill", f"{self._condition(1)}", "pay")
            having = f" HAVING {self._one('COUNT(*) > 1', 'COUNT(*) <> 2', 'MAX(age) > 30')}"
            kind = self._one(key, key, f"ROLLUP ({key})") if key in ("zip", "ill") else key
            shown = f"{self._one('', 'CASE WHEN COUNT(*) > 1 THEN ')}"
            summary = f"{shown}{self._summary()}{' END' if shown else ''}"
            rest = having if self._random.random() < 0.4 else ""
            return f"SELECT {key} AS k, {summary} AS s FROM people{where} GROUP BY {kind}{rest}"
        if shape < 0.93:
            return f"SELECT DISTINCT zip, {self._condition(1)} AS c FROM people{where}"
        inner = f"SELECT zip, {self._summary()} AS n FROM people{where} GROUP BY zip"
        return f"SELECT {self._one('MAX(n)', 'COUNT(*)', 'SUM(n)')} AS s FROM ({inner}) AS t"
