#!/bin/bash
# shellcheck disable=SC2154 # tap.sh sets work
# `make first-gpu`: its stages, what it would run and predicts, that it goes on behind a stage that fails, keeps the table,
# and leaves what does not fit to the next call. Programs of our own stand in for a GPU's; then the emulated GPU is one.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
BUILD=$(realpath "$BUILD")
export BUILD
list=$work/list
mkdir -p "$work/dry/rows" && printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' w0 >"$work/dry/rows/vocab.txt"
OUT=$work/dry tests/gpu/first.sh --dry_run >"$list" 2>&1 || echo "first.sh left with $?" >>"$list"

# ---- the dry run
named() { sed -nE 's/^## ([^ ]+): .*/\1/p' "$1" | paste -sd ' '; } # LOG: its stages
stages_of() { [ "$(named "$1")" = "$2" ] || { named "$1"; return 1; }; }
check "the stages, in the order in which they settle questions" stages_of "$list" \
    "attention head step variants hopper check sanitizer gpt2 windows t5 1.5b torch"
seconds() { sed -nE 's/^## .*, at most ([0-9]+) s$/\1/p' "$list"; }
fits() { seconds | awk '{ all += $1; if ($1 > 540) bad = 1 } END { print NR, all; exit !(NR == 12 && all <= 1800) || bad }'; }
check "each fits a call of 9 minutes, and all of them 30" fits
lists() { grep -qF -e "$2" <(grep -F -e "$1" "$list"); }
check "attention is measured" lists "timeout" "attention_bench cuda"
check "... and predicted: GPT-2" grep -E '^ +BACKWARD_NONDETERMINISTIC, 64, CAUSAL, 1024, 16 x 12/12 heads: predicted [0-9.]+, [0-9.]+ ms$' "$list"
check "... but not cuDNN's backward with equal bits" grep -E '^ +BACKWARD, 64, CAUSAL, 1024, 16 x 12/12 heads: predicted [0-9.]+ ms, of cuDNN nothing$' "$list"
check "... and 1.5B" grep -E '^ +FORWARD, 128, CAUSAL, 1024, 16 x 12/2 heads: predicted [0-9.]+, [0-9.]+ ms$' "$list"
for rows in 1024 4096; do
    for stride in 50304 50257; do
        check "a head of $rows rows at a stride of $stride, predicted" grep -A 5 -E "^GPT-2 124M: $rows rows, V 50257 at a stride of $stride, D 768" "$list"
    done
done
# predicted_ms ROW ROWS STRIDE: of GPT-2's head
predicted_ms() { sed -nE "/^GPT-2 124M: $2 rows, V 50257 at a stride of $3,/,/all, of/s/^  $1 *predicted *([0-9.]*) ms\$/\1/p" "$list"; }
less() { awk -v a="$1" -v b="$2" 'BEGIN { print a, b; exit !(a > 0 && a < b) }'; }
for row in logits cross_entropy "gradient of the input" "gradient of the weights"; do
    check "... at the stride of training it takes less by the model: $row" less "$(predicted_ms "$row" 1024 50304)" "$(predicted_ms "$row" 1024 50257)"
done
check "... and in longer chunks" less "$(predicted_ms "all, of 1024 rows" 4096 50304)" "$(predicted_ms "all, of 1024 rows" 1024 50304)"
predicted_rate() { sed -nE "s/^predicted for $1 on h100: ([0-9]+) tokens.s\$/\1/p" "$list"; } # MODEL
for model in llama llama-ours llama-cudnn llama-cudnn-fast llama-hopper llama-graphs llama-checkpointing llama-selective llama-after gpt2 t5 t5-64 llama-1.5b; do
    check "what is predicted stands beside the step: $model" grep -E "^predicted for $model on h100: [1-9][0-9]* tokens/s\$" "$list"
