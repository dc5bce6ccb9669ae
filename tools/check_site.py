"""Checks a built site: every link to a page, a picture or an anchor of the site itself leads somewhere.

`make docs` runs this: `python tools/check_site.py docs/_build/html`. Addresses elsewhere are not visited.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlparse


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what a tag refers to and what it is called."""
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def broken_links(folder: Path) -> list[str]:
    """`page: link` for every link within the site that leads nowhere."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    broken = []
    for path, page in pages.items():
        for link in page.links:
            address, anchor = urldefrag(link)
            if urlparse(address).scheme or address.startswith("//"):
                continue
            target = (path.parent / unquote(urlparse(address).path)).resolve() if address else path
            target = target / "index.html" if target.is_dir() else target
            known = pages.get(target)
            if not target.exists() or (anchor and known is not None and unquote(anchor) not in known.anchors):
                broken.append(f"{path.relative_to(folder)}: {link}")
    return broken


def main() -> None:
    """Print the broken links and fail if there are any."""
    broken = broken_links(Path(sys.argv[1]).resolve())
    print(*broken, sep="\n", end="\n" * bool(broken))
    raise SystemExit(int(bool(broken)))


if __name__ == "__main__":
    main()
