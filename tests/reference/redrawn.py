"""Outcomes redrawn by a counter, in whole numbers of Python: the slow twin of the states of many outcomes."""

import hashlib

_MASK = 2**64 - 1


def mix(x: int) -> int:
    """Return the output function of splitmix64 (Steele, Lea and Flood 2014)."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _MASK
    return x ^ (x >> 31)


def redrawn(prob: list[float], rng: int, source: str, row: int, n_resamples: int) -> list[int]:
    """Return the outcomes that are drawn for one row."""
    key = int.from_bytes(hashlib.sha256(f"{rng} {source}".encode()).digest()[:8], "little")
    start = mix((key + row * 0x9E3779B97F4A7C15) & _MASK)
    total = sum_in_order(prob)[-1]
    below = [int(value / total * 2**53) for value in sum_in_order(prob)]
    words = [mix((start + b * 0xD1342543DE82EF95) & _MASK) >> 11 for b in range(1, n_resamples + 1)]
    return [sum(word >= edge for edge in below[:-1]) for word in words]


def sum_in_order(values: list[float]) -> list[float]:
    """Return cumulative sums, from the first on."""
    found, total = [], 0.0
    for value in values:
        total += value
        found.append(total)
    return found