done
check "the first step is traced" lists "--preset llama3.2-1b" "--profiler.enable true"
check "a variant asks for cuDNN's attention" grep -E '^SHOAL_ATTENTION=cudnn timeout [0-9]+ .*/shoal-agent' "$list"
check "the optimizer behind the passes takes more by the model" less "$(predicted_rate llama-after)" "$(predicted_rate llama)"
for registers in false true symmetric; do
    check "GPT-2 on several GPUs, registered: $registers" lists "--nproc_per_node 2" "--sharding_strategy FULL_SHARD --register_buffers $registers"
done
check "attention for 9.0 is tested, measured, and takes a step" [ "$(grep -cE 'test_attention_hopper$|^SHOAL_ATTENTION=hopper timeout [0-9]+ .*/(attention_bench cuda|shoal-agent .*)$' "$list")" = 3 ]
check "... and predicted, as shoal plan does" [ "$(sed -n '/^attention, bf16: .* those for compute capability 9.0$/,/^attention: complete$/p' "$list" |
    grep -cE '^ +(FORWARD|BACKWARD), .* heads: predicted [0-9.]+, [0-9.]+ ms$')" = 28 ]
while read -r _ _ command; do
    # shellcheck disable=SC2086 # words without blanks
    check "the agent takes --batch_size$(sed "s,.*--batch_size,,; s,$work/,,g" <<<"$command")" $command --dry_run </dev/null
done < <(grep -F /shoal-agent "$list" | sed 's/^SHOAL_ATTENTION=[a-z]* //')
for model in gpt2 llama llama-1.5b; do
    check "PyTorch's $model, eager and compiled" [ "$(grep -c -e "torch_step.py --model $model --variant" "$list")" = 2 ]
done
check "a dry run has no table" [ ! -e "$work/dry/TABLE.md" ]

# ---- where it begins, and where it does not
from() { env "$@" OUT="$work/dry" tests/gpu/first.sh --dry_run >"$work/from" 2>&1; }
check "FROM is a stage to begin at" from FROM=gpt2
check "... and those behind it" stages_of "$work/from" "gpt2 windows t5 1.5b torch"
check "STAGES are stages alone" from STAGES="head torch"
check "... in their order" stages_of "$work/from" "head torch"
check "another name is refused" fails 2 'no stage is called "steps": there are attention head' env FROM=steps tests/gpu/first.sh --dry_run
check "... not a part of one" fails 2 'no stage is called "1"' env STAGES=1 tests/gpu/first.sh --dry_run
check "both at once, too" fails 2 "FROM and STAGES are both given" env FROM=head STAGES=step tests/gpu/first.sh --dry_run
check "another flag, too" fails 2 '"--dry-run" is not understood' tests/gpu/first.sh --dry-run
check "a build without the programs, too" fails 2 "no programs in $work" env BUILD="$work" tests/gpu/first.sh

# ---- programs of our own
fakes=$work/fakes
program() { mkdir -p "$(dirname "$fakes/$1")" && printf '#!/bin/sh\n%s\n' "$2" >"$fakes/$1" && chmod +x "$fakes/$1"; }
# shellcheck disable=SC2016 # the programs' own
program bin/nvidia-smi 'case $1 in *driver*) echo 999.1 ;; *) echo "NVIDIA H100 80GB HBM3" ;; esac'
program bin/compute-sanitizer 'echo "ok 1 - it"'
program bin/python 'case "$*" in
*torch_step.py*) echo "$*" | sed "s/.*--model \([^ ]*\) --variant \([^ ]*\) .*/torch \1 \2 20 1000/" ;; esac'
program tests/gpu/gpu 'echo "GPU 0: a fake"'
program tests/bench/attention_bench 'echo "a row of attention"'
program tests/bench/head_bench 'echo "the first row of a head, $*"; exit 1'
program shoal-agent 'printf "%s\n" "Step 20/50 | 8192 tokens/s | MFU: 40.0% causal, 50.0% full" "Peak memory per rank: 5.00 MiB, in all"'
ln -s "$BUILD/shoal" "$fakes/shoal"
first() { # NAME=VALUE...
    env PATH="$fakes/bin:$PATH" BUILD="$fakes" PYTHON="$fakes/bin/python" OUT="$work/out" "$@" tests/gpu/first.sh
}
table=$work/out/TABLE.md
check "a stage that fails fails the call, and is named" fails 1 "first-gpu: failed: head step" \
    first STAGES="attention head step gpt2 sanitizer torch"
