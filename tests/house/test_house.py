"""The house rules of the package: who imports whom, what an import may cost, and what is documented."""

import ast
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

import caltest

PACKAGE = Path(caltest.__file__).parent
ROOT = PACKAGE.parent
FILES = sorted(PACKAGE.rglob("*.py"))

ROOMS = [
    {"_compiled", "results", "datasets"},
    {"predictions"},
    {"resampling"},
    {"statistics"},
    {"estimation"},
    {"hypothesis_tests"},
    {"comparison", "recalibration", "streaming", "simulation"},
    {"plotting"},
    {"cli"},
]
"""A room imports itself and the rooms of earlier lines; `caltest/__init__.py` imports none until a name is used."""

UPWARDS = {
    "caltest/estimation/_bootstrap_interval.py:15 imports caltest.hypothesis_tests._calibration",
    "caltest/estimation/_bootstrap_interval.py:16 imports caltest.hypothesis_tests._diagnostics",
    "caltest/estimation/_calibration_band.py:16 imports caltest.hypothesis_tests.classical._run",
    "caltest/estimation/_l2_interval.py:15 imports caltest.hypothesis_tests._diagnostics",
    "caltest/estimation/_noise_floor.py:15 imports caltest.hypothesis_tests._calibration",
    "caltest/estimation/_noise_floor.py:16 imports caltest.hypothesis_tests._diagnostics",
    "caltest/estimation/_score_decomposition.py:11 imports caltest.hypothesis_tests._diagnostics",
    "caltest/resampling/_pvalues.py:15 imports caltest.statistics",
    "caltest/resampling/_pvalues.py:16 imports caltest.statistics._omnibus",
    "caltest/results/_test_result.py:15 imports caltest.resampling._distributions",
}
"""Lines that still point the other way."""

LAZY = {"matplotlib", "statsmodels", "pandas", "polars", "pyarrow", "scipy", "sklearn", "rich", "joblib", "torch"}
"""Imported inside functions only: what does not need them does not wait for them."""

ONLY_IN = {"numba": "_compiled", "llvmlite": "_compiled", "matplotlib": "plotting"}

MAX_LINES = 400
LONGER = {"_compiled/_draws.py": "what draws needs the generator, and Numba does not see an edit in another file"}
"""Files that may be longer, each with its reason."""

MADE_BY = {
    "BootstrapInterval": caltest.bootstrap_interval,
    "BridgeResult": caltest.bridge_test,
    "CalibrationBand": caltest.calibration_band,
    "CalibrationReport": caltest.calibration_report,
    "CalibrationTable": caltest.calibration_table,
    "CalibrationTestResult": caltest.calibration_test,
    "DifferenceResult": caltest.paired_test,
    "CellTests": caltest.ReliabilityCurve.cell_tests,
    "GCETable": caltest.gce_table,
    "CoxResult": caltest.cox_test,
    "HistogramRegression": caltest.histogram_regression,
    "HosmerLemeshowResult": caltest.hosmer_lemeshow_test,
    "KernelTestResult": caltest.skce_test,
    "L2Interval": caltest.l2_interval,
    "ModelComparison": caltest.compare_models,
    "NoiseFloor": caltest.noise_floor,
    "ReliabilityCurve": caltest.reliability_curve,
    "SmoothReliabilityCurve": caltest.smooth_reliability_curve,
    "SubgroupTests": caltest.subgroup_tests,
    "SpiegelhalterResult": caltest.spiegelhalter_test,
    "EquivalenceResult": caltest.equivalence_test,
    "ToleranceResult": caltest.tolerance_test,
    "TCalResult": caltest.tcal_test,
    "TrainingTrack": caltest.track,
    "ScoreDecomposition": caltest.score_decomposition,
    "simulation.ApproximationStudy": caltest.simulation.approximation_study,
    "simulation.BestTemperatures": caltest.simulation.best_temperatures,
    "simulation.LabelNoiseStudy": caltest.simulation.label_noise_study,
    "simulation.MetricAgreement": caltest.simulation.metric_agreement,
    "simulation.BiasStudy": caltest.simulation.bias_study,
    "simulation.ClassifierTruth": caltest.simulation.TrainedClassifier.truth,
    "simulation.MiscalibrationEstimate": caltest.simulation.Model.estimate_miscalibration,
    "simulation.CoverageStudy": caltest.simulation.coverage_study,
    "simulation.PowerStudy": caltest.simulation.power_study,
    "simulation.RejectionStudy": caltest.simulation.size_study,
    "simulation.SampleSize": caltest.simulation.sample_size,
}
"""Results: users read them, so that their attributes are documented, and the example is that of the function."""


