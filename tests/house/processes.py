"""Code in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import caltest

ROOT = Path(caltest.__file__).parents[1]


def in_fresh_process(code: str, **variables: str) -> str:
    """What code prints in a process of its own, warnings being errors."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", **variables}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
