"""Time limits: an endless loop fails its test, also in compiled code, and the other tests go on."""

import re
import subprocess
import sys
import textwrap

import pytest

from tests.house.sources import ROOT

TESTS = """
    import pytest
    from caltest._compiled._jit import kernel

    @kernel
    def forever(x):
        while x > 0:
            x = 1.0 if x > 10 else 2 * x
        return x

    def test_endless():
        forever(1.0)

    def test_endless_python():
        while True:
            pass

    def test_short():
        assert forever(0.0) == 0.0

    @pytest.mark.slow
    def test_slow(request):
        assert request.node.get_closest_marker("timeout").args == (3600,)

    @pytest.mark.nightly
    def test_nightly(request):
        assert request.node.get_closest_marker("timeout").args == (3600,)

    @pytest.mark.slow
    @pytest.mark.timeout(77)
    def test_own(request):
        assert request.node.get_closest_marker("timeout").args == (77,)

    @pytest.mark.release
    @pytest.mark.slow
    def test_release(request):
        assert request.node.get_closest_marker("timeout").args == (0,)
"""


def test_every_test_has_a_limit(pytestconfig):
    assert float(pytestconfig.getini("timeout")) == 300
    assert pytestconfig.getini("timeout_method") == "thread"  # a signal waits for compiled code to return


@pytest.mark.slow
def test_an_endless_loop_fails_its_test_and_the_others_go_on(tmp_path):
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "test_endless.py").write_text(textwrap.dedent(TESTS))
    (tmp_path / "conftest.py").write_text((ROOT / "conftest.py").read_text())
    settings = (ROOT / "pyproject.toml").read_text().replace("timeout = 300", "timeout = 15")
    (tmp_path / "pyproject.toml").write_text(settings)
    command = [sys.executable, "-m", "pytest", "-n", "2", "-m", "", "-v", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    lines = re.findall(r"\] ([A-Z]+) tests/test_endless\.py::(\w+)", done.stdout)
    found = {name: outcome for outcome, name in lines}
    assert found == {"test_endless": "FAILED", "test_endless_python": "FAILED"} | dict.fromkeys(
        ("test_short", "test_slow", "test_nightly", "test_own", "test_release"), "PASSED"
    ), done.stdout
