#!/usr/bin/env bash
# Checks the format of C++ and Python files (clang-format, black) and the types of Python files (mypy), configured in
# pyproject.toml. scripts/setup.sh --ci installs what this needs. The first run installs the Python tools in build/lint.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
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
