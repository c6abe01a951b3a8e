#!/usr/bin/env python3
"""What the kernels may cost, compared with what the compiler made of them.

    budget.py check TABLE VERSION CUBIN...    every kernel of the cubins, with a line for each that differs
    budget.py write TABLE VERSION CUBIN...    writes the table anew

VERSION is nvcc's own, patch number included; a CUBIN is .../ARCH/FILE.cubin. Exit code 1: something differs; 3: the table is of
another version."""

import pathlib
import sys

import cubin

WITHIN = 0.05  # of what is recorded: so much comes and goes with a line that costs nothing
OF_KERNEL = ("HMMA", "LDSM", "HGMMA", "UTMALDG", "SYNCS", "WARPGROUP")
OF_LOOP = ("HMMA", "LDSM", "MUFU", "HGMMA", "SYNCS", "WARPGROUP")
NAMES = ("registers", "stack", "shared", "local", "all", *OF_KERNEL, "loop:local", "loop:all", *("loop:" + name for name in OF_LOOP))
EXACT = {"stack": "bytes of spilled registers", "shared": "bytes of static shared memory",
         "local": "accesses to spilled registers", "loop:local": "accesses to spilled registers in the hot loop"}
HEADER = """# What the compiler makes of the hot kernels: `make sass-budget` writes this file, tests/sass/test_sass_budget.sh compares.
# stack: bytes of registers that found no room (spilled); shared: static bytes; local: loads and stores of what is spilled;
# all, HMMA, LDSM: instructions of the kernel; loop: those of its hot loop (tests/sass/cubin.py says which that is)
# HGMMA: products of warpgroups; UTMALDG: copies by TMA; SYNCS: arrivals and waits at mbarriers; WARPGROUP: waits for products, fences
# nvcc """
OF_VERSION = HEADER.splitlines()[-1]


def local(counted):
    return counted["LDL"] + counted["STL"]


def numbers(kernel):
    whole, loop = kernel.whole, kernel.loop
    return dict(zip(NAMES, (kernel.registers, kernel.stack_bytes, kernel.shared_bytes,
                            local(whole), whole.total(), *(whole[name] for name in OF_KERNEL),
                            local(loop), loop.total(), *(loop[name] for name in OF_LOOP))))


def compiled(cubins):
    """{(architecture, file, kernel): numbers}"""
    found = {}
    for path in sorted(map(pathlib.Path, cubins)):
        for kernel in cubin.kernels(path):
            found[path.parent.name, path.stem, kernel.name] = numbers(kernel)
    return found


def read(table):
    """nvcc's version, and what compiled() gave when the table was written."""
    version, rows = None, {}
    for line in pathlib.Path(table).read_text().splitlines():
        if line.startswith(OF_VERSION):
            version = line.removeprefix(OF_VERSION)
        elif not line.startswith("#"):
            architecture, file, *told = line.split(None, 2 + len(NAMES))
            if architecture != "arch":
                rows[architecture, file, told[-1]] = dict(zip(NAMES, map(int, told[:-1])))
    return version, rows


def write(table, version, found):
    lines = [("arch", "file", *NAMES, "kernel")]
    lines += [(*key[:2], *map(str, told.values()), key[2]) for key, told in found.items()]
    widths = [max(map(len, column)) for column in zip(*lines)]
    with open(table, "w") as file:
        file.write(HEADER + version + "\n")
        for line in lines:
            cells = [cell.ljust(width) if i < 2 else cell.rjust(width) for i, (cell, width) in enumerate(zip(line, widths))]
            file.write(" ".join(cells[:-1]) + " " + line[-1] + "\n")


def differences(recorded, found):
    for key in sorted(recorded.keys() | found.keys()):
        place = "sm_{} {}.cu {}".format(*key)
        if key not in found or key not in recorded:
            yield f"{place}: {'not in the table' if key in found else 'no such kernel was compiled'}"
            continue
        for name, was in recorded[key].items():
            now = found[key][name]
            if abs(now - was) > (0 if name in EXACT else WITHIN * was):
                yield f"{place}: {now} {EXACT.get(name, name)}, recorded are {was}"


def main():
    action, table, version, *cubins = sys.argv[1:]
    found = compiled(cubins)
    if action == "write":
        write(table, version, found)
        return 0
    of_version, recorded = read(table)
    if of_version != version:
        print(f"{table} is of nvcc {of_version}")
        return 3
    told = list(differences(recorded, found))
    print(*told, f"{len(found)} kernels", sep="\n")
    if told:
        print("`make sass-budget` records what is meant")
    return 1 if told or not found else 0


sys.exit(main())
