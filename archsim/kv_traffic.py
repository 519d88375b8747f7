"""What a language model's keys and values take of a machine: room off the chip, and traffic."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from archsim.layer.intake import Intake
    from archsim.result import LayerResult
    from workloads.kv_cache import KvCache


@dataclass(frozen=True, kw_only=True)
class KvTraffic:
    """elements, appended_elements: of the cache once the network has run, and those of them that it
    adds.  footprint_bytes, appended_bytes: what these take in the machine's own width.

    read_bytes: across the weight port, of the layers whose second operand the cache is: what is
    read again, and lanes of words that stay empty, count too.
    """

    elements: int
    appended_elements: int
    footprint_bytes: int
    appended_bytes: int
    read_bytes: int

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def kv_traffic(
    cache: KvCache | None, layers: Iterable[LayerResult], intake: Intake
) -> KvTraffic | None:
    """Of a network's cache and the results of its layers on a machine; None without a cache."""
    if cache is None:
        return None
    element_bits = intake.weight_bits
    readers = set(cache.readers)
    return KvTraffic(
        elements=cache.elements,
        appended_elements=cache.appended,
        footprint_bytes=ceil(cache.elements * element_bits / 8),
        appended_bytes=ceil(cache.appended * element_bits / 8),
        read_bytes=sum(one.bytes_moved["weight"] for one in layers if one.name in readers),
    )


__all__ = ["KvTraffic", "kv_traffic"]
