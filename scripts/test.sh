#!/usr/bin/env bash
# Set up, then run every check of the project.  Arguments go to pytest: scripts/test.sh -m slow
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh
export PATH="$PWD/.venv/bin:$PATH" OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
# The tests start Python hundreds of times: without our compiled modules `archsim run` takes 1.7 s of
# processor time for 1.1, and some images set this.
unset PYTHONDONTWRITEBYTECODE
# once, by both cores: the tests' processes would each compile what they meet first
python -m archsim.kernels || true # where nothing can be kept, each test compiles what it needs
ruff check .
ruff format --check .
lint-imports
if [ $# -eq 0 ]; then
  set -- -m "not slow"
fi
# pyright keeps one core busy for a minute or two: beside the tests, so that the other is not idle
said="$(mktemp)"
pyright > "$said" 2>&1 &
types=$!
trap 'kill "$types" 2>/dev/null || true; rm -f "$said"' EXIT
code=0
python -m pytest -n "${ARCHSIM_TEST_PROCESSES:-2}" --durations=10 "$@" || code=$?
wait "$types" || code=$?
cat "$said"
exit "$code"
