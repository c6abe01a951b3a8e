#!/bin/bash
# Breaks the inline assembly of kernels/cuda/matrix.h on purpose, one statement at a time, and looks whether what nvcc makes of
# it then is found to differ from the emulation, which runs the C++ twins. make ptx-mutations calls it (T=WORDS: only those with
# these words). Prints a row a mutation for docs/gpu.md; exit code 1 if one is not found.
set -u
cd "$(dirname "$0")/../.." || exit
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
[ -n "$nvcc" ] || { echo "ptx mutations: no nvcc (CUDA Toolkit) on the PATH or in /usr/local/cuda/bin" >&2; exit 2; }
: "${BUILD:=build/debug}"
statements=kernels/cuda/matrix.h

# what is broken | the kernel's file | sed
mutations='
nobody waits for cp.async|attention_forward|s/asm volatile("cp.async.wait_all;" ::: "memory")/(void)0/
cp.async brings rows past the last|attention_keys|s/"r"(valid ? 16 : 0)/"r"(16)/
cp.async brings zeros for rows|attention_forward|s/"r"(valid ? 16 : 0)/"r"(valid ? 0 : 16)/
cp.async brings half of 16 bytes|attention_forward|s/\[%0\], \[%1\], 16, %2;/[%0], [%1], 8, %2;/
cp.async writes 16 bytes on|attention_forward|/cp.async.cg/s/\[%0\], \[%1\]/[%0+16], [%1]/
cp.async reads 16 bytes on|attention_forward|/cp.async.cg/s/\[%0\], \[%1\]/[%0], [%1+16]/
cp.async of 4 bytes reads the next float|attention_keys|/cp.async.ca/s/\[%0\], \[%1\]/[%0], [%1+4]/
cp.async of 4 bytes brings zeros for floats|attention_keys|s/"r"(valid ? 4 : 0)/"r"(valid ? 0 : 4)/
the lane is another one of the warp|attention_forward|s/"mov.u32 %0, %%laneid;"/"mov.u32 %0, %%laneid; xor.b32 %0, %0, 16;"/
the lane is the number of the thread|attention_forward|s/"mov.u32 %0, %%laneid;"/"mov.u32 %0, %%tid.x;"/
ex2 of the negative|attention_forward|s/ex2.approx.ftz.f32 %0, %1;/neg.f32 %0, %1; ex2.approx.ftz.f32 %0, %0;/
a pair of bf16 is the wrong way round|attention_forward|s/cvt.rn.bf16x2.f32 %0, %1, %2;/cvt.rn.bf16x2.f32 %0, %2, %1;/
a pair of bf16 has one number twice|attention_forward|s/cvt.rn.bf16x2.f32 %0, %1, %2;/cvt.rn.bf16x2.f32 %0, %1, %1;/
ldmatrix: matrices 1 and 2 change places|attention_forward|/m8n8.x4.shared/s/{%0, %1, %2, %3}/{%0, %2, %1, %3}/
ldmatrix.trans: matrices 1 and 2 change places|attention_forward|/x4.trans/s/{%0, %1, %2, %3}/{%0, %2, %1, %3}/
ldmatrix transposes what it should not|attention_forward|s/x4.shared.b16/x4.trans.shared.b16/
ldmatrix does not transpose|attention_forward|s/x4.trans.shared.b16/x4.shared.b16/
ldmatrix reads a row on|attention_forward|/m8n8.x4.shared/s/\[%4\]/[%4+128]/
ldmatrix reads 2 bytes on|attention_forward|/m8n8.x4.shared/s/\[%4\]/[%4+2]/
mma: a1 and a2 change places|attention_forward|s/{%4, %5, %6, %7}/{%4, %6, %5, %7}/
mma: b0 and b1 change places|attention_forward|s/{%8, %9}/{%9, %8}/
mma: b0 twice|attention_forward|s/{%8, %9}/{%8, %8}/
mma: the sum is taken from other registers|attention_forward|s/{%8, %9}, {%0, %1, %2, %3};/{%8, %9}, {%0, %1, %3, %2};/
mma: sums are written, not read|attention_forward|s/"+f"(d/"=f"(d/g
mma: two results change places|attention_forward|s/f32.bf16.bf16.f32 {%0, %1, %2, %3}/f32.bf16.bf16.f32 {%1, %0, %2, %3}/
mma of fp16|attention_forward|s/f32.bf16.bf16.f32 {/f32.f16.f16.f32 {/
'

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/kernels/cuda" "$work/ptx"
export CMOCKA_MESSAGE_OUTPUT=TAP SHOAL_TEST_DEVICE=cuda SHOAL_CUDA_LIBRARY=$BUILD/ptx/libshoal_cuda.so
export SHOAL_CUDA_LIBRARY_PATH=$BUILD/emulation SHOAL_EMULATION=gpus=4,ptx=$work/ptx

# What the comparison says of a kernel: a difference or a fault. A program that crashes says nothing, and has found nothing.
said() { sed -nE '/ launches, /!s%^ptx: (.*, launched at [^ ]*: )?(/[^:]*/)?(.*)%\3%p' "$1" | head -n 1; } # LOG

missed=0
while IFS='|' read -r what file edit; do
    [[ -n $what && $what == *"${T:-}"* ]] || continue
    sed "$edit" "$statements" >"$work/$statements"
    rm -f "$work/ptx"/*
    if cmp -s "$statements" "$work/$statements"; then
        found="NOT APPLIED" missed=1
    elif ! "$nvcc" -std=c++17 -O3 "-I$work" -I. -ptx -arch=sm_80 -o "$work/ptx/$file.ptx" "kernels/cuda/$file.cu" 2>"$work/log"; then
        found="DOES NOT COMPILE: $(tail -n 1 "$work/log")" missed=1
    else
        build/patience --quiet 300 --cpu 300 "$BUILD/tests/kernels/test_attention" >"$work/log" 2>&1
        found=$(said "$work/log")
        [ -n "$found" ] || { found="NOT FOUND" missed=1; }
    fi
    echo "| $what | $found |"
done <<<"$mutations"
exit "$missed"
