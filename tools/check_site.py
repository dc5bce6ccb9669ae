"""Checks a built site: links within it lead somewhere, and no page has a fault that a browser can find.

`make docs` runs this: `python tools/check_site.py docs/_build/html`. Addresses elsewhere are not visited. Where there
is a Chromium or Chrome, every page is opened on a desktop in light and on a phone in dark: nothing may reach beyond the
edge, and axe-core may find nothing serious. Names after the folder are parts of paths: only such pages are opened.
`--screenshots FOLDER` keeps what the browser shows, for people to look at.
"""

import argparse
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


def faults_in_a_browser(folder: Path, parts: list[str], screenshots: Path | None) -> list[str]:
    """`page, width, scheme: fault` for everything that reaches beyond the edge, and for what keeps readers out."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from browser import MISSING, Browser, find_browser

    program = find_browser()
    if program is None:
        print(MISSING)
        return []
    pages = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*.html"))}
    chosen = {name: path for name, path in pages.items() if not parts or any(part in name for part in parts)}
    faults = []
    with Browser(program) as browser:
        for width, scheme in ((1280, "light"), (390, "dark")):
            for number, (name, path) in enumerate(chosen.items(), 1):
                print(f"{width} pixels, {scheme}: page {number} of {len(chosen)}: {name}", file=sys.stderr, flush=True)
                browser.open(path, width, scheme)
                beyond = browser.run("document.documentElement.scrollWidth > innerWidth")
                wrong = ["wider than the screen"] * beyond + browser.faults()
                faults += [f"{name}, {width} pixels, {scheme}: {fault}" for fault in wrong]
                if screenshots is not None:
                    browser.screenshot(screenshots / f"{name.removesuffix('.html').replace('/', '_')}_{width}.png")
    return faults


def main() -> None:
    """Print what is wrong and fail if anything is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the built site")
    parser.add_argument("parts", nargs="*", help="parts of paths: only such pages are opened")
    parser.add_argument("--screenshots", type=Path, metavar="FOLDER", help="keep a picture of every page")
    arguments = parser.parse_intermixed_args()
    folder = arguments.folder.resolve()
    if arguments.screenshots is not None:
        arguments.screenshots.mkdir(parents=True, exist_ok=True)
    faults = broken_links(folder) + faults_in_a_browser(folder, arguments.parts, arguments.screenshots)
    print(*faults, sep="\n", end="\n" * bool(faults))
    raise SystemExit(int(bool(faults)))


if __name__ == "__main__":
    main()
