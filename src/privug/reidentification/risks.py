"""The three risks by which the Article 29 Working Party judges anonymisation (Opinion 05/2014)."""

from dataclasses import dataclass
from typing import Any

from privug.arguments import kinds_checked
from privug.escaping import inert
from privug.estimate import Estimate
from privug.pictures import plots
from privug.reidentification.people import People
from privug.reidentification.questions import Asked
from privug.reidentification.scenes import Person
from privug.reidentification.singled_out import UniqueRows


@dataclass(frozen=True)
class Risks:
    """What someone who knows some columns of a person's row can do with a released table.

    `singling_out` is the probability that the person's row is the only one that matches; `linkability` that a
    matching row taken at random is the person's; `inference` that such a row has the person's secret, and
    `inference_before` that any row of the table has it; `disclosure` that all matching rows have it.

    >>> from privug import reidentification
    >>> released = [{"zip": "2300", "ill": True}, {"zip": "2300", "ill": False}, {"zip": "2100", "ill": False}]
    >>> risks = reidentification.three_risks(released, ["zip"], "ill")
    >>> round(risks.singling_out.value, 4), round(risks.linkability.value, 4)
    (0.3333, 0.6667)
    """

    columns: tuple[str, ...]
    secret: str
    singling_out: Estimate
    linkability: Estimate
    inference: Estimate
    inference_before: Estimate
    disclosure: Estimate
    unique_rows: UniqueRows | None = None
    """The rows that are singled out, of a table at hand; a prior has none yet."""

    def to_dict(self) -> dict[str, Any]:
        """Return the risks as plain values."""
        names = ("singling_out", "linkability", "inference", "inference_before", "disclosure")
        numbers = {name: getattr(self, name) for name in names}
        return {
            "columns": list(self.columns),
            "secret": self.secret,
            **{
                name: {"value": e.value, "low": e.low, "high": e.high, "method": e.method}
                for name, e in numbers.items()
            },
            **({} if self.unique_rows is None else {"unique_rows": self.unique_rows.to_dict()}),
        }

    def plot(self, ax: Any = None) -> Any:
        """Draw the risks as bars; `ax` is matplotlib axes or the path of a picture to write."""
        names = ("singling_out", "linkability", "inference", "inference_before", "disclosure")
        words = ("singling out", "linkability", "inference", "inference by base rate", "inference with certainty")
        rows = [(said, getattr(self, name)) for said, name in zip(words, names, strict=True)]
        return plots().bars(rows, ax, f"probability, knowing {' + '.join(self.columns)}")

    def __str__(self) -> str:
        known, secret = inert(" + ".join(self.columns)), inert(self.secret)
        lines = [
            ("singling out", self.singling_out, "no other row matches"),
            ("linkability", self.linkability, "a matching row taken at random is the person's"),
            ("inference", self.inference, f"a matching row taken at random has the person's {secret}"),
            ("  by base rate", self.inference_before, f"any row taken at random has the person's {secret}"),
            ("  with certainty", self.disclosure, f"all matching rows have the person's {secret}"),
        ]
        width = max(len(estimate.number()) for _, estimate, _ in lines)
        shown = [(f"{name:<16}  {estimate.number():>{width}}", f"  {meaning}") for name, estimate, meaning in lines]
        rows = [] if self.unique_rows is None else [str(self.unique_rows)]
        return "\n".join([f"known of the person: {known}", *(number + meaning for number, meaning in shown), *rows])


@kinds_checked
def three_risks(
    records: Any, columns: Any, secret: str, *, person: Person = None, samples: int = 10_000, seed: int = 0
) -> Risks:
    """Return the risks of singling out, linkability and inference for a person whose values in the columns are known.

    The arguments are those of `matching_rows`. With m other matching rows, linkability is E[1 / (1 + m)] and inference
    is E[k / (1 + m)], where k of the matching rows have the person's secret. All are probabilities, from 0 to 1;
    an attacker who knows more about the person than the prior says can do better than these numbers.

    >>> import privug as pv
    >>> table = pv.Records(2, pv.Row(sex=pv.Choice(["f", "m"]), ill=pv.Bernoulli(0.5)))
    >>> risks = three_risks(table, "sex", "ill")
    >>> print(risks.singling_out, risks.linkability, risks.inference)
    0.5 (exact) 0.75 (exact) 0.875 (exact)
    """
    asked = Asked(records, person, samples, seed)
    names = asked.columns(columns)
    asked.secret(secret)

    def risks(people: People) -> Risks:
        return Risks(
            names,
            secret,
            people.unique(names),
            people.linked(names),
            people.guessed(names, secret),
            people.guessed((), secret),
            people.disclosed(names, secret),
            asked.singled_out(names),
        )

    return asked.answer(risks)
