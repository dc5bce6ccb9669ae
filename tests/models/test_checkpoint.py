import copy
import hashlib
import itertools
import json
import os
import pickle
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import safetensors
import torch
from safetensors.torch import load_file, save_file

from registry import all_heads, name
from transun.backbones import DIN, ByCardinality, Constant, Custom, Dice, EmbeddingMLP
from transun.corrections import BinnedSmearing, NormalTheory, SecondOrder, Smearing, SmoothIsotonic
from transun.data import Dataset
from transun.heads import GTS, MSE, TPM, Corrected, LogMSE, LogSUN, Scaled
from transun.models.checkpoint import grow, load_model, save_model
from transun.models.description import describe_model
from transun.models.network import Model
from transun.training.loop import fit
from transun.training.optimisers import SGD, Adam
from transun.training.recipe import plain_recipe

ROWS = 24
GENERATOR = torch.Generator().manual_seed(0)
X = {
    "user": torch.randint(0, 5, (ROWS,), generator=GENERATOR),
    "item": torch.randint(0, 7, (ROWS,), generator=GENERATOR),
    "history": torch.randint(-1, 7, (ROWS, 3), generator=GENERATOR),
    "price": torch.randn(ROWS, generator=GENERATOR),
    "price.rank": torch.rand(ROWS, generator=GENERATOR),
}
Y = torch.rand(ROWS, generator=GENERATOR) * 20.0 + 0.5
DATA = Dataset(X, Y)
SMALL = EmbeddingMLP(
    {"user": 5, "item": 7}, {"history": "item"}, ("price",), dim=3, hidden=(6, 4), ranks=("price.rank",), bins=3
)
INTEREST = DIN(
    {"user": 5, "item": 7},
    numeric=("price",),
    dim=3,
    hidden=(6,),
    history={"history": "item"},
    unit=(5,),
    unit_activation=Dice(),
)


def trained(head, backbone=SMALL, seed=3):
    model = Model(backbone, head, seed=seed)
    fit(model, DATA, plain_recipe(optimiser=SGD(1e-4), batch_size=7))
    return model


def same(ours, theirs):
    return ours.keys() == theirs.keys() and all(torch.equal(ours[key], theirs[key]) for key in ours)


def sign(folder, change):
    """Change what the JSON file says as one who knows how the checksum is made."""
    path = folder / "transun.json"
    body = json.loads(path.read_text())
    number = body.pop("format")
    body.pop("checksum")
    change(body)
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps({"format": number, **body, "checksum": digest}))


def put_weights(folder, content):
    """Replace the file of numbers, and let the JSON file vouch for it."""
    digest = hashlib.sha256(content).hexdigest()
    (folder / f"weights-{digest[:16]}.safetensors").write_bytes(content)
    sign(folder, lambda body: body.update(weights=digest))


def weights_of(folder):
    return next(folder.glob("weights-*.safetensors"))


@pytest.fixture
def saved(tmp_path):
    save_model(trained(LogSUN(shared=1)), tmp_path)
    return tmp_path


@pytest.mark.parametrize("head", all_heads(), ids=name)
def test_every_head_comes_back_to_the_last_bit_and_goes_on_training(head, tmp_path):
    model = trained(head)
    save_model(model, tmp_path)
    again = load_model(tmp_path)
    assert torch.equal(again(X), model(X))
    assert name(again.head) == name(model.head)
    assert same(again.state_dict(), model.state_dict())
    for twin in (model, again):
        fit(twin, DATA, plain_recipe(optimiser=SGD(1e-4), batch_size=7))
    assert same(again.state_dict(), model.state_dict())


@pytest.mark.parametrize("build", [BinnedSmearing, NormalTheory, SecondOrder, Smearing, SmoothIsotonic])
def test_corrections_come_back_before_and_after_they_learn(build, tmp_path):
    model = trained(Corrected(LogMSE(), build()))
    save_model(model, tmp_path)
    assert torch.equal(load_model(tmp_path)(X), model(X))
    plain = model(X)
    model.head = model.head.calibrate(model.raw(X), Y)
    save_model(model, tmp_path)
    assert torch.equal(load_model(tmp_path)(X), model(X))
    assert not torch.equal(model(X), plain)


