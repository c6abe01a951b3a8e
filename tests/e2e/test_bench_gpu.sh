#!/bin/bash
# What `make bench-gpu` would run: the rows that are asked for, PyTorch's beside ours, with flags that the agent takes.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
mkdir "$work/rows" && printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' w0 >"$work/rows/vocab.txt"
OUT=$work tests/gpu/bench.sh --dry_run >"$work/list" || echo "bench.sh left with $?" >>"$work/list"

lists() { grep -qF -e "$1" <(grep -F -e "$2" "$work/list"); }
peers() { [ "$(grep -c -e "torch_step.py --model $1 --variant [a-z0-9_]* --batch $2 " "$work/list")" = 2 ]; }
for batch in 4 64; do
    check "T5-small at a batch of $batch" lists "--max_source_length 512 --max_target_length 128" "--batch_size $batch --max_steps"
    check "... beside PyTorch, eager and compiled" peers t5 "$batch"
done
check "T5-small at 4 as CUDA graphs" lists "models/t5" "--cuda_graphs"
check "BERT-base" lists "--preset bert-base --head masked_lm" "--max_seq_length 128"
check "... beside PyTorch, eager and compiled" peers bert 32
# predicted MODEL UNIT: more than nothing, on an H100
predicted() { grep -qE "^predicted for $1 on h100: [1-9][0-9]* $2\$" "$work/list"; }
for model in t5 t5-graphs t5-64 bert gpt2 llama llama-document llama-1.5b; do
    check "what is predicted stands beside it: $model" predicted "$model" tokens/s
done
for model in mnist mnist-graphs; do
    check "... $model" predicted "$model" samples/s
done
order() { [ "$(sed -n 's/.*torch_step.py --model \([^ ]*\) .*/\1/p' "$work/list" | uniq | paste -sd ' ')" = "$1" ]; }
check "what may be left out comes last" order "gpt2 llama llama-1.5b mnist llama-document t5 bert"
while read -r _ _ command; do
    # shellcheck disable=SC2086 # words without blanks
    check "the agent takes --batch_size$(sed "s,.*--batch_size,,; s,$work/,,g" <<<"$command")" $command --dry_run </dev/null
done < <(grep -F /shoal-agent "$work/list")
check "another flag is refused" fails 2 '"--dry-run" is not understood' tests/gpu/bench.sh --dry-run
check "so is a build without the programs" fails 2 "no programs in $work" env BUILD="$work" tests/gpu/bench.sh
check "... by check-gpu, too" fails 2 "there are no tests in \"$work\"" tests/gpu/check.sh "$work"
check "the peer's script is Python" python3 -c 'compile(open("tests/gpu/torch_step.py").read(), "torch_step.py", "exec")'
tap_done
