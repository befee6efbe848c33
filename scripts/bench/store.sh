#!/usr/bin/env bash
# Builds a results file of 100,000 cells and 10^6 rows and prints the seconds that it takes to record, to open, to say what
# has ended, to export, to verify and to merge, and that a plan over 100,000 cells takes with it.
#   scripts/bench/store.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
case "${1:-}" in
  "") ;;
  -h | --help) sed -n '2,4s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) echo "store.sh: unknown argument '$1'; expected none" >&2; exit 2 ;;
esac

scripts/setup.sh
scripts/build.sh release attnbench_tests
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
ATTNBENCH_BENCH_FILE="$scratch/bench.db" build/release/attnbench_tests "[bench]"
echo "plan of 100,000 cells:"
time build/release/attnbench plan attention-error --method uniform --input gaussian -d 8 -n 64 \
  --sweep logit_scale=1:100000:+1 --results "$scratch/bench.db" | tail -1