@pytest.mark.parametrize(
    "backbone", [SMALL, INTEREST, Constant(), Custom(lambda: None, 1)], ids=lambda b: type(b).__name__
)
def test_every_backbone_comes_back(backbone, tmp_path):
    def tower():
        return torch.nn.Sequential(Prices(), torch.nn.Linear(1, 2), torch.nn.BatchNorm1d(2))

    plugins = None
    if isinstance(backbone, Custom):
        backbone, plugins = Custom(tower, 2), {"tower": tower}
    model = trained(LogSUN(shared=1), backbone)
    save_model(model, tmp_path)
    again = load_model(tmp_path, plugins)
    assert torch.equal(again(X), model(X))
    assert same(again.state_dict(), model.state_dict())
    assert not any(tensor.is_meta for tensor in (*again.parameters(), *again.buffers()))
    assert all(parameter.requires_grad for parameter in again.parameters())


class Prices(torch.nn.Module):
    """Holds a number that no file brings back: its constructor must have run for real."""

    def __init__(self):
        super().__init__()
        self.register_buffer("unit", torch.tensor(2.0), persistent=False)

    def forward(self, batch):
        return batch["price"].unsqueeze(-1) / self.unit


def test_double_precision_comes_back(tmp_path):
    model = trained(Scaled(LogSUN())).double()
    save_model(model, tmp_path)
    assert load_model(tmp_path)(X).dtype == torch.float64
    assert torch.equal(load_model(tmp_path)(X), model(X))


def test_an_unprepared_model_is_prepared_by_its_first_fit(tmp_path):
    save_model(Model(SMALL, Scaled(LogMSE()), seed=8), tmp_path)
    model = load_model(tmp_path)
    assert (model.prepared, model.seed) == (False, 8)
    fit(model, DATA, plain_recipe())
    assert model.head.scale == pytest.approx(Y.mean().item())


def test_a_loaded_base_warm_starts(tmp_path):
    save_model(trained(LogMSE()), tmp_path)
    base = load_model(tmp_path)
    model = Model(SMALL, LogSUN(shared=1)).prepare(Y, base)
    torch.testing.assert_close(model.head.undebiased(model.raw(X)), base(X))


def test_the_description_reads_without_the_numbers(tmp_path):
    extra = {"rows": 24, "note": "žluťoučký", "curve": [0.5, None, {"a": True}]}
    save_model(trained(Scaled(MSE(), 2.5)), tmp_path, extra)
    weights_of(tmp_path).unlink()
    description = describe_model(tmp_path)
    assert description.head == "Scaled(PointHead(), 2.5)"
    assert (description.seed, description.prepared, description.extra) == (3, True, extra)
    assert description.versions["torch"] == torch.__version__


@pytest.mark.parametrize(
    "extra", [{"a": float("nan")}, {"a": (1, 2)}, {1: "a"}, {"a": object()}], ids=["nan", "tuple", "key", "object"]
)
def test_extra_that_json_would_change_is_refused(extra, tmp_path):
    with pytest.raises(ValueError, match="extra must"):
        save_model(trained(MSE()), tmp_path / "new", extra)
    assert not (tmp_path / "new").exists()


