"""Compile what later runs would: `python -m archsim.kernels`, for an image, a cluster, a test.

All kernels of archsim that are declared for one type of each argument; others (a few, small) are
compiled where they are met.  Where nothing can be kept it ends with 2.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType
from typing import Any

import archsim
from archsim.kernels.kernel import Kernel
from archsim.kernels.store import can_write, kernel_folder


def entries() -> list[Kernel[..., Any]]:
    """Those that are declared for one type of each argument, in the order of their names."""
    found: dict[str, Kernel[..., Any]] = {}
    for module in _modules():
        values: list[Any] = [*vars(module).values()]
        kernels: list[Kernel[..., Any]] = [one for one in values if isinstance(one, Kernel)]
        found |= {one.name: one for one in kernels if _has_one_form(one)}
    return [found[name] for name in sorted(found)]


def _modules() -> Iterator[ModuleType]:
    """Of archsim, without those that want an extra that is not installed."""
    for one in walk_packages(archsim.__path__, f"{archsim.__name__}."):
        if not one.name.endswith("__main__"):
            try:
                yield import_module(one.name)
            except ImportError as error:
                if (error.name or "").partition(".")[0] == archsim.__name__:
                    raise


def _has_one_form(one: Kernel[..., Any]) -> bool:
    try:
        one.examples()
    except TypeError:
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m archsim.kernels",
        description="Compile all kernels now, by two processes, and keep them in the user's cache "
        "folder (ARCHSIM_CACHE_DIR puts it elsewhere): half a minute once, and no run waits.",
    )
    parser.add_argument("--last-first", action="store_true", help="the last one first, alone")
    last_first: bool = parser.parse_args().last_first
    if not can_write():
        print(f"archsim: nothing can be kept in {kernel_folder()}", file=sys.stderr)
        return 2
    if last_first:
        for one in reversed(entries()):
            one.make()
        return 0
    # From the other end: the two meet where one has made what the other would, whoever is faster.
    other = subprocess.Popen([sys.executable, "-m", __spec__.name, "--last-first"])
    try:
        found = entries()
        for one in found:
            one.make()
        code = other.wait()
    finally:
        other.kill()
        other.wait()
    print(f"archsim: {len(found)} kernels are kept in {kernel_folder()}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
