#!/bin/bash
# The first minutes on a GPU: what settles most of what is only predicted comes first. In stages, each of which adds its
# table to OUT/TABLE.md before the next begins, with device, driver and date; what is predicted stands beside it. A call
# ends within 9 minutes, all stages within 30: one that may not fit in what is left of a call is left for the next. A
# stage that fails is told, and the next begins.
#   tests/gpu/first.sh [--dry_run]     --dry_run: prints the stages and commands, with what is predicted for an H100
# FROM=STAGE: begins there; STAGES="A B": these alone. BUILD: where the programs are (build/release); PYTHON: whose PyTorch
# is the peer (python3); OUT: where tables, logs and data go (build/first-gpu). Without a GPU it says so, and is done.
set -u
cd "$(dirname "$0")/../.." || exit
build=${BUILD:-build/release}
out=${OUT:-build/first-gpu}
dry='' device='no GPU' gpu=h100 name=first-gpu
call_s=$((${FIRST_UNTIL_S:-540} * ${SLOWER:-1})) until_s=$call_s

# ---- the stages, in their order: most seconds, name, what it asks
all_stages='
120 attention  our attention and cuDNN'"'"'s, forward and backward
 50 head       products of the head, by rows of a chunk and stride of the logits
 80 step       Llama-3.2-1B at 8192 tokens, with a trace of its kernels
300 variants   the same with our attention, cuDNN'"'"'s, CUDA graphs, checkpointing, the optimizer behind the passes
180 hopper     our attention for compute capability 9.0: its tests, then its speed, then a step
290 check      the tests on this GPU, as make check-gpu
220 sanitizer  tests of the kernels under compute-sanitizer
 60 gpt2       GPT-2 124M, 16 x 1024 tokens
 50 windows    the same on all GPUs, memory registered with NCCL, and in symmetric windows
110 t5         T5-small at a batch of 4 and of 64
 80 1.5b       a model of 1.5B parameters, 16 x 1024 tokens
260 torch      PyTorch beside: GPT-2, Llama-3.2-1B, 1.5B'
stage_names() { awk 'NF { print $2 }' <<<"$all_stages"; }
about() { awk -v stage="$1" '$2 == stage { sub(/^ *[0-9]+ +[^ ]+ +/, ""); print }' <<<"$all_stages"; } # STAGE
seconds_of() { awk -v stage="$1" -v slower="${SLOWER:-1}" '$2 == stage { print $1 * slower }' <<<"$all_stages"; } # STAGE

refuse() { # TEXT
    echo "first-gpu: $1" >&2
    exit 2
}
case $* in
'') [ -x "$build/tests/gpu/gpu" ] || refuse "there are no programs in $build: make first-gpu builds them" ;;
--dry_run) dry=1 ;;
*) refuse "\"$*\" is not understood: --dry_run or nothing is" ;;
esac
[ -z "${FROM:-}" ] || [ -z "${STAGES:-}" ] || refuse "FROM and STAGES are both given: one says what to run"
for stage in ${FROM:-} ${STAGES:-}; do
    stage_names | grep -qxF -- "$stage" || refuse "no stage is called \"$stage\": there are $(stage_names | paste -sd ' ')"
done
stages=${STAGES:-$(stage_names | awk -v from="${FROM:-}" 'from == "" || $0 == from { on = 1 } on' | paste -sd ' ')}
# shellcheck source=tests/gpu/steps.sh
. tests/gpu/steps.sh
PATH=$PATH:/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer

# ---- tables
say() { # LINE...; a dry run has no table
    printf '%s\n' "$@"
    [ "$dry" ] || printf '%s\n' "$@" >>"$out/TABLE.md"
}
say_log() { # LOG: its last 100 lines
    [ -z "$dry" ] && [ -s "$out/$1" ] || return 0
    say '' '```' "$(tail -n 100 "$out/$1")" '```'
}

# A row for each of our steps; measured over predicted.
rows_begin() { say '' '| step | tokens/s | predicted | ratio | ms a step | told at its end |' '| --- | ---: | ---: | ---: | ---: | --- |'; }
after_step() { # MODEL BATCH TOKENS
    [ -z "$dry" ] || return 0
    local log=$out/shoal-$1.log told
    told=$(grep -oE 'MFU: [^|]*|Peak memory per rank: [^,;]*' "$log" | tail -n 2 | paste -sd ';' | sed 's/;/; /g; s/|/, /g')
    [ "$failed" = 0 ] || told="failed: $(tail -n 1 "$log" | cut -c 1-200 | tr '|' ' ')"
    say "$(awk -v model="$1" -v batch="$2" -v tokens="$3" -v failed="$failed" -v told="$told" '
        $2 == model { rate[$1] = $4 }
        function cell(x) { return x ? sprintf("%.0f", x) : "-" }
        END {
            s = failed ? 0 : rate["shoal"]; p = rate["predicted"]
            printf "| %s | %s | %s | %s | %s | %s |\n", model, cell(s * tokens), cell(p * tokens),
                s && p ? sprintf("%.2f", s / p) : "-", s ? sprintf("%.1f", batch / s * 1e3) : "-", told
        }' "$out/gpu.txt")"
    [ "$failed" = 0 ] || stage_failed=1
    failed=0
}