class TestSave:
    def test_replaces_and_leaves_other_files_alone(self, saved):
        (saved / "notes.txt").write_text("mine")
        before = weights_of(saved).name
        (saved / "weights-of-another.safetensors").write_text("mine")
        save_model(trained(LogSUN(shared=1), seed=4), saved)
        assert load_model(saved).seed == 4
        assert len(list(saved.iterdir())) == 4
        assert not (saved / before).exists()
        save_model(load_model(saved), saved)  # the same numbers keep their file
        assert load_model(saved).seed == 4

    @pytest.mark.parametrize("failing", ["first", "second", "fsync", "numbers"])
    def test_that_fails_keeps_the_old_one_and_no_litter(self, saved, failing, monkeypatch):
        before, files = load_model(saved)(X), sorted(saved.iterdir())
        with monkeypatch.context() as patch:
            if failing == "numbers":

                def full(state, path):
                    Path(path).write_bytes(b"half of it")
                    raise safetensors.SafetensorError("No space left on device")

                patch.setattr("safetensors.torch.save_file", full)
            elif failing == "fsync":
                patch.setattr(os, "fsync", interrupt)
            else:
                replace, calls = Path.replace, []

                def once(self, target):
                    calls.append(target)
                    if len(calls) == ("first", "second").index(failing) + 1:
                        raise OSError("the disk is gone")
                    return replace(self, target)

                patch.setattr(Path, "replace", once)
            with pytest.raises((OSError, KeyboardInterrupt)):
                save_model(trained(MSE(), seed=9), saved)
        assert torch.equal(load_model(saved)(X), before)
        assert sorted(saved.iterdir()) == files

    def test_refuses_numbers_that_are_none(self, saved):
        before = load_model(saved)(X)
        for wrong in (float("nan"), float("inf")):
            model = trained(MSE())
            with torch.no_grad():
                model.network.outputs[0].bias.fill_(wrong)
            with pytest.raises(ValueError, match=r"the model holds NaN .* 'network.outputs.0.bias': training diverged"):
                save_model(model, saved)
        assert torch.equal(load_model(saved)(X), before)

    def test_refuses_what_has_no_text(self, tmp_path):
        with pytest.raises(ValueError, match=r"cannot save the backbone, .* `def` instead of `lambda`"):
            save_model(Model(Custom(lambda: torch.nn.Linear(3, 2), 2), MSE()), tmp_path / "new")
        assert not (tmp_path / "new").exists()

    def test_refuses_tied_weights(self, tmp_path):
        def tied():
            layers = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
            layers[1].weight = layers[0].weight
            return layers

        with pytest.raises(ValueError, match="cannot save the weights"):
            save_model(Model(Custom(tied, 2), MSE()), tmp_path)
        assert not list(tmp_path.iterdir())

    def test_names_the_extra_that_it_needs(self, tmp_path, monkeypatch):
        for module in [key for key in sys.modules if key.split(".")[0] == "safetensors"]:
            monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ModuleNotFoundError, match=r"pip install safetensors"):
            save_model(Model(Constant(), MSE()), tmp_path)


def interrupt(*_):
    raise KeyboardInterrupt


def test_a_loaded_model_does_not_live_in_its_file(saved):
    expected, model, path = load_model(saved)(X), load_model(saved), weights_of(saved)
    with path.open("r+b") as file:
        file.write(bytes(path.stat().st_size))
    assert torch.equal(model(X), expected)


def test_readers_never_see_half_a_save(tmp_path):
    """One thread saves the constants 0, 1, 2, ...; every load in another finds one of them whole."""
    model = Model(Constant(), MSE()).prepare(torch.zeros(1))
    batch = torch.zeros(1, 1)
    save_model(model, tmp_path, {"constant": 0})
    stop = threading.Event()

    def write():
        constant = 0
        while not stop.is_set():
            constant += 1
            with torch.no_grad():
                model.network.outputs[0].bias.fill_(constant)
            save_model(model, tmp_path, {"constant": constant})

    writer = threading.Thread(target=write)
    writer.start()
    try:
        seen = [0.0]
        while len(seen) < 100 or seen[-1] == 0.0:  # until the writer had its turn
            seen.append(load_model(tmp_path)(batch).item())
    finally:
        stop.set()
        writer.join()
    assert seen == sorted(seen)
    assert load_model(tmp_path)(batch).item() == describe_model(tmp_path).extra["constant"]
    assert len(list(tmp_path.iterdir())) == 2


