"""A saved model as a folder for the Hugging Face hub: weights, a graph for serving, and a model card."""

from pathlib import Path

from transun.integrations.served_table import GRAPH
from transun.models.certificate import FILE as CERTIFICATE_FILE
from transun.models.certificate import valid_certificate, write_certificate
from transun.models.checkpoint import copy_model
from transun.models.description import describe_model
from transun.models.interval_file import save_intervals
from transun.report.model_card import model_card
from transun.support.files import write_json, write_text
from transun.tables.graph_export import Exported, export
from transun.tables.model import load
from transun.tables.onnx_graph import require_onnx

__all__ = ["write_hub_folder"]

_CARD, _INDEX = "README.md", "model.safetensors.index.json"


def write_hub_folder(model: str | Path, folder: str | Path) -> Exported:
    """Write a saved model into a folder that can be uploaded to the Hugging Face hub as it is.

    The folder is a saved model again, with its certificate: `transun.load` reads it and executes nothing in it. Added
    are an ONNX file for serving without transun; `model.safetensors.index.json`, by which the hub finds the weights and
    counts parameters; and `README.md`, a model card made of the certificate. Nothing is uploaded: that is
    `huggingface_hub.upload_folder(repo_id=..., folder_path=folder)`.

    Args:
        model: the folder of a saved model.
        folder: where to write, created if it does not exist; files of these names are replaced.

    Returns:
        The exported graph.

    """
    require_onnx()
    model, folder = Path(model), Path(folder)
    trained, certificate = load(model), valid_certificate(model)
    if folder.resolve() != model.resolve():
        copy_model(model, folder)
        save_intervals(trained.intervals, folder)
        (folder / CERTIFICATE_FILE).unlink(missing_ok=True)
        if certificate is not None:
            write_certificate(certificate, folder)
    exported = export(trained, folder / GRAPH, certificate=certificate)
    # The form in which the hub looks for weights in files of any names.
    weights = folder / describe_model(folder).file
    tensors = dict.fromkeys(sorted(trained.model.state_dict()), weights.name)
    write_json(folder / _INDEX, {"metadata": {"total_size": weights.stat().st_size}, "weight_map": tensors})
    write_text(folder / _CARD, model_card(trained, certificate, exported.inputs, GRAPH, exported.outputs[0]))
    return exported
