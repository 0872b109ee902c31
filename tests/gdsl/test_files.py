"""Atomic writing."""

from pathlib import Path

import pytest

from gdsl.errors import UsageError
from gdsl.files import write_atomically


def test_writes_and_leaves_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "out.py"
    write_atomically(target, b"one")
    write_atomically(target, b"two")
    assert target.read_bytes() == b"two"
    assert [path.name for path in tmp_path.iterdir()] == ["out.py"]


def test_keeps_the_mode_of_what_it_replaces(tmp_path: Path) -> None:
    target = tmp_path / "out.py"
    target.write_bytes(b"one")
    target.chmod(0o640)
    write_atomically(target, b"two")
    assert target.stat().st_mode & 0o777 == 0o640


def test_follows_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"one")
    (tmp_path / "link").symlink_to("real")
    write_atomically(tmp_path / "link", b"two")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"two"


def test_a_failing_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out.py"
    target.write_bytes(b"one")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(UsageError, match="no space left"):
        write_atomically(target, b"two")
    assert target.read_bytes() == b"one"
    assert [path.name for path in tmp_path.iterdir()] == ["out.py"]


def test_a_missing_folder_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot write"):
        write_atomically(tmp_path / "no" / "out.py", b"x")


def test_a_device_is_written_to_as_it_is() -> None:
    write_atomically(Path("/dev/null"), b"x")
    assert not Path("/dev/null").is_file()
