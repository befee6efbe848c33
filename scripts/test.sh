#!/usr/bin/env bash
# Sets up, builds and runs the tests; arguments go to ctest (-L methods: those of a tag).
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"$scripts/setup.sh"
"$scripts/build.sh" release
cd "$scripts/.."
exec ctest --preset release "$@"
