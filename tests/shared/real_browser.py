"""Debian's chromium, driven by playwright (`scripts/setup.sh`)."""

from __future__ import annotations

import shutil

CHROMIUM = shutil.which("chromium")

NO_CHROMIUM = "chromium is not installed (apt-get install chromium)"

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