class Import(NamedTuple):
    file: Path
    line: int
    module: str
    in_function: bool

    @property
    def head(self) -> str:
        return self.module.split(".")[0]

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line} imports {self.module}"


def imports_of(file: Path) -> list[Import]:
    return [
        Import(file, node.lineno, module, in_function)
        for node, in_function in statements(ast.parse(file.read_text()))
        for module in modules_of(node)
    ]


def statements(node: ast.AST, in_function: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Every node that is run, and whether it stands in a function; imports for type checkers are not run."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        inside = in_function or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield child, inside
        yield from statements(child, inside)


def modules_of(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        if node.module == "caltest":
            return [f"caltest.{alias.name}" for alias in node.names]
        return [str(node.module)]
    return []


def room_of(file: Path) -> str:
    """The room that a file stands in."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def line_of(room: str) -> int:
    """The line of `ROOMS` in which a room stands."""
    return next(i for i, rooms in enumerate(ROOMS) if room in rooms)


IMPORTS = [found for file in FILES for found in imports_of(file)]


def test_the_reader_of_imports_reads():
    """Guards the rules below: a reader that finds nothing would let everything pass."""
    source = (
        "import numba\nif TYPE_CHECKING:\n    import pandas\nclass A:\n    import rich\n"
        "def f():\n    from scipy.stats import norm\n"
    )
    found = [(m, inside) for node, inside in statements(ast.parse(source)) for m in modules_of(node)]
    assert found == [("numba", False), ("rich", False), ("scipy.stats", True)]
    assert {"caltest.predictions._validation", "numba", "numpy", "statsmodels.stats.proportion"} <= {
        i.module for i in IMPORTS
    }


def test_every_module_stands_in_a_room():
    """`ls caltest` shows rooms and nothing else."""
    loose = [path.name for path in PACKAGE.iterdir() if path.is_file() and path.suffix == ".py"]
    assert loose == ["__init__.py"]
    assert {room_of(file) for file in FILES} - {"__init__"} <= set().union(*ROOMS)


def test_imports_stay_in_their_room_or_point_to_an_earlier_one():
    wrong = []
    for found in IMPORTS:
        room, parts = room_of(found.file), found.module.split(".")
        if found.head != "caltest" or room in {"__init__", "cli"}:
            continue
        if len(parts) == 1 or not (parts[1] == room or line_of(parts[1]) < line_of(room)):
            wrong.append(str(found))
    assert [line for line in wrong if line not in UPWARDS] == []


def test_kernel_files_stand_alone():
    """Numba's cache does not see an edit in another file and would return stale results."""
    compiling = "imports caltest._compiled._jit"  # the decorator, which is never compiled itself
    imports = [str(i) for i in IMPORTS if room_of(i.file) == "_compiled" and i.head == "caltest"]
    assert [line for line in imports if not line.endswith(compiling)] == []


@pytest.mark.parametrize("library", ONLY_IN)
def test_a_library_has_one_home(library):
    assert [str(i) for i in IMPORTS if i.head == library and room_of(i.file) != ONLY_IN[library]] == []


def test_heavy_libraries_are_imported_inside_functions():
    assert [str(i) for i in IMPORTS if i.head in LAZY and not i.in_function] == []


@pytest.mark.parametrize("file", sorted((PACKAGE / "_compiled").glob("*.py")), ids=lambda file: file.stem)
def test_compiled_draw_from_their_own_generator(file):
    """np.random in compiled code is slower than NumPy and depends on threads."""
    tree = ast.parse(file.read_text())
    used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not {name for name in used if name.startswith(("np.random", "numpy.random"))}
    assert not [i for i in imports_of(file) if i.module.startswith(("numpy.random", "random"))]


def test_compiled_are_compiled_when_called_and_release_the_lock():
    decorators = [
        decorator
        for file in (PACKAGE / "_compiled").glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        if "jit" in ast.unparse(decorator) or ast.unparse(decorator) in {"kernel", "reduction"}
    ]
    assert {ast.unparse(decorator) for decorator in decorators} == {"kernel", "reduction", "njit(inline='always')"}
    assert len(decorators) > 5
    compiled = (PACKAGE / "_compiled" / "_jit.py").read_text()
    assert compiled.count("njit(nogil=True") == 2
    assert "parallel" not in compiled


def in_fresh_process(code: str, **variables: str) -> str:
    """What code prints in a process of its own, warnings being errors."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", **variables}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_studies_and_pictures_wait_until_they_are_used():
    """They are half of the package, and importing them would take as long as importing the rest."""
    code = (
        "import sys, caltest; early = sorted(name for name in sys.modules if name.startswith('caltest.'));"
        "print('caltest.simulation' in early, 'caltest.plotting' in early, 'caltest.comparison' in early);"
        "from caltest import simulation, paired_test; print(simulation.bias_study.__name__, paired_test.__name__);"
        "print({'simulation', 'noise_floor', 'ECE'} <= set(dir(caltest)), hasattr(caltest, 'nothing'))"
    )
    said = in_fresh_process(code).split()
    assert said == ["False", "False", "False", "bias_study", "paired_test", "True", "False"]


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
orders = [names[::-1], sorted(names, key=str.lower), *(names[i:] + names[:i] for i in range(1, len(names), 9))]
print([name for order in orders for name, kind in kinds(order).items() if kind != first[name]])
print([name for name, (kind, _) in first.items() if kind == "module"])
from caltest import *
print(type(bootstrap_interval).__name__)
"""
    said = in_fresh_process(code).splitlines()
    assert (said[0], said[2]) == ("[]", "function")
    assert set(ast.literal_eval(said[1])) <= set().union(*ROOMS)


def test_importing_loads_nothing_heavy():
    """Nothing beyond what numba loads: it looks at SciPy's version, which costs a few of SciPy's own modules."""
    code = "import sys, numba; before = set(sys.modules); import caltest; print(*(set(sys.modules) - before))"
    loaded = in_fresh_process(code).split()
    assert [name for name in loaded if name.startswith("caltest")] == ["caltest"]
    assert [name for name in loaded if name.split(".")[0] in LAZY] == []


COUNT_SIGNATURES = """
import importlib, json, pkgutil
from caltest import _compiled
def modules():
    return [importlib.import_module("caltest._compiled." + m.name) for m in pkgutil.iter_modules(_compiled.__path__)]
def signatures():
    return {
        f"{module.__name__}.{name}": [str(s) for s in kernel.signatures]
        for module in modules()
        for name, kernel in vars(module).items()
        if hasattr(kernel, "signatures")
    }
"""

RUN_ON_ALL_KINDS = """
import numpy as np
import caltest
from caltest import Confidence, Consistency, ECE, EqualWidth, KS, TopK
rng = np.random.default_rng(0)
prob = (rng.multinomial(61, [0.5, 0.25, 0.25], size=120) + 1) / 64
label = rng.integers(3, size=120)
frozen = np.asfortranarray(prob)
frozen.flags.writeable = False
label_frozen = label.astype(np.int32)
label_frozen.flags.writeable = False
kinds = [prob, prob.astype(np.float32), frozen, np.repeat(prob, 2, axis=0)[::2], prob.tolist()]
for y_prob in kinds:
    for y_true in (label, label_frozen, label.astype(float), label.tolist()):
        for lens in (None, Confidence(), TopK(2)):
            caltest.calibration_test(y_true, y_prob, lens=lens, n_resamples=19, rng=0)
            for weight in (None, np.ones(120), np.ones(120, dtype=np.float32)):
                caltest.calibration_error(y_true, y_prob, lens=lens, sample_weight=weight)
                caltest.calibration_error(y_true, y_prob, lens=lens, sample_weight=weight, statistic=caltest.SCE())
    event = np.asarray(y_prob)[:, 1]
    for y_true in (label == 1, (label == 1).tolist(), (label == 1).astype(np.uint8)):
        caltest.calibration_test(y_true, event, n_resamples=300, rng=0, workers=2, region=lambda p: p[:, 1] > 0.1)
        caltest.calibration_test(y_true, event, statistic=KS(), n_resamples=19, rng=np.random.default_rng(1))
        caltest.calibration_test(y_true, event, statistic=caltest.IsotonicError(), n_resamples=19, rng=0)
        caltest.score_decomposition(y_true, event, score="log")
        caltest.calibration_error(y_true, event, statistic=ECE(EqualWidth(15)))
        for statistic in (caltest.ConvexECE(), caltest.MonotonicSweepECE(), caltest.SquaredL2()):
            caltest.calibration_test(y_true, event, statistic=statistic, n_resamples=19, rng=0)
            caltest.calibration_error(y_true, event, statistic=statistic, sample_weight=np.ones(120))
    caltest.calibration_test(label, y_prob, statistic=caltest.SquaredL2(), n_resamples=19, rng=0)
    for statistic in (caltest.SKCE(), caltest.SKCE(caltest.gaussian_kernel)):
        caltest.calibration_test(label, y_prob, statistic=statistic, n_resamples=19, rng=0)
        caltest.skce_test(label, y_prob, statistic=statistic, n_resamples=19, rng=0)
    caltest.calibration_test(label == 1, event, statistic=caltest.MMCE(), n_resamples=19, rng=0)
    caltest.calibration_table(label, y_prob, n_resamples=19, rng=0)
    caltest.gce_table(label, y_prob, n_resamples=19, rng=0)
    for statistic in (caltest.GCE(), caltest.TACE(), caltest.UCE()):
        for lens in (None, Confidence()):
            caltest.calibration_test(label, y_prob, lens=lens, statistic=statistic, n_resamples=300, workers=2)
    for partition in (EqualWidth(2), caltest.EqualMass(2), caltest.VarianceTree(min_leaf=40)):
        rows = Consistency(resample_predictions=True)
        for statistic in (ECE(partition), caltest.MCE(partition)):
            caltest.calibration_test(label == 1, event, statistic=statistic, resampling=rows, n_resamples=19, rng=0)
        caltest.calibration_test(label, y_prob, statistic=ECE(lambda p: p[:, 0] > 0.5), resampling=rows, n_resamples=19)
    tree = ECE(caltest.VarianceTree(min_leaf=100))  # a single cell, whatever is drawn
    caltest.calibration_test(label, y_prob, statistic=tree, resampling=rows, n_resamples=19)
    score = caltest.TemperatureScore()
    caltest.calibration_test(label, y_prob, statistic=score, resampling=rows, n_resamples=19)
    caltest.calibration_test(label == 1, event, statistic=score, resampling=rows, n_resamples=19)
    caltest.calibration_test(event < 0.5, event, statistic=ECE(EqualWidth(2)))
    caltest.calibration_test(event < 0.5, event, statistic=ECE(EqualWidth(2)), method="monte-carlo", n_resamples=19)
    caltest.calibration_test(label, y_prob, lens=Confidence(), statistic=ECE(EqualWidth(5)), n_resamples=19)
    for statistic in (caltest.Bridge(), caltest.TCal(), caltest.CoxScore()):
        caltest.calibration_test(label == 1, event, statistic=statistic, n_resamples=19, rng=0)
    caltest.reliability_curve(label, y_prob)
    caltest.calibration_band(label, y_prob)
    caltest.reliability_curve(label == 1, event, simultaneous=True)
    caltest.smooth_reliability_curve(label == 1, event, n_resamples=19)
    for statistic in (caltest.KDEError(), caltest.SmoothECE()):
        caltest.calibration_test(label == 1, event, statistic=statistic, n_resamples=19)
    rho = Consistency(calibration_function=lambda p: p[:, [0, 2, 1]])
    caltest.calibration_test(label, y_prob, resampling=rho, n_resamples=19, rng=0)
    refit = Consistency(resample_predictions=True)
    statistic = ECE(EqualWidth(2))
    caltest.calibration_test(label, y_prob, lens=Confidence(), statistic=statistic, resampling=refit, n_resamples=19)
bundled = caltest.datasets.load_cifar10_vgg16()
caltest.calibration_error(*bundled, statistic=caltest.SKCE())  # so many pairs that a sample brackets their median
caltest.reliability_curve(*bundled)  # cells of thousands of rows
"""


def test_importing_compiles_nothing():
    signatures = json.loads(in_fresh_process(f"{COUNT_SIGNATURES}\nimport caltest\nprint(json.dumps(signatures()))"))
    assert len(signatures) > 5
    assert {name for name, compiled in signatures.items() if compiled} == set()


def test_compiled_are_compiled_once_whatever_is_passed():
    """Validation hands every kernel one type of array: another dtype, order or flag would compile it again.

    A new kernel needs a call in RUN_ON_ALL_KINDS that reaches it.
    """
    in_fresh_process(RUN_ON_ALL_KINDS)  # fills the cache
    signatures = json.loads(
        in_fresh_process(f"{RUN_ON_ALL_KINDS}\n{COUNT_SIGNATURES}\nprint(json.dumps(signatures()))")
    )
    assert len(signatures) > 5
    called = {name: compiled for name, compiled in signatures.items() if not name.split(".")[-1].startswith("_")}
    assert {name: compiled for name, compiled in called.items() if len(compiled) != 1} == {}
    # Kernels that only kernels call come compiled into their callers, once the cache is warm.
    assert {name: compiled for name, compiled in signatures.items() if len(compiled) > 1} == {}


def test_a_second_process_only_reads_the_cache(tmp_path):
    """What the first process compiles, the second one finds: no cache misses."""
    code = f"""
{COUNT_SIGNATURES}
import caltest
caltest.calibration_test([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4], statistic=caltest.ECE(caltest.EqualWidth(15)))
found = [kernel.stats for module in modules() for kernel in vars(module).values() if hasattr(kernel, "stats")]
print(json.dumps([sum(sum(c.values()) for c in of_all) for of_all in zip(*(stats[1:] for stats in found))]))
"""
    environment = {"NUMBA_CACHE_DIR": str(tmp_path)}
    hits, misses = json.loads(in_fresh_process(code, **environment))
    assert hits == 0
    assert misses > 0
    assert json.loads(in_fresh_process(code, **environment)) == [misses, 0]


def test_an_installation_that_cannot_be_written_to_works():
    """No folder for Numba's cache, as in a read-only installation without a home: kernels are compiled all the same."""
    code = """
from numba.core import caching
caching.CompileResultCacheImpl._locator_classes = []
import caltest
print(caltest.calibration_test([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4], n_resamples=19, rng=0).pvalue)
"""
    assert in_fresh_process(code) == in_fresh_process(
        code.replace("caching.CompileResultCacheImpl._locator_classes = []", "")
    )


def public() -> dict[str, object]:
    """What users call: the names of the package, and those of its rooms that it does not have itself."""
    named = {name: getattr(caltest, name) for name in caltest.__all__}
    own = {name: thing for name, thing in named.items() if not inspect.ismodule(thing)}
    rooms = {
        f"{room}.{name}": getattr(module, name)
        for room, module in named.items()
        if inspect.ismodule(module)
        for name in module.__all__
        if name not in own
    }
    return {**own, **rooms}


INTERNAL = {
    *("predictions.Lens", "predictions.PredictionFile", "predictions.Sample", "predictions.read_predictions"),
    *("resampling.PoissonBinomial", "resampling.correct_pvalues", "results.ComponentResult"),
}
"""Names of rooms that other rooms use and users seldom type."""

PUBLIC = public()
CALLED = {
    name: thing
    for name, thing in PUBLIC.items()
    if name not in MADE_BY
    and name not in INTERNAL
    and not inspect.isabstract(thing)
    and not (isinstance(thing, type) and issubclass(thing, Warning | tuple))
}


def documented(thing: object, section: str) -> list[str]:
    """Names that a section of a NumPy docstring describes."""
    lines = (inspect.getdoc(thing) or "").splitlines()
    headers = [i for i, below in enumerate(lines[1:]) if re.fullmatch("-{3,}", below)]
    names: list[str] = []
    for i in headers:
        if lines[i] == section:
            end = min((later for later in headers if later > i), default=len(lines))
            entries = [line for line in lines[i + 2 : end] if line and not line.startswith(" ")]
            names += [name for entry in entries for name in entry.split(" : ")[0].split(", ")]
    return names


def test_all_is_sorted_and_true():
    assert len(set(caltest.__all__)) == len(caltest.__all__)
    assert [name for name in caltest.__all__ if not hasattr(caltest, name)] == []
    assert {"calibration_test", "datasets.load_digits_predictions"} <= set(CALLED)
    assert len(CALLED) > 20


@pytest.mark.parametrize("name", caltest.__all__)
def test_public_names_have_a_docstring(name):
    assert len(inspect.getdoc(getattr(caltest, name)) or "") > 20


@pytest.mark.parametrize("name", CALLED)
def test_public_names_have_an_example(name):
    assert ">>> " in (inspect.getdoc(CALLED[name]) or "")


@pytest.mark.parametrize("name", CALLED)
def test_documented_parameters_are_those_of_the_signature(name):
    assert documented(CALLED[name], "Parameters") == list(inspect.signature(CALLED[name]).parameters)


@pytest.mark.parametrize("name", [name for name in CALLED if inspect.isfunction(CALLED[name])])
def test_functions_say_what_they_return(name):
    assert re.search("^Returns\n-------$", inspect.getdoc(CALLED[name]) or "", flags=re.MULTILINE)


@pytest.mark.parametrize("name", MADE_BY)
def test_results_document_their_attributes(name):
    result, maker = PUBLIC[name], MADE_BY[name]
    assert inspect.get_annotations(maker, eval_str=True)["return"] is result
    assert is_dataclass(result)
    assert result.__dataclass_params__.frozen
    stated = documented(result, "Attributes")
    assert sorted(set(stated)) == sorted(stated)
    missing = {field.name for field in fields(result) if not field.name.startswith("_")} - set(stated)
    unknown = {attribute for attribute in stated if attribute not in dir(result)} - {f.name for f in fields(result)}
    assert (missing, unknown) == (set(), set())


def test_every_module_says_what_it_is_for():
    silent = [
        str(file.relative_to(ROOT))
        for file in FILES
        if not ast.get_docstring(ast.parse(file.read_text())) and file.name != "__main__.py"
    ]
    assert silent == []


def test_files_are_short():
    length = {str(file.relative_to(PACKAGE)): len(file.read_text().splitlines()) for file in FILES}
    assert {file: n for file, n in length.items() if n > MAX_LINES and file not in LONGER} == {}
    assert {file for file in LONGER if length.get(file, 0) <= MAX_LINES} == set()


def test_no_path_of_one_machine():
    """What works for its author only."""
    machine = re.compile(r"(?<![\w.:/-])/(?:work|farm|root|home|Users|mnt)/\w")
    texts = [
        file
        for folder in ("caltest", "tests", "benchmarks", "docs")
        for file in (ROOT / folder).rglob("*")
        if file.suffix in {".py", ".md", ".toml", ".txt", ".sh"} and file.is_file()
    ] + [file for file in ROOT.iterdir() if file.suffix in {".md", ".toml"}]
    assert len(texts) > len(FILES)
    wrong = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in texts
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if machine.search(line)
    ]
    assert wrong == []


def test_every_module_can_be_imported_alone():
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for file in FILES]
    assert [name for name in names if importlib.import_module(name).__name__ != name] == []
