"""Pictures, drawn with matplotlib; this package is imported when one is asked for."""

from privug.report.plots.beliefs import belief, beliefs
from privug.report.plots.canvas import inline_svg
from privug.report.plots.grids import heat_map, joint
from privug.report.plots.lines import calibration, convergence, sequence, sweep_lines, trade_off
from privug.report.plots.ranked import bars, ranges

__all__ = [
    "bars",
    "belief",
    "beliefs",
    "calibration",
    "convergence",
    "heat_map",
    "inline_svg",
    "joint",
    "ranges",
    "sequence",
    "sweep_lines",
    "trade_off",
]
