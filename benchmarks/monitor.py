"""False alarms of the monitor, how soon it finds a change, also with leads, and a test that is repeated every day.

``python -m benchmarks.monitor`` writes docs/data/monitor.csv and the tables of docs/monitoring.md; ``--page`` measures
nothing. It takes some ten minutes.
"""

import argparse
import math
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.signal import lfilter
from scipy.stats import beta, norm

import caltest
from benchmarks.markdown import table
from benchmarks.pages import mark, with_table

ALPHA = 0.05
SEED = 20261122
N_STEPS = 10_000
CALM = 20_000  # observations before the change
DAY = 1_000
PREDICTIONS = {
    "vague": lambda rng, n: rng.beta(5, 5, n),
    "sharp": lambda rng, n: np.clip(rng.beta(0.1, 0.1, n), 1e-12, 1 - 1e-12),
    "rare (0.1 %)": lambda rng, n: rng.beta(0.5, 499.5, n),
}
N_AHEAD = 1_000  # observations of a path with a lead
WEEKLY = 10  # scores
CHANGES = {"odds x 1.28": (1.28, 1), "odds x 1.65": (1.65, 1), "odds x 0.5": (0.5, 1), "slope 0.7": (1, 0.7)}


def recalibrated(prob, odds, slope):
    """Return the probability whose odds are ``odds`` times those of ``prob`` to the power ``slope``."""
    up, down = odds * prob**slope, (1 - prob) ** slope
    return up / (up + down)


def information(prob, true):
    """Return the mean Kullback-Leibler divergence of true probabilities from predictions."""
    prob, true = (np.clip(value, 1e-300, 1 - 1e-16) for value in (prob, true))
    return float(np.mean(true * np.log(true / prob) + (1 - true) * np.log((1 - true) / (1 - prob))))


def level(kind, n_paths, rng):
    """Return the share of calibrated paths that ever raise an alarm."""
    alarms = 0
    for _ in range(n_paths):
        prob = PREDICTIONS[kind](rng, N_STEPS)
        alarms += caltest.CalibrationMonitor(ALPHA).update(rng.random(N_STEPS) < prob, prob).alarm is not None
    return {"study": "level", "predictions": kind, "runs": n_paths, "false alarms": alarms / n_paths}


def delay(kind, change, calm, n_paths, rng):
    """Return the optimum and the median delay of the alarm in runs without a false alarm."""
    large = PREDICTIONS[kind](rng, 10**6)
    optimum = math.log(1 / ALPHA) / information(large, recalibrated(large, *CHANGES[change]))
    delays, false = [], 0
    for _ in range(n_paths):
        prob = PREDICTIONS[kind](rng, calm + int(15 * optimum) + 2_000)
        true = np.where(np.arange(len(prob)) < calm, prob, recalibrated(prob, *CHANGES[change]))
        alarm = caltest.CalibrationMonitor(ALPHA).update(rng.random(len(prob)) < true, prob).alarm or math.inf
        false += alarm <= calm
        delays += [alarm - calm] if alarm > calm else []
    where = {"predictions": kind, "change": change, "calm": calm, "runs": n_paths, "false alarms": false / n_paths}
    return {"study": "delay", **where, "optimum": round(optimum), "median": np.median(delays)}


def exceedances(rng, n, lead, persistence, threshold=0.5):
    """Return whether an autoregression will be above a threshold, the probability of it ``lead`` before, and times."""
    x = lfilter([math.sqrt(1 - persistence**2)], [1, -persistence], rng.normal(size=n + lead + 300))[300:]
    ahead = persistence**lead
    return x[lead:] > threshold, norm.cdf((ahead * x[:n] - threshold) / math.sqrt(1 - ahead**2)), np.arange(n)


def two_states(rng, n, lead):
    """Return whether a Markov chain of two states will be in the rarer one, the probability of it before, and times."""
    leave, state = (0.05, 0.15), np.empty(n + lead, dtype=int)
    state[0] = rng.random() < 0.25
    for t, draw in enumerate(rng.random(n + lead - 1)):
        state[t + 1] = state[t] ^ (draw < leave[state[t]])
    ahead = np.linalg.matrix_power([[1 - leave[0], leave[0]], [leave[1], 1 - leave[1]]], lead)
    return state[lead:] == 1, ahead[state[:n], 1], np.arange(n)


def weekly_scores(rng, n, lead):
    """Return outcomes, predictions and weeks; outcomes share the shocks of the weeks until they are known."""
    week = np.arange(n) // WEEKLY
    shock = np.append(0, rng.normal(size=week[-1] + 1 + lead).cumsum())
    common = (shock[week + lead] - shock[week]) / math.sqrt(lead)
    score = 0.9 * rng.normal(size=n) - 0.5
    return math.sqrt(0.1) * common + math.sqrt(0.9) * rng.normal(size=n) < score, norm.cdf(score), week


