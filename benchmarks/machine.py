"""What the numbers were measured on."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np
from llvmlite import binding

ROOT = Path(__file__).parents[1]
VECTORS = ("sse4.2", "avx", "avx2", "fma", "bmi2", "avx512f", "avx512dq", "avx512vl", "neon", "sve")


def description(begun: tuple[float, float, float]) -> str:
    """Return a list of facts; ``begun`` is the load average before the measurement."""
    features = binding.get_host_cpu_features()
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    facts = {
        "CPU": f"{_model()}, which LLVM takes for {binding.get_host_cpu_name()}",
        "cores": f"{os.cpu_count()}",
        "vector instructions": ", ".join(name for name in VECTORS if features.get(name)),
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "versions": ", ".join(
            [f"Python {platform.python_version()}"]
            + [f"{name} {version(name)}" for name in ("numpy", "numba", "llvmlite", "scipy")]
            + [f"{blas['name']} {blas['version']}"]
        ),
        "caltest": commit(),
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "load": f"{_load(begun)} before, {_load(os.getloadavg())} after (averages over 1, 5 and 15 minutes; "
        "the measurement itself makes about 1)",
    }
    return "\n".join(f"* {name}: {fact}" for name, fact in facts.items()) + "\n"


def _load(averages: tuple[float, float, float]) -> str:
    return " ".join(f"{value:.2f}" for value in averages)


def _model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if not cpuinfo.exists():
        return platform.processor() or "unknown"
    fields = dict(
        [part.strip() for part in line.split(":", 1)] for line in cpuinfo.read_text().splitlines() if ":" in line
    )
    names = [fields.get("model name", "unknown")]
    if "cpu family" in fields:
        names.append(f"family {fields['cpu family']} model {fields.get('model', '?')}")
    return ", ".join(names)


def commit(checkout: Path = ROOT) -> str:
    """Return the commit that was measured, and whether files differ from it."""
    try:
        changed = ", with changes" if _git(checkout, "status", "--porcelain", "caltest") else ""
        return _git(checkout, "rev-parse", "--short", "HEAD") + changed
    except (OSError, subprocess.CalledProcessError):
        return version("caltest") if checkout == ROOT else "no commit"


def _git(checkout: Path, *command: str) -> str:
    return subprocess.run(["git", *command], cwd=checkout, capture_output=True, text=True, check=True).stdout.strip()
