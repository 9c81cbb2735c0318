"""False alarms of a monitor of calibrated predictions whose errors depend on each other: a table of the page."""

import numpy as np
from scipy.stats import norm

from caltest import CalibrationMonitor

RUNS = 400


def forecasts(rng, n, lead, correlation=0.9):
    """Labels and predictions of the sign of an autoregressive process, ``lead`` days ahead of the last known day."""
    x, noise = np.empty(n + lead), rng.normal(size=n + lead) * np.sqrt(1 - correlation**2)
    x[0] = rng.normal()
    for t in range(1, n + lead):
        x[t] = correlation * x[t - 1] + noise[t]
    known = correlation**lead
    return (x[lead:] > 0).astype(int), norm.cdf(known * x[:n] / np.sqrt(1 - known**2))


def groups(rng, n_groups, size, correlation, spread):
    """Labels and predictions of groups whose latent variables share a shock that no prediction knows."""
    shock, score = rng.normal(size=(n_groups, 1)), spread * rng.normal(size=(n_groups, size))
    latent = np.sqrt(correlation) * shock + np.sqrt(1 - correlation) * rng.normal(size=score.shape)
    return (latent < score).astype(int).ravel(), norm.cdf(score).ravel()


def alarms(draw, *, lead=None, batch=None):
    """The observation of the alarm in each run, infinite without one."""
    found = []
    for seed in range(RUNS):
        options = {} if batch is None else {"batch": batch}
        found.append(CalibrationMonitor(lead=lead).update(*draw(np.random.default_rng(seed)), **options).alarm)
    return np.array([np.inf if alarm is None else alarm for alarm in found])


if __name__ == "__main__":
    for lead, given in ((1, None), (7, None), (7, 7)):
        when = alarms(lambda rng, lead=lead: forecasts(rng, 2000, lead), lead=given)
        words = f"lead {lead}{'' if given is None else ' (given)'}"
        print(f"{words}: {np.mean(when <= 365):.1%} in a year, {np.mean(when <= 2000):.1%} in 2,000 days")
    for batch in (None, np.arange(2600) // 50):
        print(f"weeks: {np.isfinite(alarms(lambda rng: groups(rng, 52, 50, 0.05, 1.0), batch=batch)).mean():.1%}")
    for batch in (None, np.arange(2000) // 20):
        print(f"patients: {np.isfinite(alarms(lambda rng: groups(rng, 100, 20, 0.2, 0.7), batch=batch)).mean():.1%}")
