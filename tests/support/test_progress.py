import subprocess
import sys

import pytest

from transun.support.progress import Progress


@pytest.mark.parametrize("show", [False, None])
def test_nothing_is_written_where_there_is_no_terminal(show, capsys):
    with Progress("counting", 3, show) as bar:
        for done in range(4):
            bar.advance(done)
    assert capsys.readouterr() == ("", "")


def test_a_bar_says_what_is_done_on_standard_error(capsys):
    with Progress("counting", 3, show=True) as bar:
        bar.advance(3, "the last one")
    out, err = capsys.readouterr()
    assert out == ""
    assert "counting" in err
    assert "3/3" in err
    assert "the last one" in err


def test_a_hidden_bar_does_not_import_its_library():
    program = (
        "import sys\n"
        "from transun.support.progress import Progress\n"
        "with Progress('counting', 3, False) as bar: bar.advance(3)\n"
        "assert 'rich' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_an_error_inside_stops_the_bar():
    bar = Progress("counting", 3, show=True)
    with pytest.raises(RuntimeError), bar:
        raise RuntimeError
    assert not bar._bar.live.is_started
