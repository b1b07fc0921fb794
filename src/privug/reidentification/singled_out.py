"""Who is it? The rows of a plain table that are the only ones with their values in some columns."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privug.arguments import shown
from privug.escaping import inert
from privug.mechanisms.tables import rows_of
from privug.model.table import row_maker
from privug.prior.reading import read_columns
from privug.report.plain import as_frame

MOST_SHOWN = 10


def plain_table(records: Any, labels: Sequence[str] = ()) -> Any:
    """Return the rows of a CSV or Parquet file if its path is given; anything else as it is.

    The cells of the columns named as `labels` are not read as numbers.
    """
    if not isinstance(records, str | Path):
        return records
    columns = read_columns(records, labels=labels)
    listed = [cells if isinstance(cells, list) else cells.tolist() for cells in columns.values()]
    return list(map(row_maker(tuple(columns)), zip(*listed, strict=True)))


def rows_at_hand(records: Any, labels: Sequence[str] = ()) -> list[Any]:
    """Return the rows of a plain table, of a frame, or of the file that has a path."""
    return rows_of(plain_table(records, labels))


@dataclass(frozen=True)
class UniqueRow:
    """A row that no other row is like: its position in the table, from 0, and its values in the columns.

    >>> from privug import reidentification
    >>> found = reidentification.unique_rows([{"zip": 2300}, {"zip": 2300}, {"zip": 2400}], "zip")
    >>> found[0].position, found[0].values
    (2, {'zip': 2400})
    """

    position: int
    values: Mapping[str, Any]

    def __str__(self) -> str:
        return f"row {self.position}: " + ", ".join(f"{inert(name)} {shown(v)}" for name, v in self.values.items())


class UniqueRows(Sequence[UniqueRow]):
    """The rows of a table that some columns single out. All are in it; printed are the first ones.

    >>> from privug import reidentification
    >>> found = reidentification.unique_rows([{"zip": 2300}, {"zip": 2300}, {"zip": 2400}], "zip")
    >>> len(found)
    1
    """

    def __init__(self, columns: Sequence[str], rows: Sequence[UniqueRow], looked_at: int) -> None:
        self.columns, self.looked_at = tuple(columns), looked_at
        self._rows = list(rows)

    def __getitem__(self, position: Any) -> Any:
        return self._rows[position]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[UniqueRow]:
        return iter(self._rows)

    @property
    def positions(self) -> list[int]:
        """The positions of the rows in the table."""
        return [row.position for row in self._rows]

    def to_dict(self) -> list[dict[str, Any]]:
        """Return the rows as plain values, a dict for each."""
        return [{"position": row.position, **row.values} for row in self._rows]

    def to_frame(self) -> Any:
        """Return the rows as a pandas DataFrame."""
        return as_frame(self.to_dict())

    def __str__(self) -> str:
        known = inert(" + ".join(self.columns))
        lines = [f"{len(self)} of {self.looked_at} rows are unique by {known}", *(f"  {r}" for r in self[:MOST_SHOWN])]
        return "\n".join([*lines, *([f"  ... and {len(self) - MOST_SHOWN} more"] if len(self) > MOST_SHOWN else [])])
