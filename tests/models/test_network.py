from transun.backbones import EmbeddingMLP
from transun.heads import MSE
from transun.models import Model


def test_a_gpu_predicts_more_rows_at_a_time():
    """Tensors of the device "meta" are on no CPU, on any machine."""
    model = Model(EmbeddingMLP({"a": 3}), MSE())
    on_cpu = model.rows_at_once
    assert model.to("meta").rows_at_once > on_cpu
