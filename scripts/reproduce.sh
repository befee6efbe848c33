#!/usr/bin/env bash
# Sets up, builds and reproduces the figures; arguments go to `attnbench reproduce` (try --full or a recipe's name).
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"$scripts/setup.sh"
"$scripts/build.sh" release attnbench attnbench_python
cd "$scripts/.."
exec build/release/attnbench reproduce "$@"
