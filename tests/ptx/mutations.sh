#!/bin/bash
# Breaks the inline assembly of kernels/cuda/matrix.h on purpose, one statement at a time, and looks whether what nvcc makes of
# it then is found to differ from the emulation, which runs the C++ twins.
#   tests/ptx/mutations.sh "NVCC AND FLAGS"
# make ptx-mutations calls it (T=WORDS: only those with these words). Prints a row a mutation for docs/gpu.md; exit code 1 if one
# is not found.
set -u
cd "$(dirname "$0")/../.." || exit
read -ra compile <<<"$1"
: "${BUILD:=build/debug}"

# what is broken | the file with the statement | sed | the kernel that has it
mutations='
nobody waits for cp.async|kernels/cuda/matrix.h|s/asm volatile("cp.async.wait_all;" ::: "memory")/(void)0/|attention_forward
cp.async brings rows past the last|kernels/cuda/matrix.h|s/"r"(valid ? 16 : 0)/"r"(16)/|attention_keys
cp.async brings zeros for rows|kernels/cuda/matrix.h|s/"r"(valid ? 16 : 0)/"r"(valid ? 0 : 16)/|attention_forward
cp.async brings half of 16 bytes|kernels/cuda/matrix.h|s/\[%0\], \[%1\], 16, %2;/[%0], [%1], 8, %2;/|attention_forward
cp.async writes 16 bytes on|kernels/cuda/matrix.h|/cp.async.cg/s/\[%0\], \[%1\]/[%0+16], [%1]/|attention_forward
cp.async reads 16 bytes on|kernels/cuda/matrix.h|/cp.async.cg/s/\[%0\], \[%1\]/[%0], [%1+16]/|attention_forward
cp.async of 4 bytes reads the next float|kernels/cuda/matrix.h|/cp.async.ca/s/\[%0\], \[%1\]/[%0], [%1+4]/|attention_keys
cp.async of 4 bytes brings zeros for floats|kernels/cuda/matrix.h|s/"r"(valid ? 4 : 0)/"r"(valid ? 0 : 4)/|attention_keys
the lane is another one of the warp|kernels/cuda/matrix.h|s/"mov.u32 %0, %%laneid;"/"mov.u32 %0, %%laneid; xor.b32 %0, %0, 16;"/|attention_forward
the lane is the number of the thread|kernels/cuda/matrix.h|s/"mov.u32 %0, %%laneid;"/"mov.u32 %0, %%tid.x;"/|attention_forward
the thread is another one of its warp|kernels/cuda/matrix.h|s/"mov.u32 %0, %%tid.x;"/"mov.u32 %0, %%tid.x; xor.b32 %0, %0, 16;"/|attention_forward
ex2 of the negative|kernels/cuda/matrix.h|s/ex2.approx.ftz.f32 %0, %1;/neg.f32 %0, %1; ex2.approx.ftz.f32 %0, %0;/|attention_forward
a pair of bf16 is the wrong way round|kernels/cuda/matrix.h|s/cvt.rn.bf16x2.f32 %0, %1, %2;/cvt.rn.bf16x2.f32 %0, %2, %1;/|attention_forward
a pair of bf16 has one number twice|kernels/cuda/matrix.h|s/cvt.rn.bf16x2.f32 %0, %1, %2;/cvt.rn.bf16x2.f32 %0, %1, %1;/|attention_forward
ldmatrix: matrices 1 and 2 change places|kernels/cuda/matrix.h|/m8n8.x4.shared/s/{%0, %1, %2, %3}/{%0, %2, %1, %3}/|attention_forward
ldmatrix.trans: matrices 1 and 2 change places|kernels/cuda/matrix.h|/x4.trans/s/{%0, %1, %2, %3}/{%0, %2, %1, %3}/|attention_forward
ldmatrix transposes what it should not|kernels/cuda/matrix.h|s/x4.shared.b16/x4.trans.shared.b16/|attention_forward
ldmatrix does not transpose|kernels/cuda/matrix.h|s/x4.trans.shared.b16/x4.shared.b16/|attention_forward
ldmatrix reads a row on|kernels/cuda/matrix.h|/m8n8.x4.shared/s/\[%4\]/[%4+128]/|attention_forward
ldmatrix reads 2 bytes on|kernels/cuda/matrix.h|/m8n8.x4.shared/s/\[%4\]/[%4+2]/|attention_forward
mma: a1 and a2 change places|kernels/cuda/matrix.h|s/{%4, %5, %6, %7}/{%4, %6, %5, %7}/|attention_forward
mma: b0 and b1 change places|kernels/cuda/matrix.h|s/{%8, %9}/{%9, %8}/|attention_forward
mma: b0 twice|kernels/cuda/matrix.h|s/{%8, %9}/{%8, %8}/|attention_forward
mma: the sum is taken from other registers|kernels/cuda/matrix.h|s/{%8, %9}, {%0, %1, %2, %3};/{%8, %9}, {%0, %1, %3, %2};/|attention_forward
mma: sums are written, not read|kernels/cuda/matrix.h|s/"+f"(d/"=f"(d/g|attention_forward
mma: two results change places|kernels/cuda/matrix.h|s/f32.bf16.bf16.f32 {%0, %1, %2, %3}/f32.bf16.bf16.f32 {%1, %0, %2, %3}/|attention_forward
mma of fp16|kernels/cuda/matrix.h|s/f32.bf16.bf16.f32 {/f32.f16.f16.f32 {/|attention_forward
'

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/ptx"
cp -r base kernels "$work/" # of what is compiled, -I. is $work
export CMOCKA_MESSAGE_OUTPUT=TAP SHOAL_TEST_DEVICE=cuda SHOAL_CUDA_LIBRARY=$BUILD/ptx/libshoal_cuda.so
export SHOAL_CUDA_LIBRARY_PATH=$BUILD/emulation SHOAL_EMULATION=gpus=4,ptx=$work/ptx

# What the comparison says of a kernel: a difference or a fault. A program that crashes says nothing, and has found nothing.
said() { sed -nE '/ launches, /!s%^ptx: (.*, launched at [^ ]*: )?(/[^:]*/)?(.*)%\3%p' "$1" | head -n 1; } # LOG

missed=0
while IFS='|' read -r what file edit kernel; do
    [[ -n $what && $what == *"${T:-}"* ]] || continue
    sed "$edit" "$file" >"$work/$file"
    rm -f "$work/ptx"/*
    if cmp -s "$file" "$work/$file"; then
        found="NOT APPLIED" missed=1
    elif ! (cd "$work" && "${compile[@]}" -o "ptx/$kernel.ptx" "kernels/cuda/$kernel.cu") 2>"$work/log"; then
        found="DOES NOT COMPILE: $(tail -n 1 "$work/log")" missed=1
    else
        build/patience --quiet 300 --cpu 300 "$BUILD/tests/kernels/test_attention" >"$work/log" 2>&1
        found=$(said "$work/log")
        [ -n "$found" ] || { found="NOT FOUND" missed=1; }
    fi
    cp "$file" "$work/$file"
    echo "| $what | $found |"
done <<<"$mutations"
exit "$missed"
