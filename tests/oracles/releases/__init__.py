"""Typical releases of statistical offices and users of differential privacy, and what is known of each.

The programs are written as analysts write them. The numbers in `releases.json` share no code with Privug:
`tools/oracles_of_releases.py` computes them from plain NumPy draws, closed forms and quadrature.
"""

from oracles.releases.counts import COUNTS
from oracles.releases.means import MEANS
from oracles.releases.orders import ORDERS
from oracles.releases.release import Release
from oracles.releases.shared import SHARED
from oracles.releases.tables import TABLES

RELEASES = {release.name: release for release in (*COUNTS, *MEANS, *TABLES, *ORDERS, *SHARED)}

__all__ = ["RELEASES", "Release"]
