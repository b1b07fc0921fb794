"""Whether all rows that match the governor's are ill."""

from .findings import Findings, Line
from .governor import COLUMNS, COMBINATIONS, all_ill, healthy, matching_rows, named, none_alone
from .governor import run as attacked
from .k_anonymous import ROWS, sampled

PAPER = "Table 2"
PRINTED = {
    ("zip",): (".02000", ".00"),
    ("day",): (".00006", ".00"),
    ("sex",): (".00000", ".00"),
    ("zip", "day"): (".96000", ".51"),
    ("zip", "sex"): (".16000", ".00"),
    ("day", "sex"): (".01800", ".00"),
    COLUMNS: (".98000", ".71"),
}


def run() -> Findings:
    lines = []
    for place, rows in enumerate((1_000, 14_000)):
        for columns, printed in PRINTED.items():
            found = attacked(healthy(columns), rows).prediction.probability_of([0])
            unique = float(matching_rows(rows, columns).pmf(1))
            note = f"his row alone matches with {unique:.4f}" if unique > 0.4 and rows > 1_000 else ""
            who = f"{rows:,} rows, {named(columns)}"
            lines.append(Line(who, found, all_ill(rows, columns), printed[place], note))
    return Findings(
        lines + _anonymised(),
        notes=[
            "At 14,000 rows the paper's .51 and .71 are the probabilities that no other row matches, "
            "which its text calls uniqueness; that all who match are ill is likelier, because they may be several.",
            "After anonymisation a row that matches no longer exists but for sex; the paper's zeros count that as "
            "nothing learned, though 'all rows that match are ill' is true of no rows. So do we: "
            "the probability is that some row matches and all that match are ill.",
        ],
    )


def _anonymised() -> list[Line]:
    """Return the lines about the k-anonymous table, which are sampled; the truth is zero to more than twenty digits.

    A column with a value that occurs once is masked. Of 200 zips one occurs once, but for 2e-23. Days are masked, too:
    by themselves, or else with sex, because of the 200 pairs of day and sex one occurs once, but for the same 2e-23.
    That all of about 250 people of his sex are ill has 1e-110.
    """
    belief, _ = sampled()
    lines = []
    for place, columns in enumerate(COMBINATIONS):
        found = belief.probability(lambda release, place=place: release[1][place])
        bound = all_ill(ROWS, columns) if columns == ("sex",) else none_alone(ROWS, 200)
        assert bound < 1e-20
        lines.append(Line(f"{ROWS} rows, k = 2, {named(columns)}", found, 0.0, ".0", f"the truth is below {bound:.0e}"))
    return lines
