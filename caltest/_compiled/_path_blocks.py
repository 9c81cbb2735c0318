"""Extremes of cumulative residuals from counts of events in blocks of rows."""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import int32, njit, types, uint64
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from caltest._compiled._jit import inner, kernel, kernel_unless_one

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


@kernel_unless_one(_count_block_events_of_one)
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
COUNTS, HIGHEST, LOWEST, ABOVE, BELOW, LEVEL = range(6)
RECORD = 6 * LANES
NOWHERE = 2**30  # beyond every path, even after `level` was added, and within 32 bits


class Paths(NamedTuple):
    """Orders, probabilities and events of paths, for blocks that are read label by label.

    Attributes
    ----------
    order : array of shape (n_paths, n_samples), unsigned integers
        Rows in the order of the score.
    expected : array of shape (n_paths, n_samples)
        Null probabilities of the event in this order.
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
    is_end: NDArray[np.bool_]
    label: NDArray[Any]
    label_start: NDArray[np.int64]
    label_step: NDArray[np.int64]
    start: NDArray[np.int64]
    events: NDArray[np.int64]
    total: NDArray[np.float64]


@njit(inline="always")
def _bound_block(record, lane, high, low, unit):
    """Bound the values of a path in a block, infinite where nothing is read there, by whole numbers of units."""
    record[HIGHEST, lane] = -NOWHERE if high == -np.inf else int(np.ceil(high * unit)) + 1
    record[LOWEST, lane] = NOWHERE if low == np.inf else int(np.floor(low * unit)) - 1


@kernel
def fill_path(p, order, score, expected, usual, n_blocks, shift, paths, table, place):
    """Fill the entries of path p but its labels, and ``place (n_samples,)`` of its rows.

    The place of a row in a path is that of its counter among ``(n_groups, n_blocks, LANES)``.

    ``score``, ``expected`` and ``usual``, whether the row is an event on the base path, are in the order of the rows.
    Blocks have equal sums of the share of the rows and the share of the expected differences from the base path: long
    blocks are expensive to read, and many differences make bounds wide.
    """
    n_samples = order.size
    activity = 0.0
    for i in range(n_samples):
        activity += 1.0 - expected[i] if usual[i] else expected[i]
    of_row = 0.5 * n_blocks / n_samples
    of_difference = 0.5 * n_blocks / activity if activity > 0 else 0.0
    unit = float(1 << shift)
    group = p // LANES
    lane = p % LANES
    share = 0.0
    events = 0
    total = 0.0
    b = -1
    high = -np.inf
    low = np.inf
    for j in range(n_samples):
        row = order[j]
        while b < min(int(share), n_blocks - 1):
            if b >= 0:
                _bound_block(table[group, b], lane, high, low, unit)
            b += 1
            high = -np.inf
            low = np.inf
            paths.start[p, b] = j
            paths.events[p, b] = events
            paths.total[p, b] = total
        paths.order[p, j] = row
        paths.expected[p, j] = expected[row]
        place[row] = (group * n_blocks + b) * LANES + lane
        share += of_row + of_difference * (1.0 - expected[row] if usual[row] else expected[row])
        events += usual[row]
        total += expected[row]
        is_end = j == n_samples - 1 or score[order[j + 1]] > score[row]
        paths.is_end[p, j] = is_end
        if is_end:
            high = max(high, events - total)
            low = min(low, events - total)
    _bound_block(table[group, b], lane, high, low, unit)
    for rest in range(b + 1, n_blocks + 1):
        if rest < n_blocks:
            _bound_block(table[group, rest], lane, -np.inf, np.inf, unit)
        paths.start[p, rest] = n_samples
        paths.events[p, rest] = events
        paths.total[p, rest] = total


@intrinsic
def _bound_group(typing_context, address, n_blocks, shift):
    """Bound the blocks of 16 paths, whose records begin at an address, and empty their counts."""

    def generate(context, builder, signature, arguments):
        lanes = ir.VectorType(ir.IntType(32), LANES)
        size = ir.IntType(64)
        start, number, power = arguments

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
            counts = builder.load(place(b, COUNTS), align=4)
            plus, minus = builder.and_(counts, same(MINUS - 1)), builder.lshr(counts, same(16))
            risen = builder.add(before, plus)
            up = builder.add(builder.load(place(b, HIGHEST), align=4), builder.shl(risen, bits))
            fallen = builder.shl(builder.sub(minus, before), bits)
            down = builder.sub(fallen, builder.load(place(b, LOWEST), align=4))
            builder.store(same(0), place(b, COUNTS), align=4)
            builder.store(up, place(b, ABOVE), align=4)
            builder.store(down, place(b, BELOW), align=4)
            builder.store(before, place(b, LEVEL), align=4)
            builder.store(builder.sub(risen, minus), level)
            builder.store(larger(up, builder.load(above)), above)
            builder.store(larger(down, builder.load(below)), below)
        for values, name in ((above, ABOVE), (below, BELOW), (level, LEVEL)):
            builder.store(builder.load(values), place(number, name), align=4)
        return context.get_dummy_value()

    return types.none(types.int64, types.int64, types.int64), generate


@inner
def _read_block(paths, p, b, level, labels):
    """Return the highest and the lowest value of a path in a block, infinite where nothing is read there."""
    label = uint64(paths.label_start[p])
    step = uint64(paths.label_step[p])
    count = paths.events[p, b] + level
    total = paths.total[p, b]
    high = -np.inf
    low = np.inf
    # Unsigned places, which cannot count from the end, and choices instead of branches: 3 times as fast.
    for j in range(uint64(paths.start[p, b]), uint64(paths.start[p, b + 1])):
        count += labels[uint64(paths.order[p, j])] == paths.label[label + step * j]
        total += paths.expected[p, j]
        value = count - total
        high = value if paths.is_end[p, j] & (value > high) else high
        low = value if paths.is_end[p, j] & (value < low) else low
    return high, low


@njit(inline="always")
def _largest_of_path(paths, table, shift, p, labels, found, above, below):
    """Return the largest distance of a path from 0, or ``found`` if that is larger.

    What is not negative is added to the distance of high and of low values, ``above`` and ``below``.
    """
    group = p // LANES
    lane = p % LANES
    n_blocks = table.shape[1] - 1
    unit = float(1 << shift)
    more = int(np.ceil(above * unit))  # rounded outwards, like the bounds
    less = int(np.ceil(below * unit))
    top = 0
    largest = -NOWHERE
    for b in range(n_blocks):
        bound = max(table[group, b, ABOVE, lane] + more, table[group, b, BELOW, lane] + less)
        if bound > largest:
            largest = bound
            top = b
    for turn in range(-1, n_blocks):
        b = top if turn < 0 else turn  # the first one leaves few others to read
        bound = max(table[group, b, ABOVE, lane] + more, table[group, b, BELOW, lane] + less)
        if bound > found * unit and turn != top:
            high, low = _read_block(paths, p, b, table[group, b, LEVEL, lane], labels)
            found = max(found, high + above, below - low)
    return found


@njit(inline="always")
def _largest_of_paths(paths, table, shift, labels, scale, bound):
    """Return the largest ``|path| / scale`` of paths whose blocks are bounded; ``bound (n_paths,)`` is overwritten.

    A path of scale 0 never leaves 0 and is not counted, unless a label contradicts it: then the result is infinite.
    """
    unit = float(1 << shift)
    last = table.shape[1] - 1
    for p in range(scale.size):
        largest = max(table[p // LANES, last, ABOVE, p % LANES], table[p // LANES, last, BELOW, p % LANES]) / unit
        # Without variance values are whole numbers.
        bound[p] = largest / scale[p] if scale[p] > 0 else (np.inf if largest >= 1 else 0.0)
    best = 0.0
    while True:
        p = 0
        for q in range(1, scale.size):
            if bound[q] > bound[p]:
                p = q
        if bound[p] <= best:
            return best
        least = best * scale[p] if scale[p] > 0 else 0.5
        found = _largest_of_path(paths, table, shift, p, labels, least, 0.0, 0.0)
        if scale[p] > 0:
            best = max(best, found / scale[p])
        elif found > least:
            best = np.inf
        bound[p] = 0.0


@njit(inline="always")
def _end_of_path(paths, table, p):
    """Return the last value of a path."""
    last = table.shape[1] - 1
    return paths.events[p, last] + table[p // LANES, last, LEVEL, p % LANES] - paths.total[p, last]


@njit(inline="always")
def _extremes_of_path(paths, table, shift, p, labels):
    """Return the highest and the lowest value of a path, its start at 0 included, and the last one."""
    group = p // LANES
    lane = p % LANES
    n_blocks = table.shape[1] - 1
    unit = float(1 << shift)
    top = 0
    bottom = 0
    for b in range(n_blocks):
        if table[group, b, ABOVE, lane] > table[group, top, ABOVE, lane]:
            top = b
        if table[group, b, BELOW, lane] > table[group, bottom, BELOW, lane]:
            bottom = b
    high = 0.0
    low = 0.0
    for turn in range(-2, n_blocks):
        b = turn if turn >= 0 else top if turn == -2 else bottom  # the first ones leave few others to read
        exceeds = table[group, b, ABOVE, lane] > high * unit or table[group, b, BELOW, lane] > -low * unit
        if exceeds and turn not in (top, bottom):
            highest, lowest = _read_block(paths, p, b, table[group, b, LEVEL, lane], labels)
            high = max(high, highest)
            low = min(low, lowest)
    return high, low, _end_of_path(paths, table, p)


@njit(inline="always")
def _excursion_from_either_end(paths, table, shift, p, labels):
    """Return the largest distance of a path from its start or from its end, which is the start of the complement."""
    end = _end_of_path(paths, table, p)
    return _largest_of_path(paths, table, shift, p, labels, abs(end), max(0.0, -end), max(0.0, end))


@njit(inline="always")
def _bound_counted(table, shift, counts):
    """Bound the blocks of a table by counts ``(n_groups * n_blocks * LANES,)``, as `COUNTS`."""
    place = 0
    for group in range(table.shape[0]):
        for b in range(table.shape[1] - 1):
            for lane in range(LANES):
                table[group, b, COUNTS, lane] = counts[place + lane]
            place += LANES
    for group in range(table.shape[0]):
        _bound_group(table.ctypes.data + 4 * RECORD * table.shape[1] * group, table.shape[1] - 1, shift)


@njit(inline="always")
def _depart(labels, departed, shift):
    """Give the labels of some entries to their rows."""
    outcome = (uint64(1) << uint64(shift)) - uint64(1)
    for d in range(departed.size):
        labels[uint64(departed[d]) >> uint64(shift)] = uint64(departed[d]) & outcome


@njit(inline="always")
def _return(labels, departed, shift, usual):
    """Give the usual labels back to the rows of some entries."""
    for d in range(departed.size):
        row = uint64(departed[d]) >> uint64(shift)
        labels[row] = usual[row]


@kernel
def largest_of_counts(counts, first, labels, departed, end, entry_shift, usual, paths, table, shift, scale, largest):
    """Fill ``largest (n_replicates,)``: the largest ``|path| / scale`` of labels whose blocks are counted.

    ``counts (n_replicates, n_counters)`` are those of the blocks from column ``first`` on. A replicate has a row of
    ``labels``, or all of them have the same one, ``(1, n_samples)``, from which they differ by what ``departed``; see
    `_points.draw_departures`. What a draw has in ``table`` is overwritten.
    """
    bound = np.empty(scale.size)
    for r in range(largest.size):
        some = departed[end[r] : end[r + 1]]
        label = labels[r % labels.shape[0]]
        _bound_counted(table, shift, counts[r, first:])
        _depart(label, some, entry_shift)
        largest[r] = _largest_of_paths(paths, table, shift, label, scale, bound)
        _return(label, some, entry_shift, usual)


@kernel
def events_of_counts(counts, first, labels, departed, end, entry_shift, usual, paths, table, shift, either, extremes):
    """Fill the values of the paths of several events, of which the first ones are read from either end.

    ``either (n_replicates, n_either)`` are their largest distances from their start or end, and ``extremes
    (n_replicates, n_others, 3)`` the highest value, the lowest and the last one of the others. The other arguments are
    those of `largest_of_counts`, with one row of labels for all replicates.
    """
    n_either = either.shape[1]
    for r in range(counts.shape[0]):
        some = departed[end[r] : end[r + 1]]
        label = labels[r % labels.shape[0]]
        _bound_counted(table, shift, counts[r, first:])
        _depart(label, some, entry_shift)
        for p in range(n_either):
            either[r, p] = _excursion_from_either_end(paths, table, shift, p, label)
        for p in range(extremes.shape[1]):
            found = _extremes_of_path(paths, table, shift, n_either + p, label)
            extremes[r, p, 0], extremes[r, p, 1], extremes[r, p, 2] = found
        _return(label, some, entry_shift, usual)
