"""Imports follow the picture of the layers in docs/architecture.md, which docs/build.py draws from the imports."""

import re

import pytest
from layers import PRODUCT, ROOT, inner_imports, layers, rooms

# Heavy libraries and the only rooms that may import them.
OWNERS = {
    "altair": set(),
    "dask": {"engines"},
    "duckdb": {"engines"},
    "lightgbm": {"backbones"},
    "mlflow": {"integrations"},
    "modin": set(),
    "narwhals": {"data"},
    "onnx": {"estimators", "tables"},
    "onnxmltools": {"estimators"},
    "onnxruntime": {"integrations", "tables"},
    "onnxscript": {"estimators", "tables"},
    "pandas": {"integrations"},
    "polars": set(),
    "prometheus_client": {"serving"},
    "pyspark": {"engines"},
    "ray": {"engines"},
    "rich": {"support", "report", "cli"},
    "safetensors": {"models"},
    "scipy": {"metrics", "estimators", "diagnosis", "experiments"},
    "shap": {"estimators"},
    "skl2onnx": {"estimators"},
    "sklearn": {"backbones", "engines", "estimators"},
    "starlette": {"serving"},
    "tabm": {"backbones"},
    "tea_tasting": {"experiments"},
    "tensorboard": {"integrations"},
    "torchmetrics": {"integrations"},
    "typer": {"cli"},
    "uvicorn": {"serving"},
    "wandb": {"integrations"},
}
ROOMS = rooms(PRODUCT)


def drawn_layers():
    """The layer of every room in the picture."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"<!-- layers -->\n(.*?)<!-- /layers -->", page, re.DOTALL)
    return {room: int(height) for height, room in re.findall(r"^ *(\d+)  (\w+)", block, re.MULTILINE)}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_from_lower_layers(room):
    layer = drawn_layers()
    assert room in layer, f"{room} is not in the picture: run python docs/build.py"
    for other in ROOMS[room]:
        assert layer[other] < layer[room], f"{room} (layer {layer[room]}) imports {other} (layer {layer[other]})"


@pytest.mark.parametrize("room", ROOMS)
def test_modules_of_a_room_do_not_import_each_other(room):
    layers(inner_imports(room, PRODUCT))


@pytest.mark.parametrize("library", OWNERS)
def test_a_heavy_library_is_imported_only_where_it_is_allowed(library):
    importers = {module.name for module in PRODUCT.values() if library in module.libraries}
    assert not {name for name in importers if PRODUCT[name].room not in OWNERS[library]}


def test_the_product_does_not_import_the_paper():
    assert not [module.name for module in PRODUCT.values() if "transun_paper" in module.libraries]


class TestTheRules:
    """The layers and imports that the picture is drawn from."""

    def test_a_layer_is_one_above_the_highest_that_it_imports(self):
        graph = {"roof": {"walls", "ground"}, "walls": {"ground"}, "ground": set(), "tree": {"ground"}}
        assert layers(graph) == [["ground"], ["tree", "walls"], ["roof"]]

    def test_a_cycle_is_named(self):
        with pytest.raises(ValueError, match="these import each other: a -> b -> a"):
            layers({"a": {"b"}, "b": {"a", "c"}, "c": set()})

    def test_imports_for_types_alone_make_no_cycle_of_modules(self):
        module = PRODUCT["transun.models"]  # its names are imported for type checkers, and found lazily at run time
        assert "transun.models.network.Model" in module.imports
        assert "transun.models.network.Model" not in module.imports_at_run_time

    def test_libraries_that_are_imported_by_name_count(self):
        assert "onnxruntime" in PRODUCT["transun.tables.onnx_graph"].libraries
