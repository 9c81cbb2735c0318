"""False alarms of the monitor, how soon it finds a change, also with leads, and a test that is repeated every day.

``python -m benchmarks.monitor`` writes docs/data/monitor.csv and the tables of docs/monitoring-evidence.md; ``--page``
measures nothing, ``--missing`` what the data does not have. All of it takes some twenty minutes.
"""

import argparse
import math
import zlib
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import beta

import caltest
from benchmarks import streams
from benchmarks.machine import commit
from benchmarks.markdown import table
from benchmarks.pages import mark, with_table
from caltest.streaming.monitors._arrivals import Complete
from caltest.streaming.monitors._bets import Bets
from caltest.streaming.monitors._pending_bets import bet_on

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
WEEKLY = 10  # scores of a smaller batch
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


STREAMS = streams.STREAMS | {
    "3 classes": partial(streams.classes, n_classes=3),
    f"batches of {WEEKLY}": partial(streams.batches, size=WEEKLY),
}
LEADS = (1, 3, 7, 30)
CALIBRATED = (
    *("AR(.5)", "AR(.9)", "Markov", "season", "shocks", f"batches of {WEEKLY}"),
    *("3 classes", "5 classes", "rare, 1 %"),
)
WRONG = [(name, change) for name in ("AR(.9)", "shocks", f"batches of {WEEKLY}") for change in ("shift", "slope")]
WRONG += [("5 classes", "vague")]
LEFT_OUT = 1_000  # paths for which the lead is left out too


def alarm_of(stream, lead):
    """Return the alarm of the monitor with a lead, by its bets alone: checks of arguments take longer than these."""
    prob = stream.y_prob if stream.y_prob.ndim == 2 else np.column_stack([1 - stream.y_prob, stream.y_prob])
    size = np.bincount(stream.time)
    n_known = np.maximum(np.arange(len(size) + 1) - lead + 1, 0)
    times = Complete(prob, stream.y_true, size, n_known[:-1], n_known[1:])
    return bet_on(Bets.of(prob.shape[1], 1 / ALPHA), times).alarm


def level_ahead(name, lead, n_paths, rng):
    """Return the shares of calibrated paths that ever raise an alarm, and of some of them if the lead is left out."""
    alarms, ignored = 0, 0
    for path in range(n_paths):
        found = STREAMS[name](rng, N_AHEAD, lead)
        alarms += alarm_of(found, lead) is not None
        if path < LEFT_OUT:
            ignored += alarm_of(replace(found, time=np.arange(len(found.time))), 1) is not None
    return {"runs": n_paths, "false alarms": alarms / n_paths, "ignored": ignored / min(n_paths, LEFT_OUT)}


def delay_ahead(name, change, lead, n_paths, rng):
    """Return the median number of steps from the first prediction to the alarm; also of a monitor for each of h turns.

    Of h monitors each gets every h-th forecast, at the level alpha / h; of batches there are none.
    """
    found, turns = [], []
    for _ in range(n_paths):
        stream = streams.distorted(STREAMS[name](rng, 6 * N_AHEAD, lead), change)
        y, prob, time = stream.y_true, stream.y_prob, stream.time
        alarm = caltest.CalibrationMonitor(ALPHA, lead=lead).update(y, prob, time=time).alarm
        found.append(math.inf if alarm is None else time[alarm - 1] + lead)
        each = [caltest.CalibrationMonitor(ALPHA / lead).update(y[k::lead], prob[k::lead]).alarm for k in range(lead)]
        turns.append(min(math.inf if alarm is None else k + (alarm - 1) * lead + lead for k, alarm in enumerate(each)))
    alone = np.median(turns) if time[-1] == len(time) - 1 else math.nan
    return {"runs": n_paths, "median": np.median(found), "turns": alone}


