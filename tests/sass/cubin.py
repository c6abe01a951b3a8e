"""What a cubin says of its kernels: registers, stack, static shared memory, and the instructions of its machine code (SASS).

A cubin is an ELF file. Its notes are those that `cuobjdump --dump-resource-usage` prints, and an instruction's lowest nine
bits are its operation. Both were compared with nvdisasm 13.5 and `ptxas -v` of CUDA 13.0, for compute capabilities 8.0 and
9.0: every operation named here and the target of every branch. WARPGROUP is its .ARRIVE and .DEPBAR; SYNCS is not its .EXCH,
which makes a barrier. NVIDIA documents neither."""

import struct
import subprocess
from collections import Counter, namedtuple

# operation: how nvdisasm writes it
OPERATIONS = {
    0x023: "FFMA", 0x03B: "LDSM", 0x03C: "HMMA", 0x108: "MUFU", 0x118: "NOP", 0x147: "BRA", 0x181: "LDG", 0x183: "LDL",
    0x184: "LDS", 0x186: "STG", 0x187: "STL", 0x188: "STS", 0x1A7: "SYNCS", 0x1AE: "LDGSTS", 0x1B4: "UTMALDG", 0x1C5: "WARPGROUP",
    0x1F0: "HGMMA",
}
INSTRUCTION_BYTES = 16
ALWAYS = 7  # the predicate of an instruction without one
# .nv.info's attributes: a format, a kind, the bytes that follow; these are of the format "bytes" and hold a symbol and a number
FORMAT_BYTES, FRAME_SIZE, REGISTERS = 4, 0x11, 0x2F
RESERVED_SHARED_BYTES = 1024  # of a block, for the system, since 9.0; ptxas does not count them
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")

Kernel = namedtuple("Kernel", "name registers stack_bytes shared_bytes whole loop")


class Elf:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.read()
        if self.bytes[:5] != b"\x7fELF\x02":
            raise ValueError(f"{path}: no cubin")
        start, = struct.unpack_from("<Q", self.bytes, 40)
        self.flags, = struct.unpack_from("<I", self.bytes, 48)
        count, names = struct.unpack_from("<HH", self.bytes, 60)
        headers = [SECTION.unpack_from(self.bytes, start + i * SECTION.size) for i in range(count)]
        self.sections = {}
        for name, _, _, _, offset, size, *_ in headers:
            self.sections[self.text(headers[names][4], name)] = (offset, size)

    def text(self, table, offset):
        at = table + offset
        return self.bytes[at : self.bytes.index(b"\0", at)].decode()

    def content(self, section):
        offset, size = self.sections[section]
        return self.bytes[offset : offset + size]

    def symbols(self):
        table = self.content(".symtab")
        return [self.text(self.sections[".strtab"][0], name) for name, *_ in SYMBOL.iter_unpack(table)]

    def capability(self):
        return self.flags >> 8 & 0xFF


def notes(elf):
    """{(attribute, name): number} of FRAME_SIZE and REGISTERS."""
    found, info, at = {}, elf.content(".nv.info"), 0
    names = elf.symbols()
    while at < len(info):
        kind, attribute, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if kind == FORMAT_BYTES:
            if attribute in (FRAME_SIZE, REGISTERS):
                symbol, number = struct.unpack_from("<II", info, at)
                found[attribute, names[symbol]] = number
            at += size
    return found


def words(code):
    return [int.from_bytes(code[at : at + INSTRUCTION_BYTES], "little") for at in range(0, len(code), INSTRUCTION_BYTES)]


def operation(word):
    return OPERATIONS.get(word & 0x1FF, "other")


def target(index, word, capability):
    """Of a branch: the instruction's index. Since 9.0 the lowest byte of the distance has a place of its own."""
    distance = word >> 34 & (1 << 48) - 1
    distance -= (distance & 1 << 47) << 1
    if capability >= 90:
        distance = distance << 8 | word >> 16 & 0xFF
    return index + 1 + distance * 4 // INSTRUCTION_BYTES


def is_detour(code, start, end, capability):
    """Of the branch at `end`, back to `start`: it comes from a part that is out of the way, as a wait that goes on is. It always
    goes back, to behind the branch that goes there; a loop does neither."""
    if start == 0 or operation(code[start - 1]) != "BRA" or code[end] >> 12 & 0xF != ALWAYS:
        return False
    return start < target(start - 1, code[start - 1], capability) <= end


def count(code):
    counted = Counter(map(operation, code))
    del counted["NOP"]  # which fill the end
    return counted


def matrix_products(counted):
    return counted["HMMA"] + counted["HGMMA"]


def hot_loop(code, capability):
    """What is in the shortest loop that has the most products of matrices. Without such: in that loop without another inside
    that has most multiplications and accesses to memory."""
    loops = {}
    for end, word in enumerate(code):
        start = target(end, word, capability) if operation(word) == "BRA" else end
        if start < end and not is_detour(code, start, end, capability):
            loops[start] = end
    counts = {(start, end): count(code[start : end + 1]) for start, end in loops.items()}
    products = max(map(matrix_products, counts.values()), default=0)
    if products:
        return min((c for c in counts.values() if matrix_products(c) == products), key=Counter.total)
    inner = [c for (a, b), c in counts.items() if not any(a < start and end < b for start, end in counts)]
    return max(inner, default=Counter(), key=lambda c: (sum(c[o] for o in ("FFMA", "LDG", "STG", "LDS", "STS")), c.total()))


def readable(names):
    """Without what differs from one compiler to another: the arguments and the name of the file's own namespace."""
    told = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout.splitlines()
    told = [line.replace("(anonymous namespace)::", "").removeprefix("void ") for line in told]
    return [line[: line.index("(")] if "(" in line else line for line in told]


def kernels(path):
    elf = Elf(path)
    known = notes(elf)
    reserved = RESERVED_SHARED_BYTES if elf.capability() >= 90 else 0
    names = [section.removeprefix(".text.") for section in elf.sections if section.startswith(".text.")]
    result = []
    for name, told in zip(names, readable(names)):
        code = words(elf.content(".text." + name))
        shared = elf.sections.get(".nv.shared." + name, (0, reserved))[1] - reserved
        result.append(Kernel(told, known[REGISTERS, name], known.get((FRAME_SIZE, name), 0), shared, count(code),
                             hot_loop(code, elf.capability())))
    return sorted(result, key=lambda kernel: kernel.name)
