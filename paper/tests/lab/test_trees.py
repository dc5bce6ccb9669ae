import pytest

from transun_paper.lab.trees import TREES, _columns, _matrix


def test_columns_of_encoded_data(encoded):
    names, ids = _columns(encoded)
    assert names == [("price", 0), ("user", 0), ("item", 0), ("history", 0), ("history", 1), ("history", 2)]
    assert ids == []  # 7 users and 12 items are few
    features = _matrix(encoded.test, names)
    assert features.shape == (150, 6)
    assert features[:, 4].tolist() == encoded.test.x["history"][:, 1].tolist()


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_squared_loss_fits_the_total_of_the_training_rows(encoded):
    """Boosting starts at the mean and every leaf adds a mean of residuals, so that residuals keep adding up to zero."""
    mse = next(row for row in TREES if row.name == "LightGBM, MSE")
    predictions = mse.predict(encoded, 0)
    sizes = [len(part) for part in (predictions.train, predictions.valid, predictions.test)]
    assert sizes == list(encoded.sizes.values())
    assert float(predictions.train.mean()) == pytest.approx(float(encoded.train.y.double().mean()), rel=1e-5)
    assert len({row.text for row in TREES}) == len(TREES)
