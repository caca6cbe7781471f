"""Files that were brought in: regular ones are read, and nothing else is waited for."""

import os
import socket
from pathlib import Path

import pytest

from showhow.guard.files import NotRegularFile, is_sparse, open_regular


def test_a_regular_file_is_read_also_through_a_link_that_the_user_named(tmp_path: Path):
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"content")
    link.symlink_to(file)
    for path in (file, link):
        with open_regular(path) as stream:
            assert stream.read() == b"content"
    with pytest.raises(NotRegularFile, match="it is a link, not a regular file"):
        open_regular(link, follow_links=False)
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "missing")


def test_pipes_devices_sockets_and_folders_are_refused_at_once_also_behind_a_link(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        kinds = {tmp_path / "pipe": "a named pipe", tmp_path / "link": "a named pipe", tmp_path / "socket": "a socket"}
        kinds |= {Path("/dev/zero"): "a device", Path("/dev/tty"): "a device", tmp_path: "a folder"}
        for path, kind in kinds.items():
            with pytest.raises(NotRegularFile) as refused:
                open_regular(path)
            assert refused.value.strerror == f"it is {kind}, not a regular file"


def test_a_large_file_of_holes_is_known_before_it_is_read(tmp_path: Path):
    sparse, whole, small = (tmp_path / name for name in ("sparse", "whole", "small"))
    with sparse.open("wb") as file:
        file.write(b"SQLite format 3\x00")
        file.truncate(30 * 1024**3)
    with whole.open("wb") as file:
        for _ in range(65):
            file.write(os.urandom(1024) * 1024)
    with small.open("wb") as file:
        file.truncate(1024**2)
    for path, expected in ((sparse, True), (whole, False), (small, False)):
        with open_regular(path) as stream:
            assert is_sparse(stream) is expected
            assert stream.tell() == 0
