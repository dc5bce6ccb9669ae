import json

import pytest

from transun.support.files import write_json
from transun_paper.lab.published import notes, published
from transun_paper.lab.store import Store


def test_a_finished_run_is_not_repeated(tmp_path):
    store = Store(tmp_path)
    calls = []
    for _ in range(2):
        assert store.run("a text", lambda: calls.append(1) or {"value": 3}) == {"value": 3}
    assert len(calls) == 1
    assert store.run("another text", lambda: 4) == 4


def test_a_failed_run_leaves_nothing(tmp_path):
    def fail():
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        Store(tmp_path).run("a text", fail)
    assert Store(tmp_path).run("a text", lambda: 5) == 5


def test_a_failed_write_keeps_the_old_file(tmp_path):
    path = tmp_path / "report.json"
    write_json(path, {"value": 1})
    with pytest.raises(TypeError):
        write_json(path, {"value": object()})
    assert json.loads(path.read_text()) == {"value": 1}


def test_published_numbers():
    assert published("solve_bias_sim", "T-MSE", "y^2", "RS-ZIG") == 1.7534
    assert published("comp_sota_sim", "WLR", "-", "RS-G") is None
    assert published("comp_sota_sim", "Unheard-of", "-", "RS-G") is None
    assert published("lcltm_compare_sim", "MAE", "1/(|T⁻¹(u)|+ε)", "LS-BU") == 0.0242
    assert any("percent" in note for note in notes("comp_sota_sim"))


def test_a_cost_counts_every_result_once_and_knows_which_were_asked_for(tmp_path):
    store = Store(tmp_path)
    store.keep("timed", {"seconds": 100.0}, seconds=2.0)  # those of the processor count
    store.keep("trained", {"seconds": 3.0})
    store.keep("unknown", [1, 2])
    for text in ("timed", "trained", "timed"):
        store.read(text)
    assert store.used == {"timed", "trained"}
    results, timed, seconds = store.cost(store.used)
    assert (results, timed) == (2, 2)
    assert seconds == pytest.approx(5.0)
    assert store.cost(["timed", "unknown"])[:2] == (2, 1)
