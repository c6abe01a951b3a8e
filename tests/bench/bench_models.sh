#!/bin/bash
# Tokens per second and peak memory of a small language model trained from random values: whole steps with AdamW and
# clipping, fp32 and bf16, at 1 and 2 ranks, on this machine.
#   tests/bench/bench_models.sh MODEL [torch|eager]    MODEL: a directory of tests/bench/models, or another with a
#                                                      config.json; torch: also the same in transformers and PyTorch,
#                                                      eager and compiled, and the ratios; eager: without torch.compile
# Of a run STEPS steps count (default 4), after two that warm up. The best of RUNS runs (default 3) counts, and of eager
# and compiled the better one; build/bench/MODEL.txt has them all. Ours and theirs take turns, so that a disturbance
# meets both. BATCH, TOKENS and TARGETS change what a rank's batch has: rows, and ids of a row and of its target.
set -eu
cd "$(dirname "$0")/../.."
model=${1:-} peer=${2:-}
[ -e "$model/config.json" ] || model=tests/bench/models/$model
[ -e "$model/config.json" ] || { echo "bench-models: no $model/config.json; give one of:" tests/bench/models/* >&2; exit 2; }
name=$(basename "$model")
type=$(sed -n 's/.*"model_type": *"\(.*\)".*/\1/p' "$model/config.json")
runs=${RUNS:-3} steps=${STEPS:-4} warm_up=2
venv=build/torch-venv
out=build/bench
mkdir -p "$out/$name"
: >"$out/$name.txt"

batch=${BATCH:-4} tokens=${TOKENS:-512} targets=0
case $type in
llama) flags=(--max_seq_length "$tokens") ;;
bert) batch=${BATCH:-8} tokens=${TOKENS:-128} flags=(--max_seq_length "$tokens") ;;
t5) targets=${TARGETS:-128} flags=(--max_source_length "$tokens" --max_target_length "$targets") ;;
*) echo "bench-models: $model/config.json is of model_type '$type'; there are llama, t5 and bert" >&2 && exit 2 ;;
esac

# Rows of random words that are one id each and fill every sample: what they are does not matter for the speed.
make_data() {
    python3 - "$model/config.json" "$out/$name" "$tokens" "$targets" <<'PYTHON'
import json, random, sys
config, folder, *lengths = sys.argv[1:]
special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
words = [f"w{i}" for i in range(json.load(open(config))["vocab_size"] - len(special))]
with open(f"{folder}/vocab.txt", "w") as file:
    file.writelines(word + "\n" for word in special + words)
with open(f"{folder}/rows.jsonl", "w") as file:
    for _ in range(200):
        text, summary = (" ".join(random.choices(words, k=int(length))) for length in lengths)
        file.write(json.dumps({"text": text, "summary": summary}) + "\n")
PYTHON
}

ours() { # RANKS PRECISION
    local log=$out/$name/$1-$2 precision=no
    [ "$2" = fp32 ] || precision=bf16
    rm -f "$log.jsonl"
    python3 tests/bench/peak.py build/release/shoal-agent --strict --model_name_or_path "$model" --device cpu \
        --dataset "$out/$name/rows.jsonl" --tokenizer "$out/$name" --num_train_epochs 1000000 --drop_last \
        --batch_size "$batch" "${flags[@]}" --mixed_precision "$precision" --grad_clip 1 --eval_strategy no \
        --nproc_per_node "$1" --max_steps $((warm_up + steps)) --logging_steps 1 --logging.jsonl "$log.jsonl" \
        --logging.prometheus_port 0 >"$log.log" 2>&1 || { tail "$log.log" >&2; exit 1; }
    awk -v variant="$2" -v ranks="$1" -v warm_up=$warm_up '
        function field(key) { match($0, "\"" key "\":[^,}]*"); return substr($0, RSTART + length(key) + 3, RLENGTH) + 0 }
        /^{/ { tokens = field("num_input_tokens_seen"); seconds = field("train_seconds") }
        /^{/ && field("step") == warm_up { tokens_before = tokens; seconds_before = seconds }
        /^peak resident bytes:/ { peak = $4 }
        END { print "shoal", variant, ranks, (tokens - tokens_before) / (seconds - seconds_before), peak }
        ' "$log.jsonl" "$log.log" >>"$out/$name.txt"
}

theirs() { # RANKS PRECISION
    local threads=$(($(nproc) / $1)) log=$out/$name/torch-$1-$2.log variants=("$2")
    [ "$peer" = eager ] || variants+=("$2_compile")
    "$venv/bin/python" -W ignore tests/bench/torch/fsdp_models.py --model "$model" --ranks "$1" \
        --threads $((threads > 0 ? threads : 1)) --batch "$batch" --tokens "$tokens" --targets "$targets" \
        --warm_up $warm_up --steps "$steps" "${variants[@]}" >"$log" 2>&1 || { tail "$log" >&2; exit 1; }
    grep '^torch ' "$log" >>"$out/$name.txt"
}

case $peer in
'') ;;
torch | eager)
    . tests/bench/torch/install.sh
    install_torch "$venv"
    ;;
*) echo "bench-models: what to compare with is torch or eager, not '$peer'" >&2 && exit 2 ;;
esac
make_data
for _ in $(seq "$runs"); do
    for ranks in 1 2; do
        for precision in fp32 bf16; do
            ours $ranks $precision
            [ -z "$peer" ] || theirs $ranks $precision
        done
    done
done
awk '
    { sub(/_compile$/, "", $2) }
    !row[$3 " " $2]++ { order[++count] = $3 " " $2 }
    $4 > rate[$1, $3, $2] { rate[$1, $3, $2] = $4; peak[$1, $3, $2] = $5 }
    function ratio(a, b) { return a && b ? sprintf("%.2f", a / b) : "-" }
    END {
        printf "%-5s %-5s %14s %16s %7s %12s %14s %7s\n", "ranks", "dtype", "shoal tokens/s", "pytorch tokens/s", "ratio",
               "shoal peak B", "pytorch peak B", "ratio"
        for (i = 1; i <= count; i++) {
            split(order[i], part, " ")
            s = rate["shoal", part[1], part[2]]; t = rate["torch", part[1], part[2]]
            m = peak["shoal", part[1], part[2]]; n = peak["torch", part[1], part[2]]
            printf "%-5s %-5s %14.0f %16.0f %7s %12.0f %14.0f %7s\n", part[1], part[2], s, t, ratio(s, t), m, n, ratio(m, n)
        }
    }' "$out/$name.txt"
