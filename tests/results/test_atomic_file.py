"""Files that are replaced at once: no half files, no links followed by accident, no permissions lost."""

import os
import stat
import threading

import pytest

from caltest.results._atomic_file import atomic_file, require_writable, write_atomically

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
not_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may write every file")


def test_text_and_bytes_are_written_and_nothing_is_left_beside(tmp_path):
    write_atomically(tmp_path / "text", "naïve\n")
    write_atomically(str(tmp_path / "bytes"), b"\x00\x01")
    assert (tmp_path / "text").read_bytes() == "naïve\n".encode()
    assert (tmp_path / "bytes").read_bytes() == b"\x00\x01"
    assert sorted(os.listdir(tmp_path)) == ["bytes", "text"]


def test_the_old_content_stays_until_the_block_ends(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with atomic_file(path) as stream:
        stream.write(b"new")
        stream.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"


@pytest.mark.parametrize("old", [None, "old"])
def test_a_block_that_raises_changes_nothing(tmp_path, old):
    path = tmp_path / "file"
    if old is not None:
        path.write_text(old)

    def stopped():
        with atomic_file(path) as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert os.listdir(tmp_path) == ([] if old is None else ["file"])
    assert old is None or path.read_text() == old


def test_the_temporary_name_cannot_be_guessed(tmp_path):
    seen = set()
    for _ in range(3):
        with atomic_file(tmp_path / "file"):
            seen |= {name for name in os.listdir(tmp_path) if name != "file"}
    assert len(seen) == 3
    assert all(name.startswith(".caltest-") and len(name) > 30 for name in seen)


def test_a_link_in_place_of_the_temporary_file_is_not_followed(tmp_path, monkeypatch):
    """Even a name that was guessed: the file is created, never opened."""
    monkeypatch.setattr("caltest.results._atomic_file.secrets.token_hex", lambda _: "guessed")
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / ".caltest-guessed.part").symlink_to(victim)
    with pytest.raises(FileExistsError, match="file"):
        write_atomically(tmp_path / "file", "other")
    assert victim.read_text() == "mine"


def test_a_new_file_has_the_permissions_of_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "file", "")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o755])
def test_a_file_keeps_its_permissions(tmp_path, mode):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(mode)
    write_atomically(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == mode


@needs_root
def test_a_file_keeps_its_owner(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    os.chown(path, 12345, 23456)
    write_atomically(path, "new")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


@not_root
def test_a_file_that_may_not_be_written_is_refused(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o444)
    with pytest.raises(PermissionError, match="file"):
        write_atomically(path, "new")


@pytest.mark.parametrize("there", [True, False], ids=["a file", "nothing"])
@pytest.mark.parametrize("relative", [True, False], ids=["relative", "absolute"])
def test_a_symbolic_link_stays_and_its_file_is_replaced(tmp_path, there, relative):
    folder = tmp_path / "folder"
    folder.mkdir()
    target = folder / "target"
    if there:
        target.write_text("old")
    (tmp_path / "link").symlink_to("folder/target" if relative else target)
    (tmp_path / "outer").symlink_to("link")
    write_atomically(tmp_path / "outer", "new")
    assert target.read_text() == "new"
    assert not target.is_symlink()
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "outer").is_symlink()
    assert os.listdir(folder) == ["target"]


def test_links_that_name_each_other_are_refused(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        write_atomically(tmp_path / "a", "")


@needs_root
def test_a_link_of_somebody_else_in_a_shared_folder_is_refused(tmp_path):
    shared, victim = tmp_path / "shared", tmp_path / "victim"
    shared.mkdir()
    shared.chmod(0o1777)
    victim.write_text("mine")
    link = shared / "page.html"
    link.symlink_to(victim)
    os.chown(link, 12345, 12345, follow_symlinks=False)
    with pytest.raises(PermissionError, match="link of another user"):
        write_atomically(link, "theirs")
    assert victim.read_text() == "mine"


def test_what_is_no_regular_file_is_written_directly(tmp_path):
    write_atomically("/dev/null", "gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    pipe, found = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()))
    reader.start()
    require_writable(pipe)  # does not open it
    write_atomically(pipe, "through")
    reader.join()
    assert found == ["through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_errors_name_the_file_and_not_the_temporary_one(tmp_path):
    with pytest.raises(FileNotFoundError) as raised:
        write_atomically(tmp_path / "missing" / "file", "")
    assert raised.value.filename == str(tmp_path / "missing" / "file")
    for refused in (write_atomically, lambda path, _: require_writable(path)):
        with pytest.raises(IsADirectoryError):
            refused(tmp_path, "")


def test_asking_changes_nothing(tmp_path):
    path = tmp_path / "file"
    require_writable(path)
    assert os.listdir(tmp_path) == []
    path.write_text("old")
    require_writable(path)
    assert path.read_text() == "old"


def test_long_names_are_written(tmp_path):
    path = tmp_path / ("x" * 255)
    write_atomically(path, "whole")
    assert path.read_text() == "whole"
