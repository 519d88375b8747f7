"""Max pooling behind a layer: the window, and its outputs in plain NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from workloads.checks import not_negative, positive
from workloads.errors import WorkloadError

Integer = TypeVar("Integer", bound=np.signedinteger)
Pair = tuple[int, int]
WHERE = "max pooling"


@dataclass(frozen=True, kw_only=True)
class MaxPool:
    """A maximum of each window; all sizes are (rows, columns).

    window w, stride t, pad q: places before the first and behind the last output of the layer,
    which never win.  An axis of P outputs becomes one of

        U = ⌊(P + 2q − w) / t⌋ + 1

    With `ceil` it is ⌈…⌉ instead of ⌊…⌋, but the last window begins in the plane or the padding
    before it, (U − 1) · t < P + q, as in Caffe and PyTorch.  Raises WorkloadError for sizes that
    are not positive, and for padding that is not smaller than the window.
    """

    window: Pair
    stride: Pair
    pad: Pair = (0, 0)
    ceil: bool = False

    def __post_init__(self) -> None:
        for axis, name in enumerate(("rows", "columns")):
            positive(WHERE, **{f"window {name}": self.window[axis]})
            positive(WHERE, **{f"stride along {name}": self.stride[axis]})
            not_negative(WHERE, **{f"pad of {name}": self.pad[axis]})
            if self.pad[axis] >= self.window[axis]:
                raise WorkloadError(
                    f"{WHERE}: pad of {name} must be smaller than the window of "
                    f"{self.window[axis]}, not {self.pad[axis]}"
                )

    def pooled(self, plane: Pair) -> Pair:
        """(U, V), the pooled rows and columns of a plane (P, Q).  Raises WorkloadError for a plane
        without a whole window."""
        rows, columns = (self._pooled(axis, plane[axis]) for axis in (0, 1))
        return rows, columns

    def _pooled(self, axis: int, size: int) -> int:
        window, stride, pad = self.window[axis], self.stride[axis], self.pad[axis]
        spare = size + 2 * pad - window
        found = (-(-spare // stride) if self.ceil else spare // stride) + 1
        if self.ceil and (found - 1) * stride >= size + pad:
            found -= 1
        if found < 1:
            raise WorkloadError(
                f"{WHERE}: the window must be at most the padded plane's "
                f"{size + 2 * pad} {('rows', 'columns')[axis]}, not {window}"
            )
        return found


@dataclass(frozen=True, kw_only=True)
class Feed:
    """The ofmap of the layer `source`, pooled by `pool` if there is one, is all of the ifmap of
    `target`, and nothing else reads either.  pool_layer: the pooling's name among the layers."""

    source: str
    target: str
    pool: MaxPool | None = None
    pool_layer: str = ""


def max_pool(ofmap: npt.NDArray[Integer], pool: MaxPool) -> npt.NDArray[Integer]:
    """ofmap [..., P, Q, K] pooled to [..., U, V, K].  Raises WorkloadError as `MaxPool.pooled`."""
    plane = ofmap.shape[-3], ofmap.shape[-2]
    rows, columns = pool.pooled(plane)
    across = [_seen(pool, 1, column, plane[1]) for column in range(columns)]
    narrow = np.stack([ofmap[..., places, :].max(axis=-2) for places in across], axis=-2)
    along = [_seen(pool, 0, row, plane[0]) for row in range(rows)]
    return np.stack([narrow[..., places, :, :].max(axis=-3) for places in along], axis=-3)


def _seen(pool: MaxPool, axis: int, number: int, size: int) -> slice:
    """The outputs of the layer in a window, at least one."""
    first = number * pool.stride[axis] - pool.pad[axis]
    return slice(max(first, 0), min(first + pool.window[axis], size))


__all__ = ["Feed", "MaxPool", "max_pool"]
