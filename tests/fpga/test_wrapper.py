"""The wrapper reaches every bit of a unit once, and nothing of it is lost on the way out."""

import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpga.wrapper import wrapper_verilog

Widths = Mapping[str, tuple[str, int]]

PORTS: Widths = {"a": ("input", 1), "o": ("output", 7), "b": ("input", 5), "p": ("output", 1)}


def module(ports: Widths) -> dict[str, Any]:
    """A module of yosys' JSON, as far as the wrapper reads it."""
    named = {"clk": ("input", 1), "rst": ("input", 1), **ports}
    return {
        "ports": {
            name: {"direction": direction, "bits": list(range(bits))}
            for name, (direction, bits) in named.items()
        }
    }


def faults(text: str, ports: Widths) -> list[str]:
    """What is wrong with a wrapper: bits that are connected twice, or not at all, or dropped."""
    found: list[str] = []
    for direction in ("input", "output"):
        slices = re.findall(rf"\.\\(\w+) \({direction}s\[(\d+):(\d+)\]\)", text)
        bits = [bit for _, high, low in slices for bit in range(int(low), int(high) + 1)]
        wanted = {name: width for name, (way, width) in ports.items() if way == direction}
        if {name: int(high) - int(low) + 1 for name, high, low in slices} != wanted:
            found.append(f"{direction}s have other widths")
        if sorted(bits) != list(range(sum(wanted.values()))):
            found.append(f"{direction}s overlap or have gaps")
        declared = re.search(rf"(?:reg|wire) \[(\d+):0\] {direction}s;", text)
        if declared is None or int(declared[1]) + 1 != max(len(bits), 1):
            found.append(f"{direction}s are declared with other widths")
    return found + tree_faults(text, sum(n for way, n in ports.values() if way == "output"))


def tree_faults(text: str, outputs: int) -> list[str]:
    """Whether the parity of the outputs comes out, from every single bit on its own."""
    levels = re.findall(r"reg \[(\d+):0\] level_(\d+);\n.* <= (.*);", text)
    for one in range(outputs):
        value = [bit == one for bit in range(outputs)]
        for last, number, source in levels:
            if number != "0":
                terms = re.findall(r"\^level_\d+\[(\d+):(\d+)\]", source)
                value = [sum(value[int(low) : int(high) + 1]) % 2 == 1 for high, low in terms]
                value.reverse()
            if len(value) != int(last) + 1:
                return [f"level {number} has another width"]
        if value != [True]:
            return [f"output bit {one} is lost"]
    return []


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{2}_[0-9]{1,2}", fullmatch=True),
        st.tuples(st.sampled_from(["input", "output"]), st.integers(1, 70)),
        min_size=1,
        max_size=9,
    ).filter(lambda ports: any(way == "output" for way, _ in ports.values()))
)
def test_every_bit_is_reached_once(ports: Widths) -> None:
    assert faults(wrapper_verilog("top", module(ports)), ports) == []


def test_a_port_may_have_the_name_of_a_keyword() -> None:
    """Such as `begin` of an `AccumulatingArray`."""
    text = wrapper_verilog("top", module({"begin": ("input", 1), "o": ("output", 1)}))
    assert "input [0:0] \\begin ," in text
    assert ".\\begin (inputs[0:0])" in text


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("outputs[6:0]", "outputs[5:0]"),
        ("inputs[5:1]", "inputs[4:0]"),
        ("^level_0[7:4]", "^level_0[6:4]"),
        ("^level_0[3:0]", "^level_0[3:1]"),
        ("reg [5:0] inputs", "reg [4:0] inputs"),
    ],
)
def test_a_bit_that_is_dropped_is_found(right: str, wrong: str) -> None:
    text = wrapper_verilog("top", module(PORTS))
    assert right in text
    assert faults(text, PORTS) == []
    assert faults(text.replace(right, wrong), PORTS)


def test_a_unit_without_a_clock_is_given_none() -> None:
    ports = {"a": {"direction": "input", "bits": [2]}, "o": {"direction": "output", "bits": [3]}}
    text = wrapper_verilog("top", {"ports": ports})
    assert ".clk(" not in text
    assert ".rst(" not in text


def test_clock_and_reset_behind_axi() -> None:
    """No bit of the shift register; the reset is low when active, from a register of its own."""
    names = {"aclk": "input", "aresetn": "input", "a": "input", "o": "output"}
    ports = {name: {"direction": way, "bits": [2]} for name, way in names.items()}
    text = wrapper_verilog("top", {"ports": ports})
    assert ".\\aclk (clk), .\\aresetn (reset_n), .\\a (inputs[0:0])" in text
    assert "reset_n <= ~rst;" in text
