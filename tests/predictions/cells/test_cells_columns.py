"""Columns of predictions: all of them, contiguous."""

import numpy as np
import pytest

from caltest.predictions.cells._cells import contiguous_columns, store_columns


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns(dtype):
    rng = np.random.default_rng(0)
    for n_samples in (1, 2, 511, 512, 1100):
        for n_columns in (1, 2, 16, 17, 33):
            values = rng.random((n_samples, n_columns)).astype(dtype)
            columns = list(contiguous_columns(values))
            assert all(column.flags.c_contiguous and column.dtype == dtype for column in columns)
            np.testing.assert_array_equal(np.stack(columns, axis=1), values)
            stored = np.zeros((n_samples, n_columns + 2), dtype)
            store_columns(np.array(columns), stored[:, 1:-1])
            np.testing.assert_array_equal(stored, np.pad(values, ((0, 0), (1, 1))))
