"""Makes tests/data/parity/fp8_*.txt: what ml_dtypes makes of each code of an fp8 format, and where it rounds (README.md there).

    python3 tests/parity/make_fp8_fixture.py
"""

import os

import ml_dtypes
import numpy

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "parity")
FORMATS = {"e4m3": (ml_dtypes.float8_e4m3fn, 0x7E), "e5m2": (ml_dtypes.float8_e5m2, 0x7B)}


def code_of(bits, dtype):
    """The code of the positive float with these bits."""
    return int(numpy.uint32(bits).view(numpy.float32).astype(dtype).view(numpy.uint8))


def first_bits(code, dtype):
    """Of the smallest positive float that becomes `code`: rounding keeps the order."""
    low, high = 0, 0x7F800000
    while low < high:
        middle = (low + high) // 2
        if code_of(middle, dtype) >= code:
            high = middle
        else:
            low = middle + 1
    return low


for name, (dtype, largest) in FORMATS.items():
    with open(os.path.join(OUT, f"fp8_{name}.txt"), "w", encoding="ascii") as out:
        for code in range(256):
            value = numpy.uint8(code).view(dtype).astype(numpy.float32)
            bits = "nan" if numpy.isnan(value) else f"{int(value.view(numpy.uint32)):08x}"
            first = f"{first_bits(code, dtype):08x}" if code <= largest else "-"
            out.write(f"{code:02x} {bits} {first}\n")
