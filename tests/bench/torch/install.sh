# shellcheck shell=bash
# install_torch VENV: PyTorch and transformers from PyPI in a virtual environment, unless they are there (7 GB: PyTorch's
# wheel does not load without the CUDA libraries, even on the CPU).
install_torch() {
    "$1/bin/python" -c 'import numpy, torch, transformers' 2>/dev/null && return
    python3 -c 'import ensurepip' 2>/dev/null || {
        echo "python3-venv is missing: apt-get install python3-venv" >&2
        return 1
    }
    echo "installing PyTorch and transformers into $1"
    python3 -m venv "$1"
    "$1/bin/pip" install --quiet --no-cache-dir --disable-pip-version-check numpy==2.4.6 torch==2.15.0 transformers==5.23.0
}
