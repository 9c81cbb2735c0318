"""The folder of a study: finished parts are kept, so that an interrupted study continues where it stopped."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from caltest.results._atomic_file import atomic_file, write_atomically

if TYPE_CHECKING:
    import pandas as pd

_MANIFEST = "study.json"


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
        if place.exists() and not place.is_dir():
            msg = f"`out` must be a folder, got the file {place}."
            raise ValueError(msg)
        place.mkdir(parents=True, exist_ok=True)
        manifest = place / _MANIFEST
        if not manifest.exists():
            about = {"study": study, "seed": new_seed() if seed is None else seed}
            write_atomically(manifest, json.dumps(about))
        try:
            known = json.loads(manifest.read_text(encoding="utf-8"))
        except ValueError:
            msg = f"`out` must be a new folder or that of a study, got {place}, whose {_MANIFEST} is damaged."
            raise ValueError(msg) from None
        if known["study"] != study:
            msg = (
                f"`out` must be a new folder or that of a {study} study, got that of a {known['study']} study: {place}."
            )
            raise ValueError(msg)
        if seed not in {None, known["seed"]}:
            msg = f"`rng` must be None or {known['seed']}, with which the study in {place} was begun, got {seed}."
            raise ValueError(msg)
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