STREAMS = {
    "autoregression (0.5)": lambda rng, n, lead: exceedances(rng, n, lead, 0.5),
    "autoregression (0.8)": lambda rng, n, lead: exceedances(rng, n, lead, 0.8),
    "autoregression (0.95)": lambda rng, n, lead: exceedances(rng, n, lead, 0.95),
    "two states": two_states,
    "rare events (2 %)": lambda rng, n, lead: exceedances(rng, n, lead, 0.8, norm.ppf(0.98)),
    f"{WEEKLY} scores a week": weekly_scores,
}
LEADS = {
    "autoregression (0.8)": 7,
    "autoregression (0.95)": 30,
    "two states": 3,
    "rare events (2 %)": 7,
    f"{WEEKLY} scores a week": 4,
}
DELAYS = [
    *(("autoregression (0.5)", "odds x 1.35", lead) for lead in (1, 3, 7, 30)),
    *(("autoregression (0.8)", "slope 1.5", lead) for lead in (1, 3, 7, 30)),
    *((f"{WEEKLY} scores a week", "slope 1.5", lead) for lead in (1, 4)),
]
AHEAD = {"odds x 1.35": (1 / 1.35, 1), "slope 1.5": (1, 1.5)}  # of the predictions; their labels are right


def level_ahead(kind, n_paths, rng):
    """Return the shares of calibrated paths that ever raise an alarm, with the lead and without."""
    alarms, ignored = 0, 0
    for _ in range(n_paths):
        y, prob, time = STREAMS[kind](rng, N_AHEAD, LEADS[kind])
        alarms += caltest.CalibrationMonitor(ALPHA, lead=LEADS[kind]).update(y, prob, time=time).alarm is not None
        ignored += caltest.CalibrationMonitor(ALPHA).update(y, prob).alarm is not None
    shares = {"false alarms": alarms / n_paths, "ignored": ignored / n_paths}
    return {"study": "level ahead", "predictions": kind, "lead": LEADS[kind], "runs": n_paths, **shares}


def delay_ahead(kind, change, lead, n_paths, rng):
    """Return the median number of steps from the first prediction to the alarm; also of a monitor for each of h turns.

    Of h monitors each gets every h-th forecast, at the level alpha / h.
    """
    found, turns = [], []
    for _ in range(n_paths):
        y, prob, time = STREAMS[kind](rng, 6 * N_AHEAD, lead)
        wrong = recalibrated(prob, *AHEAD[change])
        alarm = caltest.CalibrationMonitor(ALPHA, lead=lead).update(y, wrong, time=time).alarm
        found.append(math.inf if alarm is None else time[alarm - 1] + lead)
        each = [caltest.CalibrationMonitor(ALPHA / lead).update(y[k::lead], wrong[k::lead]).alarm for k in range(lead)]
        turns.append(min(math.inf if alarm is None else k + (alarm - 1) * lead + lead for k, alarm in enumerate(each)))
    where = {"predictions": kind, "change": change, "lead": lead, "runs": n_paths}
    alone = np.median(turns) if time[-1] == len(time) - 1 else math.nan
    return {"study": "delay ahead", **where, "median": np.median(found), "turns": alone}


def daily(n_paths, rng):
    """Return false alarms before and median delays after a change, of the monitor and of a test every day."""
    first = {"monitor": [], "test of each day": [], "test of all days": []}
    n = 3 * CALM
    for _ in range(n_paths):
        prob = rng.random(n)
        y = rng.random(n) < np.where(np.arange(n) < CALM, prob, recalibrated(prob, 0.8, 1))
        first["monitor"].append(caltest.CalibrationMonitor(ALPHA).update(y, prob).alarm or math.inf)
        for name in ("test of each day", "test of all days"):
            begin = (lambda end: 0) if "all" in name else (lambda end: end - DAY)
            days = (
                end for end in range(DAY, n + 1, DAY) if pvalue(y[begin(end) : end], prob[begin(end) : end]) <= ALPHA
            )
            first[name].append(next(days, math.inf))
    return [
        {
            "study": "daily",
            "method": name,
            "runs": n_paths,
            "false alarms": float(np.mean(np.array(found) <= CALM)),
            "median": float(np.median([end - CALM for end in found if end > CALM])),
        }
        for name, found in first.items()
    ]


def pvalue(y_true, y_prob):
    """Return the p-value of the score test of shift and slope, of which the monitor also knows."""
    return caltest.calibration_test(y_true, y_prob, statistic=caltest.statistics.CoxScore(), method="asymptotic").pvalue


def measure_ahead(n_level, n_delay):
    """Return the rows of predictions whose outcomes are known later."""
    levels = (level_ahead(kind, n_level, np.random.default_rng([SEED, 3, n])) for n, kind in enumerate(LEADS))
    delays = (delay_ahead(*one, n_delay, np.random.default_rng([SEED, 4, n])) for n, one in enumerate(DELAYS))
    return [*levels, *delays]


