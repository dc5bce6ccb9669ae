"""Optional libraries, imported where they are used."""

import sys
from types import ModuleType

__all__ = ["how_to_install", "need", "require"]

# The extra of transun that installs a library; a library that is not listed is installed by its own name.
EXTRAS = {
    "dask": "dask",
    "distributed": "dask",
    "duckdb": "duckdb",
    "lightgbm": "lightgbm",
    "mlflow": "mlflow",
    "onnx": "onnx",
    "onnxmltools": "onnx",
    "onnxruntime": "onnx",
    "onnxscript": "onnx",
    "prometheus_client": "serve",
    "pyspark": "spark",
    "ray": "ray",
    "s3fs": "s3",
    "shap": "shap",
    "skl2onnx": "onnx",
    "starlette": "serve",
    "tea_tasting": "ab",
    "tensorboard": "tensorboard",
    "torchmetrics": "torchmetrics",
    "upath": "s3",
    "uvicorn": "serve",
    "wandb": "wandb",
}

# Packages that are not called like the library they install.
PACKAGES = {"sklearn": "scikit-learn"}


def need(module: str) -> ModuleType:
    """Import a module of an optional library, or say how to install it.

    >>> need("a_library_nobody_has")
    Traceback (most recent call last):
    ModuleNotFoundError: this needs a_library_nobody_has: pip install a_library_nobody_has
    """
    library = module.split(".")[0]
    try:
        __import__(module)  # of one that is loaded it costs a tenth of `import_module`, and a row of a table needs many
        return sys.modules[module]
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.split(".")[0] != library:
            raise  # the library is installed, but one that it imports is not
        raise ModuleNotFoundError(f"this needs {library}: {how_to_install(library)}") from None


def how_to_install(library: str) -> str:
    """The command that installs a library, by the extra of transun that brings it if there is one.

    >>> how_to_install("onnxscript"), how_to_install("sklearn")
    ("pip install 'transun[onnx]'", 'pip install scikit-learn')
    """
    package = f"'transun[{EXTRAS[library]}]'" if library in EXTRAS else PACKAGES.get(library, library)
    return f"pip install {package}"


def require(*modules: str) -> None:
    """Raise the error of `need` for the first library that is missing: call it before long work begins."""
    for module in modules:
        need(module)