class TestWrongFiles:
    def test_nothing_there(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"transun\.json is not there: give the folder"):
            load_model(tmp_path)
        with pytest.raises(FileNotFoundError, match="is not there"):
            load_model(tmp_path / "nowhere")

    def test_weights_left_behind(self, saved):
        weights_of(saved).unlink()
        with pytest.raises(FileNotFoundError, match=r"safetensors is not there: copy the whole folder"):
            load_model(saved)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "is not JSON"),
            ("{", "is not JSON"),
            ("[" * 100_000, "is not JSON"),
            ('{"format": 1, "checksum": 2, "a": ' + "[" * 900 + "]" * 900 + "}", "was changed|is not JSON"),
            ("[1]", "does not describe a transun model"),
            ("3", "does not describe a transun model"),
            ('{"format": 1}', "was changed"),
            ('{"layers": []}', "does not describe a transun model"),
            ('{"format": 2, "seed": 0}', "has format 2, this transun .* or a newer one"),
            ('{"format": "x"}', "has format x"),
        ],
    )
    def test_json_damaged_foreign_or_newer(self, saved, text, message):
        (saved / "transun.json").write_text(text)
        with pytest.raises(ValueError, match=message) as caught:
            load_model(saved)
        assert str(saved / "transun.json") in str(caught.value)

    def test_json_edited(self, saved):
        path = saved / "transun.json"
        path.write_text(path.read_text().replace('"seed": 3', '"seed": 4'))
        with pytest.raises(ValueError, match="was changed after it was saved"):
            load_model(saved)

    @pytest.mark.parametrize(
        "change",
        [
            {"seed": "0"},
            {"seed": True},
            {"prepared": 1},
            {"weights": "../../../etc/passwd"},
            {"weights": "0" * 63},
            {"extra": None},
            {"more": 1},
        ],
        ids=str,
    )
    def test_fields_of_the_wrong_kind(self, saved, change):
        sign(saved, lambda body: body.update(change))
        with pytest.raises(ValueError, match="does not describe a transun model: it needs backbone, head"):
            load_model(saved)

    @pytest.mark.parametrize(
        "change",
        [
            {"head": "__import__('os').system('touch broken')"},
            {"head": "Unheard()"},
            {"head": "Log1p()"},
            {"head": "{{}: 1}"},
            {"head": "GTS(MSE(), shared=9)"},
            {"backbone": "Constant"},
            {"backbone": "MSE()"},
            {"backbone": "Constant(-3)"},
            {"backbone": "Custom(SGD, 3)"},
            {"seed": 10**30},
        ],
        ids=str,
    )
    def test_descriptions_that_cannot_be_built(self, saved, change):
        sign(saved, lambda body: body.update(change))
        with pytest.raises(ValueError, match=r"transun\.json describes Model\(.* cannot be built: .* as plugins="):
            load_model(saved)

    def test_claimed_sizes_cost_nothing(self, saved):
        """A text may claim a table of 48 TB; it is compared with the file before any memory is asked for."""
        sign(saved, lambda body: body.update(backbone="EmbeddingMLP({'user': 1000000000000}, dim=12)"))
        with pytest.raises(ValueError, match=r"does not fit the model in transun\.json"):
            load_model(saved)

    @pytest.mark.parametrize(
        ("edit", "message"),
        [
            (
                lambda state: state.pop("network.outputs.0.bias"),
                "it lacks 'network.outputs.0.bias'; save the model anew",
            ),
            (lambda state: state.update(more=torch.zeros(1)), "it has 'more' too many"),
            (
                lambda state: state.update({"network.outputs.0.bias": torch.zeros(2)}),
                r"it has 'network.outputs.0.bias' of shape \(2,\) instead of \(1,\)",
            ),
            (
                lambda state: state.update({"network.outputs.0.bias": torch.zeros(1, dtype=torch.int64)}),
                "it has 'network.outputs.0.bias' in torch.int64",
            ),
            (
                lambda state: state.update({"network.outputs.0.bias": torch.zeros(1, dtype=torch.float16)}),
                "it has 'network.outputs.0.bias' in torch.float16 and 'network.* in torch.float32",
            ),
            (
                lambda state: state.update({"network.outputs.0.bias": torch.full((1,), float("nan"))}),
                "holds NaN or infinite numbers in 'network.outputs.0.bias'",
            ),
        ],
    )
    def test_numbers_that_do_not_fit(self, saved, edit, message):
        state = load_file(weights_of(saved))
        edit(state)
        save_file(state, saved / "new")
        put_weights(saved, (saved / "new").read_bytes())
        with pytest.raises(ValueError, match=message) as caught:
            load_model(saved)
        assert str(saved / "weights-") in str(caught.value)

    @pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
    def test_constants_of_a_head_are_finite(self, tmp_path, bad):
        save_model(trained(Corrected(TPM(), BinnedSmearing())), tmp_path)
        path = weights_of(tmp_path)
        state = load_file(path)
        state["head.inner.values"][3] = bad
        path.unlink()
        save_file(state, tmp_path / "new")
        put_weights(tmp_path, (tmp_path / "new").read_bytes())
        with pytest.raises(ValueError, match=r"holds NaN or infinite numbers in 'head\.inner\.values'"):
            load_model(tmp_path)

    def test_a_pickle_is_never_opened(self, saved, tmp_path):
        class Bomb:
            def __reduce__(self):
                return (os.mkdir, (str(tmp_path / "exploded"),))

        for content in (pickle.dumps(Bomb()), b""):
            put_weights(saved, content)
            with pytest.raises(ValueError, match="is not a safetensors file"):
                load_model(saved)
        assert not (tmp_path / "exploded").exists()

    @pytest.mark.parametrize(("kind", "size"), [("F4", 1), ("F8_E8M0", 1), ("F8_E4M3", 1), ("C64", 8), ("U64", 8)])
    def test_kinds_of_numbers_that_no_weight_has(self, saved, kind, size):
        """Which of them torch knows depends on its version."""
        entry = {"dtype": kind, "shape": [2], "data_offsets": [0, 1 if kind == "F4" else 2 * size]}
        header = json.dumps({"network.outputs.0.bias": entry}).encode()
        put_weights(saved, len(header).to_bytes(8, "little") + header + bytes(entry["data_offsets"][1]))
        with pytest.raises(ValueError, match=r"is not a safetensors file|does not fit the model"):
            load_model(saved)

    @pytest.mark.parametrize("keep", [0, 10, -1])
    def test_truncated(self, saved, keep):
        path = weights_of(saved)
        path.write_bytes(path.read_bytes()[:keep])
        with pytest.raises(ValueError, match="is cut off or changed: copy it again"):
            load_model(saved)


