#!/usr/bin/env bash
# Installs the Debian 12 packages that attnbench needs. Prints nothing if they are all there.
#   scripts/setup.sh             to build, test and reproduce
#   scripts/setup.sh --aarch64   also what scripts/aarch64.sh needs
#   scripts/setup.sh --ci        also clang with sanitizers, what scripts/lint.sh and scripts/test_wheel.sh need, Slurm and Chromium
set -euo pipefail

packages=(g++ cmake ninja-build git libeigen3-dev libboost-dev libboost-program-options-dev libbenchmark-dev catch2
          libsqlitecpp-dev libsqlite3-dev nlohmann-json3-dev libtomlplusplus-dev libfmt-dev libzip-dev libopenblas-dev liblapacke-dev
          libfftw3-dev libpcre2-dev libutf8proc-dev pybind11-dev python3-dev python3 python3-numpy python3-matplotlib python3-pandas python3-plotly python3-scipy)
case "${1:-}" in
  "") ;;
  --aarch64) packages+=(g++-aarch64-linux-gnu debootstrap qemu-user) ;;
  --ci) packages+=(clang-14 libclang-rt-14-dev clang-format-14 clang-tidy-14 slurmctld slurmd slurm-client munge
                   chromium chromium-driver python3-selenium python3-pip python3-venv debootstrap qemu-user) ;;
  -h | --help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) echo "setup.sh: unknown option '$1'; expected --aarch64, --ci or nothing" >&2; exit 2 ;;
esac

if ! command -v dpkg-query > /dev/null; then
  echo "setup.sh: this is no Debian system, so nothing was installed; needed are, by Debian's names: ${packages[*]}" >&2
  exit 2
fi
missing=()
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2> /dev/null | sed -n 's/^installed //p')
for package in "${packages[@]}"; do
  grep -qxF "$package" <<< "$installed" || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -eq 0 ]; then
  as_root=()
elif command -v sudo > /dev/null && sudo -n true 2> /dev/null; then
  as_root=(sudo)
else
  echo "setup.sh: missing packages, and neither root nor sudo without a password; as root, run" >&2
  echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
  exit 2
fi
echo "installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { "${as_root[@]}" apt-get update && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y \
         --no-install-recommends "${missing[@]}"; } > "$log" 2>&1 < /dev/null; then
  tail -n 20 "$log" >&2
  echo "setup.sh: apt-get failed (above); missing are: ${missing[*]}" >&2
  exit 1
fi
