"""Extremes of cumulative residuals from counts of events in blocks of rows."""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import int32, types, uint64
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from caltest._compiled._jit import inner, kernel, unless_one

MINUS = 2**16  # one event fewer; an event more adds 1
_TILE = 4  # words of 64 rows whose places stay in the first-level cache
_ENTRIES = 2**16  # places that stay in the second-level cache


class BlockCounters(NamedTuple):
    """The counter of each row in each path, and its label on the usual path.

    Attributes
    ----------
    place : array of shape (n_samples, n_paths), unsigned integers
        Place of the counter of every row and path among ``(n_groups, n_blocks, LANES)``.
    usual : array of shape (n_samples,)
        Labels of the base path; anything where a row has none.
    has_usual : array of words of 64 bits
        Whether a row has one, 64 rows to a word.
    others : array
        Rows without one.
    """

    place: NDArray[Any]
    usual: NDArray[Any]
    has_usual: NDArray[np.uint64]
    others: NDArray[Any]


@intrinsic
def _differ(typing_context, first, second, like):
    """Return bit i of 64: whether items i behind two addresses differ; they are unsigned integers of type ``like``."""

    def generate(context, builder, signature, arguments):
        items = ir.VectorType(ir.IntType(like.bitwidth), 64)
        places = (builder.inttoptr(address, items.as_pointer()) for address in arguments[:2])
        x, y = (builder.load(place, align=like.bitwidth // 8) for place in places)
        return builder.bitcast(builder.icmp_unsigned("!=", x, y), ir.IntType(64))

    return types.uint64(types.int64, types.int64, like), generate


@intrinsic
def _trailing_zeros(typing_context, x):
    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@kernel
def find_places(outcomes, rows, slots):
    """Fill ``slots (n_replicates, n_others)``: the counters of ``outcomes`` in the rows without a usual label.

    Of many paths, whose places are too many to stay in the cache together with the counters. Rows are the outer loop,
    so that their places do.
    """
    n_paths = uint64(rows.place.shape[1])
    place = rows.place.ravel()
    tile = min(max(_ENTRIES // rows.place.shape[1], 16), 64 * _TILE)
    for first in range(0, rows.others.size, tile):
        others = rows.others[first : first + tile]
        for r in range(outcomes.shape[0]):
            outcome = outcomes[r]
            slot = slots[r, first : first + tile]
            for j in range(others.size):
                slot[j] = place[uint64(others[j]) * n_paths + uint64(outcome[uint64(others[j])])]


def _count_block_events_of_one(outcomes, rows, slots, counts):
    outcome = outcomes[0]
    has_usual = np.unpackbits(rows.has_usual.view(np.uint8), count=outcome.size, bitorder="little").astype(np.bool_)
    missed = np.flatnonzero(has_usual & (outcome != rows.usual))
    row = np.concatenate([rows.others, missed])
    happened = np.bincount(rows.place[row, outcome[row]], minlength=counts.shape[1])
    counts[0] = happened + MINUS * np.bincount(rows.place[missed, rows.usual[missed]], minlength=counts.shape[1])


@unless_one(_count_block_events_of_one)
@kernel
def count_block_events(outcomes, rows, slots, counts):
    """Count the events of ``outcomes (n_replicates, n_samples)`` that the base paths lack, and those only these have.

    Path k is that of outcome k. Rows are counted in parts, for all replicates each, so that their places stay in the
    cache. ``slots`` are those of `find_places`, or of shape (n_replicates, 0).
    """
    n_samples = rows.usual.size
    n_words = n_samples // 64
    usual = rows.usual.ctypes.data
    counts[:] = 0
    for r in range(slots.shape[0]):
        slot = slots[r]
        count = counts[r]
        for j in range(slot.size):
            count[uint64(slot[j])] += int32(1)
    for first in range(0, 0 if slots.shape[1] else rows.others.size, 64 * _TILE):
        for r in range(outcomes.shape[0]):
            for j in range(first, min(first + 64 * _TILE, rows.others.size)):
                i = uint64(rows.others[j])
                counts[r, uint64(rows.place[i, uint64(outcomes[r, i])])] += int32(1)
    for first in range(0, rows.has_usual.size, _TILE):
        for r in range(outcomes.shape[0]):
            drawn = outcomes[r].ctypes.data
            for w in range(first, min(first + _TILE, rows.has_usual.size)):
                if w < n_words:
                    start = 64 * outcomes.itemsize * w
                    bits = _differ(drawn + start, usual + start, rows.usual[0])
                else:
                    bits = uint64(0)
                    for i in range(64 * w, n_samples):
                        bits |= uint64(outcomes[r, i] != rows.usual[i]) << uint64(i - 64 * w)
                bits &= rows.has_usual[w]
                while bits:
                    i = uint64(64 * w) + _trailing_zeros(bits)
                    bits &= bits - uint64(1)
                    counts[r, uint64(rows.place[i, uint64(outcomes[r, i])])] += int32(1)
                    counts[r, uint64(rows.place[i, uint64(rows.usual[i])])] += int32(MINUS)


LANES = 16
HIGHEST, LOWEST, ABOVE, BELOW, LEVEL = range(5)
RECORD = 5 * LANES
NOWHERE = 2**30  # beyond every path, even after `level` was added, and within 32 bits


class Paths(NamedTuple):
    """Orders, probabilities and events of paths, for blocks that are read label by label.

    Attributes
    ----------
    order : array of shape (n_paths, n_samples), unsigned integers
        Rows in the order of the score.
    expected : array of shape (n_paths, n_samples), or (n_samples, n_paths)
        Null probabilities of the event in this order; or those of the rows, which are read where they are.
    by_row : int
        0 for those in this order, otherwise the number of paths.
    is_end : array of shape (n_paths, n_samples), bool
        Whether the next score in this order is larger.
    label : array
        Labels that are the event: for a path either one for all rows, or one for each row in this order.
    label_start, label_step : arrays of shape (n_paths,)
        That of place j of path p is ``label[label_start[p] + label_step[p] * j]``.
    start : array of shape (n_paths, n_blocks + 1)
        First place of every block, and the number of places.
    events, total : arrays of shape (n_paths, n_blocks + 1)
        Events of the base path and predicted sum before every block, and of all rows.
    """

    order: NDArray[Any]
    expected: NDArray[Any]
    by_row: int
    is_end: NDArray[np.bool_]
    label: NDArray[Any]
    label_start: NDArray[np.int64]
    label_step: NDArray[np.int64]
    start: NDArray[np.int64]
    events: NDArray[np.int64]
    total: NDArray[np.float64]


@kernel
def fill_path(p, order, score, expected, usual, paths, high, low, place):
    """Fill the entries of path p but its labels, the bounds of its blocks, and ``place (n_samples,)`` of its rows.

    ``high`` and ``low (n_groups, n_blocks, LANES)`` are infinite, and stay so where nothing is read. The place of a row
    in a path is that of its counter among those.

    ``score``, ``expected`` and ``usual``, whether the row is an event on the base path, are in the order of the rows.
    Blocks have equal sums of the share of the rows and the share of the expected differences from the base path: long
    blocks are expensive to read, and many differences make bounds wide.
    """
    n_samples = order.size
    n_blocks = high.shape[1]
    activity = 0.0
    for i in range(n_samples):
        activity += 1.0 - expected[i] if usual[i] else expected[i]
    of_row = 0.5 * n_blocks / n_samples
    of_difference = 0.5 * n_blocks / activity if activity > 0 else 0.0
    group = p // LANES
    lane = p % LANES
    share = 0.0
    events = 0
    total = 0.0
    b = -1
    for j in range(n_samples):
        row = order[j]
        while b < n_blocks - 1 and b < int(share):
            b += 1
            paths.start[p, b] = j
            paths.events[p, b] = events
            paths.total[p, b] = total
        paths.order[p, j] = row
        if not paths.by_row:
            paths.expected[p, j] = expected[row]
        place[row] = (group * n_blocks + b) * LANES + lane
        share += of_row + of_difference * (1.0 - expected[row] if usual[row] else expected[row])
        events += usual[row]
        total += expected[row]
        is_end = j == n_samples - 1 or score[order[j + 1]] > score[row]
        paths.is_end[p, j] = is_end
        if is_end:
            high[group, b, lane] = max(high[group, b, lane], events - total)
            low[group, b, lane] = min(low[group, b, lane], events - total)
    for rest in range(b + 1, n_blocks + 1):
        paths.start[p, rest] = n_samples
        paths.events[p, rest] = events
        paths.total[p, rest] = total


def bound_blocks(high, low, shift):
    """Return a table of blocks without counts: the values of the base path are bounded by whole numbers of units."""
    table = np.zeros((len(high), high.shape[1] + 1, 5, LANES), dtype=np.int32)
    table[:, :-1, HIGHEST] = np.maximum(np.ceil(high * 2.0**shift) + 1, -NOWHERE)
    table[:, :-1, LOWEST] = np.minimum(np.floor(low * 2.0**shift) - 1, NOWHERE)
    return table


@intrinsic
def _bound_group(typing_context, counts, records, n_blocks, shift):
    """Bound the blocks of 16 paths, whose counts and records begin at two addresses."""

    def generate(context, builder, signature, arguments):
        lanes = ir.VectorType(ir.IntType(32), LANES)
        size = ir.IntType(64)
        counted, start, number, power = arguments

        def splat(x):
            one = builder.insert_element(ir.Constant(lanes, ir.Undefined), x, ir.IntType(32)(0))
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
            return builder.shuffle_vector(one, ir.Constant(lanes, ir.Undefined), zeros)

        def same(x):
            return ir.Constant(lanes, [x] * LANES)

        def larger(x, y):
            return builder.select(builder.icmp_signed(">", x, y), x, y)

        def place(record, name):
            offset = builder.add(builder.mul(record, size(4 * RECORD)), size(4 * LANES * name))
            return builder.inttoptr(builder.add(start, offset), lanes.as_pointer())

        bits = splat(builder.trunc(power, ir.IntType(32)))
        level = cgutils.alloca_once_value(builder, same(0))
        above = cgutils.alloca_once_value(builder, same(-(2**31)))
        below = cgutils.alloca_once_value(builder, same(-(2**31)))
        with cgutils.for_range(builder, number, intp=size) as loop:
            b = loop.index
            before = builder.load(level)
            address = builder.add(counted, builder.mul(b, size(4 * LANES)))
            counts = builder.load(builder.inttoptr(address, lanes.as_pointer()), align=4)
            plus, minus = builder.and_(counts, same(MINUS - 1)), builder.lshr(counts, same(16))
            risen = builder.add(before, plus)
            up = builder.add(builder.load(place(b, HIGHEST), align=4), builder.shl(risen, bits))
            fallen = builder.shl(builder.sub(minus, before), bits)
            down = builder.sub(fallen, builder.load(place(b, LOWEST), align=4))
            builder.store(up, place(b, ABOVE), align=4)
            builder.store(down, place(b, BELOW), align=4)
            builder.store(before, place(b, LEVEL), align=4)
            builder.store(builder.sub(risen, minus), level)
            builder.store(larger(up, builder.load(above)), above)
            builder.store(larger(down, builder.load(below)), below)
        for values, name in ((above, ABOVE), (below, BELOW), (level, LEVEL)):
            builder.store(builder.load(values), place(number, name), align=4)
        return context.get_dummy_value()

    return types.none(types.int64, types.int64, types.int64, types.int64), generate


@inner
def _read_block(order, expected, first, by_row, is_end, label, first_label, step, labels, begin, end, count, total):
    """Return the highest and the lowest value of a path in a block, infinite where nothing is read there."""
    high = -np.inf
    low = np.inf
    # Unsigned places, which cannot count from the end, and choices instead of branches: 3 times as fast.
    for j in range(uint64(begin), uint64(end)):
        count += labels[uint64(order[j])] == label[uint64(first_label) + uint64(step) * j]
        total += expected[first + (uint64(by_row) * uint64(order[j]) if by_row else j)]
        value = count - total
        high = value if is_end[j] & (value > high) else high
        low = value if is_end[j] & (value < low) else low
    return high, low


@kernel
def read_paths(counts, first, labels, departures, paths, table, shift, scale, bound, largest, either, extremes):
    """Fill the values of paths of labels whose blocks are counted.

    With ``scale (n_paths,)``, which may be empty, ``largest (n_replicates,)`` is the largest ``|path| / scale``; a path
    of scale 0 never leaves 0 and is not counted, unless a label contradicts it: then the result is infinite. ``either
    (n_replicates, n_either)`` are the largest distances of the first paths from their start or from their end, which is
    the start of the complement, and ``extremes (n_replicates, n_others, 3)`` the highest value of the following ones,
    the lowest, both with their start at 0, and the last one.

    ``counts (n_replicates, n_counters)`` are those of the blocks from column ``first`` on. A replicate has a row of
    ``labels``, or all of them have the same one, ``(1, n_samples)``, from which they differ by ``departures``; see
    `_points.draw_departures`. What a draw has in ``table`` is overwritten, and so is ``bound``, of the shape of
    ``scale``. One loop reads paths for all three, because it is compiled once.
    """
    departed, end, entry_shift, usual = departures
    last = table.shape[1] - 1
    unit = float(1 << shift)
    outcome = (uint64(1) << uint64(entry_shift)) - uint64(1)
    n_either = either.shape[1]
    expected = paths.expected.ravel()
    for r in range(counts.shape[0]):
        place = counts[r, first:].ctypes.data
        for group in range(table.shape[0]):
            _bound_group(place, table.ctypes.data + 4 * RECORD * table.shape[1] * group, last, shift)
            place += 4 * LANES * last
        label = labels[r % labels.shape[0]]
        for d in range(end[r], end[r + 1]):
            label[uint64(departed[d]) >> uint64(entry_shift)] = uint64(departed[d]) & outcome
        for p in range(scale.size):
            farthest = max(table[p // LANES, last, ABOVE, p % LANES], table[p // LANES, last, BELOW, p % LANES]) / unit
            # Without variance values are whole numbers.
            bound[p] = farthest / scale[p] if scale[p] > 0 else (np.inf if farthest >= 1 else 0.0)
        best = 0.0
        turn = -scale.size
        while turn < n_either + extremes.shape[1]:
            # Negative turns are those of the paths that may go farthest; `high` and `low` are what must be exceeded by
            # the distance of a high value, which is `above` more, and of a low one, `below` more.
            p = max(turn, 0)
            together = turn < n_either
            high = above = below = 0.0
            if turn < 0:
                for q in range(1, scale.size):
                    if bound[q] > bound[p]:
                        p = q
                if bound[p] <= best:
                    turn = 0
                    continue
                bound[p] = 0.0
                high = best * scale[p] if scale[p] > 0 else 0.5
            group = p // LANES
            lane = p % LANES
            final = paths.events[p, last] + table[group, last, LEVEL, lane] - paths.total[p, last]
            if 0 <= turn < n_either:
                high = abs(final)
                above = max(0.0, -final)
                below = max(0.0, final)
            low = high
            more = int(above * unit) + 1  # rounded outwards, like the bounds
            less = int(below * unit) + 1
            top = bottom = 0
            highest = lowest = -NOWHERE
            for b in range(last):
                up = table[group, b, ABOVE, lane] + more
                down = table[group, b, BELOW, lane] + less
                if down > lowest:
                    lowest = down
                    bottom = b
                if up > highest:
                    highest = up
                    top = b
            up_to = int(high * unit)  # bounds are whole numbers
            down_to = int(low * unit)
            for step in range(-1 if top == bottom else -2, last):
                b = step if step >= 0 else top if step == -2 else bottom  # the first ones leave few others to read
                up = table[group, b, ABOVE, lane] + more
                down = table[group, b, BELOW, lane] + less
                if (up > up_to or down > down_to) and step not in (top, bottom):
                    some_high, some_low = _read_block(
                        paths.order[p],
                        expected,
                        uint64(p if paths.by_row else p * paths.order.shape[1]),
                        paths.by_row,
                        paths.is_end[p],
                        paths.label,
                        paths.label_start[p],
                        paths.label_step[p],
                        label,
                        paths.start[p, b],
                        paths.start[p, b + 1],
                        paths.events[p, b] + table[group, b, LEVEL, lane],
                        paths.total[p, b],
                    )
                    high = max(high, some_high + above)
                    low = max(low, below - some_low)
                    if together:
                        high = low = max(high, low)
                    up_to = int(high * unit)
                    down_to = int(low * unit)
            if turn >= n_either:
                extremes[r, turn - n_either, 0] = high
                extremes[r, turn - n_either, 1] = -low
                extremes[r, turn - n_either, 2] = final
            elif turn >= 0:
                either[r, turn] = high
            elif scale[p] > 0:
                if high > best * scale[p]:  # otherwise rounding of paths that are shorter would enlarge it
                    best = max(best, high / scale[p])
            elif high > 0.5:
                best = np.inf
            turn += 1
        if scale.size:
            largest[r] = best
        for d in range(end[r], end[r + 1]):
            i = uint64(departed[d]) >> uint64(entry_shift)
            label[i] = usual[i]