def measure(n_level, n_delay, n_daily):
    """Return all rows of the data; every row has its own generator."""
    rows = [level(kind, n_level, np.random.default_rng([SEED, 0, n])) for n, kind in enumerate(PREDICTIONS)]
    rows += [
        delay(kind, change, calm, n_delay, np.random.default_rng([SEED, 1, n, m, calm]))
        for n, kind in enumerate(PREDICTIONS)
        for m, change in enumerate(CHANGES)
        for calm in (0, CALM)
    ]
    rows += daily(n_daily, np.random.default_rng([SEED, 2]))
    return pd.DataFrame([*rows, *measure_ahead(n_level, n_delay)])


def level_table(frame):
    """Return the table of false alarms."""
    rows = [
        (row["predictions"], f"{int(row['runs']):,}", f"{100 * row['false alarms']:.2f} %", f"{100 * limit:.2f} %")
        for (_, row), limit in zip(frame.iterrows(), upper_limits(frame), strict=True)
    ]
    head = ("predictions", f"runs of {N_STEPS:,} observations", "with an alarm", "upper limit (99 %)")
    return table(head, rows)


def upper_limits(frame):
    """Return one-sided exact binomial limits (Clopper-Pearson, 99 %) of the probabilities of an alarm."""
    alarms = (frame["runs"] * frame["false alarms"]).round()
    return beta.ppf(0.99, alarms + 1, frame["runs"] - alarms)


def delay_table(frame):
    """Return the table of delays, one row for each change."""
    rows = []
    for (kind, change), part in frame.groupby(["predictions", "change"], sort=False):
        by_calm = part.set_index("calm")
        optimum = by_calm["optimum"].iloc[0]
        medians = (
            f"{by_calm.loc[calm, 'median']:,.0f} ({by_calm.loc[calm, 'median'] / optimum:.1f})" for calm in (0, CALM)
        )
        rows.append((f"{kind}, {change}", f"{optimum:,.0f}", *medians))
    head = ("predictions, change", "log(1 / alpha) / KL", "wrong from the beginning", f"wrong after {CALM:,}")
    runs = " to ".join(f"{n:.0f}" for n in sorted({frame["runs"].min(), frame["runs"].max()}))
    return f"{table(head, rows)}\nMedians of {runs} runs, and their ratio to the optimum.\n"


def daily_table(frame):
    """Return the table of the monitor and the tests that are repeated."""
    rows = [
        (row["method"], f"{100 * row['false alarms']:.1f} %", f"{row['median']:,.0f}") for _, row in frame.iterrows()
    ]
    head = ("method", f"false alarm within {CALM:,}", "median delay")
    return f"{table(head, rows)}\n{int(frame['runs'].min())} runs. Delays of runs without a false alarm.\n"


def level_ahead_table(frame):
    """Return the table of false alarms with leads."""
    rows = [
        (
            row["predictions"],
            f"{row['lead']:.0f}",
            f"{100 * row['false alarms']:.2f} %",
            f"{100 * row['ignored']:.1f} %",
        )
        for _, row in frame.iterrows()
    ]
    head = ("calibrated predictions", "lead", "runs with an alarm", "if the lead is left out")
    return f"{table(head, rows)}\n{int(frame['runs'].min()):,} runs of {N_AHEAD:,} observations.\n"


def delay_ahead_table(frame):
    """Return the table of delays with leads."""
    rows = []
    for _, row in frame.iterrows():
        median, turns = (steps_in_words(row[name]) for name in ("median", "turns"))
        rows.append((f"{row['predictions']}, {row['change']}", f"{row['lead']:.0f}", median, turns))
    head = ("predictions, error", "lead", "median delay in steps", "a monitor for each turn")
    return f"{table(head, rows)}\nMedians of {int(frame['runs'].min())} runs of {6 * N_AHEAD:,} observations.\n"


def steps_in_words(steps):
    """Return a median; of batches there is none with turns, and an infinite one is longer than the runs."""
    return "" if math.isnan(steps) else f"{steps:,.0f}" if math.isfinite(steps) else "no alarm in most"


TABLES = {
    "level": level_table,
    "delay": delay_table,
    "daily": daily_table,
    "level ahead": level_ahead_table,
    "delay ahead": delay_ahead_table,
}


def with_tables(text, frame):
    """Return the text of the page with its tables made from the data."""
    for name, make in TABLES.items():
        text = with_table(text, mark("monitor", name), make(frame[frame["study"] == name]))
    return text


def main():
    """Measure, and write data and tables."""
    parser = argparse.ArgumentParser(description="False alarms and delays of the monitor.")
    parser.add_argument("--level", type=int, default=10_000, help="runs for false alarms (default: %(default)s)")
    parser.add_argument("--delay", type=int, default=200, help="runs for each change (default: %(default)s)")
    parser.add_argument("--daily", type=int, default=500, help="runs of daily tests (default: %(default)s)")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the tables from the data")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="folder of data and page")
    options = parser.parse_args()
    data, page = options.docs / "data" / "monitor.csv", options.docs / "monitoring.md"
    if not options.page:
        measure(options.level, options.delay, options.daily).to_csv(data, index=False)
    page.write_text(with_tables(page.read_text(), pd.read_csv(data)))


if __name__ == "__main__":
    main()
