"""A design as Verilog, with a manifest of what was emitted."""

import json
import re
from dataclasses import dataclass
from typing import Any

# The stubs leave rtlil out.
from amaranth.back import rtlil  # pyright: ignore[reportAttributeAccessIssue]

from archsim.errors import InputError, nearest, require
from archsim.machine.design import Design
from archsim.machine.registry import design_name, design_record
from archsim.ports import Port
from archsim.version import VERSION
from rtl.axi.axi_core import AxiCore, data_bits, stream_name
from rtl.axi.documents import records
from rtl.axi.register_map import register_map
from rtl.hierarchy import Library, sharing
from rtl.link.frames import LINK_VERSION, PAYLOAD, Operation, Status
from rtl.link.link_core import LinkCore, word_bytes
from rtl.registry import core_of
from rtl.to_verilog import rtlil_to_verilog
from rtl.verilog_names import is_identifier


@dataclass(frozen=True, kw_only=True)
class Emitted:
    """Verilog text, and its manifest as plain data."""

    verilog: str
    manifest: dict[str, Any]

    def manifest_json(self) -> str:
        """The manifest as JSON."""
        return json.dumps(self.manifest, indent=2)


def _port_record(ports: tuple[Port, ...]) -> list[dict[str, Any]]:
    return [
        {
            "name": port.name,
            "direction": {"i": "input", "o": "output"}[port.direction],
            "signals": [f"{port.name}__{part}" for part in ("payload", "valid", "ready")],
            **_lanes_record(port),
        }
        for port in ports
    ]


def _lanes_record(port: Port) -> dict[str, Any]:
    return {
        "bits": port.bits,
        "lanes": [
            {"bits": bits, "signed": signed, **({"name": name} if name else {})}
            for bits, signed, name in zip(
                port.lane_bits,
                port.lane_signed,
                port.lane_names or [""] * port.lanes,
                strict=True,
            )
        ],
    }


COUNTER = "count_"
"""What the names of performance counters begin with."""

_NOISE = re.compile(r"^ *\(\* (?:generator|top) = .*\*\)\n", re.MULTILINE)
_SETTLE = re.compile(r"\\\$auto\$verilog_backend\.cc:\d+:dump_module\$\d+ ")
_MODULE = re.compile(r"^module (\w+) ?\(", re.MULTILINE)


HEADER = """\
// {design}, emitted by archsim {version}; its parameters and ports are in the manifest.
//
// `settle` never changes: it makes simulators evaluate every block once at time zero.
// Sums and comparisons mix widths as Verilog extends them, registers have initial values, many
// modules share this file, a parent may leave outputs of a module alone, and what a case does not
// name has its value from before the case: nothing to warn of.
/* verilator lint_off CASEINCOMPLETE */
/* verilator lint_off DECLFILENAME */
/* verilator lint_off PROCASSINIT */
/* verilator lint_off UNUSEDSIGNAL */
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */

"""


def readable(text: str, library: Library) -> str:
    """Verilog without the generator's noise, and with a heading over each shared module."""

    def heading(match: re.Match[str]) -> str:
        parameters = library.headings.get(match[1])
        return f"// {parameters}\n{match[0]}" if parameters else match[0]

    return _MODULE.sub(heading, _SETTLE.sub("settle ", _NOISE.sub("", text)))


INTERFACES = ("streams", "axi", "link")


def emit(design: Design, *, top: str = "top", interface: str = "streams") -> Emitted:
    """Verilog of a design's core: the hierarchy of the design, each repeated module once.

    interface: the core's bare streams; AXI4-Stream and AXI4-Lite around them (`rtl.axi`); or two
    streams of bytes (`rtl.link`).
    Raises `InputError` for a `top` that is no identifier or names another module, for another
    interface or one that the design cannot have, and where yosys cannot run.
    """
    if not is_identifier(top):
        raise InputError(f"top must be a Verilog identifier, not {top!r}")
    require(
        interface in INTERFACES,
        f"interface must be {', '.join(INTERFACES[:-1])} or {INTERFACES[-1]}, not {interface!r}; "
        f"{nearest(interface, INTERFACES)}",
    )
    if interface == "axi":
        return _emit_axi(design, top)
    if interface == "link":
        return _emit_link(design, top)
    core: Any = core_of(design)
    counted = [name for name in core.signature.members if name.startswith(COUNTER)]
    manifest = {
        **_about(design, top),
        "clock": {"signal": "clk", "edge": "rising"},
        "reset": {"signal": "rst", "active": "high", "synchronous": True},
        "ports": _port_record(core.ports),
        "counters": [{"signal": name, "action": name.removeprefix(COUNTER)} for name in counted],
        "contract": f"docs/contracts/{design.kind}.md",
    }
    return Emitted(verilog=_verilog(design, core, top), manifest=manifest)


def _about(design: Design, top: str) -> dict[str, Any]:
    return {
        "archsim": VERSION,
        "top": top,
        "design_name": design_name(design),
        "design": design_record(design),
    }


def _verilog(design: Design, component: Any, top: str) -> str:
    """A component as module `top`, and all below it."""
    with sharing() as library:
        text = rtlil.convert(component, name=top, emit_src=False)
    if top in library.texts or top in library.sources:
        raise InputError(f"top must not be the name of another module of the design, {top!r}")
    header = HEADER.format(design=design_name(design), version=VERSION)
    body = readable(rtlil_to_verilog("\n".join([text, *library.texts.values()])), library)
    sources = "\n".join(library.sources.values())
    return f"{header}{sources}\n{body}"


def _emit_axi(design: Design, top: str) -> Emitted:
    """The core behind AXI; the manifest has its streams and its registers."""
    core = AxiCore(design=design)
    manifest = {
        **_about(design, top),
        "interface": "axi",
        "clock": {"signal": "aclk", "edge": "rising"},
        "reset": {"signal": "aresetn", "active": "low", "synchronous": True},
        "streams": [
            {
                "name": port.name,
                "prefix": stream_name(port),
                "tdata_bits": data_bits(port),
                **_lanes_record(port),
            }
            for port in core.streams
        ],
        "registers": records(core.registers),
        "contract": f"docs/contracts/{design.kind}.md",
    }
    return Emitted(verilog=_verilog(design, core, top), manifest=manifest)


def _emit_link(design: Design, top: str) -> Emitted:
    """The core behind a byte link; the manifest has what a host must know of it."""
    registers = register_map(design)
    core = LinkCore(design=design)
    manifest = {
        **_about(design, top),
        "interface": "link",
        "clock": {"signal": "clk", "edge": "rising"},
        "reset": {"signal": "rst", "active": "high", "synchronous": True},
        "link": {
            "version": LINK_VERSION,
            "rx": [f"rx__{part}" for part in ("payload", "valid", "ready")],
            "tx": [f"tx__{part}" for part in ("payload", "valid", "ready")],
            "payload_bytes": PAYLOAD,
            "operations": {one.name: one.value for one in Operation},
            "statuses": {one.name: one.value for one in Status},
        },
        "streams": [
            {
                "name": port.name,
                "number": number,
                "word_bytes": word_bytes(port),
                **_lanes_record(port),
            }
            for number, port in enumerate((*core.inputs, core.output))
        ],
        "registers": records(registers),
        "contract": f"docs/contracts/{design.kind}.md",
    }
    return Emitted(verilog=_verilog(design, core, top), manifest=manifest)
