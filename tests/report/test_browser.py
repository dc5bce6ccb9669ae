"""What is called a serious fault of a page: the cases are those of axe-core's rules, made by hand."""

import pytest

PAGE = """<!doctype html><html lang="en"><head><title>page</title><style>
body {{ color: #111; background: #fff; }} .dark {{ background: #222; }} .pale {{ color: #ccc; }}
</style></head><body><main><h1>Title</h1>{body}</main></body></html>"""
CELLS = "<tr><td>black on white</td></tr>" * 30


@pytest.mark.parametrize(
    ("body", "rules"),
    [
        (f"<table>{CELLS}</table>", []),
        (f"<table>{CELLS}<tr><td class='pale'>grey on white</td></tr></table>", ["color-contrast"]),
        (f"<table>{CELLS}<tr class='dark'><td>black on dark grey</td></tr></table>", ["color-contrast"]),
        (f"<table>{CELLS}<tr class='dark'><td class='pale'>grey on dark grey</td></tr></table>", []),
        ("<p class='pale' hidden>not shown</p>", []),
        ("<img src='data:,'>", ["image-alt"]),
        ("<p>A <a href='#'></a></p>", ["link-name"]),
    ],
)
def test_one_text_of_every_look_is_judged(browser, tmp_path, body, rules):
    page = tmp_path / "page.html"
    page.write_text(PAGE.format(body=body), encoding="utf-8")
    browser.open(page, 1280, "light")
    assert [fault.split(":")[0] for fault in browser.faults()] == rules


def test_a_page_after_a_printed_one_is_on_the_screen_again(browser, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(PAGE.format(body=""), encoding="utf-8")
    for scheme in ("light", "light", "dark"):
        browser.open(page, 1280, scheme)
        assert browser.run("matchMedia('screen').matches")
        assert browser.run(f"matchMedia('(prefers-color-scheme: {scheme})').matches")
        browser.print_media()
        assert browser.run("matchMedia('print').matches")