def measure_ahead(n_level, n_delay, known):
    """Yield the rows of predictions whose outcomes are known later that are not known, each with its generator."""
    cells = [("delay ahead", *one, lead) for one in WRONG for lead in LEADS]
    cells += [("level ahead", name, "", lead) for name in CALIBRATED for lead in LEADS]
    for study, name, change, lead in cells:
        where = {"study": study, "predictions": name, "change": change, "lead": lead}
        if not (known.fillna({"change": ""})[[*where]] == [*where.values()]).all(axis=1).any():
            rng = np.random.default_rng([SEED, zlib.crc32(f"{study} {name} {change} {lead}".encode())])
            if study == "level ahead":
                found = level_ahead(name, lead, n_level, rng)
            else:
                found = delay_ahead(name, change, lead, n_delay, rng)
            yield where | found | {"commit": commit()}


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


def measure(n_level, n_delay, n_daily):
    """Return the rows where each label is known before the next prediction; every row has its own generator."""
    rows = [level(kind, n_level, np.random.default_rng([SEED, 0, n])) for n, kind in enumerate(PREDICTIONS)]
    rows += [
        delay(kind, change, calm, n_delay, np.random.default_rng([SEED, 1, n, m, calm]))
        for n, kind in enumerate(PREDICTIONS)
        for m, change in enumerate(CHANGES)
        for calm in (0, CALM)
    ]
    rows += daily(n_daily, np.random.default_rng([SEED, 2]))
    return pd.DataFrame(rows)


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
    """Return the table of false alarms with leads, a row for each stream."""
    rows = by_lead(frame, lambda row: f"{100 * row['false alarms']:.2f} ({100 * row['ignored']:.0f})")
    runs, largest = int(frame["runs"].min()), frame.loc[[frame["false alarms"].idxmax()]]
    about = (
        f"Per cent of {runs:,} runs of {N_AHEAD:,} observations with an alarm; in brackets, of at least {LEFT_OUT:,} "
    )
    about += "runs, if the lead is left out. "
    about += f"Of the largest, the upper limit (99 %) is {100 * upper_limits(largest)[0]:.2f} %. {measured(frame)}"
    return f"{table(('calibrated predictions', *(f'lead {lead}' for lead in LEADS)), rows)}\n{about}\n"


def delay_ahead_table(frame):
    """Return the table of delays with leads, a row for each stream and error."""
    rows = by_lead(frame, lambda row: f"{steps_in_words(row['median'])}{turns_in_words(row['turns'])}")
    runs = f"{int(frame['runs'].min())} runs of {6 * N_AHEAD:,} observations"
    about = "Median steps from the first prediction until the outcomes that the alarm needs are known, of "
    about += f"{runs}; in brackets those of a monitor for each turn. "
    head = ("predictions, error", *(f"lead {lead}" for lead in LEADS))
    return f"{table(head, rows)}\n{about}{measured(frame)}\n"


def by_lead(frame, in_words):
    """Return a row for each stream and error, with a cell for each lead."""
    rows = []
    for (name, change), part in frame.fillna({"change": ""}).groupby(["predictions", "change"], sort=False):
        of_lead = part.set_index("lead")
        cells = (in_words(of_lead.loc[lead]) if lead in of_lead.index else "" for lead in LEADS)
        rows.append((f"{name}, {change}" if change else name, *cells))
    return rows


def measured(frame):
    """Say which commits were measured."""
    return f"Measured at {', '.join(sorted(set(frame['commit'])))}."


def steps_in_words(steps):
    """Return a median; an infinite one is longer than the runs."""
    return f"{steps:,.0f}" if math.isfinite(steps) else "no alarm in most"


def turns_in_words(steps):
    """Return a median of monitors that take turns; of batches there is none."""
    return "" if math.isnan(steps) else f" ({steps_in_words(steps)})"


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
    parser.add_argument(
        "--missing", action="store_true", help="measure only rows with leads that the data does not have"
    )
    options = parser.parse_args()
    data, page = options.docs / "data" / "monitor.csv", options.docs / "monitoring-evidence.md"
    if not options.page:
        rows = pd.read_csv(data) if options.missing else measure(options.level, options.delay, options.daily)
        for row in measure_ahead(options.level, options.delay, rows):
            rows = pd.concat([rows, pd.DataFrame([row])])
            rows.to_csv(data, index=False)  # as they come
    page.write_text(with_tables(page.read_text(), pd.read_csv(data)))


if __name__ == "__main__":
    main()
