"""Text from outside made harmless: names, categories and messages come from data that nobody has read."""

import unicodedata

# Control characters (the escapes of terminals, NUL), format characters (which turn the direction of writing around or
# show as nothing), halves of surrogate pairs (which no file can hold) and separators of lines.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def inert(text: str, keep: str = "") -> str:
    r"""Return a text in which characters that do something, rather than show something, are written out.

    >>> print(inert("Al\x1b[31mice\n\u202eBob"), inert("two\nlines", keep="\n").count("\n"))
    Al\x1b[31mice\n\u202eBob 1
    """
    if text.isprintable():
        return text
    return "".join(_written(character) if character not in keep else character for character in text)


def _written(character: str) -> str:
    if unicodedata.category(character) not in _INVISIBLE:
        return character
    return character.encode("unicode_escape").decode("ascii")
