"""What an import costs, and that public names are the same in every order."""

import ast
from functools import cache

import pytest

from tests.house.processes import in_fresh_process
from tests.house.test_rooms import LAZY, ROOMS


@cache
def said_by_an_import() -> list[str]:
    """Lines of a process of its own: what the import loads beyond numba, what waits, and names used later."""
    code = (
        "import sys, numba; before = set(sys.modules); import caltest; print(*(set(sys.modules) - before));"
        "early = sorted(name for name in sys.modules if name.startswith('caltest.'));"
        "print('caltest.simulation' in early, 'caltest.plotting' in early, 'caltest.comparison' in early);"
        "from caltest import simulation, paired_test; print(simulation.bias_study.__name__, paired_test.__name__);"
        "print({'simulation', 'noise_floor', 'ECE'} <= set(dir(caltest)), hasattr(caltest, 'nothing'))"
    )
    return in_fresh_process(code).splitlines()


@pytest.mark.slow(few_draws=True)
def test_studies_and_pictures_wait_until_they_are_used():
    """They are half of the package, and importing them would take as long as importing the rest."""
    _, *said = said_by_an_import()
    assert " ".join(said).split() == ["False", "False", "False", "bias_study", "paired_test", "True", "False"]


@pytest.mark.slow
def test_public_names_are_the_same_in_every_order_of_import():
    """A module that is named like a function must not take the function's place once it is imported."""
    code = """
import sys
import caltest
names = caltest.__all__
def kinds(order):
    for name in [name for name in sys.modules if name.split(".")[0] == "caltest"]:
        del sys.modules[name]
    module = __import__("caltest", fromlist=["*"])
    for name in order:  # twice: what comes later may replace what came before
        getattr(module, name)
    return {name: (type(getattr(module, name)).__name__, getattr(module, name).__name__) for name in names}
first = kinds(names)
orders = [names[::-1], sorted(names, key=str.lower), *(names[i:] + names[:i] for i in range(1, len(names), 25))]
print([name for order in orders for name, kind in kinds(order).items() if kind != first[name]])
print([name for name, (kind, _) in first.items() if kind == "module"])
from caltest import *
print(type(bootstrap_interval).__name__)
"""
    said = in_fresh_process(code).splitlines()
    assert (said[0], said[2]) == ("[]", "function")
    assert set(ast.literal_eval(said[1])) <= set().union(*ROOMS)


def test_importing_loads_nothing_heavy():
    """Nothing beyond what numba loads: it looks at SciPy's version, which costs a few of SciPy's own modules.

    The package says where pictures come from and which names it had, which are two small files.
    """
    loaded = said_by_an_import()[0].split()
    known = {"caltest", "caltest.results", "caltest.results._other_names", "caltest.results._picture"}
    assert {name for name in loaded if name.startswith("caltest")} == known
    assert [name for name in loaded if name.split(".")[0] in LAZY] == []
