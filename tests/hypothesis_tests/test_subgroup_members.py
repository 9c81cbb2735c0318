"""Segments: which observations one column and two together hold, by rules that are also written as loops here."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from caltest.hypothesis_tests._subgroup_members import MOST_SEGMENTS, Segments

FEWEST = 20


def segments_of(columns, counts=None, most=MOST_SEGMENTS):
    n = len(next(iter(columns.values())))
    return Segments.of(columns, np.ones(n, dtype=bool) if counts is None else counts, most)


def held(columns, **options):
    found = segments_of(columns, **options)
    return dict(zip(found.names, map(frozenset, map(np.flatnonzero, found.members)), strict=True))


def by_loops(levels):
    """Segments of columns whose levels are known, by sets: those of one column first, each set once."""
    single = [
        {name: {i for i, level in enumerate(column) if level == name} for name in dict.fromkeys(sorted(column))}
        for column in levels
    ]
    pairs = [{f"{a} and {b}": one[a] & other[b] for a in one for b in other} for one, other in combinations(single, 2)]
    found, seen = {}, set()
    for name, rows in [item for part in (*single, *pairs) for item in part.items()]:
        if len(rows) >= FEWEST and frozenset(rows) not in seen:
            seen.add(frozenset(rows))
            found[name] = frozenset(rows)
    return found


def test_segments_are_those_of_loops():
    rng = np.random.default_rng(0)
    site, sex, stage = rng.choice(list("abc"), 200), rng.random(200) < 0.4, rng.integers(1, 4, 200)
    known = [[f"site={x}" for x in site], [f"sex={x}" for x in sex], [f"stage={x}" for x in stage]]
    found = held({"site": site, "sex": sex, "stage": stage})
    assert found == by_loops(known)
    assert any(" and " in name for name in found)


def test_numbers_are_cut_into_quarters_whatever_the_name():
    age = np.random.default_rng(0).permutation(100)
    for name in ("age", "patient_id"):
        found = segments_of({name: age})
        assert found.names == [f"{name} {low} to {low + 24}" for low in (0, 25, 50, 75)]
        assert all(member.sum() == 25 for member in found.members)


def test_few_different_numbers_and_categories_are_levels():
    rng = np.random.default_rng(0)
    category = pd.Series(pd.Categorical(np.arange(200) % 2 + 0.5, categories=[1.5, 0.5, 9.0]))
    found = segments_of({"k": rng.integers(0, 8, 400) // 4 * np.ones(400)})
    assert found.names == ["k=0", "k=1"]
    assert segments_of({"c": category}).names == ["c=0.5", "c=1.5"], "unused levels are none"


def test_small_levels_and_ranges_are_merged():
    site = np.array(["a"] * 60 + ["b"] * 50 + [f"rare {k}" for k in range(30)])
    assert {name: len(rows) for name, rows in held({"site": site}).items()} == {
        "site=a": 60,
        "site=b": 50,
        "site: 30 rarer values": 30,
    }
    # Zeros are one range, and the 10 numbers above them too few for another one: joined, they are the whole column.
    mostly_zero = np.append(np.zeros(190), np.arange(1, 11))
    whole = segments_of({"x": mostly_zero, "even": np.arange(200) % 2})
    assert whole.names == ["even=0", "even=1"]
    assert "The column x makes no segments" in str(whole.notes[0])
    # 30 numbers above the zeros are enough
    assert [len(rows) for rows in held({"x": np.append(np.zeros(170), np.arange(1, 31))}).values()] == [170, 30]


def test_more_levels_than_most_are_merged():
    site = np.repeat(np.arange(30).astype(str), 20 + np.arange(30))
    found = held({"site": site})
    assert len(found) == 20
    assert len(found["site: 11 rarer values"]) == sum(20 + k for k in range(11))


@pytest.mark.parametrize("missing", [None, np.nan, "", pd.NA])
def test_missing_values_are_a_level(missing):
    column = np.array([missing] * 25 + ["a"] * 30 + ["b"] * 30, dtype=object)
    assert {name: len(rows) for name, rows in held({"u": column}).items()} == {"u=a": 30, "u=b": 30, "u missing": 25}


def test_missing_numbers_are_a_level():
    age = np.append(np.arange(80.0), [np.nan] * 30)
    assert {name: len(rows) for name, rows in held({"age": age}).items()}["age missing"] == 30
    assert len(held({"age": age})) == 5


def test_constant_columns_and_ids_make_no_segments_and_are_named():
    columns = {"one": np.ones(10_000), "id": [f"p{k}" for k in range(10_000)], "sex": np.arange(10_000) % 2}
    found = segments_of(columns)
    assert found.names == ["sex=0", "sex=1"]
    (note,) = found.notes
    assert note.code == "C217"
    assert "The columns one and id make no segments" in note.text
    with pytest.raises(ValueError, match=r"`subgroup` must make segments of at least 20 observations .* got none of"):
        segments_of({"one": np.ones(50)})
    with pytest.raises(ValueError, match="got none of 1 observation in"):
        segments_of({"sex": ["f"]})


def test_identical_segments_are_counted_once():
    site = np.arange(100) % 2
    alone = held({"site": site})
    twice = segments_of({"site": site, "again": np.where(site, "yes", "no")})
    assert twice.names == list(alone)
    assert "4 with the same observations as another" in twice.rules[-1]


def test_the_smallest_are_left_out_and_a_note_says_so():
    rng = np.random.default_rng(0)
    columns = {name: rng.choice(3, 500, p=[0.5, 0.3, 0.2]) for name in "uvw"}
    everything = held(columns)
    found = segments_of(columns, most=15)
    kept = dict(zip(found.names, [int(member.sum()) for member in found.members], strict=True))
    assert len(kept) == 15
    pairs = {name: len(rows) for name, rows in everything.items() if " and " in name}
    assert sum(" and " not in name for name in kept) == 9
    assert sorted(n for name, n in kept.items() if name in pairs) == sorted(pairs.values())[-6:]
    assert "segments are left out by `max_segments=15`" in str(found.notes[0])
    assert segments_of(columns, most=1).members[0].sum() == max(map(len, everything.values()))


def test_names_and_order_of_columns_decide_nothing():
    rng = np.random.default_rng(1)
    columns = {"u": rng.integers(0, 4, 400), "v": rng.normal(size=400), "w": rng.choice(list("abc"), 400)}
    renamed = dict(zip(("site_id", "id", "zz"), reversed(columns.values()), strict=True))
    for most in (MOST_SEGMENTS, 20):  # quarters are as large, so that ties are decided too
        assert set(held(columns, most=most).values()) == set(held(renamed, most=most).values())


def test_observations_that_do_not_count_make_no_segments():
    counts = np.arange(200) < 100
    found = segments_of({"k": np.arange(200) // 50}, counts)
    assert found.names == ["k=0", "k=1"]
    assert not any((member & ~counts).any() for member in found.members)
