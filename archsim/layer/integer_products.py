"""Products of matrices of 8-bit integers, exact, by ONNX Runtime's kernels for quantised networks.

Its product of unsigned with signed bytes takes a seventh of the time that BLAS takes for float32,
where the processor sums four products of bytes in one instruction.  The left factor is shifted by
128 to be unsigned; the operator's zero point takes that off again.  On processors without that
instruction its kernels may add two products in 16 bits and saturate, so operands at the ends of
their range are tried once a process: where one sum is wrong, the right factor is shifted too, since
products of unsigned bytes are widened before they are added (a half to three quarters of the time
of float32); where one is wrong still, there is no such product.

Loading ONNX Runtime takes as long as some billions of MACs by BLAS, so it is loaded when as many
have been asked for: no run takes more than about twice what the better choice would have taken.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from workloads.optional import load_optional

Bytes = npt.NDArray[np.int8]
UnsignedBytes = npt.NDArray[np.uint8]
Sums = npt.NDArray[np.int32]

Product = Callable[[UnsignedBytes, Bytes], Sums]
"""[…, M, K] less 128, and […, K, N], to […, M, N]."""

BITS = 8
"""Of operands, at most."""

DEEPEST = 1 << 16
"""So many terms stay within 32 bits, also before the shift is taken off: 255 · 128 each."""

LOADING_MACS = 1 << 31
"""Until so many have been asked for, floats multiply."""

_asked = 0


def product_for(macs: int, depth: int) -> Product | None:
    """What multiplies bytes; None where sums are too deep, it is not exact, or not worth loading.

    macs: of the layer, counted together with those asked for before.  depth: terms of a sum.
    """
    global _asked
    if depth > DEEPEST:
        return None
    _asked += macs
    if _asked < LOADING_MACS and "onnxruntime" not in sys.modules:
        return None
    return exact_product()


def shifted(values: npt.NDArray[Any]) -> UnsignedBytes:
    """Integers of 8 bits, plus 128."""
    return np.ascontiguousarray(values, np.int8).view(np.uint8) ^ np.uint8(128)


@cache
def exact_product() -> Product | None:
    """ONNX Runtime's; None where it is absent, refuses, or makes a wrong sum."""
    for make in (_signed_product, _unsigned_product):
        try:
            product = make()
            if is_exact(product):
                return product
        except Exception:  # its errors share no base class; without it floats are exact too
            continue
    return None


def bound_product(
    product: Product, left: UnsignedBytes, right: Bytes, sums: Sums
) -> Callable[[], None]:
    """What multiplies two matrices, as they are whenever it is called, into a third."""
    if isinstance(product, _RuntimeProduct):
        return product.bound(left, right, sums)

    def multiply() -> None:
        sums[...] = product(left, right)

    return multiply


def is_exact(product: Product) -> bool:
    """Whether operands at the ends of their range, and some between, have the right sums.

    Of one row and several, of depths and widths that fill its blocks and that do not: kernels
    differ by these.
    """
    return all(
        np.array_equal(product(shifted(left), right), left.astype(np.int64) @ right)
        for left, right in _trials()
    )


def _trials() -> Iterator[tuple[Bytes, Bytes]]:
    random, ends = np.random.default_rng(0), np.array([-128, 127], np.int8)
    for rows, depth, columns in ((1, 1, 1), (1, 515, 37), (5, 64, 16), (19, 1030, 67)):
        left, right = (rows, depth), (depth, columns)
        for x, w in ((127, 127), (127, -128), (-128, -128), (-128, 127)):
            yield np.full(left, x, np.int8), np.full(right, w, np.int8)
        yield random.choice(ends, left), random.choice(ends, right)
        yield (random.integers(-128, 128, left, np.int8),
               random.integers(-128, 128, right, np.int8))  # fmt: skip


def _signed_product() -> Product:
    """Of unsigned with signed bytes."""
    return _RuntimeProduct(_INT8)


def _unsigned_product() -> Product:
    """Of unsigned bytes, the right ones shifted like the left."""
    product = _RuntimeProduct(_UINT8)
    return lambda left, right: product(left, shifted(right))


class _RuntimeProduct:
    """right: ONNX's number of the type of the right factor.

    A thread has a session of its own while it lives: where two share one, bound products take half
    as long again.  Then another thread takes it, for to make one takes 0.3 ms.
    """

    def __init__(self, right: int) -> None:
        self._right, self._own = right, threading.local()
        self._free: list[Any] = [self._made()]

    def _made(self) -> Any:
        runtime = load_optional("onnxruntime", install="onnxruntime", purpose="multiplying bytes")
        options = runtime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        return runtime.InferenceSession(_model(self._right), options, ["CPUExecutionProvider"])

    @property
    def _session(self) -> Any:
        """This thread's."""
        if not hasattr(self._own, "lent"):
            self._own.lent = _Lent(self._free, self._made)
        return self._own.lent.session

    def __call__(self, left: UnsignedBytes, right: npt.NDArray[Any]) -> Sums:
        return self._session.run(None, {"a": left, "b": right})[0]

    def bound(self, left: UnsignedBytes, right: Bytes, sums: Sums) -> Callable[[], None]:
        """As `bound_product`."""
        session = self._session
        binding = session.io_binding()
        for name, array in (("a", left), ("b", right)):
            binding.bind_input(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
        binding.bind_output("y", "cpu", 0, sums.dtype.type, sums.shape, sums.ctypes.data)
        return _Bound(session.run_with_iobinding, binding, (left, right, sums))


class _Lent:
    """A session that is free, or else a new one; free again when this goes with its thread."""

    def __init__(self, free: list[Any], make: Callable[[], Any]) -> None:
        try:
            self.session: Any = free.pop()
        except IndexError:
            self.session = make()
        weakref.finalize(self, free.append, self.session)


@dataclass(frozen=True, eq=False)
class _Bound:
    """arrays: kept here, since the binding has their addresses alone."""

    run: Callable[[Any], object]
    binding: Any
    arrays: tuple[npt.NDArray[Any], ...]

    def __call__(self) -> None:
        self.run(self.binding)


_UINT8, _INT8, _INT32 = 2, 3, 6
"""ONNX's numbers of types."""


def _model(right: int) -> bytes:
    """A network of one MatMulInteger, as ONNX writes it: importing `onnx` for it takes longer than
    all that it saves of a small network."""
    inputs = "abz" if right == _INT8 else "abzz"
    node = b"".join(_text(1, one) for one in inputs) + _text(2, "y") + _text(4, "MatMulInteger")
    zero_point = _number(2, _UINT8) + _text(8, "z") + _message(9, bytes([128]))
    graph = _message(1, node) + _text(2, "product") + _message(5, zero_point)
    graph += _message(11, _value("a", _UINT8)) + _message(11, _value("b", right))
    graph += _message(12, _value("y", _INT32))
    return _number(1, 8) + _message(7, graph) + _message(8, _number(2, 13))


def _value(name: str, kind: int) -> bytes:
    return _text(1, name) + _message(2, _message(1, _number(1, kind)))


def _number(field: int, value: int) -> bytes:
    return bytes([field << 3, value])


def _message(field: int, content: bytes) -> bytes:
    assert len(content) < 128
    return bytes([field << 3 | 2, len(content)]) + content


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())


__all__ = [
    "BITS",
    "DEEPEST",
    "Product",
    "bound_product",
    "exact_product",
    "is_exact",
    "product_for",
    "shifted",
]
