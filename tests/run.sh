#!/bin/bash
# Runs the test programs and scripts of the given build variants and prints one closing line.
#   tests/run.sh FILTER VARIANT...      FILTER: part of a test's name ("" = all)
# Real pods come first; beside them run tests that only compute, and leave the pods every processor that they ask for. Then
# as many at once as there are cores, and one more, as those with servers or several processes of their own often wait: of
# the first one at a time, of the second two at most, and others yield to them (nice). TEST_JOBS=1: one after another.
# What each test costs lies in build/test_costs: seconds of processors, the dearest first.
set -u
cd "$(dirname "$0")/.." || exit
filter=$1
shift
. tests/run_one.sh
make --silent --no-print-directory build/patience || exit # also where its sources are newer
lanes=${TEST_JOBS:-$(nproc)} # before tests/environment.sh: nproc heeds OMP_NUM_THREADS

export CMOCKA_MESSAGE_OUTPUT=TAP
. tests/environment.sh

# the operator on a real API server runs under ASan if that is asked for
cluster_variant=$1
[[ " $* " != *" asan "* ]] || cluster_variant=asan

# ---- what to run: one line a test, in one of five queues
queue() { # NAME COMMAND...
    local queue=beside patience=1
    case $1 in
    *' pods/'*) queue=first patience=3 ;; # a row may wait for dozens of jobs
    *' kernels/'* | *' emulation/'* | *' ptx/'* | *' sass/'*) queue=spare ;;
    *' cluster/'* | *' cli/test_run_'*) queue=servers ;; # the latter with the ports of their manifests
    *' e2e/'* | *' gpu/'*) queue=processes ;;
    esac
    # those of many processes are what a run waits for at its end: the rest is not to hold them up
    case $queue in spare | beside) set -- "$1" nice "${@:2}" ;; esac
    { printf 'limit_s=%d run_one' $((patience * limit_s)) && printf ' %q' "$@" && echo; } >>"$results/$queue"
}

