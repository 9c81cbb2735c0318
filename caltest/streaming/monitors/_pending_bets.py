"""The wealth of bets whose outcomes count later, when no prediction is left that was made before they were known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._bets import HIGH, KEPT, LOW, N_ADAPTIVE, N_FIXED, N_LEARNED, N_SCALES, N_SUMS, place_pending
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions.inputs._refusals import refuse_if
from caltest.streaming.monitors._arrivals import Complete
from caltest.streaming.monitors._bets import RATIO, Alarm, Bets, events_of, shares_of

_BLOCK = 2**14  # probabilities that are handed to the kernel at once
_WEALTH = [0, *range(N_SUMS, N_SUMS + N_SCALES - 1)]  # of adaptive bets


@dataclass
class PendingBets(Bets):
    r"""Safe wealth: all that is left if every pending bet loses as much as it can.

    The predictions of one time are made before any of their outcomes is known, and before those of earlier times that
    are pending. A bet of stake s on a prediction p pays :math:`s (y - p)`, and s is a part of the safe wealth of its
    account, so that no account ever falls below 0. Each bet has three accounts, which bet all of what the bet would if
    nothing was pending, and this divided by m and by its root, where m is the number of predictions that are pending:
    if their outcomes are independent the first grows fastest, and the second if they are all the same.

    Attributes
    ----------
    fixed : array of shape (n_streams, 48)
    adaptive : array of shape (n_streams, 2, 10)
    size : array of shape (n_times,)
        Number of predictions of each time that is pending.
    paid : array of shape (n_times, n_streams, 54)
        What each account gets when the time is settled: what it bet, and what that won. The outcomes are known here,
        but nothing else depends on them before.
    learned : array of shape (n_times, n_streams, 2, 10)
        What the adaptive bets learn then; see `caltest._compiled._bets`.

    The others are those of `Bets`, and ``n_samples`` is the number of outcomes that are settled.
    """

    size: Floats = field(default_factory=lambda: np.empty(0))
    paid: Floats = field(default_factory=lambda: np.empty((0, 1, N_SCALES * (N_FIXED + N_ADAPTIVE))))
    learned: Floats = field(default_factory=lambda: np.empty((0, 1, N_ADAPTIVE, N_LEARNED)))

    @classmethod
    def of(cls, n_outcomes: int, threshold: float) -> Self:
        """Return bets of which half is placed at once."""
        return cls.divided(Bets.of(n_outcomes, threshold))

    @classmethod
    def divided(cls, bets: Bets) -> Self:
        """Return the same wealth with that of each bet divided among its accounts."""
        fixed = np.tile(bets.fixed / N_SCALES, N_SCALES)
        part = bets.adaptive[:, :, :1] / N_SCALES
        adaptive = np.concatenate([part, bets.adaptive[:, :, 1:], *[part] * (N_SCALES - 1)], axis=2)
        pending = (np.empty((0, *shape)) for shape in ((), *_shapes(len(fixed))))
        known = bets.n_outcomes, bets.threshold, bets.tally.copy()
        return cls(*known, fixed, adaptive, bets.path, bets.every, bets.alarm, *pending)

    @property
    def n_pending(self) -> int:
        """Number of predictions that were bet on and whose outcomes do not count yet."""
        return int(self.size.sum())

    def place_times(
        self, prob: NDArray[Any], outcome: NDArray[Any], size: Integers, before: Integers, after: Integers
    ) -> None:
        """Bet on the outcomes ``(n_samples,)`` of predictions ``(n_samples, n_outcomes)``, time by time.

        ``size``, ``before`` and ``after (n_times,)`` are the number of predictions of each time, and how many times of
        those that are pending now and these are settled before its predictions are bet on, and after.
        """
        ends, first, row, n_gone = np.cumsum(size), 0, 0, 0
        n_rows = max(1, _BLOCK // len(self.fixed))
        while first < len(size):
            last = max(first + 1, int(np.searchsorted(ends, row + n_rows, side="right")))
            times, rows = slice(first, last), slice(row, int(ends[last - 1]))
            events = events_of(prob[rows].astype(np.float64, copy=False), outcome[rows])
            due = before[times] - n_gone, after[times] - n_gone
            n_gone += self._advance_times(events, size[times].astype(np.float64), *due)
            first, row = last, rows.stop

    def _advance_times(self, events: tuple[Any, Any, Any], size: Floats, before: Integers, after: Integers) -> int:
        """Bet on the predictions of some times, and return how many times were settled."""
        old, n_old, sizes = self.n_samples, len(self.size), np.concatenate([self.size, size])
        n_settled = int(max(before[-1], after[-1]))
        every, new = self._path_to(old + int(sizes[:n_settled].sum()))
        n_places = int((np.arange(n_old + 1, len(sizes) + 1) - before).max(initial=n_old))
        paid, learned = (np.empty((n_places, *shape)) for shape in _shapes(len(self.fixed)))
        paid[:n_old], learned[:n_old] = self.paid, self.learned
        place = np.zeros(3, dtype=np.int64)
        shares, accounts = shares_of(self.n_outcomes), (self.tally, self.fixed, self.adaptive)
        pending = sizes, before, after, paid, learned
        while place_pending(*events, shares, RATIO, self.threshold, *accounts, *pending, place, every, new):
            impossible = learned[(place[0] - 1) % n_places, :, 0, [LOW, HIGH]]
            self.alarm = Alarm(self.n_samples, *self._cause(*impossible))
        self._extend_path(every, new, old)
        left = np.arange(n_settled, len(sizes)) % n_places
        self.size, self.paid, self.learned = sizes[n_settled:], paid[left], learned[left]
        return n_settled

    @property
    def _adaptive_wealth(self) -> Floats:
        return self.adaptive[:, :, _WEALTH].sum(axis=2)

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain Python objects."""
        pending = {"size": self.size.tolist(), "paid": self.paid.tolist(), "learned": self.learned.tolist()}
        return super().to_dict() | pending

    @classmethod
    def from_dict(cls, n_outcomes: int, threshold: float, state: Mapping[str, Any]) -> Self:
        """Return the bets whose state was written by `to_dict`.

        Raises
        ------
        KeyError, TypeError, ValueError
            If the state has another form, or is one that bets cannot have.
        """
        found = super().from_dict(n_outcomes, threshold, state)
        size = np.array(state["size"], dtype=np.float64)
        whole = size.ndim == 1 and np.isfinite(size).all() and (size >= 1).all() and (size == np.floor(size)).all()
        refuse_if(not whole or size.sum() > 2**53, "`size` holds what bets never come to.")
        for name, shape in zip(("paid", "learned"), _shapes(len(found.fixed)), strict=True):
            array = np.array(state[name], dtype=np.float64)
            if len(size) == array.size == 0:
                array = np.empty((0, *shape))
            refuse_if(array.shape != (len(size), *shape), f"`{name}` has shape {array.shape}.")
            positive = array if name == "paid" else array[..., [KEPT, 3, 5, 6, 7, LOW, HIGH]]
            refuse_if(not np.isfinite(array).all() or (positive < 0).any(), f"`{name}` holds what bets never come to.")
            setattr(found, name, array)
        found.size = size
        return found


def _shapes(n_streams: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of what is paid at a time, and of what is learned."""
    return (n_streams, N_SCALES * (N_FIXED + N_ADAPTIVE)), (n_streams, N_ADAPTIVE, N_LEARNED)


def bet_on(bets: Bets, new: Complete) -> Bets:
    """Return the bets after those on complete times; the ones that were passed may be changed.

    They stay `Bets`, of one account each, as long as no prediction is made while the outcome of another one is pending.
    """
    n_alone, row = 0, 0
    if not isinstance(bets, PendingBets):
        place = np.arange(len(new.size))
        together = (new.size > 1) | (new.before < place) | (new.after <= place)
        n_alone = row = int(np.argmax(together)) if together.any() else len(place)
        bets.place(new.prob[:n_alone], new.outcome[:n_alone])
        if n_alone == len(place):
            return bets
        bets = PendingBets.divided(bets)
    times = new.size[n_alone:], new.before[n_alone:] - n_alone, new.after[n_alone:] - n_alone
    bets.place_times(new.prob[row:], new.outcome[row:], *times)
    return bets
