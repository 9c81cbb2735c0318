"""Products of matrices use one thread inside of a call, and as many as before after it."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.linalg  # noqa: F401
from threadpoolctl import threadpool_info, threadpool_limits

import caltest as ct
from caltest.predictions.inputs._arguments import one_blas_thread


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def _three_threads():
    with threadpool_limits(3, user_api="blas"):
        if blas_threads() != {3}:
            pytest.skip("this BLAS cannot use three threads: install NumPy with OpenBLAS or MKL")
        yield


@pytest.mark.parametrize("workers", [1, 2])
def test_a_call_uses_one_thread_in_each_worker(workers):
    seen = set()

    def distance(predicted, observed):
        seen.update(blas_threads())
        return np.abs(predicted - observed).sum(axis=-1)

    p = np.linspace(0.1, 0.9, 50)
    statistic = ct.ECE(ct.EqualWidth(3), distance)
    ct.calibration_test(p > 0.4, p, statistic=statistic, method="monte-carlo", n_resamples=9, rng=0, workers=workers)
    assert seen == {1}
    assert blas_threads() == {3}


def test_a_recalibrator_is_fitted_on_one_thread(monkeypatch):
    seen, fit = [], ct.recalibration.TemperatureScaling._fit

    def fitted(self, *arguments):
        seen.append(blas_threads())
        return fit(self, *arguments)

    monkeypatch.setattr(ct.recalibration.TemperatureScaling, "_fit", fitted)
    p = np.linspace(0.1, 0.9, 50)
    ct.recalibration.TemperatureScaling().fit(p, p > 0.4)
    assert seen == [{1}]
    assert blas_threads() == {3}


def test_an_error_restores_the_threads():
    with pytest.raises(ValueError, match="y_prob"):
        ct.calibration_error([0, 1], [0.5, 1.5])
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        assert 1 / len([])
    assert blas_threads() == {3}


def test_calls_that_overlap_restore_the_threads():
    """The second one, on another thread, changes nothing, whether it ends before the first one or after it."""
    with ThreadPoolExecutor(1) as pool:
        for ends_first in (True, False):
            second = one_blas_thread()
            with one_blas_thread():
                pool.submit(second.__enter__).result()
                assert blas_threads() == {1}
                if ends_first:
                    pool.submit(second.__exit__, None, None, None).result()
                    assert blas_threads() == {1}
            assert blas_threads() == {3}
            if not ends_first:
                pool.submit(second.__exit__, None, None, None).result()
            assert blas_threads() == {3}
