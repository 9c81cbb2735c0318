"""Studies with known truth: models, bias of estimators, size and power of tests."""
