"""Cycles of a decoding step beside the time that its matrices and its KV cache take to cross.

    python benchmarks/decode.py > benchmarks/decode.md      seconds

The bound: trained matrices and KV cache, each element once in the machine's operands of 8 bits,
over the bytes a cycle of the off-chip channel (of tpu-v1 that of its weights) or of the weight
port, whichever is slower.
"""

from __future__ import annotations

from rows import chosen

from archsim import simulate
from archsim.machine.registry import load_design, with_settings
from archsim.tiled.design import CoreDesign
from workloads.layers import Network
from workloads.named import network_named

WORKLOADS = tuple(
    f"{model}:decode={context}"
    for model, context in (
        ("gpt2", 1024),
        ("tinyllama", 2048),
        ("llama3-8b", 2048),
        ("llama3-8b", 8192),
        ("mixtral-8x7b", 8192),
    )
)
DESIGNS = ((), ("off_chip.bytes_per_cycle=64",))
SIZES = ("edge-16", "cloud-128", "tpu-v1")


def bound(design: CoreDesign, network: Network) -> float:
    """Cycles that a step's matrices and cache take to cross, at the least."""
    assert network.kv_cache is not None
    channel = design.off_chip.weight_bytes_per_cycle or design.off_chip.bytes_per_cycle
    carried = min(channel, design.word_bits("weight") / 8)
    return (network.weight_elements + network.kv_cache.elements) / carried


def main() -> None:
    """Print the page."""
    print("# Decoding steps beside their bound\n")
    print("Made by `python benchmarks/decode.py`. *Bound*: trained matrices and KV cache, 8 bits")
    print("an element, over the bytes a cycle of the slower of off-chip channel (of tpu-v1 that of")
    print(
        "its weights) and weight port. *Weight port*, *ifmap*: bytes moved over those of the bound."
    )
    print("What is above 1 at the weight port is lanes of words that a layer of fewer filters than")
    print("the array has columns leaves empty (64 or 128 elements of a head); ifmaps cross again")
    print("where a tile holds but a part of the channels. The rest is a layer's latency and its")
    print("first tile.\n")
    print("| design | workload | bound | cycles | cycles / bound | weight port | ifmap |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for name in SIZES:
        for settings in DESIGNS if name == "cloud-128" else DESIGNS[:1]:
            design = with_settings(load_design(name), list(settings))
            assert isinstance(design, CoreDesign)
            for workload in WORKLOADS:
                network = network_named(workload)
                result, least = simulate(design, network), bound(design, network)
                assert network.kv_cache is not None
                needed = network.weight_elements + network.kv_cache.elements
                moved = result.bytes_moved
                print(
                    f"| {' '.join((name, *settings))} | {workload} | {least:,.0f} "
                    f"| {result.cycles:,} | {result.cycles / least:.3f} "
                    f"| {moved['weight'] / needed:.3f} | {moved['ifmap'] / needed:.3f} |"
                )


if __name__ == "__main__":
    chosen(__doc__)
    main()
