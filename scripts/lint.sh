#!/usr/bin/env bash
# Checks the format of C++ and Python files (clang-format, black), the types of Python files (mypy), configured in
# pyproject.toml, and C++ files for mistakes (clang-tidy, configured in .clang-tidy). scripts/setup.sh --ci installs what
# this needs. The first run installs the Python tools in build/lint.
# Clang also compiles files, because a build with gcc accepts some code that clang 14 does not.
#   scripts/lint.sh          of the files that changed (scripts/base_commit.sh), clang compiles at most 40, and clang-tidy
#                            checks at most 12 (2 minutes on two cores)
#   scripts/lint.sh --all    clang compiles every file, and clang-tidy checks every file outside tests/ (an hour)
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
case "${1:-}" in
  "" | --all) ;;
  *) echo "lint.sh: unknown option '$1'; expected --all or nothing" >&2; exit 2 ;;
esac
# The stubs match the pandas of Debian 12. The lines after the first list the dependencies of these three.
tools=(black==26.10.1 mypy==2.4.1 pandas-stubs==1.5.3.230321
       ast-serialize==0.13.1 click==8.5.1 librt==0.16.0 mypy-extensions==1.2.0 packaging==26.3 pathspec==1.1.1
       platformdirs==4.14.7 pytokens==0.4.1 types-pytz==2026.6.0.20261031 typing-extensions==4.16.0)
installed=build/lint/installed.txt
if [ "$(cat "$installed" 2> /dev/null)" != "${tools[*]}" ]; then
  echo "installing black and mypy in build/lint"
  rm -rf build/lint
  mkdir -p build/lint
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  # mypy must see the types of Debian's own interpreter and packages, such as numpy.
  if ! { /usr/bin/python3 -m venv --system-site-packages build/lint &&
         build/lint/bin/pip install --disable-pip-version-check --no-deps "${tools[@]}"; } > "$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "lint.sh: black and mypy could not be installed (above); scripts/setup.sh --ci installs python3-venv" >&2
    exit 1
  fi
  echo "${tools[*]}" > "$installed"
fi

git ls-files -z -- '*.cpp' '*.hpp' | xargs -0 clang-format-14 --dry-run --Werror
mapfile -d '' -t python < <(git ls-files -z -- '*.py' '*.pyi')
build/lint/bin/black --quiet --check --diff "${python[@]}"
build/lint/bin/mypy --no-error-summary "${python[@]}"

base=$(scripts/base_commit.sh)
changed() {
  [ -z "$base" ] || git diff --name-only --diff-filter=d "$base" -- "$@"
}
python_headers=$(/usr/bin/python3 -c "import sysconfig; print(sysconfig.get_path('include'))")
flags=(-std=c++20 -I. -isystem /usr/include/eigen3 -isystem "$python_headers")
for name in SOURCE_TREE VERSION PYTHON SOURCE_DIR PROGRAM FAULTY; do flags+=("-DATTNBENCH_$name=\"\""); done

all=${1:-}
# at_most N TOOL: prints N of the lines that it reads; other commits of the same change check others.
at_most() {
  mapfile -t lines
  if [ ${#lines[@]} -gt "$1" ] && [ -z "$all" ]; then
    echo "lint.sh: $2 checks $1 of ${#lines[@]} changed files; scripts/lint.sh --all checks every file" >&2
    mapfile -t lines < <(printf '%s\n' "${lines[@]}" | shuf -n "$1" --random-source=<(yes "$(git rev-parse HEAD)"))
  fi
  [ ${#lines[@]} -eq 0 ] || printf '%s\n' "${lines[@]}"
}
cpp=('harness/*.cpp' 'approximations/*.cpp' 'experiments/*.cpp')
if [ -n "$all" ]; then
  changed() { git ls-files -- "$@"; }
fi
changed "${cpp[@]}" 'tests/*.cpp' | at_most 40 clang |
  xargs -r -n 1 -P 2 clang++-14 -fsyntax-only -Wall -Wextra -Wshadow -Wpedantic -Wconversion -Wno-missing-field-initializers -Werror \
    "${flags[@]}"

# Sources of the program; tests are macros of Catch2, which most of the checks misread.
mapfile -t sources < <(changed "${cpp[@]}" 'harness/*.hpp' 'approximations/*.hpp' 'experiments/*.hpp' | sed 's/\.hpp$/.cpp/' |
  sort -u | grep -xFf <(git ls-files -- "${cpp[@]}") | at_most 12 clang-tidy)
if [ ${#sources[@]} -gt 0 ]; then
  printf '%s\0' "${sources[@]}" | xargs -0 -I {} -P 2 bash -c 'found=$(clang-tidy-14 --quiet "$0" -- "$@" 2>&1) ||
    { printf "%s\n" "$found"; exit 1; }' {} "${flags[@]}"
fi
