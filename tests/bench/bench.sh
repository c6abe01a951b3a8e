#!/bin/bash
# Samples per second and peak memory of each sharding strategy on this machine: the MNIST network, batch 64 per
# rank, whole optimizer steps with all collectives, at 1 and 4 ranks.
#   tests/bench/bench.sh [RUNS]     runs per row (default 3); the median is printed
# Writes build/bench/shoal.txt: a line "shoal STRATEGY RANKS SAMPLES_PER_S" each, which bench_torch.sh compares with.
set -eu
cd "$(dirname "$0")/../.."
runs=${1:-3}
steps=${BENCH_STEPS:-60}
agent=$PWD/build/release/shoal-agent
data=${BENCH_DATA:-/usr/share/datasets/fashion-mnist}
out=build/bench
mkdir -p "$out"
: >"$out/shoal.txt"

median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# NAME RANKS FLAGS...
row() {
    local name=$1 ranks=$2 i log
    shift 2
    for i in $(seq "$runs"); do
        log=$out/$name-$ranks-$i.log
        "$agent" --preset mnist --data.root "$data" --nproc_per_node "$ranks" --max_steps "$steps" \
            --eval_strategy no "$@" >"$log" 2>&1 || {
            echo "bench: $name with $ranks ranks failed:" >&2
            tail -n 20 "$log" >&2
            exit 1
        }
    done
    local speed memory
    speed=$(sed -n 's/^Throughput: \([0-9.]*\) .*/\1/p' "$out/$name-$ranks"-*.log | median)
    memory=$(sed -n 's/^Peak memory per rank: .*(\([0-9]*\) bytes: \(.*\))$/\1 \2/p' "$log")
    echo "shoal $name $ranks $speed" >>"$out/shoal.txt"
    # shellcheck disable=SC2086 # the kinds are words
    set -- $memory
    printf '%-22s %5d %12.1f %14d   ' "$name" "$ranks" "$speed" "$1"
    shift
    printf '%s %d  ' "$@"
    printf '\n'
}

printf '%-22s %5s %12s %14s   %s\n' strategy ranks samples/s 'peak bytes' 'peak bytes of each kind'
for ranks in 1 4; do
    row no_shard "$ranks" --sharding_strategy NO_SHARD
    row shard_grad_op "$ranks" --sharding_strategy SHARD_GRAD_OP
    row full_shard "$ranks" --sharding_strategy FULL_SHARD
    row full_shard_wrapped "$ranks" --sharding_strategy FULL_SHARD --auto_wrap_policy SIZE_BASED_WRAP
done
row hybrid_shard 4 --sharding_strategy HYBRID_SHARD --shard_group_size 2
row hybrid_shard_zero2 4 --sharding_strategy HYBRID_SHARD_ZERO2 --shard_group_size 2

# What sums that know no ranks cost (docs/recovery.md): as many slots as ranks.
row full_shard_slots 4 --sharding_strategy FULL_SHARD --parallel.reduction_slots 4
row no_shard_slots 4 --sharding_strategy NO_SHARD --parallel.reduction_slots 4
# What it costs to keep checkpoints in memory, which only a launcher that starts ranks again holds; and to look for ranks that hang.
for every in 0 auto 1; do
    row "full_shard_memory_$every" 4 --sharding_strategy FULL_SHARD --max_restarts 1 --checkpoint.memory_every_steps "$every"
done
for action in none report; do
    row "full_shard_hangs_$action" 4 --sharding_strategy FULL_SHARD --runtime.hang_action "$action"
done

speed_of() { awk -v name="$1" '$2 == name && $3 == 4 { print $4 }' "$out/shoal.txt"; }
# WHAT NAME BASE: samples/s of the one row to those of the other
ratio() { awk -v what="$1" -v of="$(speed_of "$2")" -v to="$(speed_of "$3")" 'BEGIN { printf "%s at 4 ranks: %.2fx\n", what, of / to }'; }
echo
ratio "reduction slots, full_shard," full_shard_slots full_shard
ratio "reduction slots, no_shard," no_shard_slots no_shard
ratio "checkpoints in memory, auto," full_shard_memory_auto full_shard_memory_0
ratio "checkpoints in memory, every step," full_shard_memory_1 full_shard_memory_0
ratio "hang_action report to none" full_shard_hangs_report full_shard_hangs_none

peak() { sed -n 's/^Peak memory per rank: .*(\([0-9]*\) bytes: .*/\1/p' "$out/$1-4-1.log"; }
wrapped=$(peak full_shard_wrapped) one_unit=$(peak full_shard) full=$(peak no_shard)
echo
echo "peak bytes at 4 ranks: wrapped FULL_SHARD $wrapped, one-unit FULL_SHARD $one_unit, NO_SHARD $full"
if [ "$wrapped" -lt "$one_unit" ] && [ "$one_unit" -lt "$full" ]; then
    echo "the tutorial's ordering holds"
else
    echo "the tutorial's ordering DOES NOT hold"
    exit 1
fi
