"""Null distributions read along sorted scores, against NumPy loops: KS, Kuiper, IsotonicError, ClasswiseKS.

Run as ``python benchmarks/bench_paths.py``. Each line is the whole call of `calibration_test` with 9,999 draws at
n = 10,000 and, on the same predictions, a loop that a careful NumPy user would write, its time scaled from fewer
draws. They are timed in turn in one process on one thread; ratios are those of medians of CPU time. Every loop must
agree with the package: the observed value to 1e-6, the null mean within 4 standard errors.
"""

import time

import numpy as np

import caltest

N_RESAMPLES, N_LOOPS, ROUNDS = 9_999, 300, 7


class EventLoop:
    """What the loops for two outcomes share: sorted predictions, SFC64 uniforms as float32, reused buffers."""

    def __init__(self, y_true, event, seed=0):
        order = np.argsort(event, kind="stable")
        self.event, self.observed = event[order], y_true[order].astype(bool)
        self.start = np.flatnonzero(np.append(True, np.diff(self.event) > 0))
        self.n_samples = len(event)
        self.end = np.append(self.start[1:], self.n_samples) - 1
        self.untied = len(self.start) == self.n_samples
        self.single = self.event.astype(np.float32)
        self.rng = np.random.Generator(np.random.SFC64(seed))

    def null(self, n_resamples):
        """Return the statistic on every draw."""
        uniform = np.empty(self.n_samples, dtype=np.float32)
        happened = np.empty(self.n_samples, dtype=bool)
        values = np.empty(n_resamples)
        for r in range(n_resamples):
            self.rng.random(out=uniform, dtype=np.float32)
            np.less(uniform, self.single, out=happened)
            values[r] = self.evaluate(happened)
        return values


class PathLoop(EventLoop):
    """Events are counted in 32-bit integers (faster than residuals in floats), and read at the ends of tied blocks."""

    def __init__(self, *arrays):
        super().__init__(*arrays)
        self.expected = np.cumsum(self.event)
        self.count = np.empty(self.n_samples, dtype=np.int32)
        self.path = np.empty(self.n_samples)

    def evaluate(self, happened):
        np.cumsum(happened, dtype=np.int32, out=self.count)
        np.subtract(self.count, self.expected, out=self.path)
        read = self.path if self.untied else self.path[self.end]
        return self.combine(max(read.max(), 0.0), min(read.min(), 0.0)) / self.n_samples


class KSLoop(PathLoop):
    def combine(self, high, low):
        return max(high, -low)


class KuiperLoop(PathLoop):
    def combine(self, high, low):
        return high - low


class IsotonicLoop(EventLoop):
    """SciPy's compiled pool-adjacent-violators; the score from the sums of its blocks."""

    def __init__(self, *arrays):
        super().__init__(*arrays)
        self.size = np.diff(np.append(self.start, self.n_samples))
        self.squares, self.twice = np.square(self.event).sum(), 2 * self.event

    def evaluate(self, happened):
        from scipy.optimize import isotonic_regression

        if self.untied:
            fit = isotonic_regression(happened)
        else:
            events = np.add.reduceat(happened, self.start, dtype=np.int64)
            fit = isotonic_regression(events / self.size, weights=self.size)
        level = fit.x[fit.blocks[:-1]]
        return (self.squares - self.twice[happened].sum() + (level * level * fit.weights).sum()) / self.n_samples


