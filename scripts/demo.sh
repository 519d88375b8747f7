#!/usr/bin/env bash
# Set up, then simulate a trained network on a small systolic accelerator.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh
[ -e .venv/.compiled ] || echo "demo: the first run compiles the timing kernels (about 20 s, once)" >&2
.venv/bin/archsim run edge-16 squeezenet-imagenet "$@"
touch .venv/.compiled
