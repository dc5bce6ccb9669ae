"""What several tests of pages share."""

import pytest

from browser import MISSING, Browser, find_browser


@pytest.fixture(scope="module")
def browser():
    program = find_browser()
    if program is None:
        pytest.skip(MISSING)
    with Browser(program) as opened:
        yield opened