def mutate(content, chance):
    """A few bytes flipped, or the end cut off, or something appended or inserted."""
    content = bytearray(content)
    match chance.randrange(5):
        case 0:
            return bytes(content[: chance.randrange(len(content))])
        case 1:
            place = chance.randrange(len(content) + 1)
            return bytes(content[:place] + chance.randbytes(chance.randrange(1, 9)) + content[place:])
        case _:
            for _ in range(chance.randrange(1, 4)):
                content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
            return bytes(content)


@pytest.fixture
def disarmed(monkeypatch):
    """Whatever could run foreign code fails the test."""

    def armed(*_, **__):
        raise AssertionError("loading ran something")

    for where, what in ((os, "system"), (subprocess, "Popen"), (pickle, "loads"), (pickle, "load"), (torch, "load")):
        monkeypatch.setattr(where, what, armed)
    for where, what in itertools.product(
        ("support.text_form", "models.description", "models.checkpoint"), ("eval", "exec", "__import__", "open")
    ):
        monkeypatch.setattr(f"transun.{where}.{what}", armed, raising=False)


@pytest.mark.usefixtures("disarmed")
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
class TestFuzz:
    def test_damaged_files_are_refused_or_load_the_same(self, saved):
        """Only blanks between the words of the JSON file may change without notice."""
        chance, expected = random.Random(0), load_model(saved)(X)
        refused = 0
        for path in (saved / "transun.json", weights_of(saved)):
            whole = path.read_bytes()
            for _ in range(150):
                path.write_bytes(mutate(whole, chance))
                try:
                    predicted = load_model(saved)(X)
                except (ValueError, OSError):
                    refused += 1
                else:
                    assert torch.equal(predicted, expected)
            path.write_bytes(whole)
        assert refused > 280

    def test_forged_descriptions_raise_nothing_unforeseen(self, saved):
        """Damage under a valid checksum, so that it reaches the parser and the network."""
        chance = random.Random(1)
        whole = (saved / "transun.json").read_text()
        outcomes = {"loaded": 0, "refused": 0}
        for _ in range(400):
            (saved / "transun.json").write_text(whole)
            part = chance.choice(["backbone", "head"])
            text = json.loads(whole)[part].encode()
            forged = mutate(text, chance).decode("utf-8", "replace")
            sign(saved, lambda body, part=part, forged=forged: body.update({part: forged}))
            try:
                load_model(saved)
            except (ValueError, OSError):
                outcomes["refused"] += 1
            else:
                outcomes["loaded"] += 1
        assert min(outcomes.values()) > 3

    def test_forged_numbers_raise_nothing_unforeseen(self, saved):
        chance = random.Random(2)
        json_file, path = (saved / "transun.json").read_text(), weights_of(saved)
        whole = path.read_bytes()
        header = 8 + int.from_bytes(whole[:8], "little")
        outcomes = {"loaded": 0, "refused": 0}
        for turn in range(400):
            (saved / "transun.json").write_text(json_file)
            # The header is a small part of the file and most of what can go wrong.
            content = mutate(whole, chance) if turn % 2 else mutate(whole[:header], chance) + whole[header:]
            put_weights(saved, content)
            try:
                load_model(saved)(X)
            except (ValueError, OSError):
                outcomes["refused"] += 1
            else:
                outcomes["loaded"] += 1
            weights_of(saved).unlink()
        assert min(outcomes.values()) > 3


