#!/usr/bin/env bash
# Builds attnbench for AArch64 processors (with NEON) and runs tests under an emulator. Exits 1 if a test fails. The times that
# an emulator takes say nothing about a processor's, so no speed is measured.
#   scripts/aarch64.sh                tests of vector code, random numbers, engines and methods, without those that draw many
#                                     samples; more than an hour on two cores, after half an hour that builds
#   scripts/aarch64.sh ARGUMENT...    the tests that ctest chooses by these arguments: -L '^linalg$'
# Tests that start the program or a worker fail, since a system starts no programs of another processor. Not built is the Python
# module. Needs root, for debootstrap, which puts Debian's libraries for AArch64 into build/aarch64 (700 MB).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
case "${1:-}" in
  -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
scripts/setup.sh --aarch64
root=$PWD/build/aarch64/root objects=build/aarch64/objects
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if [ ! -e "$root/complete" ]; then
  rm -rf "$root"
  libraries=libc6-dev,libboost-program-options-dev,libbenchmark-dev,catch2,libsqlitecpp-dev,nlohmann-json3-dev,libtomlplusplus-dev,libeigen3-dev
  libraries+=,libfmt-dev,libzip-dev,libopenblas-dev,liblapacke-dev,libfftw3-dev,libpcre2-dev,libutf8proc-dev
  # Only fetched: debootstrap would run programs of AArch64 to install them.
  if ! debootstrap --foreign --arch=arm64 --variant=minbase --include="$libraries" bookworm "$root" > "$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "aarch64.sh: debootstrap failed (above); it needs root and Debian's archive" >&2
    exit 1
  fi
  for package in "$root"/var/cache/apt/archives/*.deb; do dpkg -x "$package" "$root"; done
  # An installation would choose OpenBLAS as the system's BLAS and LAPACK.
  (cd "$root/usr/lib/aarch64-linux-gnu" && ln -sf openblas-pthread/*.so* .)
  touch "$root/complete"
fi

export QEMU_LD_PREFIX=$root OPENBLAS_NUM_THREADS=1  # without the second the program would start itself again
cmake -S . -B "$objects" -G Ninja -DCMAKE_BUILD_TYPE=Release -DATTNBENCH_ARCH=armv8-a -DPYBIND11_INCLUDE=OFF \
  -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
  -DCMAKE_SYSROOT="$root" -DCMAKE_LIBRARY_ARCHITECTURE=aarch64-linux-gnu -DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER \
  -DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64 > "$log" 2>&1 || { cat "$log" >&2; exit 1; }
# gcc notes for functions with long double that older versions of it called otherwise: shown only with errors.
cmake --build "$objects" --target attnbench_tests > "$log" 2>&1 || { cat "$log" >&2; exit 1; }
[ $# -gt 0 ] || set -- -L '^(linalg|random|approximations)$' -LE '^statistics$'
ctest --test-dir "$objects" --output-on-failure --no-tests=error --timeout 21600 -j 2 "$@" || exit 1
