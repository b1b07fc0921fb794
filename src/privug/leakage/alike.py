"""Values and secrets that are alike, counted together: for measures that need not know which ones they are."""

from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np

from privug.inference.belief import Belief
from privug.inference.joint import Classes, Joint
from privug.leakage.finite import Pairs, Shares, constant_value, keep_shares, made_shares, pairs_of, shares_of, unseen
from privug.model.batch import Batch, DeferredBatch, Values
from privug.model.node import Array

_known_pairs: "WeakKeyDictionary[Joint, Pairs]" = WeakKeyDictionary()
_known_shares: "WeakKeyDictionary[Belief, Shares]" = WeakKeyDictionary()


def alike_pairs(joint: Joint) -> Pairs:
    """Collect the pairs of a joint, those of secrets that are alike together where an engine found them so."""
    if not isinstance(joint, Joint) or not joint.exact or joint.channel is not None:
        return pairs_of(joint)
    if joint.classes is not None:
        if joint not in _known_pairs:
            _known_pairs[joint] = _of_classes(joint, joint.classes)
        return _known_pairs[joint]
    constant = constant_value(joint.output.batch)
    return pairs_of(joint) if constant is None else unseen(alike_shares(joint.secret), constant)


def alike_shares(belief: Belief) -> Shares:
    """Collect the values of a belief, those of the same probability together if all are known to be different."""
    known = _known_shares.get(belief)
    if known is None and belief.exact and belief.batch.each_once and belief.weights is not None:
        probability, copies = np.unique(belief.weights[belief.weights > 0], return_counts=True)
        known = _known_shares[belief] = _together(belief, probability, copies)
    return shares_of(belief) if known is None else known


def _together(belief: Belief, probability: Array, copies: Array) -> Shares:
    return replace(made_shares(belief, (), probability, np.zeros(len(probability))), copies=copies)


def _of_classes(joint: Joint, known: Classes) -> Pairs:
    representatives = Values(_representatives(known))
    outputs = Values(known.outputs)
    _known_shares.setdefault(joint.secret, _together(joint.secret, known.prior, known.copies))
    keep_shares(joint.output, made_shares(joint.output, outputs, known.marginal, np.zeros(len(outputs))))
    return Pairs(
        known.secret,
        known.output,
        known.probability,
        representatives,
        outputs,
        samples=joint.effective_samples,
        method=joint.secret.method,
        squares=np.zeros(len(known.secret)),
        copies=known.copies,
    )


def _representatives(known: Classes) -> Batch:
    """Return one secret of each class, found and made when somebody asks for it."""

    def made(some: Array | None) -> Batch:
        return known.secrets.take(known.representatives if some is None else known.representatives[some])

    return DeferredBatch(known.secrets.structure, len(known.copies), made)