check "the others went on" stages_of "$table" "attention head step gpt2 sanitizer torch"
check "what it had said is in the table" contains "$table" "the first row of a head, cuda 1 989 3350"
check "... that it failed, as the step" [ "$(grep -c '^\*\*failed\*\*' "$table")" = 2 ]
check "... whose trace is missing" contains "$table" "**there is no trace: $work/out/shoal-llama.log says why**"
check "... device, driver and date" grep -E '^NVIDIA H100 80GB HBM3, driver 999.1, 20[0-9-]+ [0-9:]+ UTC, commit .' "$table"
check "... tokens/s, what was predicted, the ratio, milliseconds, and the run's own words" \
    grep -E '^\| gpt2 \| 8192 \| [1-9][0-9]+ \| 0\.02 \| 2000\.0 \| MFU: 40\.0% causal, 50\.0% full *; Peak memory per rank: 5\.00 MiB \|$' "$table"
check "... the tests under compute-sanitizer" grep -E '^[1-9][0-9]* passed, 0 failed' "$table"
check "... and PyTorch beside" grep -Fx '| gpt2 | 8192 | 20480 | 20480 | 0.40 | 0.40 |' "$table"
cp "$table" "$work/before"
program shoal-agent 'echo "rank 0: no such luck | it said" >&2; exit 1'
check "a step that fails fails its stage" fails 1 "first-gpu: failed: gpt2" first STAGES="gpt2 attention"
check "... with its last words" grep -E '^\| gpt2 \| - \| [1-9][0-9]+ \| - \| - \| failed: rank 0: no such luck +it said \|$' "$table"
check "... and no number of an earlier call stays" lacks "$work/out/gpu.txt" "shoal gpt2 "
kept() { head -c "$(stat -c %s "$work/before")" "$table" | cmp - "$work/before"; }
check "... and the table of before is kept" kept
# shellcheck disable=SC2016 # the program's own
program bin/python 'case "$*" in *torch_step.py*) exit 1 ;; esac'
check "a PyTorch that fails fails its stage" fails 1 "first-gpu: failed: torch" first STAGES=torch
check "... and no number of an earlier call stands there" grep -Fx '| gpt2 | - | - | - | - | - |' "$table"
check "numbers of this commit and GPU are kept" [ -s "$work/out/gpu.txt" ]
echo "another, NVIDIA H100 80GB HBM3" >"$work/out/gpu.of"
check "a call of another commit" first STAGES=attention
check "... begins without them" [ ! -s "$work/out/gpu.txt" ]
program bin/perl 'echo the half; exit 1'
check "without perl a line says so, at the start" fails 1 "first-gpu: perl is not here: it makes the data of whole steps" \
    first OUT="$work/cut" STAGES=gpt2
check "... and no half of a file stays" [ ! -e "$work/cut/ids.bin" ]
rm "$fakes/bin/perl"
check "a stage that may not fit in the call is left" fails 0 'left for the next call, which has 200 s: STAGES="variants gpt2"' \
    first FIRST_UNTIL_S=200 STAGES="attention variants gpt2"
