"""Folders of saved models with changed bytes, and with checksums that were computed again after the change."""

import hashlib
import json
import shutil

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from fuzz.harness import cases, outcome, table, trained
from transun.models.description import MODEL_FILE
from transun.support.files import checksum
from transun.tables import load

ROWS = table(20, seed=1)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    trained(flat=False).save(folder)
    return folder


@pytest.fixture(scope="module")
def copy(saved, tmp_path_factory):
    """A folder that every case writes anew."""
    return tmp_path_factory.mktemp("copy") / "model"


def reset(saved, copy):
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(saved, copy)


def seal(folder, body):
    body = {name: value for name, value in body.items() if name not in ("format", "checksum")}
    text = json.dumps({"format": 1, **body, "checksum": checksum(body)})
    (folder / MODEL_FILE).write_text(text, encoding="utf-8")


def predicted(folder):
    return load(folder).predict(ROWS)


def changed_bytes(content, draw):
    content = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content) - 1))
        match draw(st.integers(0, 3)):
            case 0:
                content[at] ^= 1 << draw(st.integers(0, 7))
            case 1:
                del content[at : at + draw(st.integers(1, 9))]
            case 2:
                content[at:at] = draw(st.binary(min_size=1, max_size=9))
            case _:
                content[at:] = b""
        if not content:
            return b""
    return bytes(content)


@cases(0.07)
@given(data=st.data(), which=st.sampled_from(["json", "weights"]))
def test_changed_files_are_refused_or_predict_the_same(saved, copy, data, which):
    reset(saved, copy)
    path = copy / MODEL_FILE if which == "json" else next(copy.glob("*.safetensors"))
    path.write_bytes(changed_bytes(path.read_bytes(), data.draw))
    answer, answered = outcome(predicted, copy)
    assert not answered or torch.equal(answer, predicted(saved))


json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.sampled_from([10**30, -1, 0, 1, 2**31, 2**63]),
        st.floats(),
        st.text(max_size=8),
        st.sampled_from(["Id", "Number", "int64", "string", "shop", "__import__('os').system('touch executed')"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["kind", "rows", "a"]), inner, max_size=3)
    ),
    max_leaves=4,
)


def places(value, path=()):
    """The path to every part of a JSON value; of a long list only the first and the last."""
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    elif isinstance(value, list) and value:
        for index in {0, len(value) - 1}:
            yield from places(value[index], (*path, index))


@cases(0.12)
@given(data=st.data())
def test_forged_descriptions_are_read_or_refused(saved, copy, data):
    """One or two parts of the description, features included, replaced by something else; the checksum is right."""
    reset(saved, copy)
    body = json.loads((copy / MODEL_FILE).read_text(encoding="utf-8"))
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from([p for p in places(body) if p and p[0] not in ("format", "checksum")]))
        owner = body
        for key in path[:-1]:
            owner = owner[key]
        match data.draw(st.integers(0, 3)):
            case 0 if isinstance(owner, dict):
                del owner[path[-1]]
            case 1 if isinstance(owner, dict):
                owner[data.draw(st.text(max_size=5))] = owner.pop(path[-1])
            case 2 if isinstance(owner, list):
                owner.append(data.draw(json_values))
            case _:
                owner[path[-1]] = data.draw(json_values)
    seal(copy, body)
    outcome(predicted, copy)


special = st.sampled_from([float("nan"), float("inf"), float("-inf"), 1e38, -1e38, 0.0])


@cases(0.06)
@given(data=st.data())
def test_forged_weights_are_refused_or_predict_finite_amounts(saved, copy, data):
    """Numbers, types and shapes of the weights changed under a right checksum."""
    reset(saved, copy)
    path = next(copy.glob("*.safetensors"))
    state = load_file(path)
    name = data.draw(st.sampled_from(sorted(state)))
    match data.draw(st.integers(0, 3)):
        case 0:
            state[name] = state[name].to(
                data.draw(st.sampled_from([torch.float16, torch.int64, torch.bool, torch.float64]))
            )
        case 1:
            state[name] = torch.zeros(data.draw(st.lists(st.integers(0, 3), max_size=3)))
        case _:
            flat = state[name].flatten()
            if len(flat):
                flat[data.draw(st.integers(0, len(flat) - 1))] = data.draw(special)
    broken = any(not tensor.isfinite().all() for tensor in state.values())
    path.unlink()
    save_file(state, copy / "new")
    digest = hashlib.sha256((copy / "new").read_bytes()).hexdigest()
    (copy / "new").rename(copy / f"weights-{digest[:16]}.safetensors")
    body = json.loads((copy / MODEL_FILE).read_text(encoding="utf-8"))
    seal(copy, body | {"weights": digest})
    answer, answered = outcome(predicted, copy)
    assert not (answered and broken), f"weights with a number that is not finite load: {name}"
    assert not answered or not answer.isnan().any()
