#!/usr/bin/env bash
# Sets up, builds and reproduces the figures; arguments go to `attnbench reproduce` (try --full or a recipe's name).
# `build/release/attnbench reproduce --help` lists them.
set -euo pipefail
case "${1:-}" in
  -h | --help) sed -n '2,3s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"$scripts/setup.sh"
"$scripts/build.sh" release attnbench attnbench_python
cd "$scripts/.."
exec build/release/attnbench reproduce "$@"