check "without PyTorch its stage says so" first PYTHON=false STAGES=torch
check "... in the table" contains "$table" "cannot import a PyTorch that sees the GPU: skipped"
program tests/kernels/test_attention_hopper 'echo "not ok 1 - rows"; exit 1'
check "attention for 9.0 is not measured where its tests fail" fails 1 "first-gpu: failed: hopper" first STAGES=hopper
check "... which the table says" contains "$table" "**its results are wrong**"
check "... with the test's own words" contains "$table" "not ok 1 - rows"
cp "$fakes/bin/nvidia-smi" "$work/nvidia-smi"
program bin/nvidia-smi 'echo "NVIDIA A100-SXM4-80GB"'
check "on another GPU that stage is skipped" first OUT="$work/a100" STAGES=hopper
check "... and says so" contains "$work/a100/TABLE.md" "not a GPU of compute capability 9.0: skipped"
cp "$work/nvidia-smi" "$fakes/bin/nvidia-smi"
program tests/gpu/gpu 'exit 77'
check "without a GPU nothing is measured, which is no failure" fails 0 "first-gpu: skipped, nothing was measured" first
program tests/gpu/gpu 'exit 1'
check "a GPU that does not work is one" fails 1 "no GPU that works" first

# ---- the emulated GPU: benches of tiny sizes, a tiny model's step and its trace
library=$BUILD/emulation/libshoal_cuda.so
if ! [ -e "$library" ]; then
    skip "the first minutes on an emulated GPU" "this build has none"
    tap_done
fi
# shellcheck source=tests/e2e/tokens.sh
. tests/e2e/tokens.sh
rm -r "$fakes/tests"
ln -s "$BUILD/tests" "$fakes/tests"
program shoal-agent "[ \"\$1\" = --help ] || set -- \"\$@\" --dataset '$work/tokens.bin' --data.max_seq_length 16 --vocab_size 64 --hidden_size 16 \\
    --intermediate_size 16 --num_hidden_layers 1 --num_attention_heads 2 --num_key_value_heads 1
exec '$BUILD/shoal-agent' \"\$@\""
table=$work/emulated/TABLE.md
export SLOWER=20 # limits are for GPUs, and this one shares a machine with other tests
check "benches, a step and its trace on an emulated GPU" first OUT="$work/emulated" BENCH_TINY=1 STAGES="attention head step" \
    SHOAL_CUDA_LIBRARY="$library" SHOAL_CUDA_LIBRARY_PATH="${library%/*}"
check "attention for 9.0 there: tests, bench, a step" first OUT="$work/emulated" BENCH_TINY=1 STAGES=hopper \
    SHOAL_CUDA_LIBRARY="$library" SHOAL_CUDA_LIBRARY_PATH="${library%/*}"
for direction in FORWARD BACKWARD; do
    check "... 14 rows beside ours, whose results are near: $direction" [ "$(grep -cE "^    $direction, .* heads: ours [0-9.]+ ms, .*; hopper [0-9.]+ ms, .*, apart by 0\.0[0-9]+ of the largest; predicted [0-9.]+, [0-9.]+ ms\$" "$table")" = 14 ]
done
check "... and its step" grep -E '^\| llama-hopper \| [1-9][0-9]* \|' "$table"
check "... attention, rows that the table of the choice takes" [ "$(grep -cE '^    \{90, ATTENTION_(FORWARD|BACKWARD|BACKWARD_NONDETERMINISTIC), ' "$table")" = 42 ]
check "... to the end" contains "$table" "attention: complete"
check "... heads at the stride of training" contains "$table" "V 97 at a stride of 128"
check "... and at V" contains "$table" "V 97 at a stride of 97"
check "... the step's tokens/s beside what is predicted" grep -E '^\| llama \| [1-9][0-9]* \| [1-9][0-9]+ \| [0-9.]+ \| [0-9.]+ \| ' "$table"
check "... its kernels" grep -E '^[0-9.]+ ms +[0-9.]+ % +[0-9]+ x cublasLtMatmul$' "$table"
check "... their sum" grep -E '^[0-9.]+ ms 100\.0 % +[0-9]+ x all kernels$' "$table"
check "... and the plan's kinds of time" grep -E '^  attention backward +[0-9.]+ ms' "$table"
tap_done
