#!/usr/bin/env bash
# Runs the tests that need PyTorch, which scripts/test.sh skips where python3 has none. The first run installs PyTorch in
# build/torch (900 MB). scripts/setup.sh --ci installs python3-venv, which this needs.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
torch=torch==2.13.0
scripts/build.sh release attnbench attnbench_python
if [ "$(cat build/torch/installed.txt 2> /dev/null)" != "$torch" ]; then
  echo "installing $torch in build/torch"
  rm -rf build/torch
  mkdir -p build
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  if ! { /usr/bin/python3 -m venv --system-site-packages build/torch &&
         build/torch/bin/pip install --disable-pip-version-check "$torch"; } > "$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "test_torch.sh: PyTorch could not be installed (above); scripts/setup.sh --ci installs python3-venv" >&2
    exit 1
  fi
  echo "$torch" > build/torch/installed.txt
fi
build/torch/bin/python tests/scripts/capture_test.py build/release/attnbench
build/torch/bin/python tests/scripts/byte_model_test.py
build/torch/bin/python tests/scripts/train_test.py
build/torch/bin/python tests/plugins/torch_plugin_test.py build/release
