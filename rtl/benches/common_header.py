"""What every simulator includes, compiled once for all of them.

Half of the time that a compiler takes for a small core goes into Verilator's own header and those
of C++. Verilator precompiles them with the core's own, for each core again and for each of two
levels of optimisation; here they are precompiled without, and kept beside the simulators.
"""

import functools
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from rtl.benches.build_cache import build_once, cache_key
from rtl.toolchain import run_tool, verilator_path, verilator_version

__all__ = ["with_common_header"]

_HEADERS = ("algorithm", "cstdint", "cstring", "memory", "sstream", "stdexcept", "string", "vector")
_TEXT = "\n".join([*(f"#include <{name}>" for name in _HEADERS), '#include "verilated.h"', ""])
_LEVELS = ("fast", "slow")


def with_common_header(
    made: Path, fast: str, slow: str, environment: Mapping[str, str]
) -> Sequence[str]:
    """Words for make in `made`, where Verilator has written Vtop.mk: levels, and the header.

    fast, slow: the compiler's options for the code of every cycle, and for that of the start. Two
    compiled headers (140 MB) are kept for each set of options; the first simulator makes them.
    Raises `ToolchainError` if the compiler is missing or fails.
    """
    levels = [f"OPT_FAST={fast}", f"OPT_SLOW={slow}"]
    here = made / "common"  # a link: no command names the cache, so ccache knows it again

    def compile_headers(work: Path) -> None:
        here.symlink_to(work, target_is_directory=True)
        (work / "common.h").write_text(_TEXT)
        words = [f"common/common.h.{level}.gch" for level in _LEVELS]
        command = ["make", "-C", str(made), "-f", "Vtop.mk", "OBJCACHE=", *levels, *words]
        run_tool(command, env=environment)
        here.unlink()
        for level in _LEVELS:  # read where the compiler refuses the compiled one
            shutil.copy(work / "common.h", work / f"common.h.{level}")

    parts = (str(verilator_path()), verilator_version(), _compiler(), _TEXT, _flags(made))
    place = build_once("headers", cache_key(*parts, *levels), compile_headers)
    here.symlink_to(place, target_is_directory=True)
    included = (
        f"{level} -include common/common.h.{name}"
        for level, name in zip(levels, _LEVELS, strict=True)
    )
    return ["VK_PCH_H=common/common.h", "VK_PCH_I_FAST=", "VK_PCH_I_SLOW=", *included]


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
