"""What failing cells ask of a sparse core: numbers of PEs and banks, settings, lists that grow."""

from typing import Any

from rtl.core.memory import Settings, Words, may_overflow, settings_of, stream_inputs


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


def sum_words(design: Any) -> Words:
    """What a half of a bank of sums holds."""
    use = design.use("accumulator")
    return Words(
        lanes=1,
        bits=use.word_bits,
        signed=False,
        depth=design.bank_entries,
        use=use,
        number_bits=bank_number_bits(design),
    )


def bank_number_bits(design: Any) -> int:
    """Of the numbers of a PE and of a bank in it."""
    return max((design.pes * design.banks - 1).bit_length(), 1)


def sum_settings(design: Any) -> Settings | None:
    """What they take from registers; None where the banks' cells cannot fail."""
    return settings_of(design.accumulator_memory, sum_words(design))


def sums_may_fail(design: Any) -> bool:
    """Whether a sum may be read otherwise than it was written."""
    return sum_settings(design) is not None or not design.accumulator_memory.exact


def weights_may_fail(design: Any) -> bool:
    """Whether a PE may read other weights than were broadcast."""
    return weight_settings(design) is not None or not design.weight_memory.exact


def pe_inputs(design: Any) -> dict[str, int]:
    """Inputs, by name so many bits, that a PE has for cells that fail."""
    found = stream_inputs(design)
    if weights_may_fail(design) or sums_may_fail(design):
        found = found | {"number": number_bits(design)}
    each = {"weight": weight_settings(design), "accumulator": sum_settings(design)}
    settings = {f"{name}_settings": one.bits for name, one in each.items() if one is not None}
    return found | settings


def lists_overflow(design: Any) -> bool:
    """Whether lists may be longer than the memory that they are written to."""
    return ofmaps_grow(design) or may_overflow(design.activation_memory)


def ofmaps_grow(design: Any) -> bool:
    """Whether more outputs may differ from 0 than of what was meant."""
    return weights_may_fail(design) or sums_may_fail(design)


__all__ = [
    "bank_number_bits",
    "lists_overflow",
    "number_bits",
    "ofmaps_grow",
    "pe_inputs",
    "sum_settings",
    "sum_words",
    "sums_may_fail",
    "weight_settings",
    "weight_words",
    "weights_may_fail",
]