class TestGrow:
    @pytest.mark.parametrize("backbone", [SMALL, INTEREST], ids=lambda b: type(b).__name__)
    @pytest.mark.parametrize("shared", [0, 1])
    def test_old_rows_stay_and_new_rows_start_as_new(self, backbone, shared):
        model = trained(Scaled(LogSUN(shared=shared)), backbone)
        before = copy.deepcopy(model.state_dict())
        larger = grow(model, {"item": 12})
        assert torch.equal(larger(X), model(X))
        assert same(model.state_dict(), before)
        fresh = Model(backbone.grow({"item": 12}), LogSUN(shared=shared), seed=3).state_dict()
        for key, value in larger.state_dict().items():
            assert (
                torch.equal(value[: len(before[key])], before[key]) if value.ndim else torch.equal(value, before[key])
            )
            if "tables.item" in key:
                assert value.shape == (12, 3)
                assert torch.equal(value[7:], fresh[key][7:])
                assert len(value.unique(dim=0)) == 12
            else:
                assert value.shape == before[key].shape

    def test_goes_on_training_with_new_ids(self, tmp_path):
        model = trained(LogSUN(shared=1), INTEREST)
        save_model(model, tmp_path)
        larger = grow(load_model(tmp_path), {"item": 9, "user": 6})
        assert larger.prepared
        head = larger.head
        table = larger.network.stacks[0][0].tables["item"].weight
        before = table.detach().clone()
        today = Dataset(X | {"item": torch.full((ROWS,), 8), "history": torch.full((ROWS, 3), 7)}, Y)
        fit(larger, today, plain_recipe(optimiser=Adam(0.1), epochs=3))
        assert larger.head is head
        moved = (larger.network.stacks[0][0].tables["item"].weight != before).any(1)
        assert moved.tolist() == [False] * 7 + [True] * 2
        save_model(larger, tmp_path)
        assert torch.equal(load_model(tmp_path)(today.x), larger(today.x))

    def test_keeps_widths_that_a_rule_chose(self):
        model = trained(MSE(), EmbeddingMLP({"user": 5, "item": 7}, dim=ByCardinality(), hidden=(4,)))
        larger = grow(model, {"item": 70})
        assert torch.equal(larger(X), model(X))

    def test_copies_are_independent(self):
        model = trained(GTS(Scaled(LogMSE())))
        larger = grow(model, {})
        with torch.no_grad():
            for parameter in larger.parameters():
                parameter.add_(1.0)
        assert not torch.equal(larger(X), model(X))
        assert larger.head is not model.head
        assert torch.equal(trained(GTS(Scaled(LogMSE())))(X), model(X))

    def test_mistakes_are_named(self):
        with pytest.raises(ValueError, match="no table 'shop' to grow; there are user, item"):
            grow(trained(MSE()), {"shop": 3})
        with pytest.raises(ValueError, match="Constant has no tables that could grow"):
            grow(Model(Constant(), MSE()), {"item": 3})


def test_all_files_have_the_permissions_of_any_new_file(saved, tmp_path_factory):
    plain = tmp_path_factory.mktemp("plain") / "file"
    plain.touch()
    assert {path.stat().st_mode for path in saved.iterdir()} == {plain.stat().st_mode}


def test_what_killed_saves_left_behind_goes_with_the_next_save(saved):
    (saved / f"weights-{'ab' * 8}.safetensors").write_bytes(b"orphan")
    (saved / f".{'cd' * 16}.tmp").write_bytes(b"half")
    (saved / "notes.txt").write_text("mine")
    save_model(load_model(saved), saved)
    names = {path.name for path in saved.iterdir()}
    assert names == {"transun.json", "notes.txt", weights_of(saved).name}