class ClasswiseLoop:
    """One draw of the class serves all paths; each is read at its events only, found sorted by marking their ranks."""

    def __init__(self, y_true, y_prob, seed=0):
        self.n_samples, self.n_classes = y_prob.shape
        order = np.argsort(y_prob, axis=0, kind="stable")
        self.rank = np.argsort(order, axis=0, kind="stable").T.copy()
        self.after, self.before = np.empty((2, self.n_classes, self.n_samples))
        for k, column in enumerate(order.T):
            score = y_prob[column, k]
            total = np.append(0.0, np.cumsum(score))
            self.before[k] = total[np.searchsorted(score, score, side="left")]
            self.after[k] = total[np.searchsorted(score, score, side="right")]
        self.scale = np.sqrt((y_prob * (1 - y_prob)).sum(axis=0))
        self.thresholds = np.cumsum(y_prob, axis=1)[:, :-1].T.astype(np.float32).copy()
        self.observed = y_true
        self.index = np.arange(self.n_samples + 1.0)
        self.rng = np.random.Generator(np.random.SFC64(seed))

    def evaluate(self, outcome):
        largest = 0.0
        mark = np.zeros(self.n_samples, dtype=bool)
        for k in range(self.n_classes):
            mark[:] = False
            mark[self.rank[k][np.flatnonzero(outcome == k)]] = True
            place = np.flatnonzero(mark)
            n_events = len(place)
            low = n_events - self.after[k, -1]
            high = 0.0
            if n_events:
                high = (self.index[1 : n_events + 1] - self.after[k][place]).max()
                low = min(low, (self.index[:n_events] - self.before[k][place]).min())
            largest = max(largest, max(high, -low) / self.scale[k])
        return largest

    def null(self, n_resamples):
        """Return the statistic on every draw."""
        uniform = np.empty(self.n_samples, dtype=np.float32)
        outcome = np.empty(self.n_samples, dtype=np.uint8)
        reached = np.empty(self.n_samples, dtype=bool)
        values = np.empty(n_resamples)
        for r in range(n_resamples):
            self.rng.random(out=uniform, dtype=np.float32)
            outcome[:] = 0
            for threshold in self.thresholds:
                np.greater_equal(uniform, threshold, out=reached)
                outcome += reached
            values[r] = self.evaluate(outcome)
        return values


def problems():
    """Return confidences of a sharp network (ties), even ones (no ties), and ten classes of it, with labels."""
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    y_prob = y_prob.astype(float)
    rng = np.random.default_rng(0)
    even = rng.random(10_000)
    sharp = (y_prob.argmax(axis=1) == y_true, y_prob.max(axis=1))
    flat = rng.dirichlet(np.ones(10), size=10_000)
    drawn = (rng.random((10_000, 1)) >= np.cumsum(flat, axis=1)).sum(axis=1).clip(0, 9)
    two = {"sharp": sharp, "even": (rng.random(10_000) < even, even)}
    return two, {"sharp": (y_true, y_prob), "flat": (drawn, flat)}


def compare(name, arrays, statistic, loop):
    """Print CPU times per 9,999 draws and their ratio."""

    def call(n_resamples):
        return caltest.calibration_test(*arrays, statistic=statistic, method="monte-carlo", n_resamples=n_resamples)

    result, null = call(N_RESAMPLES), loop.null(N_LOOPS)
    observed = loop.evaluate(loop.observed)
    assert abs(observed - result.statistic) <= 1e-6 * result.statistic, (observed, result.statistic)
    error = np.hypot(null.std() / N_LOOPS**0.5, result.null_distribution.std() / N_RESAMPLES**0.5)
    assert abs(null.mean() - result.noise_floor) < 4 * error
    ours, theirs = [], []
    for _ in range(ROUNDS):
        start = time.process_time()
        call(N_RESAMPLES)
        middle = time.process_time()
        loop.null(N_LOOPS)
        ours.append(middle - start)
        theirs.append((time.process_time() - middle) * N_RESAMPLES / N_LOOPS)
    package, numpy = np.median(ours), np.median(theirs)
    print(f"{statistic!s:<24} {name:<6} caltest {package:7.3f} s   NumPy {numpy:7.2f} s   ratio {numpy / package:5.1f}")


def main():
    two, ten = problems()
    for name, arrays in two.items():
        compare(name, arrays, caltest.KS(), KSLoop(*arrays))
        compare(name, arrays, caltest.statistics.Kuiper(), KuiperLoop(*arrays))
        compare(name, arrays, caltest.statistics.IsotonicError(), IsotonicLoop(*arrays))
    for name, arrays in ten.items():
        compare(name, arrays, caltest.statistics.ClasswiseKS(), ClasswiseLoop(*arrays))


if __name__ == "__main__":
    main()