# Milliseconds on the GPU by kernel, whatever its template's arguments, of a trace's one step.
kernels_of() { # TRACE
    sed -nE 's/^\{"ph":"X","cat":"kernel","name":"([^"]*)".*"dur":([0-9.]+).*/\2 \1/p' "$1" | awk '
        {
            us = $1
            $1 = ""
            gsub(/\(anonymous namespace\)::/, "")
            sub(/^ (void )?\(?/, "")
            sub(/[<(].*/, "")
            sum[$0] += us
            count[$0]++
            all += us
            launches++
        }
        END {
            for (kernel in sum)
                printf "%.3f ms %5.1f %% %5d x %s\n", sum[kernel] / 1e3, 100 * sum[kernel] / all, count[kernel], kernel | "sort -rn | head -n 30"
            close("sort -rn | head -n 30")
            printf "%.3f ms 100.0 %% %5d x all kernels\n", all / 1e3, launches
        }'
}

# ---- what the stages do
bench() { # LOG PROGRAM ARGUMENT...: one that can say what is predicted without a device
    local log=$1 program=$build/tests/bench/$2
    run "$log" "$(seconds_of "$stage")" "$program" cuda "${@:3}" || stage_failed=1
    [ -z "$dry" ] || "$program" none
    say_log "$log"
}
stage_attention() {
    bench attention.log attention_bench
    say '' "Rows for the choice between them: \`tests/gpu/attention_table.sh --from $out/attention.log\`"
}
stage_head() {
    local bf16='' bytes=''
    read -r bf16 _ bytes <<<"$(peaks_of "$device")"
    # shellcheck disable=SC2086 # no peaks, no arguments
    bench head.log head_bench ${bf16:+1} $bf16 $bytes
}
stage_step() {
    make_ids
    rm -f "$out/trace.json"
    rows_begin
    llama llama --profiler.enable true --profiler.dir "$out" --profiler.file trace.json --profiler.start_step 2
    if [ -s "$out/trace.json" ]; then
        kernels_of "$out/trace.json" >"$out/kernels.txt"
        say_log kernels.txt
    elif [ -z "$dry" ]; then
        say "**there is no trace: $out/shoal-llama.log says why**"
        stage_failed=1
    fi
    [ -z "$gpu" ] || "$build/shoal" plan --device "$gpu" --preset llama3.2-1b --max_seq_length 8192 --mixed_precision bf16 \
        --optimizer.name adamw --grad_clip 1 2>&1 | sed -n '/^Predicted/,/^[0-9]/p' >"$out/plan.txt"
    [ -z "$dry" ] || cat "$out/plan.txt"
    say_log plan.txt
}
has_key() { grep -qe "^ *--$1 " <<<"$agent_help"; } # KEY: this build's agent knows it
stage_variants() {
    local agent_help
    agent_help=$("$build/shoal-agent" --help)
    make_ids
    rows_begin
    SHOAL_ATTENTION=ours llama llama-ours
    SHOAL_ATTENTION=cudnn llama llama-cudnn
    ! has_key runtime.deterministic || SHOAL_ATTENTION=cudnn llama llama-cudnn-fast --runtime.deterministic false
    llama llama-graphs --cuda_graphs
    llama llama-checkpointing --activation_checkpointing full
    llama llama-selective --activation_checkpointing selective
    llama llama-after --overlap_optimizer false
}
# What no GPU has run: the bench and the step only where its results are right.
stage_hopper() {
    case $device in
    *H100* | *H200*) ;; # GH200, too
    *)
        [ "$dry" ] || {
            say "not a GPU of compute capability 9.0: skipped"
            return
        }
        ;;
    esac
    run hopper-test.log 90 env SHOAL_TEST_DEVICE=cuda "$build/tests/kernels/test_attention_hopper" || {
        stage_failed=1
        say "**its results are wrong**"
        say_log hopper-test.log
        return
    }
    SHOAL_ATTENTION=hopper run hopper.log 40 "$build/tests/bench/attention_bench" cuda || stage_failed=1
    [ -z "$dry" ] || SHOAL_ATTENTION=hopper "$build/tests/bench/attention_bench" none
    say_log hopper.log
    make_ids
    rows_begin
    SHOAL_ATTENTION=hopper llama llama-hopper
}
check() { # PART: of tests/gpu/check.sh
    local left=$((until_s - SECONDS - 15))
    run "$stage.log" "$(seconds_of "$stage")" env CHECK_PARTS="$1" CHECK_UNTIL_S="$left" tests/gpu/check.sh "$build" ||
        stage_failed=1
    say_log "$stage.log"
}
stage_check() { check tests; }
stage_sanitizer() {
    [ "$dry" ] || command -v compute-sanitizer >/dev/null || {
        say "compute-sanitizer is not here: skipped"
        return
    }
    check sanitizer
}
stage_gpt2() {
    make_ids
    rows_begin
    gpt2 gpt2
}
# Sharded, so that its units of 14 MB (in bf16) are gathered and reduced. Nothing is predicted of windows.
stage_windows() {
    local gpus=2 registers gpu=''
    [ "$dry" ] || gpus=$("$build/tests/gpu/gpu" | grep -c ' GiB free$') # that programs may see, and not all of the machine's
    [ "$gpus" -gt 1 ] || {
        say "one GPU: NCCL has nobody to talk to: skipped"
        return
    }
    make_ids
    rows_begin
    for registers in false true symmetric; do
        gpt2 "gpt2-$gpus-$registers" --nproc_per_node "$gpus" --sharding_strategy FULL_SHARD --register_buffers "$registers"
    done
    [ "$dry" ] || say '' "$(grep -hF 'runtime.register_buffers: ' "$out"/shoal-gpt2-"$gpus"-{true,symmetric}.log | sort -u)"
}
stage_t5() {
    make_rows
    rows_begin
    t5 t5 4 100
    t5 t5-64 64 40
}
stage_1.5b() {
    make_ids
    rows_begin
    llama_1_5b
}
peer() { # MODEL BATCH TOKENS STEPS
    theirs "$@"
    [ "$dry" ] || say "$(awk -v model="$1" -v tokens="$3" '
        $2 == model { rate[$3] = $4 }
        function cell(x) { return x ? sprintf("%.0f", x * tokens) : "-" }
        function ratio(x) { return x && rate["shoal"] ? sprintf("%.2f", rate["shoal"] / x) : "-" }
        END {
            e = rate["eager"]; c = rate["fsdp2_compile"]
            printf "| %s | %s | %s | %s | %s | %s |\n", model, cell(rate["shoal"]), cell(e), cell(c), ratio(e), ratio(c)
        }' "$out/gpu.txt")"
    [ "$dry" ] || grep -q "^torch $1 " "$out/gpu.txt" || stage_failed=1
}
stage_torch() {
    [ "$dry" ] || find_torch
    [ "$torch" ] || {
        say "${PYTHON:-python3} cannot import a PyTorch that sees the GPU: skipped"
        return
    }
    say '' '| tokens/s of | shoal | eager | FSDP2, compiled | ratio | ratio |' '| --- | ---: | ---: | ---: | ---: | ---: |'
    peer gpt2 16 1024 40
    peer llama 1 8192 20
    peer llama-1.5b 16 1024 10
}

