"""Random SQL queries over people, some of whose cells are missing, and plain districts."""

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
