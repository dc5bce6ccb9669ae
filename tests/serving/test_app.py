"""The server over HTTP: numbers of the model, refusals with a sentence, metrics, feedback and the alert."""

import asyncio
import json
import threading

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx2")
pytest.importorskip("prometheus_client")
from starlette.testclient import TestClient

from certified import certificate
from transun import LogSUN, Recipe, train
from transun.data import Bag, Datetime, Features, Id, Number, Standardised
from transun.serving import Limits, NoPromise, Promise, Service, create_app

ROWS = 400


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    times = np.datetime64("2024-01-01", "s") + rng.integers(0, 10**7, ROWS)
    return {
        "country": rng.choice(["DE", "FR", "IT"], ROWS).tolist(),
        "item": rng.integers(0, 20, ROWS).tolist(),
        "tags": [[f"t{each}" for each in rng.integers(0, 5, count)] for count in rng.integers(0, 4, ROWS)],
        "price": [None if each < 0.1 else float(each) for each in rng.lognormal(0.0, 1.0, ROWS)],
        "age": rng.uniform(18.0, 80.0, ROWS).tolist(),
        "ordered": [each.item() for each in times],
        "gmv": rng.lognormal(1.0, 1.0, ROWS).tolist(),
    }


@pytest.fixture(scope="module")
def model(table):
    kinds = {"tags": Bag(), "price": Number(), "age": Standardised(), "ordered": Datetime()}
    features = Features({"country": Id(), "item": Id(), **kinds})
    return train(table, "gmv", LogSUN(), features=features, recipe=Recipe(epochs=1), progress=False)


@pytest.fixture
def client(model):
    limits = Limits(body=20_000, rows=50, predictions=1_000)
    with TestClient(create_app(Service(model, limits=limits))) as client:
        yield client


def row(table, number, **other):
    values = {name: column[number] for name, column in table.items()}
    return values | {"ordered": values["ordered"].isoformat()} | other


def metric(client, name):
    """The value of a metric in the text form of Prometheus, read by its own parser."""
    from prometheus_client.parser import text_string_to_metric_families

    families = text_string_to_metric_families(client.get("/metrics").text)
    samples = [sample for family in families for sample in family.samples if sample.name == name]
    return sum(sample.value for sample in samples)


def test_predictions_are_those_of_the_model(client, model, table):
    rows = [row(table, number) for number in range(40)]
    expected = model.predict({name: column[:40] for name, column in table.items()}).tolist()
    columns = {name: [each[name] for each in rows] for name in rows[0]}
    for body in (rows, {"columns": columns}):
        answer = client.post("/predict", json=body)
        assert answer.status_code == 200
        # Both compute in float32, in batches of the same rows.
        assert answer.json()["predictions"] == pytest.approx(expected, rel=1e-6)
    for number in (0, 7):
        assert client.post("/predict", json=rows[number]).json()["predictions"] == pytest.approx(
            [expected[number]], rel=1e-5
        )


def test_the_schema_is_enough_to_write_a_row(client, model):
    schema = client.get("/schema").json()
    assert [column["name"] for column in schema["columns"]] == list(model.sources)
    forms = {column["name"]: column["form"] for column in schema["columns"]}
    assert forms["country"] == "text"
    assert forms["tags"] == "a list, each value text"
    assert forms["price"] == "a number"
    assert "2022-04-25T13:05:00" in forms["ordered"]
    assert schema["target"] == "gmv"
    missing = dict.fromkeys(forms)
    assert client.post("/predict", json=missing).status_code == 200