# ---- a call
mkdir -p "$out"
[ "$dry" ] || find_gpu
find_perl || true # stages without data are of use
export PREDICT_FOR=$gpu
driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1) || driver=
commit=$(cat tests/gpu/commit 2>/dev/null || git describe --always --dirty 2>/dev/null || echo unknown)
# what was measured of another commit, or on another GPU, is not put beside this one's
[ "$dry" ] || {
    if ! [ -e "$out/gpu.txt" ] || [ "$(cat "$out/gpu.of" 2>/dev/null)" != "$commit, $device" ]; then : >"$out/gpu.txt"; fi
    echo "$commit, $device" >"$out/gpu.of"
}
bad='' begun=0 stage_failed=0
for stage in $stages; do
    limit=$(seconds_of "$stage") left=$((call_s - SECONDS))
    if [ -z "$dry" ] && [ "$begun" -gt 0 ] && [ "$limit" -gt "$left" ]; then
        rest=$(awk -v stage="$stage" '{ print substr(" " $0, index(" " $0 " ", " " stage " ") + 1) }' <<<"$stages")
        echo "first-gpu: left for the next call, which has $call_s s: STAGES=\"$rest\""
        break
    fi
    begun=$((begun + 1)) stage_failed=0
    [ -z "$dry" ] && [ "$limit" -le "$left" ] || left=$limit
    until_s=$((SECONDS + (limit < left ? limit : left)))
    begin=$SECONDS
    if [ "$dry" ]; then
        say "## $stage: $(about "$stage"), at most $limit s"
    else
        say '' "## $stage: $(about "$stage")" "$device, driver ${driver:-unknown}, $(date -u '+%Y-%m-%d %H:%M') UTC, commit $commit"
    fi
    "stage_$stage"
    how='measured in'
    [ "$stage_failed" = 0 ] || how='**failed**, in part at least, after' bad="$bad $stage"
    [ "$dry" ] || say '' "$how $((SECONDS - begin)) s"
done
[ "$dry" ] || echo "first-gpu: the tables are in $out/TABLE.md"
[ -z "$bad" ] || {
    echo "first-gpu: failed:$bad" >&2
    exit 1
}
