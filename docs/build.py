"""Fill the marked blocks of the pages from the reports in the repository: no number is typed by hand.

`python docs/build.py` rewrites them; `python docs/build.py --check` fails if one is out of date.
"""

import json
import re
import sys
from pathlib import Path

from transun.report.markdown import table, yes

ROOT = Path(__file__).parent.parent
REPORTS = ROOT / "reports"


def demo_block() -> str:
    """The table and the verdict of the demo's page."""
    lines = (REPORTS / "demo.md").read_text(encoding="utf-8").split("\n\n")
    return f"{lines[1]}\n\n{lines[2]}"


def synthetic_block() -> str:
    """The claims of the synthetic report."""
    report = json.loads((REPORTS / "synthetic.json").read_text(encoding="utf-8"))
    rows = [[claim["text"], yes(claim["holds"]), claim["evidence"]] for claim in report["claims"]]
    return table(["claim", "holds", "evidence"], rows)


BLOCKS = {"demo": demo_block, "synthetic": synthetic_block}
PAGES = [ROOT / "README.md"]


def filled(text: str) -> str:
    """The page with every marked block replaced by what the reports say."""
    for name, block in BLOCKS.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        text = pattern.sub(lambda match, block=block: f"{match[1]}{block()}\n{match[2]}", text)
    return text


def main(check: bool) -> int:
    """Rewrite the pages, or say which one is out of date."""
    stale = [page for page in PAGES if filled(page.read_text(encoding="utf-8")) != page.read_text(encoding="utf-8")]
    for page in stale:
        if check:
            print(f"{page.relative_to(ROOT)} is out of date: run python docs/build.py")
        else:
            page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
