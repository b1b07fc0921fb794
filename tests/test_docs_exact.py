"""The page about the exact engine says what the tests know, and shows pictures that are there."""

import re

from table_of_releases import PAGE, between, table


def test_table_of_releases_is_up_to_date():
    """`python tests/table_of_releases.py --write` puts it right; that the rest is exact, test_releases.py knows."""
    assert between(PAGE.read_text(encoding="utf-8")) == table()


def test_pictures_are_there():
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", PAGE.read_text(encoding="utf-8"))
    assert len(pictures) == 4
    assert [picture for picture in pictures if not (PAGE.parent / picture).exists()] == []
