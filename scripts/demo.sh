#!/usr/bin/env bash
# Set up, then simulate a trained network on a small systolic accelerator.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh
exec .venv/bin/archsim run edge-16 squeezenet-imagenet "$@"
