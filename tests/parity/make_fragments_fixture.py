"""Makes tests/data/parity/fragments.txt: which elements of a matrix each lane of a warp holds for the matrix instructions
that kernels/cuda/matrix.h uses, as NVIDIA's CuTe describes them. Needs nothing but Python.

    python3 tests/parity/make_fragments_fixture.py

The layouts below are the facts that CUTLASS 4.7.0 (github.com/NVIDIA/cutlass, BSD-3-Clause; no code is taken from it) states
in include/cute/atom/mma_traits_sm80.hpp, MMA_Traits<SM80_16x8x16_F32BF16BF16F32_TN>, and copy_traits_sm75.hpp,
Copy_Traits<SM75_U32x4_LDSM_N> and <SM75_U16x8_LDSM_T>."""

import os

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "parity", "fragments.txt")
LANES, ELEMENT_BITS, ROW_BITS = 32, 16, 128

# shape and stride of (lane, value): an index into the matrix, whose columns lie one after another
MMA = {
    "A": (16, ((4, 8), (2, 2, 2)), ((32, 1), (16, 8, 128))),  # M x K
    "B": (8, ((4, 8), (2, 2)), ((16, 1), (8, 64))),           # N x K
    "D": (16, ((4, 8), (2, 2)), ((32, 1), (16, 8))),          # M x N
}
# of (lane, bit): a bit of the rows that the lanes point at, one after another
LDMATRIX = {
    "ldmatrix": ((32, (32, 4)), (32, (1, 1024))),
    "ldmatrix.trans": (((4, 8), (16, 2, 4)), ((256, 16), (1, 128, 1024))),
}
HEADER = """# Which element each lane of a warp holds: made by tests/parity/make_fragments_fixture.py of the layouts that NVIDIA's
# CUTLASS 4.7.0 (BSD-3-Clause) states.
# A, B, D of mma.m16n8k16: row and column of A [16, 16], of B [16, 8] and of D [16, 8];
# ldmatrix: the lane that points at the row, and the element of the row.
# Elements are in the order of the registers, of one register the lower half first.
# operand lane row,column...
"""


def size(shape):
    if isinstance(shape, int):
        return shape
    product = 1
    for part in shape:
        product *= size(part)
    return product


def index(shape, stride, number):
    """Of the place `number`, counted with the leftmost coordinate first."""
    if isinstance(shape, int):
        return number * stride
    total = 0
    for part, step in zip(shape, stride):
        total += index(part, step, number % size(part))
        number //= size(part)
    return total


def of_mma(operand):
    height, shape, stride = MMA[operand]
    for lane in range(LANES):
        places = (index(shape[0], stride[0], lane) + index(shape[1], stride[1], value) for value in range(size(shape[1])))
        cells = [(place % height, place // height) for place in places]
        yield lane, [cell[::-1] for cell in cells] if operand == "B" else cells  # CuTe has B as N x K


def of_ldmatrix(name):
    shape, stride = LDMATRIX[name]
    for lane in range(LANES):
        bits = (index(shape[0], stride[0], lane) + index(shape[1], stride[1], bit) for bit in range(0, size(shape[1]), ELEMENT_BITS))
        yield lane, [(bit // ROW_BITS, bit % ROW_BITS // ELEMENT_BITS) for bit in bits]


def main():
    with open(OUT, "w") as file:
        file.write(HEADER)
        for rows, names in ((of_mma, MMA), (of_ldmatrix, LDMATRIX)):
            for name in names:
                for lane, cells in rows(name):
                    print(name, lane, *(f"{row},{column}" for row, column in cells), file=file)


main()