REFUSED = {
    "number": (400, lambda table: [row(table, 0), row(table, 1, price="cheap")], "column 'price', row 1: 'cheap'"),
    "id": (400, lambda table: row(table, 0, item=0.5), "column 'item', row 0: 0.5 is a number, not an id"),
    "time": (400, lambda table: row(table, 0, ordered="2024-13-01"), "column 'ordered', row 0"),
    "text": (
        400,
        lambda table: row(table, 0, country="\ud800"),
        "column 'country', row 0: '\\ud800' has half a character",
    ),
    "column": (400, lambda table: [{"country": "DE"}], "row 0 has no column 'item'"),
    "no rows": (400, lambda table: [], "there are no rows"),
    "rows": (413, lambda table: [row(table, 0)] * 51, "51 rows are more than the 50 allowed"),
    "bytes": (413, lambda table: row(table, 0, country="x" * 30_000), "larger than the 20,000 bytes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_request_is_refused_with_its_column_and_row(client, table, name):
    status, body, message = REFUSED[name]
    content = json.dumps(body(table))  # with half characters written as escapes, which UTF-8 could not hold
    answer = client.post("/predict", content=content, headers={"content-type": "application/json"})
    assert answer.status_code == status
    assert message in answer.json()["error"]
    assert "\n" not in answer.json()["error"]


def test_other_mistakes_of_http(client):
    form = client.post("/predict", content=b"{}", headers={"content-type": "text/plain"})
    assert (form.status_code, "application/json" in form.json()["error"]) == (415, True)
    broken = client.post("/predict", content=b"{", headers={"content-type": "application/json; charset=utf-8"})
    assert (broken.status_code, "not JSON" in broken.json()["error"]) == (400, True)
    body = b'{"item": 1, "item": 2}'
    twice = client.post("/predict", content=body, headers={"content-type": "application/json"})
    assert (twice.status_code, "the name 'item' twice" in twice.json()["error"]) == (400, True)
    # Without a length, as chunks.
    endless = client.post("/predict", content=iter([b"x" * 9_000] * 3), headers={"content-type": "application/json"})
    assert endless.status_code == 413
    assert client.get("/predict").status_code == 405
    assert "GET /nothing is none of POST /predict" in client.get("/nothing").json()["error"]


def test_metrics_count_requests_rows_and_unseen_ids(client, table):
    rows = [row(table, 0), row(table, 1, country="XX", tags=["strange", "t1"])]
    predicted = sum(client.post("/predict", json=rows).json()["predictions"])
    client.post("/predict", json=[])
    assert metric(client, "transun_requests_total") == 2
    assert metric(client, "transun_request_seconds_count") == 2
    assert metric(client, "transun_predicted_rows_total") == 2
    assert metric(client, "transun_predicted_sum") == pytest.approx(predicted)
    text = client.get("/metrics").text
    assert 'transun_requests_total{path="/predict",status="400"} 1.0' in text
    assert 'transun_unseen_ids_total{column="country"} 1.0' in text
    assert 'transun_unseen_ids_total{column="tags"} 1.0' in text


def test_feedback_by_ids_and_by_rows_adds_up(client, table):
    rows = [row(table, number) for number in range(4)]
    first = client.post("/predict", json=rows[:2]).json()
    client.post("/feedback", json={"ids": first["ids"][::-1], "actual": [5, 1.0]})
    told = client.post("/feedback", json={"rows": rows[2:], "actual": [2.0, 4.0]}).json()
    predicted = sum(first["predictions"]) + sum(client.post("/predict", json=rows[2:]).json()["predictions"])
    assert (told["counted"], told["rows"], told["actual"]) == (2, 4, 12.0)
    assert told["predicted"] == pytest.approx(predicted)
    assert told["pgr"] == pytest.approx(predicted / 12.0)
    assert told["pgr_low"] is None  # four rows have no interval
    assert metric(client, "transun_feedback_actual_sum") == 12.0
    assert metric(client, "transun_feedback_pgr") == pytest.approx(predicted / 12.0)


def test_wrong_feedback_is_not_counted(client, table):
    (known,) = client.post("/predict", json=row(table, 0)).json()["ids"]
    for body, message in (
        ({"ids": [known, "no-1"], "actual": [1, 2]}, "ids, row 1: 'no-1' is none of the last 1,000 predictions"),
        ({"ids": [known, known], "actual": [1, 2]}, "ids, row 1"),
        ({"ids": [known], "actual": [1, 2]}, "ids has 1 row and actual has 2"),
        ({"ids": [known], "actual": [None]}, "actual, row 0 is null"),
        ({"ids": [known], "actual": ["much"]}, "column 'actual', row 0: 'much' is not a number"),
        ({"ids": [known], "actual": [1e300]}, "the actual amount of row 0 is 1e+300, too large"),
        ({"ids": [known]}, "feedback is an object of"),
        ([], "feedback is an object of"),
        ({"rows": [{}], "actual": [1]}, "row 0 has no column 'country'"),
    ):
        answer = client.post("/feedback", json=body)
        assert answer.status_code == 400
        assert message in answer.json()["error"]
    assert metric(client, "transun_feedback_rows") == 0
    assert client.post("/feedback", json={"ids": [known], "actual": [1]}).json()["rows"] == 1
    again = client.post("/feedback", json={"ids": [known], "actual": [1]})
    assert "has its amount already" in again.json()["error"]


def test_a_broken_promise_is_an_alert(model, table):
    """All amounts are twice the predictions; blocks of 200 rows scatter by 7 %."""
    with TestClient(create_app(Service(model, Promise(certificate())))) as client:
        assert client.get("/health").json()["status"] == "ok"
        rows = [row(table, number % ROWS) for number in range(1_000)]
        for _ in range(4):
            made = client.post("/predict", json=rows).json()
            actual = [2.0 * each for each in made["predictions"]]
            client.post("/feedback", json={"ids": made["ids"], "actual": actual})
        health = client.get("/health").json()
        assert health["status"] == "promise broken"
        assert "actual amounts are above that" in health["promise"]
        assert metric(client, "transun_promise_broken") == 1.0
        assert metric(client, "transun_feedback_pgr") == pytest.approx(0.5)
        assert metric(client, "transun_promised_pgr_low") == 0.95


def test_totals_are_read_by_the_thread_that_counts_them(model):
    """A look from another thread could see the sums of half an update."""
    threads = set()

    class Seen(NoPromise):
        def sentence(self):
            threads.add(threading.current_thread().name)
            return super().sentence()

        def gauges(self):
            return {"seen": ("Which thread looks.", lambda: threads.add(threading.current_thread().name) or 0.0)}

    with TestClient(create_app(Service(model, Seen()))) as client:
        assert client.get("/health").json()["promise"] == NoPromise().reason
        assert metric(client, "transun_seen") == 0.0
    assert {name.rpartition("_")[0] for name in threads} == {"transun-worker"}


def test_requests_that_are_predicted_together_do_not_disturb_each_other(model, table):
    service = Service(model)
    bodies = [
        json.dumps(body).encode()
        for body in (row(table, 0), row(table, 1, item=0.5), row(table, 2, price="x"), [row(table, 3), row(table, 4)])
    ]
    first, second, third, fourth = service.predict(bodies)
    expected = model.predict({name: column[:5] for name, column in table.items()}).tolist()
    assert first.predictions == pytest.approx(expected[:1], rel=1e-5)
    assert "column 'item', row 0" in str(second)
    assert "column 'price', row 0" in str(third)
    assert fourth.predictions == pytest.approx(expected[3:], rel=1e-5)
    assert len({*first.ids, *fourth.ids}) == 3


def test_an_exposure_is_a_column_and_multiplies(table):
    exposed = table | {"years": [0.5, 1.0] * (ROWS // 2)}
    features = Features({"country": Id(), "price": Number()})
    model = train(
        exposed, "gmv", LogSUN(), features=features, exposure="years", recipe=Recipe(epochs=1), progress=False
    )
    service = Service(model)
    assert service.schema()["columns"][-1]["name"] == "years"
    one, two, wrong = (
        service.predict([json.dumps({"country": "DE", "price": 1.0, "years": years}).encode()])[0]
        for years in (1.0, 2.0, 0.0)
    )
    assert two.predictions == pytest.approx([2.0 * one.predictions[0]], rel=1e-6)
    assert "column 'years', row 0: 0 is no exposure" in str(wrong)


@pytest.mark.parametrize("name", ["body", "rows", "waiting", "predictions"])
def test_limits_are_above_0(name):
    with pytest.raises(ValueError, match=f"the limit of {name} is 0"):
        Limits(**{name: 0})


def test_a_client_that_leaves_is_no_error_of_the_server(model):
    """The server is called as ASGI, whose test client cannot leave."""
    app = create_app(Service(model, NoPromise("nobody certified it")))
    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/predict", "headers": headers, "query_string": b""}
    messages = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]
    sent = []

    async def receive():
        return messages.pop(0)

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    assert sent[0]["status"] == 400
    assert b"closed before the body was complete" in sent[1]["body"]
