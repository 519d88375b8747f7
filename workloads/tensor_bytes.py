"""Bytes of a matrix layer's tensors at a width of the operands."""

from __future__ import annotations

from abc import ABC, abstractmethod

from workloads.checks import positive


class TensorBytes(ABC):
    """Bytes of the three tensors of a matrix layer, from its element counts."""

    @property
    @abstractmethod
    def ifmap_elements(self) -> int:
        """Elements of the tensor."""

    @property
    @abstractmethod
    def weight_elements(self) -> int:
        """Elements of the tensor."""

    @property
    @abstractmethod
    def ofmap_elements(self) -> int:
        """Elements of the tensor."""

    def ifmap_bytes(self, bits: int) -> int:
        """Bytes of the ifmap at `bits` per element, packed, rounded up once."""
        return _bytes(self.ifmap_elements, bits)

    def weight_bytes(self, bits: int) -> int:
        """Bytes of the weight at `bits` per element, packed, rounded up once."""
        return _bytes(self.weight_elements, bits)

    def ofmap_bytes(self, bits: int) -> int:
        """Bytes of the ofmap at `bits` per element, packed, rounded up once."""
        return _bytes(self.ofmap_elements, bits)


def _bytes(elements: int, bits: int) -> int:
    positive("bytes", bits=bits)
    return -(-elements * bits // 8)
