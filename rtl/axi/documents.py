"""A register map as JSON, a C header, SystemRDL and a page."""

import html
import json
from collections.abc import Sequence
from typing import Any

from rtl.axi.register_map import LAST, Register

__all__ = ["c_header", "page", "records", "system_rdl"]


def records(registers: Sequence[Register]) -> list[dict[str, Any]]:
    """As plain data."""
    return [
        {
            "name": one.name,
            "address": one.address,
            "access": one.access,
            "reset": one.reset,
            "description": one.says,
            "fields": [
                {"name": name, "lsb": lowest, "bits": bits} for name, lowest, bits in one.fields
            ],
        }
        for one in registers
    ]


def as_json(registers: Sequence[Register]) -> str:
    """JSON: bytes of the map, bits of a register, and the registers."""
    whole = {"bytes": LAST, "register_bits": 32, "registers": records(registers)}
    return json.dumps(whole, indent=2) + "\n"


def c_header(name: str, registers: Sequence[Register]) -> str:
    """Addresses as NAME_REGISTER, masks as NAME_REGISTER_FIELD."""
    prefix = name.upper()
    lines = [f"#ifndef {prefix}_REGISTERS_H", f"#define {prefix}_REGISTERS_H", ""]
    for one in registers:
        lines.append(f"/* {one.says} */")
        lines.append(f"#define {prefix}_{one.name} 0x{one.address:03X}u")
        if one.access == "r" and one.reset:
            lines.append(f"#define {prefix}_{one.name}_VALUE 0x{one.reset:08X}u")
        for field, lowest, bits in one.fields:
            mask = ((1 << bits) - 1) << lowest
            lines.append(f"#define {prefix}_{one.name}_{field} 0x{mask:08X}u")
    return "\n".join([*lines, "", "#endif", ""])


def system_rdl(name: str, registers: Sequence[Register]) -> str:
    """SystemRDL 2.0."""
    body = "\n".join(_rdl_register(one) for one in registers)
    return f"addrmap {name} {{\n  default regwidth = 32;\n{body}\n}};\n"


def _rdl_register(one: Register) -> str:
    access = {"r": "r", "rw": "rw", "w": "w"}[one.access]
    fields = one.fields or (("VALUE", 0, 32),)
    inner = "".join(
        f"    field {{ sw = {access}; hw = rw; }} {field}[{lowest + bits - 1}:{lowest}]"
        f" = {bits}'h{(one.reset >> lowest) & ((1 << bits) - 1):x};\n"
        for field, lowest, bits in fields
    )
    says = one.says.replace("\\", "\\\\").replace('"', '\\"')
    return f'  reg {{\n    desc = "{says}";\n{inner}  }} {one.name} @ 0x{one.address:03X};'


def page(title: str, registers: Sequence[Register]) -> str:
    """A page with one table."""
    rows = "\n".join(
        f"<tr><td><code>0x{one.address:03X}</code></td><td><code>{one.name}</code></td>"
        f"<td>{one.access}</td><td><code>0x{one.reset:X}</code></td>"
        f"<td>{_fields(one)}</td><td>{html.escape(one.says)}</td></tr>"
        for one in registers
    )
    safe = html.escape(title)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Registers of {safe}</title>
<style>body{{font:15px/1.5 sans-serif;margin:2em}}table{{border-collapse:collapse}}
td,th{{border:1px solid #ccc;padding:.3em .6em;text-align:left;vertical-align:top}}</style></head>
<body><h1>Registers of {safe}</h1>
<p>32 bits each, of {LAST} bytes. Other addresses, and accesses that a register has not, are
answered with SLVERR.</p>
<table><thead><tr><th>address</th><th>name</th><th>access</th><th>at reset</th><th>bits</th>
<th>what it is</th></tr></thead>
<tbody>
{rows}
</tbody></table></body></html>
"""


def _fields(one: Register) -> str:
    return ", ".join(
        f"{lowest + bits - 1}:{lowest} {name}" if bits > 1 else f"{lowest} {name}"
        for name, lowest, bits in one.fields
    )
