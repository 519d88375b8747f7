"""What all simulators have in common, compiled once for all of them.

Two thirds of the time that a compiler takes for a small core go into Verilator's own header, those
of C++ and Verilator's library. Verilator's makefiles compile them with the core's own, for each
core again; here they are compiled once, and kept beside the simulators.
"""

import functools
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from rtl.benches.build_cache import build_once, cache_key
from rtl.toolchain import run_tool, verilator_path, verilator_version

__all__ = ["OUTPUT_SPLIT", "with_common_code"]

OUTPUT_SPLIT = (
    *("--output-split", "200000"),
    *("--output-split-cfuncs", "2000", "--output-split-ctrace", "2000"),
)
"""Verilator's options for files few and functions short: each file reads all headers again, so that
a small core's are two, and a compiler's time for a function grows faster than its length.  Four
PEs of the published SCNN: 7 minutes with functions of 2,000 statements, above 15 without."""

_HEADERS = ("algorithm", "cstdint", "cstring", "memory", "sstream", "stdexcept", "string", "vector")
_TEXT = "\n".join([*(f"#include <{name}>" for name in _HEADERS), '#include "verilated.h"', ""])
_KINDS = ("fast", "slow")  # as Verilator's rules name the code of every cycle, and of the start


def with_common_code(made: Path, level: str, environment: Mapping[str, str]) -> Sequence[str]:
    """Words for make in `made`, where Verilator has written Vtop.mk and Vtop_classes.mk.

    level: of optimisation, as the compiler has it, of the code of every cycle: that of the start
    has none, for some cores are mostly that. The library's objects are put into `made`. Two
    compiled headers and they (140 MB) are kept for each set of options; the first simulator makes
    them. Raises `ToolchainError` if the compiler is missing or fails.
    """
    levels = [f"OPT_FAST={level}", "OPT_SLOW=-O0"]
    here = made / "common"  # a link: no command names the cache, so ccache knows it again
    objects = _library(made)

    def compile_both(work: Path) -> None:
        here.symlink_to(work, target_is_directory=True)
        (work / "common.h").write_text(_TEXT)
        make = ["make", "-C", str(made), "-f", "Vtop.mk", *levels]
        headers = [f"common/common.h.{kind}.gch" for kind in _KINDS]
        run_tool([*make, "OBJCACHE=", *headers], env=environment)
        run_tool([*make, f"OPT_GLOBAL={level}", *objects], env=environment)
        for name in objects:
            shutil.move(made / name, work)
        here.unlink()
        for kind in _KINDS:  # read where the compiler refuses the compiled one
            shutil.copy(work / "common.h", work / f"common.h.{kind}")

    parts = (str(verilator_path()), verilator_version(), _compiler(), _TEXT, _flags(made))
    place = build_once("common", cache_key(*parts, *levels, *objects), compile_both)
    here.symlink_to(place, target_is_directory=True)
    for name in objects:  # copies, since make wants them younger than its makefile
        shutil.copy(place / name, made)
    included = (
        f"{one} -include common/common.h.{kind}" for one, kind in zip(levels, _KINDS, strict=True)
    )
    return ["VK_PCH_H=common/common.h", "VK_PCH_I_FAST=", "VK_PCH_I_SLOW=", *included]


def _library(made: Path) -> list[str]:
    """Object files of Verilator's library that a simulator links."""
    text = (made / "Vtop_classes.mk").read_text().replace("\\\n", " ")
    lists = re.findall(r"^VM_GLOBAL_(?:FAST|SLOW) \+=(.*)$", text, re.MULTILINE)
    return [f"{name}.o" for one in lists for name in one.split()]


def _flags(made: Path) -> str:
    """What decides on the compiler's options in Verilator's makefiles."""
    text = (made / "Vtop.mk").read_text()
    options = text[text.index("VM_USER_CFLAGS") : text.index("VM_USER_LDLIBS")]
    classes = (made / "Vtop_classes.mk").read_text()
    switches = re.findall(r"^VM_(?:TRACE|TIMING|COVERAGE)\w* = .*$", classes, re.MULTILINE)
    return "\n".join([options, *switches])


@functools.cache
def _compiler() -> str:
    return run_tool(["g++", "--version"])
