"""The folder of a user's caches: compiled kernels and simulators, and what was measured."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "ARCHSIM_CACHE_DIR"
"""Environment variable that puts all caches elsewhere than in the user's cache folder."""


def cache_folder() -> Path:
    """Whole, so that other processes find it from their own folders too; it need not exist."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    import platformdirs

    return platformdirs.user_cache_path("archsim")


__all__ = ["CACHE_VARIABLE", "cache_folder"]
