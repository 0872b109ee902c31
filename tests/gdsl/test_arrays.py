"""Arrays at the door: kinds, bf16, npz files."""

import importlib.util
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import gdsl
from gdsl.arrays import from_caller, load_npz, npz_bytes, save_npz, to_caller
from gdsl.errors import RunError, UsageError

BF16 = np.dtype(ml_dtypes.bfloat16)
needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="needs the `oracle` extra"
)


def test_npz_keeps_narrow_floats(tmp_path: Path) -> None:
    arrays = {
        "q": np.array([1.0, -2.5, np.inf], BF16),
        "w": np.array([240.0, -(2.0**-9), np.inf], ml_dtypes.float8_e4m3),
        "s": np.array([[1.5]], np.float32),
        "n": np.array([3], np.int32),
    }
    gdsl.save_npz(tmp_path / "a.npz", arrays)
    back = gdsl.load_npz(tmp_path / "a.npz")
    assert list(back) == ["q", "w", "s", "n"]
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype
        assert back[name].tobytes() == array.tobytes()


def test_raw_bytes_are_refused_with_what_to_type(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", q=np.array([1.0], BF16))
    loaded = load_npz(tmp_path / "a.npz")
    with pytest.raises(RunError, match=r"view\(ml_dtypes.bfloat16\)"):
        from_caller("q", loaded["q"])


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04broken", b"\x93NUMPY"])
def test_a_broken_file_is_a_usage_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(UsageError, match=r"cannot read .*a\.npz"):
        load_npz(tmp_path / "a.npz")


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        load_npz(tmp_path / "a.npz")


def test_a_dtype_table_that_lies_is_refused(tmp_path: Path) -> None:
    table = np.array('{"q": "f7"}')
    np.savez(tmp_path / "a.npz", q=np.zeros(1, np.uint16), __dtypes__=table)
    with pytest.raises(UsageError, match="`f7`"):
        load_npz(tmp_path / "a.npz")


def test_text_arrays_are_refused() -> None:
    with pytest.raises(RunError, match="expected numbers"):
        from_caller("q", np.array(["a"]))


def test_numbers_stay_numbers() -> None:
    assert from_caller("scale", 0.5) == 0.5
    assert from_caller("flag", True) is True


@needs_torch
def test_torch_round_trip_keeps_bits_and_dtypes() -> None:
    import torch

    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int32, torch.bool):
        tensor = torch.arange(6).reshape(2, 3).to(dtype)
        array = from_caller("x", tensor.t())
        assert isinstance(array, np.ndarray)
        assert array.shape == (3, 2)
        back = to_caller(array, torch=True)
        assert back.dtype == dtype
        assert torch.equal(back, tensor.t())


@needs_torch
def test_a_tensor_elsewhere_is_refused() -> None:
    import torch

    with pytest.raises(RunError, match=r"`q` is on device `meta`.*q\.cpu\(\)"):
        from_caller("q", torch.zeros(1, device="meta"))


def test_bytes_and_file_agree(tmp_path: Path) -> None:
    arrays = {"a": np.arange(3.0)}
    save_npz(tmp_path / "a.npz", arrays)
    assert (tmp_path / "a.npz").read_bytes()[:2] == npz_bytes(arrays)[:2] == b"PK"


@needs_torch
def test_the_eight_bit_format_of_torch_is_refused_with_what_to_type() -> None:
    import torch

    tensor = torch.tensor([448.0]).to(torch.float8_e4m3fn)
    with pytest.raises(RunError, match=r"astype\(ml_dtypes.float8_e4m3\)"):
        from_caller("w", tensor)
