#!/bin/bash
# Breaks the inline assembly of kernels/cuda/matrix.h and hopper.h on purpose, one statement at a time, and looks whether what
# nvcc makes of it then is found to differ from the emulation, which runs the C++ twins.
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
wgmma: the stride is the leading one|kernels/cuda/hopper.h|s/(stride >> 4) << 32/(stride >> 4) << 16/|attention_hopper
wgmma: the swizzle is that of 64 bytes|kernels/cuda/hopper.h|s/swizzle_128 = 1;/swizzle_128 = 2;/|attention_hopper
wgmma: a tile begins 1024 bytes on|kernels/cuda/hopper.h|s/(uint64_t)((hopper_address(tile)/(uint64_t)((1024 + hopper_address(tile)/|attention_hopper
wgmma: the next 64 columns begin where these do|kernels/cuda/hopper.h|s/(leading >> 4) << 16/0 << 16/|attention_hopper
wgmma: the next part of a row is too far on|kernels/cuda/hopper.h|s/(uint64_t)(bytes >> 4)/(uint64_t)(bytes >> 3)/|attention_hopper
wgmma: a and b change places|kernels/cuda/hopper.h|s/"%64", "%65", "%66"/"%65", "%64", "%66"/|attention_hopper
wgmma: b is transposed|kernels/cuda/hopper.h|s/"%66", ", 0, 0"/"%66", ", 0, 1"/|attention_hopper
wgmma: a is transposed|kernels/cuda/hopper.h|s/"%66", ", 0, 0"/"%66", ", 1, 0"/|attention_hopper
wgmma: values are not transposed|kernels/cuda/hopper.h|s/", 1")/", 0")/|attention_hopper
wgmma: b is taken times -1|kernels/cuda/hopper.h|s/", adds, 1, 1"/", adds, 1, -1"/|attention_hopper
wgmma: sums are added to where they are not to be|kernels/cuda/hopper.h|s/setp.ne.b32 adds/setp.eq.b32 adds/|attention_hopper
wgmma: a1 and a2 change places|kernels/cuda/hopper.h|s/{%64, %65, %66, %67}/{%64, %66, %65, %67}/;s/{%32, %33, %34, %35}/{%32, %34, %33, %35}/|attention_hopper
wgmma: two sums change places|kernels/cuda/hopper.h|s/"%0, %1, %2, %3, %4, /"%1, %0, %2, %3, %4, /|attention_hopper
wgmma: sums are written, not read|kernels/cuda/hopper.h|s/"+f"(d\[n/"=f"(d[n/g|attention_hopper
wgmma of fp16|kernels/cuda/hopper.h|s/f32.bf16.bf16/f32.f16.f16/|attention_hopper
nobody fences registers for wgmma|kernels/cuda/hopper.h|s/asm volatile("wgmma.fence.sync.aligned;" ::: "memory")/(void)0/|attention_hopper
nobody commits products|kernels/cuda/hopper.h|s/asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")/(void)0/|attention_hopper
a group more is left under way|kernels/cuda/hopper.h|s/::"n"(LEFT)/::"n"(LEFT + 1)/|attention_hopper
a barrier is for one arrival|kernels/cuda/hopper.h|s/%1;" ::"r"(hopper_address(barrier)), "r"(count)/1;" ::"r"(hopper_address(barrier)), "r"(count)/|attention_hopper
TMA need not see barriers|kernels/cuda/hopper.h|s/asm volatile("fence.proxy.async.shared::cta;" ::: "memory")/(void)0/|attention_hopper
nobody arrives|kernels/cuda/hopper.h|s/mbarrier.arrive.shared::cta.b64 _, \[%0\];/\/\/ %0/|attention_hopper
half of the bytes are expected|kernels/cuda/hopper.h|s/"r"(bytes)/"r"(bytes \/ 2)/|attention_hopper
twice the bytes are expected|kernels/cuda/hopper.h|s/"r"(bytes)/"r"(bytes * 2)/|attention_hopper
the other phase is waited for|kernels/cuda/hopper.h|s/"r"(phase & 1)/"r"(~phase \& 1)/|attention_hopper
a wait is asked once|kernels/cuda/hopper.h|s/while (!over);/while (over > 1);/|attention_hopper
a wait ends when the phase is not over|kernels/cuda/hopper.h|s/selp.u32 %0, 1, 0, over/selp.u32 %0, 0, 1, over/|attention_hopper
TMA: head and row change places|kernels/cuda/hopper.h|s/{%2, %3, %4, %5}/{%2, %4, %3, %5}/|attention_hopper
TMA: the first columns always|kernels/cuda/hopper.h|s/"r"(column), "r"(head)/"r"(0), "r"(head)/|attention_hopper
TMA: the first sequence always|kernels/cuda/hopper.h|s/"r"(sequence)/"r"(0)/|attention_hopper
TMA writes 128 bytes on|kernels/cuda/hopper.h|s/\[%0\], \[%1, {/[%0+128], [%1, {/|attention_hopper
TMA writes 64 bytes on|kernels/cuda/hopper.h|s/\[%0\], \[%1, {/[%0+64], [%1, {/|attention_hopper
TMA takes another map|kernels/cuda/hopper.h|s/"l"(map), "r"(column)/"l"(map + 1), "r"(column)/|attention_hopper
TMA counts at the next barrier|kernels/cuda/hopper.h|s/{%2, %3, %4, %5}\], \[%6\]/{%2, %3, %4, %5}], [%6+8]/|attention_hopper
registers are given where they are to be taken|kernels/cuda/hopper.h|s/setmaxnreg.inc/setmaxnreg.dec/|attention_hopper
registers are taken where they are to be given|kernels/cuda/hopper.h|s/setmaxnreg.dec/setmaxnreg.inc/|attention_hopper
no registers are given back|kernels/cuda/hopper.h|s/asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT))/(void)0/|attention_hopper
'

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/ptx"
cp -r base kernels "$work/" # of what is compiled, -I. is $work
export CMOCKA_MESSAGE_OUTPUT=TAP SHOAL_TEST_DEVICE=cuda SHOAL_CUDA_LIBRARY=$BUILD/ptx/libshoal_cuda.so
export SHOAL_CUDA_LIBRARY_PATH=$BUILD/emulation SHOAL_EMULATION=gpus=4,ptx=$work/ptx

# What the comparison says of a kernel: a difference or a fault. A program that crashes says nothing, and has found nothing.
said() { sed -nE '/ launches, /!s%^ptx: (.*, launched at [^ ]*: )?(/[^:]*/)?(.*)%\3%p' "$1" | head -n 1; } # LOG

# What looks for it, and what it is compiled for.
test_of() { case $1 in attention_hopper*) echo "test_attention_hopper test_rows" ;; *) echo test_attention ;; esac } # KERNEL
arch_of() { case $1 in attention_hopper*) echo sm_90a ;; *) echo sm_80 ;; esac }                                     # KERNEL

missed=0
while IFS='|' read -r what file edit kernel; do
    [[ -n $what && $what == *"${T:-}"* ]] || continue
    sed "$edit" "$file" >"$work/$file"
    rm -f "$work/ptx"/*
    if cmp -s "$file" "$work/$file"; then
        found="NOT APPLIED" missed=1
    elif ! (cd "$work" && "${compile[@]}" -arch="$(arch_of "$kernel")" -o "ptx/$kernel.ptx" "kernels/cuda/$kernel.cu") 2>"$work/log"; then
        found="DOES NOT COMPILE: $(tail -n 1 "$work/log")" missed=1
    else
        read -ra test < <(test_of "$kernel")
        build/patience --quiet 300 --cpu 300 "$BUILD/tests/kernels/${test[0]}" "${test[@]:1}" >"$work/log" 2>&1
        found=$(said "$work/log")
        [ -n "$found" ] || { found="NOT FOUND" missed=1; }
    fi
    cp "$file" "$work/$file"
    echo "| $what | $found |"
done <<<"$mutations"
exit "$missed"
