"""FILE arguments and `use`."""

from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

import gdsl
from gdsl.errors import UsageError
from gdsl.library import library_files, library_kernels, loader, locate

TEXT = "kernel mine:\n    axes K\n    input x: f32[K]\n    output y: f32[K] = x\n"


def test_every_kernel_that_ships_is_listed_and_no_name_twice() -> None:
    names = [
        line.split()[1].rstrip(":")
        for path in library_files().values()
        for line in path.read_text().splitlines()
        if line.startswith("kernel ")
    ]
    assert sorted(names) == sorted(library_kernels())
    assert "gdn_tkg" in names


def test_a_library_name() -> None:
    located = locate("gdn_tkg")
    assert located.kernel == "gdn_tkg"
    assert located.source.name == "kernels_dsl/gdn_tkg.gdn"


def test_a_path_and_a_kernel_in_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.gdn"
    path.write_text(TEXT)
    assert locate(str(path)).kernel is None
    located = locate(f"{path}:mine")
    assert located.kernel == "mine"
    assert located.source.text == TEXT
    assert located.folder == tmp_path


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(TEXT.encode())))
    assert locate("-").source.text == TEXT


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("gdn_tk", "did you mean `gdn_tkg`"),
        ("nowhere.gdn", r"cannot read `nowhere\.gdn`: no such file"),
        ("no/where.gdn:k", "cannot read `no/where.gdn`"),
        ("", "there is no library kernel ``"),
    ],
)
def test_what_is_not_there(file: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        locate(file)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "x.gdn").mkdir()
    with pytest.raises(UsageError, match="is a directory"):
        locate(str(tmp_path / "x.gdn"))


def test_other_encodings_are_refused_with_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "latin.gdn"
    path.write_bytes(b"# caf\xe9\n")
    with pytest.raises(UsageError, match="byte 5 is 0xe9"):
        locate(str(path))


def test_byte_order_mark_and_windows_lines(tmp_path: Path) -> None:
    path = tmp_path / "win.gdn"
    path.write_bytes(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())
    assert locate(str(path)).source.text == TEXT


def test_use_prefers_the_library_then_the_folder(tmp_path: Path) -> None:
    (tmp_path / "gates.gdn").write_text("# mine\n")
    (tmp_path / "own.gdn").write_text("# own\n")
    load = loader(tmp_path)
    shipped, own, quoted = load("gates"), load("own"), load("own.gdn")
    assert shipped is not None
    assert shipped.name == "kernels_dsl/gates.gdn"
    assert own is not None
    assert own.text == "# own\n"
    assert quoted is not None
    assert quoted.text == own.text
    assert load("nothing") is None


@pytest.mark.parametrize(
    ("use", "message"),
    [
        ("delta_rul", "there is no library `delta_rul`; did you mean `delta_rule`?"),
        ("my_rulse", "there is no library `my_rulse`; did you mean `my_rules`?"),
        ('"my_rule.gdn"', "there is no file `my_rule.gdn`; did you mean `my_rules.gdn`?"),
        ('"more/norm.gdn"', "there is no file `more/norm.gdn`; did you mean `more/norms.gdn`?"),
        ('"../own/my_rul"', "there is no file `../own/my_rul`; did you mean `../own/my_rules`?"),
        (f'"{"a" * 300}/b"', f"there is no file `{'a' * 300}/b`"),
        ("quantum", "there is no library `quantum`"),
        ('"no/such/file.gdn"', "there is no file `no/such/file.gdn`"),
    ],
)
def test_a_use_that_leads_nowhere_says_what_is_near(tmp_path: Path, use: str, message: str) -> None:
    folder = tmp_path / "own"
    (folder / "more").mkdir(parents=True)
    for name in ("my_rules.gdn", "more/norms.gdn"):
        (folder / name).write_text("fn one[D](x) = x\n")
    (folder / "mine.gdn").write_text(f"use {use}\n{TEXT}")
    (found,) = gdsl.check(folder / "mine.gdn")
    assert (found.code, found.message) == ("E0203", message)
