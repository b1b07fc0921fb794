"""A second way to the probability of what was seen: all rows together, instead of one row and the rest."""

from collections.abc import Sequence
from dataclasses import replace

from privug.inference.conditions import Unreadable
from privug.inference.exact.curves.pieces import Unfollowed
from privug.inference.exact.curves.summation import Unsummable
from privug.inference.exact.rows.model import Given, settled
from privug.inference.exact.rows.posterior import posterior
from privug.inference.exact.rows.reductions import NotRows
from privug.inference.mapped import NoSuchMoment

COMMON = 1e-5  # a probability from which on two ways to it are compared
SAME_TOTAL = 1e-7  # by how much two ways to the probability of what was seen may differ, relative to it
REFUSALS = (NotRows, Unfollowed, Unreadable, Unsummable, NoSuchMoment)
"""What is raised where something cannot be followed."""


def check_total(settings: Sequence[tuple[float, Given]], total: float, error: float) -> None:
    """Refuse an answer unless what was seen is as likely by all rows together as by one row and the rest."""
    if any(given.unknown is not None for _, given in settings):
        return  # integrated over already, which takes its time
    try:
        pieces = [
            replace(piece, weight=weight * piece.weight) for weight, given in settings for piece in posterior(given, ())
        ]
    except REFUSALS:
        return
    left = settled(pieces)
    whole = sum(piece.weight for piece in left)
    scale = _scale([given for _, given in settings]) if left and left[0].density else 1.0
    if not whole * scale > COMMON:
        return  # in far tails the law of all rows is known less well than that of the rest
    if not abs(whole - total) <= SAME_TOTAL * max(whole, total) + error:
        raise NotRows(f"what was seen came out as {total:.6g} and as {whole:.6g} likely: a peak was missed")


def _scale(several: Sequence[Given]) -> float:
    """Return how wide the widest law of a sum is, by which its density is to be judged; zero if that is not known."""
    laws = [law for given in several for law in given.tally(None).laws if law.parts]
    try:
        return max((law.std() for law in laws), default=0.0)
    except NoSuchMoment:
        return 0.0
