"""A quantity plus Laplace noise: its density is a sum of two exponential filters of that of the quantity.

At w it is (A(w) + B(w)) / 2b, where A(w) = E[exp(-(w - x) / b); x <= w] solves A' = f - A / b from the left, and B the
same from the right. On each panel that is a small linear system, whatever the ratio of the noise to the rest.
"""

import math

import numpy as np

from privug.inference.density import NODES, panel_nodes
from privug.inference.exact.curves.panels import SMOOTH, Kink, Panels, apart
from privug.model.node import Array

MOST_PANELS = 300
WIDEST = 2.0  # scales of the noise in a panel
TAIL = 10.0  # the same beyond the values of the quantity, where the density is exponential
TAILS = 10  # so many panels on each side: beyond, there is less than 1e-43
ERROR = 4e-15  # what rounding leaves of the mass

_STANDARD, _WEIGHTS = (array[0] for array in panel_nodes(np.array([-1.0, 1.0])))


def _integration() -> Array:
    """Return the matrix from values at the nodes to integrals from the left end up to each node."""
    legendre = np.polynomial.legendre
    analysis = ((np.arange(NODES) + 0.5) * legendre.legvander(_STANDARD, NODES - 1)).T * _WEIGHTS
    integrals = np.array([legendre.legval(_STANDARD, legendre.legint(row, lbnd=-1)) for row in np.eye(NODES)])
    return np.asarray(integrals.T @ analysis)


_INTEGRATION = _integration()


def blurred(panels: Panels | None, share: float, atoms: Array, masses: Array, scale: float) -> Panels | None:
    """Add Laplace noise of mean zero to a density, which has a share, and atoms; nothing if it is too narrow."""
    grid = _grid(panels, atoms, scale)
    if grid is None:
        return None
    nodes = panel_nodes(grid)[0]
    values = np.zeros(nodes.shape)
    if panels is not None:
        values = share * panels.at(nodes.reshape(-1)).reshape(nodes.shape)
    here = np.zeros(len(grid))
    np.add.at(here, np.argmin(np.abs(grid[:, np.newaxis] - atoms), axis=0), masses)
    below, above = _filtered(grid, values, here, scale), _filtered(-grid[::-1], values[::-1, ::-1], here[::-1], scale)
    inner = below[0] + above[0][::-1, ::-1]
    steps = TAIL * scale * np.arange(TAILS + 1)
    left, right = grid[0] - steps[::-1], grid[-1] + steps
    outer = [
        end * np.exp(-np.abs(panel_nodes(side)[0] - start) / scale)
        for end, side, start in ((above[1], left, grid[0]), (below[1], right, grid[-1]))
    ]
    edges = np.concatenate([left[:-1], grid, right[1:]])
    table = np.concatenate([outer[0], inner, outer[1]]) / (2 * scale)
    error, fine = (panels.error, panels.fine) if panels is not None else (0.0, (0.0, 0.0))
    better = None if fine is None else (fine[0] + 1e-10, fine[1] + 1e-20)
    return Panels(edges, table, _kinks(panels, atoms), (True, True), share * error + ERROR, better)


def _kinks(panels: Panels | None, atoms: Array) -> tuple[Kink, ...]:
    known = dict.fromkeys(atoms.tolist(), 1.0)
    for place, order in panels.kinks if panels is not None else ():
        known.setdefault(place, order + 2)
    return tuple((place, order) for place, order in sorted(known.items()) if order < SMOOTH)


def _grid(panels: Panels | None, atoms: Array, scale: float) -> Array | None:
    """Return the panels, and gaps between atoms, cut to the scale of the noise; nothing if those are too many."""
    edges = apart(np.concatenate([atoms, panels.edges if panels is not None else atoms[:0]]))
    with np.errstate(over="ignore"):
        pieces = np.ceil(np.diff(edges) / (WIDEST * scale))
    if len(edges) < 2 or not pieces.sum() <= MOST_PANELS:
        return None
    counts = np.maximum(pieces, 1).astype(int)
    steps = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.append(np.repeat(edges[:-1], counts) + steps * np.repeat(np.diff(edges) / counts, counts), edges[-1])


def _filtered(grid: Array, values: Array, atoms: Array, scale: float) -> tuple[Array, float]:
    """Return E[exp(-(w - x) / scale); x <= w] at the nodes and at the last edge, of densities and atoms at edges."""
    half = np.diff(grid) / 2
    angle = half / scale
    system = np.eye(NODES) + angle[:, np.newaxis, np.newaxis] * _INTEGRATION
    own = np.linalg.solve(system, (half[:, np.newaxis] * (values @ _INTEGRATION.T))[:, :, np.newaxis])[:, :, 0]
    ends = (half[:, np.newaxis] * values - angle[:, np.newaxis] * own) @ _WEIGHTS
    starts, carried = np.empty(len(half)), 0.0
    for i, (end, left) in enumerate(zip(ends.tolist(), angle.tolist(), strict=True)):
        starts[i] = carried + atoms[i]
        carried = end + starts[i] * math.exp(-2 * left)
    fading = np.exp(-angle[:, np.newaxis] * (1 + _STANDARD))
    return own + starts[:, np.newaxis] * fading, carried + float(atoms[-1])
