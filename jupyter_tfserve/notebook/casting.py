"""NumPy values to the dtype of an input, where that loses nothing.

| values are      | input is float, double, half | input is an integer      | bool | string |
| --------------- | ---------------------------- | ------------------------ | ---- | ------ |
| floats          | rounded; not beyond its range | whole, below 2**53       | 0, 1 | no     |
| integers        | where they are exact in it   | within its range         | 0, 1 | no     |
| bool            | 0.0, 1.0                     | 0, 1                     | yes  | no     |
| str             | no                           | no                       | no   | UTF-8  |
| bytes           | no                           | no                       | no   | yes    |

``float32`` numbers arrive bit for bit; doubles are rounded to ``float`` as NumPy does it. NaN and
the infinities are floats. From 2**53 on (2**24 in float32) a float no longer tells neighbouring
integers apart, so that one that was an integer once may have changed already: it is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..codec import b64
from ..codec.dtypes import dtype_of
from .errors import InvalidArgumentError

if TYPE_CHECKING:
    from ..servable import TensorInfo

Array: TypeAlias = np.ndarray[Any, Any]
Place: TypeAlias = Callable[[int], str]
"""Tells in words where the element of a flat index stands in what the caller gave."""

FLOATS = frozenset(("float", "double", "half", "bfloat16"))
_EXACT = 2**53
_QUOTED = 60


def cast(values: Array, name: str, info: TensorInfo, place: Place) -> Array:
    """The values as the dtype of an input; strings become an object array of ``bytes``.

    Raises:
        InvalidArgumentError: naming the first element that would not be the same.
    """
    dtype = dtype_of(info.dtype)
    if values.dtype == dtype.numpy and values.dtype != np.object_:
        return values
    caster = _Cast(name, info.dtype, dtype.numpy, place)
    if info.dtype == "string":
        return caster.strings(values)
    if values.dtype == np.object_ or values.dtype.kind in "SUTMmV":
        values = caster.numbers(values)
    if info.dtype in FLOATS:
        return caster.floats(values)
    if info.dtype == "bool":
        return caster.flags(values)
    if dtype.numpy.kind in "iu":
        return caster.integers(values)
    raise InvalidArgumentError(f"Input {name} is {info.dtype}, which JSON cannot carry")


class _Cast:
    """One input, and what is said of values that it does not take."""

    def __init__(self, name: str, dtype: str, numpy: np.dtype[Any], place: Place) -> None:
        self._name = name
        self._dtype = dtype
        self._numpy = numpy
        self._place = place

    def floats(self, values: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            cast = values.astype(self._numpy)
            if values.dtype.kind == "f":
                wide = cast if self._numpy.kind == "f" else cast.astype(np.float32)
                if values.dtype.itemsize > self._numpy.itemsize:
                    bad = np.isinf(wide) & np.isfinite(values)
                    self._check(bad, values, f"is beyond the range of {self._dtype}")
            elif values.dtype.kind in "iu" and _peak(values) > 2**8:
                beyond = f"is beyond the range of {self._dtype}"
                self._check(np.isinf(cast.astype(np.float64)), values, beyond)
                bad = cast.astype(np.float64).astype(values.dtype) != values
                self._check(
                    bad,
                    values,
                    f"is not exact in {self._dtype}",
                    "astype('float64') rounds it on purpose.",
                )
            elif values.dtype.kind == "c":
                raise self._refusal(0, values, "is a complex number")
        return cast

    def integers(self, values: Array) -> Array:
        if values.dtype.kind == "f":
            with np.errstate(invalid="ignore"):
                self._check(~np.isfinite(values), values, "is no integer")
                self._check(values != np.floor(values), values, "is not a whole number")
                bits = np.finfo(values.dtype).nmant + 1
                self._check(
                    np.abs(values) >= 2.0**bits,
                    values,
                    f"is not below 2**{bits}, where {values.dtype} still tells integers apart",
                    "Keep the column an integer, Int64 if it has gaps.",
                )
                values = values.astype(np.int64)
        elif values.dtype.kind not in "iub":
            raise self._refusal(0, values, "is no integer")
        if values.dtype.kind != "b":
            bounds = np.iinfo(self._numpy)
            low, high = np.iinfo(values.dtype).min, np.iinfo(values.dtype).max
            bad = np.zeros(values.shape, np.bool_)
            if bounds.min > low:
                bad |= values < bounds.min
            if bounds.max < high:
                bad |= values > bounds.max
            self._check(bad, values, f"is beyond the range of {self._dtype}")
        return values.astype(self._numpy)

    def flags(self, values: Array) -> Array:
        if values.dtype.kind not in "biuf":
            raise self._refusal(0, values, "is neither true nor false")
        self._check((values != 0) & (values != 1), values, "is neither true nor false")
        return values.astype(np.bool_)

    def strings(self, values: Array) -> Array:
        if values.size and values.dtype.kind not in "SUTO":
            raise self._no_string(0, values)
        flat = values.reshape(-1)
        out = np.empty(flat.size, np.object_)
        for index, value in enumerate(flat.tolist()):
            if isinstance(value, str):
                out[index] = value.encode("utf-8", "surrogateescape")
            elif isinstance(value, bytes | bytearray | memoryview):
                out[index] = bytes(value)
            elif isinstance(value, dict) and value.keys() == {"b64"}:
                out[index] = self._decoded(index, value["b64"])
            else:
                raise self._no_string(index, values)
        return out.reshape(values.shape)

    def numbers(self, values: Array) -> Array:
        """Python's numbers as an array; integers stay exact among floats."""
        flat = values.reshape(-1).tolist()
        for index, value in enumerate(flat):
            if not isinstance(value, int | float | np.generic) or isinstance(
                value, str | bytes | np.datetime64 | np.timedelta64
            ):
                raise self._refusal(index, values, f"is no {_kind(self._dtype)}")
        if not flat:
            return np.zeros(values.shape, self._numpy)
        array = np.array(flat)
        if array.dtype.kind == "f" and self._numpy.kind in "iu":
            wholes = [
                int(v) if not isinstance(v, float) or (v.is_integer() and abs(v) < _EXACT) else v
                for v in flat
            ]
            array = np.array(flat) if float in set(map(type, wholes)) else _int_array(wholes)
        elif array.dtype.kind == "f":
            for index, value in enumerate(flat):
                if isinstance(value, int) and int(float(value)) != value:
                    raise self._refusal(index, values, f"is not exact in {self._dtype}")
        elif array.dtype == np.object_:
            array = _int_array(flat)
        if array.dtype == np.object_:
            index = next(i for i, v in enumerate(flat) if not -(2**63) <= v < 2**64)
            raise self._refusal(index, values, f"is beyond the range of {self._dtype}")
        return array.reshape(values.shape)

    def _decoded(self, index: int, text: Any) -> bytes:
        if not isinstance(text, str):
            raise InvalidArgumentError("b64 is no text", where=self._place(index))
        if text.startswith("data:"):
            raise InvalidArgumentError(
                f"{self._place(index)}: b64 begins with {text.partition(',')[0][:_QUOTED]!r}, the "
                "prefix of a data URI",
                "Only what follows its comma is base64.",
                where=self._place(index),
            )
        try:
            # The alphabet for URLs is as unambiguous as the standard one.
            return b64.decode(text.replace("-", "+").replace("_", "/"))
        except ValueError:
            raise InvalidArgumentError(
                f"{self._place(index)}: {_short(text)} is no base64", where=self._place(index)
            ) from None

    def _no_string(self, index: int, values: Array) -> InvalidArgumentError:
        value = values.reshape(-1)[index]
        if isinstance(value, np.ndarray) or values.ndim > 1:
            return encoding_needed(self._name, self._place(index))
        hint = "astype(str) makes text of it." if isinstance(value, int | float | np.number) else ""
        return self._refusal(index, values, "is no string", hint)

    def _check(self, bad: Array, values: Array, reason: str, hint: str = "") -> None:
        if bad.any():
            raise self._refusal(int(np.argmax(bad)), values, reason, hint)

    def _refusal(
        self, index: int, values: Array, reason: str, hint: str = ""
    ) -> InvalidArgumentError:
        where = self._place(index)
        value = values.reshape(-1)[index : index + 1].tolist()
        shown = _short(value[0]) if value else "it"
        return InvalidArgumentError(
            f"{where}: {shown} {reason}; input {self._name} is {self._dtype}", hint, where=where
        )


def encoding_needed(name: str, where: str) -> InvalidArgumentError:
    """What is said of an array of numbers for a string input: its memory is hardly meant."""
    return InvalidArgumentError(
        f"{where}: an array cannot be input {name}, which is string",
        "Say how it is to be encoded: jupyter_tfserve.encode_array(array, 'png'), 'jpeg' or "
        "'tensorproto'.",
        where=where,
    )


def _int_array(values: list[Any]) -> Array:
    """Integers as int64 or uint64, or objects where neither holds them all."""
    low, high = min(values), max(values)
    if low >= -(2**63) and high < 2**63:
        return np.array(values, np.int64)
    if low >= 0 and high < 2**64:
        return np.array(values, np.uint64)
    return np.array(values, np.object_)


def _peak(values: Array) -> int:
    return max(abs(int(values.max())), abs(int(values.min()))) if values.size else 0


def _kind(dtype: str) -> str:
    return "truth value" if dtype == "bool" else "number"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…"
