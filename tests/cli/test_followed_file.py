"""A file that grows, is rotated, deleted, cut off and written again: every line is read once."""

import os

import pytest

from caltest.cli._followed_file import FollowedFile


@pytest.fixture
def path(tmp_path):
    return tmp_path / "log.csv"


@pytest.fixture
def said():
    return []


@pytest.fixture
def follow(path, said):
    """The file, its first content having been read."""
    opened = []

    def begin(content):
        path.write_bytes(content)
        opened.append(FollowedFile(path, said.append))
        assert opened[0].read() == content
        assert opened[0].read() == b""
        return opened[0]

    yield begin
    for followed in opened:
        followed.__exit__(None, None, None)


def append(path, content):
    with path.open("ab") as stream:
        stream.write(content)


def all_of(followed, looks=6):
    """What several looks find: bytes, and None where the file begins again."""
    found = [followed.read() for _ in range(looks)]
    return [one for one in found if one != b""]


def test_a_growing_file(path, follow, said):
    followed = follow(b"a\nb\n")
    append(path, b"c\n")
    assert all_of(followed) == [b"c\n"]
    append(path, b"d\n")
    assert all_of(followed) == [b"d\n"]
    assert said == []


def test_rotation(path, follow, said):
    """The old file is read to its end first, also what is written to it after it was renamed."""
    followed = follow(b"a\nb\n")
    os.rename(path, f"{path}.1")
    append(path.with_name("log.csv.1"), b"c\n")
    assert all_of(followed) == [b"c\n"]
    assert said == [f"{path} is gone; waiting until there is a file of this name again"]
    path.write_bytes(b"d\n")
    assert followed.read() == b""  # who writes may still write to the old file
    append(path.with_name("log.csv.1"), b"late\n")
    assert all_of(followed) == [b"late\n", None, b"d\n"]
    append(path, b"e\n")
    assert all_of(followed) == [b"e\n"]
    assert said[1:] == [
        f"{path} was replaced by another file, and is read from its beginning; its lines are new observations"
    ]


def test_deletion(path, follow, said):
    followed = follow(b"a\nb\n")
    path.unlink()
    assert all_of(followed) == []
    path.mkdir()
    assert all_of(followed) == []
    path.rmdir()
    path.write_bytes(b"c\nd\ne\n")
    assert all_of(followed) == [None, b"c\nd\ne\n"]
    assert len(said) == 2


@pytest.mark.parametrize(
    "content",
    [b"x\n", b"x\ny\n", b"x\ny\nz\n", b"x\ny\nz\n" * 2000],
    ids=["shorter", "as long", "longer", "much longer"],
)
def test_truncation(path, follow, said, content):
    """In place, with other content of any length between two looks."""
    followed = follow(b"a\nb\n")
    before = path.stat().st_ino
    path.write_bytes(content)
    assert path.stat().st_ino == before
    assert all_of(followed) == [None, content]
    assert said == [f"{path} was cut off, and is read from its beginning; its lines are new observations"]
    append(path, b"more\n")
    assert all_of(followed) == [b"more\n"]


def test_truncation_to_nothing(path, follow, said):
    followed = follow(b"a\nb\n")
    os.truncate(path, 0)
    assert all_of(followed) == []
    assert said == [f"{path} was cut off; waiting for lines that were not read yet"]
    append(path, b"c\n")
    assert all_of(followed) == [None, b"c\n"]


def test_truncation_of_a_large_file_that_has_grown_beyond_the_place(path, follow):
    """The bytes before the place decide, not the size; the beginning is the same, as that of files with names is."""
    lines = b"".join(b"%d,0.25\n" % k for k in range(3000))
    followed = follow(lines)
    other = lines[:6000] + b"".join(b"%d,0.75\n" % k for k in range(9000))
    path.write_bytes(other)
    assert all_of(followed) == [None, other]


@pytest.mark.parametrize("replaced", [True, False], ids=["renamed into place", "written in place"])
def test_what_was_read_is_not_read_again_if_the_file_is_written_again_with_more_lines(path, follow, said, replaced):
    followed = follow(b"a\nb\nbeg")
    if replaced:
        new = path.with_name("new")
        new.write_bytes(b"a\nb\nbegun\nc\n")
        os.replace(new, path)
    else:  # the looks fall into the time when half of it is written
        os.truncate(path, 0)
        assert all_of(followed) == []
        append(path, b"a\n")
        assert all_of(followed) == []
        append(path, b"b\nbegun\nc\n")
    assert all_of(followed) == [b"un\nc\n"]
    assert not any("from its beginning" in text for text in said)


def test_a_file_that_is_replaced_while_it_is_waited_for(path, follow):
    followed = follow(b"a\nb\n")
    os.truncate(path, 0)
    assert all_of(followed) == []
    path.unlink()
    assert all_of(followed) == []
    path.write_bytes(b"a\n")
    assert all_of(followed) == []
    append(path, b"x\n")
    assert all_of(followed) == [None, b"a\nx\n"]


def test_bytes_that_were_cut_off_while_they_were_read_are_not_passed_on(path, follow, monkeypatch):
    followed = follow(b"a\nb\n")
    append(path, b"c\nd\n")
    stat = os.fstat

    def cut_off_then_stat(number):
        monkeypatch.setattr(os, "fstat", stat)
        path.write_bytes(b"x\n")
        return stat(number)

    monkeypatch.setattr(os, "fstat", cut_off_then_stat)
    assert all_of(followed) == [None, b"x\n"]
