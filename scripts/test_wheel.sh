#!/usr/bin/env bash
# Builds a wheel and a tarball from build/release and tests them in a small system of Debian in which nothing can be compiled (300 MB in
# build/wheel). Needs root, for debootstrap and chroot; scripts/setup.sh --ci installs what it needs.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/wheel.sh --native > /dev/null
(cd build/release && cpack > cpack.log) || { tail -n 20 build/release/cpack.log >&2; exit 1; }
root=build/wheel/root house=build/wheel/house
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if [ ! -e "$house/complete" ]; then
  rm -rf "$house"
  mkdir -p "$house"
  mapfile -t needed < <(/usr/bin/python3 -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")')
  build/wheel/bin/pip download --quiet --disable-pip-version-check --only-binary :all: -d "$house" "${needed[@]}"
  touch "$house/complete"
fi
if [ ! -e "$root/complete" ]; then
  rm -rf "$root"
  if ! debootstrap --variant=minbase --include=python3,python3-venv bookworm "$root" > "$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "test_wheel.sh: debootstrap failed (above); it needs root and Debian's archive" >&2
    exit 1
  fi
  touch "$root/complete"
fi
/usr/bin/python3 tests/wheel/wheel_test.py "$(ls -t dist/attnbench-*.whl | head -n 1)" \
  "$(ls -t build/release/attnbench-*.tar.gz | head -n 1)" "$house" "$root" build/release/attnbench
