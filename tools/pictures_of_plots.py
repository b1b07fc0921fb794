"""The pictures of the page about pictures: drawn by the blocks of the page itself.

python tools/pictures_of_plots.py    # into docs/pictures
"""

import os
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).parent.parent
sys.path.insert(0, str(PROJECT / "tests"))

from pages import printed_by  # noqa: E402

PAGE = PROJECT / "docs" / "how-to" / "plots.md"


def main() -> None:
    wanted = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        list(printed_by(PAGE, Path(folder)))
        for picture in Path(folder).glob("*.svg"):
            if f"plots-{picture.name}" in wanted:
                target = PROJECT / "docs" / "pictures" / f"plots-{picture.name}"
                target.write_bytes(picture.read_bytes())


if __name__ == "__main__":
    main()
