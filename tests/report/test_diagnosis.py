"""The report of a diagnosis: a page that loads nothing, Markdown and JSON with the same numbers, harmless names."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from pages import Collector
from transun.diagnosis import diagnose
from transun.report.diagnosis import diagnosis_document, diagnosis_json
from transun.report.formatting import Unit, number


def diagnosis_page(found):
    return diagnosis_document(found).html()


def diagnosis_markdown(found):
    return diagnosis_document(found).markdown()


HOSTILE = [
    "<script>alert(1)</script>",
    "a|b`c`*d*_e_",
    '" onload="alert(1)',
    "\x1b[31mred\nline",
    "](javascript:alert(1))",
]
COLUMN = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    rows = 6000
    label = rng.choice(HOSTILE, rows)
    sigma = np.where(label == HOSTILE[0], 1.3, 0.6)
    typical = np.exp(3.0 + 0.8 * rng.normal(size=rows))
    y = typical * np.exp(sigma * rng.normal(size=rows))
    by = {COLUMN: label.tolist(), "age": rng.normal(40.0, 10.0, rows)}
    return diagnose(y, typical, by=by, name="orders<b>.csv")


@pytest.fixture(scope="module")
def parsed(found):
    return Collector.read(diagnosis_page(found))


def test_the_page_loads_nothing(found, parsed):
    page = diagnosis_page(found)
    assert not re.search(r"(https?:)?//[\w.]+", page.replace("<!doctype html>", ""))
    assert "@import" not in page
    assert not [tag for tag, attrs in parsed.tags if tag in ("img", "iframe", "object", "embed", "video", "audio")]
    assert [attrs for tag, attrs in parsed.tags if tag == "link"] == [{"rel": "icon", "href": "data:,"}]
    assert len(page.encode()) < 200_000


def test_hostile_names_are_text(parsed):
    scripts = [attrs for tag, attrs in parsed.tags if tag == "script"]
    assert len(scripts) == 1  # our own
    assert not [name for _, attrs in parsed.tags for name in attrs if name.startswith("on")]
    text = parsed.text
    assert "<script>alert(1)</script>" in text
    assert COLUMN in text
    assert "orders<b>.csv" in text
    assert "\x1b" not in text


def test_hostile_names_do_nothing_in_markdown(found):
    page = diagnosis_markdown(found)
    for hostile in ("<script", "<img", "\x1b", "](javascript", "*d*", "`c`"):
        assert hostile not in page
    tables = [block.splitlines() for block in page.split("\n\n") if block.startswith("|")]
    assert len(tables) >= 7
    for lines in tables:
        columns = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
        assert len(columns) == 1, lines


def test_the_three_forms_say_the_same(found, parsed):
    data = json.loads(diagnosis_json(found))
    text, page = parsed.text, diagnosis_markdown(found)
    assert {each["name"]: each["value"] for each in data["metrics"]}["PGR"] == found.metric("PGR").value
    assert data["source"]["rows"] == 6000
    pgr = f"{found.metric('PGR').value:.3f}"
    for shown in (pgr, f"{found.advice.power.value:.2f}", "6,000", found.advice.head):
        assert shown in text
        assert shown in page
    assert found.verdict.text.split(";")[0] in text
    for term in ("PGR", "XAUC", "retransformation bias"):
        assert term in text
        assert term in page


def test_amounts_have_their_unit(found):
    page = Collector.read(diagnosis_document(found, Unit("EUR")).html())
    assert f"predicted total{number(found.predicted)} EUR" in page.text
    assert "mean actual in EUR, 99 %" in page.text
    labels = [attributes.get("aria-label", "") for tag, attributes in page.tags if tag == "svg"]
    assert any("in EUR" in label for label in labels)
    assert " EUR" not in Collector.read(diagnosis_page(found)).text


def test_a_notebook_shows_the_page_in_a_frame(found):
    frame = Collector.read(found._repr_html_())
    ((tag, attributes),) = frame.tags
    assert tag == "iframe"
    assert attributes["srcdoc"] == diagnosis_page(found)
    assert attributes["sandbox"] == "allow-scripts"
    assert attributes["title"]


def test_what_is_not_finite_is_null_in_json():
    data = json.loads(diagnosis_json(diagnose([1.0, 2.0, 4.0, 0.0], [1.0, 2.0, 3.0, 0.0])))
    assert data["advice"]["power"]["value"] is None
    assert data["corrections"] == []


@pytest.mark.parametrize("rows", [3, 40, 400])
def test_small_data_has_a_page(rows):
    rng = np.random.default_rng(rows)
    pred = rng.gamma(2.0, 1.0, rows)
    pred[0] = 0.0
    found = diagnose(pred * rng.lognormal(0.0, 0.5, rows), pred, by={"shop": ["a"] * rows})
    assert not re.search(r"\b(nan|inf)\b", re.sub(r"<(style|script).*?</\1>", "", diagnosis_page(found), flags=re.S))
    assert diagnosis_markdown(found)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390])
def test_a_browser_shows_the_page(found, browser, tmp_path, width, scheme):
    path = Path(tmp_path / "page.html")
    path.write_text(diagnosis_page(found), encoding="utf-8")
    browser.open(path, width, scheme)
    assert browser.problems == []
    assert browser.requests == [path.resolve().as_uri()]
    # Tables scroll inside their own frame; the page itself never does sideways.
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("[...document.querySelectorAll('svg')].every(s => s.getBoundingClientRect().height > 40)")
    colour = browser.run("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", colour))) > 380) == (scheme == "light")
    browser.screenshot(tmp_path / "shot.png")
    assert (tmp_path / "shot.png").stat().st_size > 20_000
    outside = """[...document.querySelectorAll('svg text')].filter(t => { const a = t.getBoundingClientRect(),
        b = t.ownerSVGElement.getBoundingClientRect(); return a.left < b.left - 1 || a.right > b.right + 1 })
        .map(t => t.textContent)"""
    assert browser.run(outside) == []


OVERLAPS = """[...document.querySelectorAll('svg')].flatMap(svg => {
  const boxes = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
  return boxes.flatMap(([a, p], i) => boxes.slice(i + 1).filter(([b, q]) =>
    p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 2 && q.top < p.bottom - 2)
    .map(([b]) => a + ' / ' + b));
})"""


def test_labels_do_not_overlap(found, browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(diagnosis_page(found), encoding="utf-8")
    browser.open(path, 390, "light")
    assert browser.run(OVERLAPS) == []


CONTRAST = """(() => {
  const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).slice(0, 3).map(v => { v /= 255;
    return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); return .2126 * r + .7152 * g + .0722 * b; };
  const back = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
    if (!c.startsWith('rgba(0, 0, 0, 0')) return c; } return 'rgb(255, 255, 255)'; };
  const texts = document.querySelectorAll('p, td, th, small, li, dd, dt, h1, h2, b, text, figcaption');
  let least = 99; for (const e of texts) {
    const style = getComputedStyle(e), a = light(e.tagName === 'text' ? style.fill : style.color), b = light(back(e));
    least = Math.min(least, (Math.max(a, b) + .05) / (Math.min(a, b) + .05)); } return least; })()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_the_contrast_of_wcag_aa(found, browser, tmp_path, scheme):
    path = tmp_path / "page.html"
    path.write_text(diagnosis_page(found), encoding="utf-8")
    browser.open(path, 1200, scheme)
    assert browser.run(CONTRAST) >= 4.5


