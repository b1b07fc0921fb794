"""Traced frames put together: joined by a key, or one below the other."""

from collections.abc import Sequence
from typing import Any

from privug.model.variable import RandomVariable, refuse
from privug.program.traced.frames.cells import EQUAL, Cell, cell_of, chosen, compared, hits_of
from privug.program.traced.frames.rows import Axis, Rows, renumbered
from privug.program.traced.masks import Mask, Standing, any_of, both, negated, truth

MOST_PAIRS = 1024
"""How many pairs of rows of two tables are looked at."""

Columns = dict[Any, list[Cell]]


def looked_up(cells: Sequence[Cell], keys: Sequence[Any], values: Sequence[Cell], there: Sequence[Mask]) -> list[Cell]:
    """Return for each cell what stands at it in a table of distinct keys; missing where nothing does."""
    table = {key: (value, mask) for key, value, mask in zip(keys, values, there, strict=True)}
    found = []
    for cell in cells:
        total = cell_of(None)
        for level, hit in hits_of(cell).items():
            if level in table:
                value, mask = table[level]
                total = chosen(both(hit, mask), value, total)
        found.append(total)
    return found


def merged(left: Any, right: Any, on: str, how: str, suffixes: tuple[str, str]) -> tuple[Columns, Rows]:
    """Return the rows of two frames that have the same key, side by side; `left` keeps those that have no partner."""
    if on not in left.data or on not in right.data:
        raise KeyError(on)
    names = [name for name in right.data if name != on]
    both_have = {name for name in names if name in left.data}
    of_left = {name: f"{name}{suffixes[0]}" if name in both_have else name for name in left.data}
    of_right = {name: f"{name}{suffixes[1]}" if name in both_have else name for name in names}
    keys = [cell.value for cell in right.data[on]]
    if right.rows.axis.sorted and _are_distinct(right, on):
        found = {of_right[n]: looked_up(left.data[on], keys, right.data[n], right.rows.there) for n in names}
        partner = looked_up(left.data[on], keys, [Cell(True)] * len(keys), right.rows.there)
        rows = renumbered(left.rows) if how == "left" else renumbered(left.rows.among([one.known for one in partner]))
        return {**{of_left[n]: cells for n, cells in left.data.items()}, **found}, rows
    return _in_pairs(left, right, on, how, of_left, of_right)


def _are_distinct(right: Any, on: str) -> bool:
    cells = right.data[on]
    if any(isinstance(cell.value, RandomVariable) or cell.known is not True for cell in cells):
        return False
    return len({cell.value for cell in cells}) == len(cells) and not _has_plates(right)


def _in_pairs(
    left: Any, right: Any, on: str, how: str, of_left: dict[Any, Any], of_right: dict[Any, Any]
) -> tuple[Columns, Rows]:
    """Join every row of one frame with every row of another, where keys agree."""
    size = len(right.rows.there)
    if _has_plates(right) or len(left.rows.there) * (size + 1) > MOST_PAIRS or not right.rows.axis.sorted:
        refuse("merge() with a table of many rows")
    if any(cell.known is not True for frame in (left, right) for cell in frame.data[on]):
        refuse("merge() by keys that may be missing")
    data: Columns = {name: [] for name in (*of_left.values(), *of_right.values())}
    plates, there = [], []
    for place, plate in enumerate(left.rows.axis.plates):
        key, here = left.data[on][place], left.rows.there[place]
        hits = [
            both(mask, truth(compared(EQUAL, key, other).value))
            for other, mask in zip(right.data[on], right.rows.there, strict=True)
        ]
        alone = [negated(any_of(hits))] if how == "left" else []
        for k, hit in enumerate([*hits, *alone]):
            for name, new in of_left.items():
                data[new].append(left.data[name][place])
            for name, new in of_right.items():
                data[new].append(right.data[name][k] if k < size else cell_of(None))
            plates.append(plate)
            there.append(both(here, hit))
    return data, Rows(Axis(tuple(plates), anonymous=True, renumbered=True, sorted=left.rows.axis.sorted), tuple(there))


def stacked(frames: Sequence[Any]) -> tuple[Columns, Rows]:
    """Return the rows of several frames, one below the other."""
    if not frames or any(set(frame.data) != set(frames[0].data) for frame in frames):
        refuse("pd.concat() of frames with different columns")
    if any(frame.hits or frame.present or frame.lost for frame in frames):
        refuse("pd.concat() of such frames")
    data = {name: [cell for frame in frames for cell in frame.data[name]] for name in frames[0].data}
    plates = tuple(plate for frame in frames for plate in frame.rows.axis.plates)
    in_order = all(frame.rows.axis.sorted for frame in frames)
    return data, Rows(
        Axis(plates, anonymous=True, sorted=in_order), tuple(mask for frame in frames for mask in frame.rows.there)
    )


def _has_plates(frame: Any) -> bool:
    return any(plate is not None for plate in frame.rows.axis.plates)


def is_frame(value: Any) -> bool:
    """Say whether a value is a frame, plain or standing for one."""
    return getattr(value, "kind", "") == "DataFrame" if isinstance(value, Standing) else hasattr(value, "columns")
