/* The CPU backend's table of ops. */
#include "kernels/cpu/cpu.h"

const struct ops cpu_ops = {
#define CPU_OP(op) .op = cpu_##op,
    OPS(CPU_OP)
#undef CPU_OP
};