any_device=$(tests/gpu/programs.sh emulated)
queue_programs() { # VARIANT
    local variant=$1 source name library
    for source in tests/*/test_*.c tests/*/*/test_*.c tests/*/test_*.cu; do
        # tests/emulation/emulation.mk says why there is no emulated GPU in it
        [[ $source != *.cu || $variant != tsan ]] || continue
        name=${source#tests/}
        name=${name%.*}
        # sanitizers have no business in NVIDIA's own library
        [[ $name != kernels/test_cudnn_plan || $variant == debug ]] || continue
        # it has a malloc of its own; test_simulation and test_executor lead the same code through sanitizers
        [[ $name != operator/histories/* || $variant == debug ]] || continue
        [[ $name != *"$filter"* ]] || queue "$variant $name" "build/$variant/tests/$name"
        # what runs on any device runs on the emulated GPU, too; whole models there only once
        library=$PWD/build/$variant/emulation/libshoal_cuda.so
        if [[ "$name on cuda" == *"$filter"* && -e $library && ($name != agent/* || $variant == debug) ]] &&
            grep -qx "$name" <<<"$any_device"; then
            queue "$variant $name on cuda" env SHOAL_TEST_DEVICE=cuda SHOAL_CUDA_LIBRARY="$library" \
                SHOAL_CUDA_LIBRARY_PATH="${library%/*}" SHOAL_EMULATION=gpus=4 "build/$variant/tests/$name"
        fi
    done
}
queue_scripts() { # VARIANT FIRST_VARIANT
    local variant=$1 script name
    for script in tests/*/test_*.sh; do
        name=${script#tests/}
        [[ $name == *"$filter"* ]] || continue
        # once is enough of what runs tests, of pages, whose commands others run in all builds, and of the release build's
        # images and installation, which real pods run on a whole cluster
        [[ $name != pods/* && $name != deploy/test_image*.sh && $name != deploy/test_make_install.sh && $name != runner/* || $variant == "$2" ]] || continue
        [[ $name != e2e/test_guides.sh && $name != e2e/test_storm.sh && $name != deploy/test_demo.sh || $variant == "$2" ]] || continue
        [[ $name != cluster/* || $variant == "$cluster_variant" ]] || continue
        [[ $name != emulation/test_barriers.sh && $name != emulation/test_races.sh || $variant == debug ]] || continue
        [[ $name != e2e/test_elastic.sh || $variant != tsan ]] || continue # launchers have one thread
        # programs lead the threads that take snapshots and look for hangs through TSan, in a tenth of the time
        [[ $name != e2e/test_memory_checkpoints.sh && $name != e2e/test_hangs.sh || $variant != tsan ]] || continue
        [[ $name != e2e/test_plan_launches.sh || $variant == debug ]] || continue # it counts, as the plan does
        [[ $name != e2e/test_first_gpu.sh || $variant == debug ]] || continue # which has the benches
        [[ $name != e2e/test_emulated_gpu* || $variant != tsan ]] || continue # there is none, see above
        [[ $name != gpu/* && $name != sass/* && $name != ptx/* && $name != browser/* && $name != deploy/test_bundle.sh && $name != e2e/test_dashboards.sh || $variant == debug ]] || continue
        queue "$variant $name" env BUILD="$PWD/build/$variant" "$script"
    done
}
for variant in "$@"; do
    queue_programs "$variant"
    queue_scripts "$variant" "$1"
done
touch "$results"/{first,servers,processes,spare,beside}
queued=$(cat "$results"/{first,servers,processes,spare,beside} | wc -l)

# What earlier runs have executed is no part of this one. A run of nothing, which is a test's, is none.
for variant in "$@"; do
    [ "$queued" -eq 0 ] || find "build/$variant/emulation" -name '*.gcda' -delete 2>/dev/null
done

# ---- lanes: each takes the next test of the first of its queues that still has one
exec 4<"$results/first" 5<"$results/servers" 6<"$results/processes" 7<"$results/spare" 8<"$results/beside"
lane() { # DESCRIPTOR...
    local queue test
    trap '[ -z "$run_pid" ] || { kill "$run_pid" && wait "$run_pid"; }; exit 143' TERM
    exec 9>"$results/lane"
    for queue in "$@"; do
        while { [ -z "$spare" ] || kill -0 "$pods" 2>/dev/null; } && flock 9 && IFS= read -r test <&"$queue"; do
            flock --unlock 9
            eval "$test" 4<&- 5<&- 6<&- 7<&- 8<&- 9>&-
        done
        flock --unlock 9
    done
}
# shellcheck disable=SC2046 # a number a lane
trap 'kill $(jobs -p) 2>/dev/null; wait; exit 130' INT TERM
lane 4 &
pods=$!
for ((i = 1; i < lanes; i++)); do
    {
        spare=yes lane 7
        lane 7 8
    } &
done
wait "$pods"
if [ "$lanes" -gt 1 ]; then
    lane 5 6 7 8 &
    lane 6 7 8 &
else
    lane 5 6 7 8 &
fi
wait
if [ "$(wc -l <"$results/count")" -lt "$queued" ]; then
    echo "FAILED: not all of $queued tests were run" >>"$results/failed"
    echo "0 1 0" >>"$results/count"
fi

# of the kernels, by all that ran on the emulated GPU; whole models run there in the debug build alone
for variant in "$@"; do
    [ "$queued" -gt 0 ] || break
    least=0
    [ "$variant:$filter" != debug: ] || least=95
    [ "$least" -gt 0 ] || [ -n "$(find "build/$variant/emulation/kernels" -name '*.gcda' 2>/dev/null | head -n 1)" ] || continue
    tests/emulation/coverage.sh "build/$variant" "$least" >"$results/coverage" || echo "0 1 0" >>"$results/count"
    sed '/^CUDA source lines/!d' "$results/coverage"
    sed '/^CUDA source lines/d' "$results/coverage" >>"$results/failed"
done
[ "$queued" -eq 0 ] || sort -rn "$results/costs" >build/test_costs
[ "$queued" -lt 50 ] || awk 'NR <= 10 { of[NR] = $0 } { all += $1 } END {
    printf "%.0f minutes of processors; the dearest tests, in seconds:\n", all / 60
    for (i = 1; i <= 10; i++) print "    " of[i] }' build/test_costs
[ -s "$results/count" ] || echo "no test has \"$filter\" in its name, as in cli/test_screen or deploy/" >&2
run_end
