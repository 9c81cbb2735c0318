"""Results as plain Python objects: one rule for all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from caltest.results._naming import describe


def to_plain(value: Any) -> Any:
    """Return a value as strict JSON holds it; infinities and NaN become None, objects the code that makes them."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    elif hasattr(value, "to_dict") and not isinstance(value, type):  # a result or a frame
        value = value.to_dict("records") if hasattr(value, "columns") else value.to_dict()
    elif hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name if isinstance(name, str) else f"{name:.12g}": to_plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(part) for part in value]
    return value if isinstance(value, int | str | None) else describe(value)
