"""What compiled code keeps behind a pointer, as long as somebody holds it."""

from collections.abc import Callable
from types import TracebackType
from typing import Self

__all__ = ["Handle"]


class Handle:
    """A context manager that frees what a pointer of compiled code stands for, once."""

    _handle: int | None = None
    _free: Callable[[int], object]

    def hold(self, handle: int, free: Callable[[int], object]) -> None:
        """handle: the pointer; free: what is called of it at the end."""
        self._handle, self._free = handle, free

    @property
    def live(self) -> int:
        """The pointer.  Raises `ValueError` when it is freed."""
        if self._handle is None:
            raise ValueError(f"the {type(self).__name__} is closed")
        return self._handle

    def close(self) -> None:
        """Free it.  May be called twice."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._free(handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()
