"""How a study runs: in parts, each with its own random numbers, in threads, into a folder that keeps them."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from caltest.predictions._lens import LensLike
from caltest.predictions._lenses import Canonical
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import (
    SeedLike,
    refuse_if,
    require,
    validate_count,
    validate_rng,
    validate_workers,
)
from caltest.results._atomic_file import atomic_file, write_atomically
from caltest.results._config import config_in_use
from caltest.results._naming import describe
from caltest.results._progress import Progress, reporting
from caltest.simulation.models._base import Model
from caltest.simulation.studies._options import PathLike
from caltest.statistics import Statistic
from caltest.statistics._base import default_lens

if TYPE_CHECKING:
    import pandas as pd


def identify(thing: Any) -> str:
    """Return the description of a thing, with a digest of the code of the functions in it.

    Two functions are the same if their code, defaults and enclosed values are; the functions that they call are not
    compared.
    """
    codes = [_meaning(function, ()) for function in _functions(thing)]
    return _text(thing) + (f" #{sha256(repr(codes).encode()).hexdigest()[:16]}" if codes else "")


def _text(thing: Any) -> str:
    """Describe a thing in the same words in every process: no dataclass shows the address of a function in it."""
    if is_dataclass(thing) and not isinstance(thing, type):
        parts = [f"{field.name}={_text(getattr(thing, field.name))}" for field in fields(thing) if field.repr]
        return f"{type(thing).__name__}({', '.join(parts)})"
    if isinstance(thing, Mapping):
        return "{" + ", ".join(f"{name!r}: {_text(part)}" for name, part in thing.items()) + "}"
    if isinstance(thing, tuple | list):
        return "[" + ", ".join(_text(part) for part in thing) + "]"
    if isinstance(thing, set | frozenset):
        return "{" + ", ".join(sorted(_text(part) for part in thing)) + "}"
    if isinstance(thing, partial):
        options = [f"{name}={_text(value)}" for name, value in thing.keywords.items()]
        return f"{_text(thing.func)}({', '.join([*map(_text, thing.args), *options])})"
    return describe(thing)


def _functions(thing: Any) -> Iterator[FunctionType]:
    """Yield the functions in a thing, in a fixed order."""
    if isinstance(thing, FunctionType):
        yield thing
        return
    parts: Any = ()
    if isinstance(thing, partial):
        parts = (thing.func, *thing.args, *thing.keywords.values())
    elif isinstance(thing, Mapping):
        parts = thing.values()
    elif isinstance(thing, tuple | list):
        parts = thing
    elif is_dataclass(thing) and not isinstance(thing, type):
        parts = [getattr(thing, field.name) for field in fields(thing)]
    for part in parts:
        yield from _functions(part)


def _meaning(function: FunctionType, seen: tuple[FunctionType, ...]) -> Any:
    """Return code, defaults and enclosed values; a function that encloses itself is followed once only."""
    if function in seen:
        return function.__qualname__
    enclosed = [cell.cell_contents for cell in function.__closure__ or ()]
    values = [*enclosed, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    inner = [_meaning(value, (*seen, function)) for value in values for value in _functions(value)]
    return function.__module__, function.__qualname__, _instructions(function.__code__), _text(values), inner


def _instructions(code: CodeType) -> Any:
    return code.co_code, code.co_names, [_constant(value) for value in code.co_consts]


def _constant(value: Any) -> Any:
    if isinstance(value, CodeType):
        return _instructions(value)
    return sorted(map(repr, value)) if isinstance(value, frozenset) else repr(value)


_MANIFEST = "study.json"
_REPLICATES = 100  # of a part: some seconds of work, so that little is lost when a study is stopped


@dataclass(frozen=True)
class Store:
    """Finished parts of one study, one file each: Parquet where pyarrow is installed, otherwise CSV.

    The file name of a part depends on the seed and on everything else that its values depend on. The file appears under
    that name only when it is complete, so that nothing is lost or counted twice, whenever the study was stopped.
    """

    folder: Path
    seed: int

    @classmethod
    def open(cls, folder: str | os.PathLike[str], study: str, seed: int | None) -> Store:
        """Open the folder of a study, or make it; without a seed, a study that was begun continues with its seed.

        Raises
        ------
        ValueError
            If the folder holds another study, or the same study with another seed.
        """
        place = Path(folder)
        refuse_if(place.exists() and not place.is_dir(), f"`out` must be a folder, got the file {place}.")
        place.mkdir(parents=True, exist_ok=True)
        manifest = place / _MANIFEST
        if not manifest.exists():
            about = {"study": study, "seed": new_seed() if seed is None else seed}
            write_atomically(manifest, json.dumps(about))
        try:
            known = json.loads(manifest.read_text(encoding="utf-8"))
        except ValueError:
            refuse(f"`out` must be a new folder or that of a study, got {place}, whose {_MANIFEST} is damaged.")
        other = f"`out` must be a new folder or that of a {study} study, got that of a {known['study']} study: {place}."
        refuse_if(known["study"] != study, other)
        must = f"`rng` must be None or {known['seed']}, with which the study in {place} was begun"
        require(seed in {None, known["seed"]}, must, seed)
        return cls(place, known["seed"])

    def load(self, name: str) -> pd.DataFrame | None:
        """Return a finished part, or None."""
        import pandas as pd

        path = self._path(name)
        if path.with_suffix(".parquet").exists():
            return pd.read_parquet(path.with_suffix(".parquet"))
        if path.with_suffix(".csv").exists():
            # This engine reads numbers back exactly; a model may be called "NA".
            return pd.read_csv(path.with_suffix(".csv"), engine="python", keep_default_na=False, na_values=[""])
        return None

    def save(self, name: str, part: pd.DataFrame) -> None:
        """Keep a finished part."""
        path = self._path(name)
        kind = "parquet" if find_spec("pyarrow") else "csv"
        with atomic_file(path.with_suffix(f".{kind}")) as stream:
            (part.to_parquet if kind == "parquet" else part.to_csv)(stream, index=False)

    def _path(self, name: str) -> Path:
        return self.folder / sha256(f"{self.seed}/{name}".encode()).hexdigest()[:32]


def new_seed() -> int:
    """Return a random seed."""
    return int(np.random.default_rng().integers(2**63))


@dataclass(frozen=True)
class Part:
    """A part of a study that is computed, and kept, as a whole.

    Attributes
    ----------
    name : str
        Everything that its values depend on, except the seed.
    task : callable
        Returns the values as a frame; it can run in any thread, process or machine.
    cost : float
        How much work it is, in any unit that all parts share.
    """

    name: str
    task: Callable[[], pd.DataFrame]
    cost: float = 1.0


def replicate_rng(seed: int, name: str, replicate: int) -> np.random.Generator:
    """Return the random generator of one replicate, which depends on the seed, the name and the number only."""
    words = np.frombuffer(sha256(name.encode()).digest()[:16], dtype=np.uint32)
    return np.random.default_rng(np.random.SeedSequence([seed, *words.tolist()], spawn_key=(replicate,)))


@dataclass(frozen=True)
class Design:
    """The data sets that a study draws from models, some replicates of a model and a number of observations at a time.

    Attributes
    ----------
    models : dict of str to Model
        What they are drawn from.
    n_samples : list of int
        Numbers of observations.
    n_replicates : int
        Data sets of each model and number of observations.
    """

    models: dict[str, Model]
    n_samples: list[int]
    n_replicates: int

    @classmethod
    def of(cls, models: Any, n_samples: int | Sequence[int], n_replicates: int, least: int = 1) -> Design:
        """Check what the user passed."""
        drawn = named(models, "models", Model, "models of caltest.simulation")
        return cls(drawn, sizes(n_samples, "n_samples"), validate_count(n_replicates, "n_replicates", least))

    def run(self, study: str, task: Callable[..., pd.DataFrame], *what: Any, overhead: int = 0, **running: Any) -> Any:
        """Return all values of ``task(block, *what)``, as `run_study` does.

        A data set costs as much as its observations and an ``overhead`` in observations.
        """

        def parts(seed: int) -> Iterator[Part]:
            for name, model in self.models.items():
                for n in self.n_samples:
                    for start in range(0, self.n_replicates, _REPLICATES):
                        some = range(start, min(start + _REPLICATES, self.n_replicates))
                        block = Block(name, model, n, some, seed)
                        yield Part(
                            identify((*block[:-1], *what)), partial(task, block, *what), (n + overhead) * len(some)
                        )

        return run_study(study, parts, **running)


class Block(NamedTuple):
    """Data sets that are drawn and evaluated together: the name of their model, the model, their size and numbers."""

    name: str
    model: Model
    n_samples: int
    replicates: range
    seed: int

    @property
    def stream(self) -> str:
        """The name of their random numbers, which do not depend on how a study is divided."""
        return f"{self.name}/{self.n_samples}"

    def frame(self, pairs: Sequence[tuple[str, str]], kind: str, **values: Any) -> pd.DataFrame:
        """Return one row for each replicate and pair of a lens and what is evaluated through it, the column ``kind``.

        Texts are converted once, which takes long in a column.
        """
        import pandas as pd

        def tiled(texts: Sequence[str]) -> Any:
            return pd.Series(texts).array.take(np.tile(np.arange(len(texts)), len(self.replicates)))

        columns = {
            "model": tiled([self.name] * len(pairs)),
            "lens": tiled([lens for lens, _ in pairs]),
            "n_samples": self.n_samples,
            kind: tiled([thing for _, thing in pairs]),
            "replicate": np.repeat(np.array(self.replicates), len(pairs)),
        }
        return pd.DataFrame(columns | values)


def run_study(
    study: str,
    parts_of: Callable[[int], Iterable[Part]],
    *,
    out: PathLike | None,
    workers: int | None,
    progress: bool | Progress | None,
    rng: SeedLike,
    prefer: str = "threads",
) -> pd.DataFrame:
    """Run the parts that a seed makes, keep each in ``out`` when it is done, and return all values in order.

    joblib runs them: in threads or processes, as preferred, unless ``joblib.parallel_config`` names another backend;
    its number of workers counts where ``workers`` is 1.
    """
    import pandas as pd
    from joblib import Parallel, delayed

    validate_workers(workers)
    asked = config_in_use().workers if workers is None else workers
    seed, n_jobs = _seed(rng), None if asked == 1 else asked  # None is one, or what joblib's configuration names
    store = None if out is None else Store.open(out, study, seed)
    if store is not None:
        seed = store.seed
    parts = list(parts_of(new_seed() if seed is None else seed))
    done = _finished(store, parts)
    spent, total = sum(parts[number].cost for number in done), sum(part.cost for part in parts)
    todo = [delayed(_numbered)(number, part.task) for number, part in enumerate(parts) if number not in done]
    with reporting(progress, f"{study} study") as report:
        report(spent, total)
        for number, values in Parallel(n_jobs=n_jobs, prefer=prefer, return_as="generator_unordered")(todo):
            done[number] = values
            if store is not None:
                store.save(parts[number].name, values)
            spent += parts[number].cost
            report(spent, total)
    return pd.concat([done[number] for number in range(len(parts))], ignore_index=True)


def _numbered(number: int, task: Callable[[], pd.DataFrame]) -> tuple[int, pd.DataFrame]:
    return number, task()


def _finished(store: Store | None, parts: Sequence[Part]) -> dict[int, pd.DataFrame]:
    if store is None:
        return {}
    loaded = {number: store.load(part.name) for number, part in enumerate(parts)}
    return {number: values for number, values in loaded.items() if values is not None}


def _seed(rng: SeedLike) -> int | None:
    """Return the seed of a study: an integer is its own seed, so that the folder of the study can name it."""
    if rng is None:
        return None
    generator = validate_rng(rng)
    return int(rng) if isinstance(rng, int | np.integer) else int(generator.integers(2**63))


def read_lenses(lenses: Any) -> dict[str, LensLike] | None:
    """Return the lenses of a study by name; None where each statistic has its default lens."""
    return None if lenses is None else named(lenses, "lenses")


def by_lens(
    lenses: Mapping[str, LensLike] | None, things: dict[str, Any], n_classes: int
) -> dict[str, tuple[LensLike, dict[str, Any]]]:
    """Return what is evaluated through each lens, by the name of the lens.

    Without lenses each statistic has its default lens; functions get the whole prediction.
    """
    if lenses is not None:
        return {name: (lens, things) for name, lens in lenses.items()}
    groups: dict[str, tuple[LensLike, dict[str, Any]]] = {}
    for name, thing in things.items():
        lens = default_lens(thing, n_classes) if isinstance(thing, Statistic) else Canonical()
        groups.setdefault(describe(lens), (lens, {}))[1][name] = thing
    return groups


def accepted(function: Callable[..., Any], offered: dict[str, Any]) -> dict[str, Any]:
    """Return those of the offered keywords that a function takes."""
    takes = inspect.signature(function).parameters.values()
    anything = any(parameter.kind is parameter.VAR_KEYWORD for parameter in takes)
    names = {parameter.name for parameter in takes}
    return {name: value for name, value in offered.items() if anything or name in names}


def numbers(values: Any, count: int, interval: str) -> list[Any]:
    """Return the numbers that a function of the user returned for an interval; refuse anything else."""
    found = list(values) if isinstance(values, Iterable) else [values]
    if len(found) != count or any(np.ndim(value) or np.asarray(value).dtype.kind not in "bfiu" for value in found):
        wanted = "whose ends are two numbers, low and high" if count == 2 else "whose target is a number"
        refuse(
            f"`intervals` must hold an interval {interval!r} {wanted}, got {values if count == 2 else found[0]!r}.",
            TypeError,
        )
    return found


def distinct_numbers(values: Any, argument: str, what: str, allowed: Callable[[float], bool]) -> tuple[float, ...]:
    """Return the numbers that a study varies, each once."""
    given = tuple(float(value) for value in np.atleast_1d(np.asarray(values, dtype=np.float64)))
    different = 0 < len(given) == len(set(given))
    require(different and all(map(allowed, given)), f"`{argument}` must hold one or more different {what}", values)
    return given


def increasing_pair(values: Any, argument: str, what: str, validate: Callable[[Any, str], Any]) -> tuple[Any, Any]:
    """Return two increasing numbers, each of which is validated."""
    several = isinstance(values, Sequence | np.ndarray) and not isinstance(values, str)
    found = [validate(value, argument) for value in values] if several else []
    require(len(found) == 2 and found[0] < found[1], f"`{argument}` must {what}", values, right_type=several)
    return found[0], found[1]


def sizes(values: int | Sequence[int], argument: str) -> list[int]:
    """Return the sizes that a study varies, each once."""
    given = list(values) if isinstance(values, Sequence | np.ndarray | range) else [values]
    counts = [validate_count(value, argument) for value in given]
    require(0 < len(counts) == len(set(counts)), f"`{argument}` must hold one or more different sizes", values)
    return counts


def named(things: Any, argument: str, kind: type | None = None, example: str = "") -> dict[str, Any]:
    """Return what a study varies, by name: the keys of a mapping, otherwise the code that makes each thing.

    Raises
    ------
    TypeError
        If a thing is not of the kind of the example.
    ValueError
        If there is nothing, or two things have the same name.
    """
    if isinstance(things, str):
        things = [things]
    if isinstance(things, Mapping):
        chosen = {str(name): thing for name, thing in things.items()}
        twice: list[str] = []
    else:
        values = list(things) if isinstance(things, Sequence) else [things]
        names = [describe(thing) for thing in values]
        twice = sorted({name for name in names if names.count(name) > 1})
        chosen = dict(zip(names, values, strict=True))
    found = f"{twice[0]!r} twice; pass a mapping to choose names" if twice else "none"
    refuse_if(twice or not chosen, f"`{argument}` must hold one or more things with different names, got {found}.")
    for value in chosen.values():
        require(kind is None or isinstance(value, kind), f"`{argument}` must hold {example}", value, right_type=False)
    return chosen
