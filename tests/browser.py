"""Pages in a real browser: the Chromium or Chrome of this machine, driven by playwright and judged by axe-core."""

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# The width of a page of A4 between its margins, in pixels of CSS.
PAPER = 718
WIDEST_ON_PAPER = f"""(() => {{ document.body.style.width = '{PAPER}px';
  return Math.max(...[...document.querySelectorAll('table, svg')].map(e => e.getBoundingClientRect().width)); }})()"""
# Contrast takes axe-core nine tenths of its time, and depends on nothing but the colours and size of a text and on what
# is painted behind it: of the texts that agree in these, such as the cells of a table, the first is judged.
SERIOUS_FAULTS = """async () => {
  const grounds = new Map([[null, '']]);
  const ground = element => {
    if (!grounds.has(element)) {
      const style = getComputedStyle(element);
      const own = [style.backgroundColor, style.backgroundImage, style.opacity, style.filter].join();
      grounds.set(element, `${ground(element.parentElement)}/${own}`);
    }
    return grounds.get(element);
  };
  const texts = new Map();
  for (const element of document.body.querySelectorAll('*')) {
    if (![...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim())) continue;
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const style = getComputedStyle(element);
    const look = [style.color, style.fill, style.fontSize, style.fontWeight, style.textShadow, ground(element)].join();
    if (!texts.has(look)) texts.set(look, element);
  }
  const options = { resultTypes: ['violations'], preload: false };
  const { violations } = await axe.run({ ...options, rules: { 'color-contrast': { enabled: false } } });
  if (texts.size) {
    const judged = await axe.run({ include: [...texts.values()] }, { ...options, runOnly: ['color-contrast'] });
    violations.push(...judged.violations);
  }
  return violations
    .filter(each => ['serious', 'critical'].includes(each.impact))
    .map(each => `${each.id}: ${each.help}: ${each.nodes[0].html}`);
}"""
MISSING = "no Chromium or Chrome on this machine, or no playwright: the page is not looked at by a browser"


def find_browser() -> str | None:
    """The program of a browser that playwright can drive here, or None."""
    if find_spec("playwright") is None:
        return None
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page at a time; `problems` collects console errors and exceptions, `requests` every address asked for."""

    def __init__(self, program: str) -> None:
        from playwright.sync_api import sync_playwright

        self._driver = sync_playwright().start()
        self._browser = self._driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        self._reader: tuple[int, str, str] | None = None
        self._page: Any = None
        self.problems: list[str] = []
        self.requests: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._browser.close()
        self._driver.stop()

    def open(self, path: Path, width: int, scheme: str, locale: str = "en-GB") -> None:
        """Load a file at a width, in light or dark, for a reader of a language.

        Another reader gets another window, which takes a second; the same reader goes on in the window that is open.
        """
        if self._reader != (width, scheme, locale):
            self._open_window(width, scheme, locale)
        self.problems, self.requests = [], []
        self._page.emulate_media(media="screen")
        self._page.goto(path.resolve().as_uri())

    def _open_window(self, width: int, scheme: str, locale: str) -> None:
        if self._page is not None:
            self._page.context.close()
        size = {"width": width, "height": 900}
        context = self._browser.new_context(viewport=size, color_scheme=scheme, is_mobile=width < 600, locale=locale)
        self._page, self._reader = context.new_page(), (width, scheme, locale)
        self._page.set_default_timeout(300_000)  # milliseconds: a busy machine is no fault of the page
        self._page.on("request", lambda request: self.requests.append(request.url))
        self._page.on("pageerror", lambda error: self.problems.append(str(error)))
        self._page.on(
            "console",
            lambda line: line.type in ("error", "warning") and self.problems.append(f"{line.type}: {line.text}"),
        )

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        return self._page.evaluate(script)

    def press(self, key: str) -> None:
        """Press a key of the keyboard, such as Tab."""
        self._page.keyboard.press(key)

    def print_media(self) -> None:
        """Show the page as it would be printed."""
        self._page.emulate_media(media="print")

    def screenshot(self, path: Path) -> None:
        """The whole page as a PNG."""
        self._page.screenshot(path=path, full_page=True)

    def complaints(self, path: Path) -> list[str]:
        """What is wrong with a page on a desktop in light, on a phone in dark and on paper; empty if nothing is."""
        complaints = []
        for width, scheme in ((1280, "light"), (390, "dark")):
            self.open(path, width, scheme)
            foreign = [f"loads {url}" for url in self.requests if url != path.resolve().as_uri()]
            shown = self.run("document.documentElement.scrollWidth")  # tables scroll, the page does not
            too_wide = [f"{shown} pixels wide"] * (shown > width)
            complaints += [f"{width}, {scheme}: {each}" for each in self.problems + foreign + too_wide + self.faults()]
        self.print_media()
        return complaints + ["a table or a chart is cut off on paper"] * (self.run(WIDEST_ON_PAPER) > PAPER)

    def faults(self) -> list[str]:
        """What axe-core calls serious or critical in the page, each with the first element that shows it."""
        from axe_playwright_python.sync_playwright import Axe

        self._page.evaluate(Axe().axe_script)
        return list(self._page.evaluate(SERIOUS_FAULTS))
