"""How much memory the machine has free, where it tells."""

from __future__ import annotations

from pathlib import Path

from archsim.errors import InputError


def free_mib() -> int:
    """MiB that processes may still take; 0 where the machine does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    told = dict(line.split(":", 1) for line in lines if ":" in line)
    return int(told.get("MemAvailable", "0 kB").split()[0]) // 1024


def require_free(where: str, needed_bytes: int) -> None:
    """Raise `InputError` for arrays that the machine has no memory for, which would end it."""
    needed, free = -(-needed_bytes >> 20), free_mib()
    if free and needed > free:
        raise InputError(
            f"{where}: takes some {needed:,} MiB of memory, and {free:,} are free: take a smaller "
            "batch"
        )


__all__ = ["free_mib", "require_free"]