def test_tables_sort_when_a_title_is_clicked(found, browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(diagnosis_page(found), encoding="utf-8")
    browser.open(path, 1200, "light")
    column = "[...document.querySelectorAll('table')][2].tBodies[0].rows"
    values = f"[...{column}].map(r => Number(r.cells[1].dataset.v))"
    click = "document.querySelectorAll('table')[2].querySelectorAll('th button')[1].click()"
    before = browser.run(values)
    browser.run(click)
    assert browser.run(values) == sorted(before, reverse=True)
    browser.run(click)
    assert browser.run(values) == sorted(before)
    names = f"[...{column}].map(r => r.cells[0].textContent)"
    browser.run(click.replace("[1]", "[0]"))
    down = browser.run(names)
    browser.run(click.replace("[1]", "[0]"))
    assert browser.run(names) == down[::-1]


def test_paper_is_white(found, browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(diagnosis_page(found), encoding="utf-8")
    browser.open(path, 1200, "dark")
    browser.print_media()
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390])
def test_axe_finds_no_serious_fault(found, browser, tmp_path, width, scheme):
    path = tmp_path / "page.html"
    path.write_text(diagnosis_page(found), encoding="utf-8")
    browser.open(path, width, scheme)
    assert browser.faults() == []


def test_the_keyboard_reaches_and_sorts_a_table(found, browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(diagnosis_page(found), encoding="utf-8")
    browser.open(path, 1200, "light")
    for _ in range(20):
        browser.press("Tab")
        if browser.run("document.activeElement.matches('th button')"):
            break
    assert browser.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.press("Enter")
    assert browser.run("document.activeElement.parentElement.getAttribute('aria-sort')") == "descending"
