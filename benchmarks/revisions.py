"""Forecasts of all leads: how often calibrated and wrong ones are rejected by `revision_test`.

``python -m benchmarks.revisions`` prints the table of docs/forecasts.md, of 1,000 data sets each, in about 10 minutes.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

import caltest
from benchmarks.markdown import table
from benchmarks.streams import autoregression

SEED, DATA_SETS, LEVEL = 20261128, 1000, 0.05


class Design(NamedTuple):
    """Exceedances of an autoregression, with forecasts from each lead to the next."""

    coefficient: float
    event: float
    n_times: int
    longest_lead: int
    n_places: int = 1


DESIGNS = (
    Design(0.5, 0.3, 365, 3),
    Design(0.8, 0.3, 100, 7),
    Design(0.8, 0.3, 365, 7),
    Design(0.8, 0.3, 365, 30),
    Design(0.95, 0.3, 365, 7),
    Design(0.8, 0.1, 365, 7),
    Design(0.8, 0.03, 365, 7),
    Design(0.8, 0.01, 1000, 7),
    Design(0.8, 0.3, 365, 7, 5),
)
WRONG = {
    "calibrated": lambda z: z,
    "shift": lambda z: z + 0.3,
    "slope": lambda z: 1.5 * z,
    "region": lambda z: z + 0.8 * ((z > np.quantile(z, 0.4)) & (z < np.quantile(z, 0.6))),
}
"""What is done to the logits of right forecasts."""


def forecasts(design: Design, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return right forecasts with labels, times, leads and places; places have unrelated series."""
    parts = []
    for place in range(design.n_places):
        state = autoregression(rng, design.coefficient, design.n_times + design.longest_lead)
        made = np.repeat(np.arange(design.n_times), design.longest_lead)
        lead = np.tile(np.arange(1, design.longest_lead + 1), design.n_times)
        memory, limit = design.coefficient**lead, ndtri(1 - design.event)
        prob = ndtr((memory * state[made] - limit) / np.sqrt(1 - memory**2))
        target = (made + lead) * design.n_places + place
        parts.append(
            {"y": (state[made + lead] > limit).astype(int), "p": prob, "time": made, "lead": lead, "of": target}
        )
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def rates(design: Design) -> tuple[dict[str, float], float]:
    """Return how often each kind of forecasts is rejected, and the median number of effective times."""
    rng, rejected, effective = (
        np.random.default_rng([SEED, *(int(100 * x) for x in design)]),
        dict.fromkeys(WRONG, 0),
        [],
    )
    for _ in range(DATA_SETS):
        data = forecasts(design, rng)
        for kind, change in WRONG.items():
            prob = expit(change(logit(np.clip(data["p"], 1e-9, 1 - 1e-9))))
            found = caltest.hypothesis_tests.revision_test(
                data["y"], prob, time=data["time"], lead=data["lead"], forecast_of=data["of"]
            )
            rejected[kind] += found.pvalue <= LEVEL
            effective += [found.effective_times] if kind == "calibrated" else []
    return {kind: number / DATA_SETS for kind, number in rejected.items()}, float(np.median(effective))


def main() -> None:
    """Print the table."""
    rows = []
    for design in DESIGNS:
        found, effective = rates(design)
        name = f"AR({f'{design.coefficient:g}'.lstrip('0')})" + (
            f", {design.n_places} places" if design.n_places > 1 else ""
        )
        about = (
            name,
            f"{100 * design.event:g} %",
            f"{design.n_times:,}",
            f"1 to {design.longest_lead}",
            f"{effective:.0f}",
        )
        rows.append((*about, *(f"{100 * rate:.1f}" for rate in found.values())))
        print(rows[-1], flush=True)
    print(table(("series", "events", "times", "leads", "effective times", *WRONG), rows))


if __name__ == "__main__":
    main()
