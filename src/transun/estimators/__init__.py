"""scikit-learn estimators: unbiased predictions around any regressor, or by a network."""
