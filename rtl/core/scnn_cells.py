"""What failing cells ask of a sparse core: numbers of PEs, settings, lists that grow."""

from typing import Any

from rtl.core.memory import Settings, Words, settings_of, stream_inputs, stream_overflows


def number_bits(design: Any) -> int:
    """Of a PE's number."""
    return max((design.pes - 1).bit_length(), 1)


def weight_words(design: Any) -> Words:
    """What the FIFO of every PE of a sparse machine holds of vectors as they cross its port."""
    return Words(
        lanes=design.weight_lanes,
        bits=design.element_bits,
        signed=False,
        depth=design.weight_fifo_vectors,
        use=design.use("weight"),
        number_bits=number_bits(design),
    )


def weight_settings(design: Any) -> Settings | None:
    """What they take from registers; None where the FIFOs' cells cannot fail."""
    return settings_of(design.weight_memory, weight_words(design))


def weights_may_fail(design: Any) -> bool:
    """Whether a PE may read other weights than were broadcast."""
    return weight_settings(design) is not None or not design.weight_memory.exact


def pe_inputs(design: Any) -> dict[str, int]:
    """Inputs, by name so many bits, that a PE has for cells that fail."""
    found, settings = stream_inputs(design), weight_settings(design)
    if weights_may_fail(design):
        found = found | {"number": number_bits(design)}
    return found if settings is None else found | {"weight_settings": settings.bits}


def lists_overflow(design: Any) -> bool:
    """Whether lists may be longer than the memory that they are written to."""
    return weights_may_fail(design) or stream_overflows(design)


__all__ = [
    "lists_overflow",
    "number_bits",
    "pe_inputs",
    "weight_settings",
    "weight_words",
    "weights_may_fail",
]
