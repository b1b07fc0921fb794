"""How many digits of a number are shown: as many as mean something to a reader. Files of data hold the full numbers."""

import math

from privug.arguments import shown

SIGNIFICANT = 3
GROUPED = 10_000  # from here on thousands are set apart; below are years
SMALL, LARGE = 1e-4, 1e15  # outside of these numbers are written with an exponent
LONG = 200  # bits of integers that nobody reads
SAME = 1e-9  # relative; numbers that differ by less from what is shown are shown in full


def how_many(number: float | str, noun: str, plural: str = "") -> str:
    """Return how many there are of something, whose plural is that with an s, or as given.

    >>> how_many(1, "row"), how_many(2000, "row"), how_many(0, "query", "queries"), how_many("0.5", "bit")
    ('1 row', '2,000 rows', '0 queries', '0.5 bits')
    """
    text = number if isinstance(number, str) else f"{number:,.0f}"
    return f"{text} {noun if text == '1' else plural or f'{noun}s'}"


def number_text(number: float, resolution: float = 0.0) -> str:
    """Return a number to three significant digits, or to a resolution if there is one, but never less than its units.

    Zeros at the end say that the number was rounded there; a number that is shown in full has none. What is less than
    one never rounds to one: that would be certainty.

    >>> number_text(33.2284), number_text(96840.25), number_text(0.500484), number_text(0.5), number_text(1987)
    ('33.2', '96,840', '0.500', '0.5', '1987')
    >>> number_text(0.5625), number_text(0.56251)
    ('0.5625', '0.563')
    >>> number_text(55.61234, resolution=0.0001), number_text(0.99996), number_text(1.2345e-7)
    ('55.6123', '0.99996', '1.23e-07')
    """
    if math.isinf(number):
        return "infinite" if number > 0 else "minus infinite"
    if number == 0 or abs(number) >= LARGE:
        return f"{number:.4g}" if number else "0"
    if math.isclose(number, round(number), rel_tol=1e-13):
        return grouped(f"{number:.0f}")
    if resolution > 0:
        return _shown_to(number, places_of(resolution))
    if abs(number) < SMALL:
        return f"{number:.{SIGNIFICANT}g}"
    whole = math.isclose(float(f"{number:.{SIGNIFICANT + 1}g}"), number, rel_tol=SAME)  # one more digit is all of it
    places = SIGNIFICANT - 1 + whole - math.floor(math.log10(abs(number)))
    if number < 1 and round(number, places) >= 1:
        if 1 - number < 1e-12:
            return "1"
        places = math.ceil(-math.log10(1 - number))
    return _shown_to(number, max(0, places))


def places_of(width: float) -> int:
    """Return how many decimals show one significant digit of a width."""
    return max(0, -math.floor(math.log10(width)))


def fixed_text(number: float, places: int) -> str:
    """Return a number with so many decimals, with an exponent where they would be many."""
    if number != 0 and (abs(number) >= LARGE or places > 9):
        return f"{number:.4g}"
    text = f"{number:.{places}f}"
    return grouped(text) if float(text) != 0 else "0"


def grouped(text: str) -> str:
    """Set thousands apart, in numbers that are no years.

    >>> grouped("96840.5"), grouped("1987")
    ('96,840.5', '1987')
    """
    whole, point, rest = text.partition(".")
    return f"{int(whole):,}{point}{rest}" if abs(int(whole)) >= GROUPED else text


def full_text(number: float) -> str:
    """Return a number as somebody wrote it: all digits that mean something.

    >>> full_text(178000.0), full_text(55.3), full_text(1e-7), full_text(2**70)
    ('178,000', '55.3', '1e-07', '1,180,591,620,717,411,303,424')
    """
    if isinstance(number, int) and number.bit_length() > LONG:
        return shown(number)
    text = str(number) if isinstance(number, int) else f"{number:.15g}"
    return grouped(text) if text.lstrip("-").replace(".", "", 1).isdigit() else text


def _shown_to(number: float, places: int) -> str:
    text = fixed_text(number, places)
    if "." in text and "e" not in text and math.isclose(float(text.replace(",", "")), number, rel_tol=SAME):
        return text.rstrip("0").rstrip(".")
    return text


def percent_text(probability: float) -> str:
    """Return a probability as a percentage; what is neither impossible nor certain is never shown so.

    >>> percent_text(0.18), percent_text(0.0044), percent_text(0.0), percent_text(1.0), percent_text(0.99996)
    ('18 %', '0.44 %', '0 %', '100 %', '99.996 %')
    >>> percent_text(0.073209), percent_text(0.4096), percent_text(1e-7)
    ('7.3 %', '41 %', '1e-05 %')
    """
    shown = 100 * probability
    if not 0 < probability < 1 or 1 - probability < 1e-12:
        return f"{shown:.0f} %"
    if shown < 99:
        return f"{float(f'{shown:.2g}'):g} %"
    return f"{shown:.{math.ceil(-math.log10(1 - probability)) - 2}f} %"
