"""Packages which are imported only when something needs them."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType

from workloads.errors import WorkloadError


def load_optional(module: str, *, install: str, purpose: str) -> ModuleType:
    """Import `module`, or raise WorkloadError with the command which installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise _absent(install, purpose) from error


def package_folder(module: str, *, install: str, purpose: str) -> Path:
    """Folder of an installed package, found without importing it.

    Raises WorkloadError with the command which installs it if it is absent.
    """
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise _absent(install, purpose)
    return Path(next(iter(spec.submodule_search_locations)))


def _absent(install: str, purpose: str) -> WorkloadError:
    return WorkloadError(
        f"{purpose} needs the package {install}, which is not installed: `pip install {install}`"
    )
