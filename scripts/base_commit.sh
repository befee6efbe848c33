#!/usr/bin/env bash
# Prints the commit that main had before the change that this checkout holds: where HEAD left origin/main, or on main itself
# (in a clone of what was merged) the last commit that is four hours older than HEAD. Prints nothing if history ends before.
set -euo pipefail
case "${1:-}" in
  "") ;;
  -h | --help) sed -n '2,3s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) echo "base_commit.sh: unknown argument '$1'; expected nothing" >&2; exit 2 ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."
base=$(git merge-base HEAD origin/main 2> /dev/null || true)
if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then
  base=$(git rev-list -1 --before="$(($(git log -1 --format=%ct) - 4 * 3600))" HEAD)
fi
printf '%s\n' "$base"
