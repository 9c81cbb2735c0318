"""Files as other software writes them are read at the first call, or at the second, which the first one prints."""

import contextlib
import io
import re
import shlex

import numpy as np
import pytest

from caltest.cli import _guess
from caltest.cli._main import main
from tests.corpus import FILES
from tests.corpus_libraries import LIBRARIES
from tests.fuzz_corpus import changed_files, misread

MADE = {file.name: file for file in (make() for make in FILES)}
NEEDS_NUMBERS = {"verbal.csv": ["--verbal", "very likely=0.9,likely=0.7,unlikely=0.2"]}
"""What no message can know: the numbers that words stand for."""
CURES = {"xgboost": "xgboost-cpu", "keras": "keras jax", "transformers": "transformers torch"}
"""What to install, where it is not what has the name of the library."""


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Write a file, and call ``caltest guess``; return the exit code, what was read, and what was said."""
    found = []
    read = _guess.read_file
    monkeypatch.setattr(_guess, "read_file", lambda *given: found.append(read(*given)) or found[-1])

    def run(arguments):
        found.clear()
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(arguments)
        return code, found[-1] if code == 0 else None, err.getvalue()

    def written(file, content=None):
        path = tmp_path / file.name
        path.write_bytes(file.content if content is None else content)
        return run(["guess", str(path), "--json"]), run

    return written


def advised(said):
    """Return the arguments of the command that a refusal prints; None if there is none."""
    commands = re.findall(r"If that is what the file means: caltest (.*)", said)
    return shlex.split(commands[-1]) if commands else None


@pytest.mark.slow(few_draws=True)
@pytest.mark.filterwarnings("ignore::caltest.results.CalibrationWarning")
def test_every_file_is_read_by_following_the_messages(call):
    wrong, calls = {}, []
    for name, file in MADE.items():
        (code, data, said), run = call(file)
        number = 1
        if code:
            assert said.count("\n") == 1, said
            known = NEEDS_NUMBERS.get(name)
            assert known is None or known[0] in said, said
            arguments = advised(said) if known is None else [*shlex.split(said.split("caltest: error: ")[0]), *known]
            if known is not None:
                arguments = ["guess", str(said.split(": ")[2]), "--json", *known]
            code, data, said = run(arguments)
            number = 2
        calls.append(number)
        assert code == 0, (name, said)
        assert (number == 1) >= file.at_first, (name, said)
        if reason := misread(data, file):
            wrong[name] = reason
    assert wrong == {}
    assert len(calls) >= 80
    assert calls.count(1) >= 70


@pytest.mark.slow(few_draws=True)
@pytest.mark.filterwarnings("ignore::caltest.results.CalibrationWarning")
def test_changed_files_are_refused_or_read_as_they_are_meant(call):
    """Columns in another order, renamed, added or cut off; some seconds of ``python -m tests.fuzz_corpus``."""
    rng = np.random.default_rng(20261127)
    wrong = []
    for file in changed_files(rng, 25):
        (code, data, _), _ = call(file)
        if code == 0 and (reason := misread(data, file)):
            wrong.append((file.name, file.content[:200], reason))
        assert code in {0, 2}
    assert wrong == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", LIBRARIES)
def test_files_of_libraries_are_read_by_following_the_messages(call, library, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    why = f"{library} or what it needs is not installed: pip install {CURES.get(library, library)}"
    try:
        files = list(LIBRARIES[library]())
    except ImportError:
        pytest.skip(why)
    for file in files:
        (code, data, said), run = call(file)
        assert file.at_first == (code == 0), (file.name, said)
        if code:
            code, data, said = run(advised(said))
        assert code == 0, (file.name, said)
        assert misread(data, file) == "", file.name
