#!/bin/bash
# The doors between the rooms, read off the #include lines. A line per violation; exit code 1 if there is any.
set -u
cd "$(dirname "$0")/.." || exit
bad=0
# room : pattern of what its files may include (project headers only)
rules='
base:base/.*
kernels:(base|kernels)/.*
agent:(base|agent)/.*|kernels/(attention_choice|device|dtype|gpu_survey|ops|random).h
operator:(base|operator)/.*
operator/job:base/(contract|lines|mem|str).h|operator/job/.*
operator/reconcile:base/(contract|mem|str).h|operator/(job|reconcile)/.*
operator/decode:base/.*|operator/(job|decode)/.*
operator/kube:base/.*|operator/kube/.*
operator/leader:base/.*|operator/(leader/.*|kube/kube.h|job/resources.h)
operator/manifest:base/.*|operator/(job|manifest)/.*|operator/reconcile/(plan|restart).h
operator/apply:base/.*|operator/(job|apply)/.*|operator/(reconcile/plan|manifest/(init_template|manifest|pod)|kube/kube).h
operator/cache:base/.*|operator/(job|decode|cache)/.*|operator/kube/(kube|watcher).h
operator/progress:base/.*|operator/(job|progress)/.*|operator/(cache/queue|decode/decode_training).h
operator/board:base/.*|operator/(job|board)/.*|operator/(manifest/manifest|reconcile/plan).h
operator/local:base/.*|operator/(job|local)/.*|operator/(apply/apply|manifest/pod).h
cli:(base|operator|agent|cli)/.*|kernels/(device|dtype|ops|random).h
'
# file : project headers it may include, where a file is held tighter than its room
pure='
base/library.[ch]:base/(contract|error|library).h
kernels/matmul.[ch]:kernels/(ops|matmul).h
kernels/memory_pool.[ch]:base/mem.h|kernels/memory_pool.h
kernels/trace.h:base/error.h
kernels/trace.c:base/(clock|mem).h|kernels/trace_log.h
operator/[^/]*:base/.*|operator/[^/]*|operator/(job|reconcile|manifest|kube|leader|apply|board|cache|progress)/.*
operator/live_page.[ch]:base/(error|httpd|mem|page).h|operator/(board/board|live_page|serve).h
operator/progress/ask_times.[ch]:operator/progress/ask_times.h
operator/job/(types|snapshot).h:operator/job/(goodput|queue|training|types|workload).h
operator/kube/kube_answer.[ch]:base/.*|operator/kube/kube_answer.h
operator/kube/(command|kubeconfig_file).[ch]:base/.*|operator/kube/(command|kubeconfig_file).h
operator/kube/watch.[ch]:base/.*|operator/kube/watch.h
operator/leader/lease.[ch]:base/(backoff|clock).h|operator/leader/lease.h
operator/manifest/pod.[ch]:base/(contract|mem|str).h|operator/job/.*|operator/(reconcile/restart|manifest/pod).h
operator/apply/(expectations|steps).[ch]:base/(error|mem).h|operator/job/.*|operator/(reconcile/plan|apply/(expectations|steps)).h
operator/apply/job_record.[ch]:base/(mem|table).h|operator/job/(job_status|types).h|operator/apply/(event_budget|expectations|job_record).h
operator/apply/event_budget.[ch]:base/table.h|operator/apply/event_budget.h
operator/cache/queue.[ch]:base/(backoff|mem|schedule|table).h|operator/cache/queue.h
operator/(serve|metrics).[ch]:base/.*|operator/(config|metrics|serve|job/(history|names|shown_time|types)).h
kernels/cpu/.*:base/.*|kernels/(attention_shape|backend|data_error|dtype|exact_sum|memory|ops|matmul|random|trace|trace_log).h|kernels/cpu/.*
kernels/cuda/.*:base/(clock|contract|error|library|log|mem).h|kernels/(attention_choice|attention_shape|backend|data_error|dtype|exact_sum|gpu_survey|memory|ops|matmul|random|trace|trace_log).h|kernels/cuda/.*
kernels/cuda/cudnn_api.[ch]:base/(error|library).h|kernels/cuda/cudnn_api.h
kernels/cuda/cudnn_graph.[ch]:kernels/cuda/cudnn_(api|graph).h
kernels/cuda/cudnn_attention.[ch]:kernels/ops.h|kernels/cuda/cudnn_(attention|graph).h
kernels/cuda/cudnn_plans.[ch]:base/mem.h|kernels/ops.h|kernels/cuda/cudnn_(attention|plans).h
kernels/attention_(choice|table|published).[ch]:base/(contract|error|mem).h|kernels/(ops|attention_choice).h
kernels/(device|cuda_library|gpu_survey).c:base/(error|log|mem).h|kernels/(backend|cuda_library|gpu_survey|trace_log).h
agent/nn/.*:base/.*|kernels/(device|dtype|ops|random).h|agent/nn/.*
agent/nn/tape.*:base/.*|kernels/(device|dtype|ops).h|agent/nn/(tape|tape_internal|module).h
agent/nn/module.[ch]:base/.*|agent/nn/module.h
agent/models/.*:base/.*|agent/nn/(nn|nn_loss|tape|module).h|agent/models/.*
agent/shard/.*:base/.*|kernels/(device|dtype|ops|random).h|agent/nn/(module|tape).h|agent/comm/comm.h|agent/shard/.*
agent/shard/(wrap|shard_layout).[ch]:base/.*|agent/nn/module.h|agent/shard/(wrap|shard_layout).h
agent/shard/shard_payload.[ch]:base/.*|kernels/dtype.h|agent/nn/module.h|agent/shard/shard_(layout|payload).h
agent/comm/.*:base/.*|kernels/(device|dtype|ops).h|agent/comm/.*
agent/comm/comm.h:base/.*|kernels/(device|dtype).h
agent/comm/ring_add.[ch]:agent/comm/ring_add.h|kernels/dtype.h
agent/comm/(collective_.*|comm_split|desync_report|flight_recorder).[ch]:base/.*|agent/comm/(collective_.*|comm_split|desync_report|flight_recorder|store).h
agent/comm/nccl_.*[ch]:base/.*|agent/comm/(nccl_.*|store).h
agent/comm/comm_stage.[ch]:base/.*|agent/comm/(comm|comm_stage).h
agent/comm/ring_wire.[ch]:base/(error|str).h|agent/comm/(ring_wire|store).h
agent/comm/roster.[ch]:base/(mem|str).h|agent/comm/roster.h
agent/comm/rendezvous_(wire|round).[ch]:base/(error|mem|str).h|agent/comm/(rendezvous_(wire|round|proof)|store).h
agent/config/profile_plan.[ch]:base/(error|mem|str).h|agent/config/(name_format|profile_plan).h
agent/telemetry/trace_json.[ch]:base/(json_text|str).h|agent/telemetry/trace_json.h
agent/telemetry/trace_file.[ch]:base/(durable|error|mem).h|agent/telemetry/trace_file.h
agent/launch/(crash|mapped_file).[ch]:base/mem.h|agent/launch/(crash|mapped_file).h
agent/launch/stop.[ch]:base/.*|agent/launch/stop.h
agent/launch/launch.*:base/.*|kernels/device.h|agent/launch/.*|agent/comm/meeting.h
agent/launch/topology.*:base/.*|agent/launch/topology.*
agent/launch/.*:base/.*|kernels/device.h|agent/launch/.*|agent/comm/meeting.h
agent/launch/inherited_file.[ch]:base/(error|str).h|agent/launch/inherited_file.h
agent/launch/rank_memory.[ch]:base/error.h|agent/launch/(inherited_file|rank_memory).h
agent/launch/rank_note.[ch]:base/str.h|agent/launch/(inherited_file|rank_memory|rank_note).h
agent/launch/stopped_note.[ch]:base/(error|str).h|agent/launch/stopped_note.h
agent/launch/repeated_end.[ch]:base/str.h|agent/launch/(rank_note|repeated_end).h
agent/launch/output_tail.[ch]:base/(str|utf8).h|agent/launch/output_tail.h
agent/launch/thread_stacks.[ch]:base/(mem|str).h|agent/launch/thread_stacks.h
agent/health/.*:base/.*|agent/health/.*|agent/comm/(collective_progress|net|rendezvous_health|store).h|agent/launch/(last_words|rank_note|stopped_note|thread_stacks).h
agent/health/(hang_detector|straggler|rank_report|rank_table).[ch]:base/(contract|error|json_text|mem|str).h|agent/health/(hang_detector|straggler|rank_report|rank_table).h
agent/health/activity.[ch]:agent/health/(activity|rank_report).h
agent/launch/numa.[ch]:base/.*|agent/launch/numa.h
agent/launch/device_choice.[ch]:base/.*|kernels/device.h|agent/launch/device_choice.h
agent/config/.*:base/.*|agent/config/.*|agent/(comm/comm_device|dataset/token_dataset|health/hang_action|launch/device_choice|models/families|models/model|shard/(optim|optim_kind|schedule|shard)|telemetry/(gpu_metrics|log_lines)|text/utf8).h
agent/compat/.*:base/.*|agent/compat/.*|agent/config/(config|config_keys).h|agent/launch/launch.h|agent/checkpoint/export_checkpoint.h
agent/compat/(shim.*|command_stubs|accelerate_file|script_text).[ch]:base/.*|agent/compat/(shim.*|script|script_text|command_stubs|accelerate_file).h
agent/dataset/.*:base/.*|agent/dataset/.*|agent/text/tokens.h|kernels/random.h
agent/dataset/token_dataset.h:agent/dataset/token_dataset.h
agent/dataset/offset_search.[ch]:agent/dataset/offset_search.h
agent/dataset/(masking|sampler).[ch]:kernels/random.h|agent/dataset/(masking|sampler).h
agent/dataset/example_batch.[ch]:base/error.h|agent/dataset/(example_batch|examples|masking|token_source).h
agent/text/.*:base/.*|agent/text/.*
agent/text/(bert_normalizer|precompiled).[ch]:base/.*|agent/text/(bert_normalizer|precompiled|utf8).h
agent/text/(unigram|wordpiece).[ch]:base/.*|agent/text/(unigram|wordpiece|bpe_pairs|spec|tokens|utf8|vocab).h
agent/text/(utf8|byte_alphabet).[ch]:base/(str|utf8).h|agent/text/(utf8|byte_alphabet).h
agent/text/(added|tokens|bpe_pairs).[ch]:base/mem.h|agent/text/(added|tokens|bpe_pairs|utf8).h
agent/checkpoint/safetensors.*:base/.*|agent/checkpoint/safetensors.h
agent/checkpoint/checkpoint.*:base/.*|agent/comm/(agree|comm).h|agent/checkpoint/(checkpoint.*|export|safetensors|tensor_values|nonfinite|pretrained_index).h
agent/checkpoint/export_texts.[ch]:base/.*|agent/models/(architecture|config_json).h|agent/text/tokenizer.h|agent/checkpoint/export(_texts)?.h
agent/checkpoint/export_checkpoint.[ch]:base/.*|kernels/(device|dtype|ops|random).h|agent/comm/comm.h|agent/models/(config_json|model).h|agent/text/tokenizer.h|agent/checkpoint/(export.*|checkpoint).h
agent/checkpoint/export(_internal|_directory)?.[ch]:base/.*|agent/comm/(agree|comm).h|agent/checkpoint/(export.*|safetensors|tensor_values|nonfinite|pretrained_index).h
agent/checkpoint/memory_snapshot.[ch]:base/error.h|agent/checkpoint/memory_snapshot.h
agent/checkpoint/directory_lock.[ch]:base/.*|agent/checkpoint/directory_lock.h
agent/checkpoint/pretrained_names.[ch]:base/(mem|str).h|agent/checkpoint/pretrained_names.h
agent/checkpoint/pretrained_index.[ch]:base/.*|agent/checkpoint/pretrained_index.h
agent/checkpoint/tensor_values.[ch]:base/error.h|kernels/dtype.h|agent/checkpoint/(tensor_values|safetensors).h
agent/checkpoint/nonfinite.[ch]:base/error.h|agent/checkpoint/(nonfinite|checkpoint|safetensors|tensor_values).h
agent/checkpoint/pretrained_config.[ch]:base/.*|agent/checkpoint/pretrained(_config)?.h|agent/models/(architecture|config_json|families).h
agent/checkpoint/pretrained_find_unsupported.[ch]:base/mem.h|agent/checkpoint/pretrained_unsupported.h
agent/checkpoint/pretrained(_load|_internal)?.[ch]:base/.*|kernels/(device|dtype|ops|random).h|agent/checkpoint/(pretrained.*|safetensors|tensor_values|nonfinite).h|agent/(models/model|nn/module|shard/shard).h
agent/checkpoint/inspect.*[ch]:base/.*|agent/checkpoint/(inspect|checkpoint.*|safetensors|tensor_values|nonfinite|pretrained_index).h|agent/telemetry/json_row.h
agent/telemetry/.*:base/.*|kernels/device.h|agent/comm/comm.h|agent/telemetry/.*
agent/telemetry/trainjob_status.[ch]:base/.*|agent/telemetry/(run_state|trainjob_status).h
agent/doctor/.*:base/.*|kernels/(device|gpu_survey).h|agent/(comm/nccl_api|config/config_keys|launch/(device_choice|launch)|process_group|telemetry/nvml).h|agent/doctor/.*
agent/doctor/checkup.*:base/(contract|error|mem|str).h|kernels/gpu_survey.h|agent/(comm/nccl_api|telemetry/nvml).h|agent/doctor/(checkup.*|doctor_facts).h
agent/config_consistency.[ch]:base/(contract|error|mem).h|agent/(config_consistency|comm/store|config/config).h
agent/dry_run.[ch]:base/.*|kernels/device.h|agent/(dry_run|batches/batch_source|config/config|dataset/token_files|launch/device_choice|notices|plan/time_plan|telemetry/nvml|text/tokenizer|trainer/build).h
agent/notices.[ch]:base/.*|agent/(notices|config/config).h
agent/telemetry/(protobuf|event_record|crc32c|wandb_record).[ch]:base/(contract|mem|str).h|agent/telemetry/(protobuf|event_record|crc32c|wandb_record).h
agent/batches/.*:base/.*|kernels/(device|dtype|ops).h|agent/(config/config|models/(language|model)|text/tokenizer).h|agent/dataset/.*|agent/batches/.*
agent/plan/.*:base/.*|kernels/(attention_choice|device|ops).h|agent/(comm/comm_device|config/config|models/.*|nn/(tape|nn_fp8|nn_loss)|shard/.*|telemetry/(flops|json_row|run_numbers)).h|agent/plan/.*
agent/trainer/.*:base/.*|kernels/(device|ops).h|agent/(batches|checkpoint|comm|config|health|launch|models|nn|plan|shard|telemetry|text|trainer)/.*
agent/trainer/step_totals.[ch]:base/(error|mem).h|kernels/(device|ops).h|agent/(comm/comm|models/model|shard/shard|trainer/step_totals).h
agent/trainer/data_cursor.[ch]:base/error.h|agent/(batches/batch_source|config/config|plan/trainer_settings|trainer/data_cursor).h
agent/trainer/fatal_step.[ch]:base/str.h|agent/trainer/(data_cursor|fatal_step).h
agent/trainer/memory_interval.[ch]:agent/trainer/memory_interval.h
agent/trainer/memory_buddies.[ch]:base/mem.h|agent/trainer/memory_(buddies|places|recovery).h
agent/trainer/memory_group.[ch]:base/mem.h|agent/(checkpoint/memory_snapshot|trainer/memory_group).h
agent/trainer/memory_places.[ch]:base/(mem|str).h|agent/(comm/(agree|comm)|trainer/memory_(group|places)).h
agent/trainer/memory_recut.[ch]:base/mem.h|agent/(checkpoint/memory_snapshot|comm/(agree|comm)|launch/rank_memory|shard/(optim|shard)|trainer/(host_state|memory_(group|recut))).h
agent/trainer/memory_room.[ch]:base/(error|gigabytes|memory_left).h|agent/trainer/memory_room.h
agent/trainer/memory_recovery.[ch]:base/mem.h|agent/(comm/agree|trainer/memory_(group|recovery)).h
agent/trainer/host_state.[ch]:base/mem.h|agent/(checkpoint/checkpoint|shard/optim|shard/shard|trainer/host_state).h
agent/report/.*:base/.*|kernels/(device|ops).h|agent/(config/config|launch/topology|nn/module|plan/.*|shard/shard|telemetry/.*|trainer/trainer).h|agent/report/.*
agent/generate/.*:base/.*|kernels/(device|ops|random).h|agent/(checkpoint/pretrained.*|comm/comm|models/.*|shard/.*|text/tokenizer).h|agent/generate/.*
agent/plan/trainer_settings.[ch]:base/mem.h|agent/config/config.h|agent/nn/tape.h|agent/shard/(optim|optim_kind|schedule|shard).h|agent/plan/trainer_settings.h
agent/shard/schedule.[ch]:agent/shard/schedule.h
agent/batches/prefetcher.[ch]:base/(error|mem).h|kernels/device.h|agent/batches/prefetcher.h
agent/batches/encoder.[ch]:base/.*|agent/batches/encoder.h|agent/dataset/token_source.h|agent/text/tokenizer.h
agent/plan/run_plan(_activations|_advice|_internal|_print|_units)?.[ch]:base/.*|agent/plan/run_plan(_internal)?.h|agent/nn/tape.h|agent/shard/(shard|shard_layout|shard_payload|window_plan|wrap).h|agent/telemetry/(flops|json_row|run_numbers).h
'
sources() { git ls-files --cached --others --exclude-standard -- "$@" | while read -r f; do [ -e "$f" ] && echo "$f"; done; }
# One pass over all #include lines: "FILE:#include "HEADER"" against the rules of FILE, which are looked up once per file.
violations=$(sources '*.c' '*.h' '*.cc' '*.cu' | xargs grep -H '^#include "' | rules=$rules pure=$pure awk '
    function learn(text, is_room,   lines, count, i, at) {
        count = split(text, lines, "\n")
        for (i = 1; i <= count; i++) {
            at = index(lines[i], ":")
            if (!at)
                continue
            who[++rows] = is_room ? "^" substr(lines[i], 1, at - 1) "/" : "^" substr(lines[i], 1, at - 1) "$"
            door[rows] = substr(lines[i], at + 1)
        }
    }
    BEGIN { learn(ENVIRON["rules"], 1); learn(ENVIRON["pure"], 0) }
    {
        at = index($0, ":")
        file = substr($0, 1, at - 1)
        split(substr($0, at), quoted, "\"")
        if (file != last) {
            last = file
            held = 0
            for (i = 1; i <= rows; i++)
                if (file ~ who[i])
                    mine[++held] = door[i]
        }
        for (i = 1; i <= held; i++)
            if (quoted[2] !~ "^(" mine[i] ")$")
                print file " includes " quoted[2] ": not through its door (" mine[i] ")"
    }')
[ -z "$violations" ] || { echo "$violations"; bad=1; }
# no circles between the agent's folders
circle=$(sources 'agent/*/*.[ch]' | xargs grep -H '^#include "agent/[a-z]*/' |
    sed -E 's|agent/([a-z]*)/.*"agent/([a-z]*)/.*|\1 \2|' | awk '$1 != $2' | sort -u | tsort 2>&1 >/dev/null)
[ -z "$circle" ] || { echo "folders of agent/ include each other in a circle: $circle"; bad=1; }
# JSON values and libyaml stay at the edge, among those who read and write texts: logic never walks JSON
edge='base/(json[a-z_]*.[ch]|series.c|timeline.c|yaml.c|yaml_place.c|yaml_scalar.c)
operator/(decode/decode.*|manifest/(manifest.*|init_template)|cache/(cache|job_entry)|leader/(leader|lease_object)).c
operator/board/(board|board_job|detail_view|job_view).c
agent/telemetry/page_(json|ranks).c
operator/(apply/(request|executor|executor_inflight|executor_training)|kube/(watch|kube|kube_answer|kubeconfig_.*)).c
agent/(config/config_file|config/config_accelerate|report/progress|checkpoint/safetensors_.*|checkpoint/(checkpoint_.*|export_checkpoint)).c
agent/dataset/(token_position|arrow_folder|json_line).c
agent/(models/(config_json.*|[a-z0-9]*_family)|checkpoint/pretrained_index).c
agent/text/(spec|spec_components|tokenizer_config).c
cli/(inbox|cluster|cluster_jobs|job_answer|job_facts|job_json|local_runs|run_answer).c'
strangers=$(sources base operator agent kernels cli | grep '\.[ch]$' | xargs grep -lE '#include ("base/json.h"|<yaml.h>)' | grep -vxE "$edge")
reason=' includes base/json.h or yaml.h: only the edge does'
[ -z "$strangers" ] || { echo "${strangers//$'\n'/$reason$'\n'}$reason"; bad=1; }
# the JSON library is behind one door, for tests too
strangers=$(sources base operator agent kernels cli tests | grep '\.\(c\|h\|cc\)$' | xargs grep -liE '^# *include.*cjson' | grep -vxE 'base/json[a-z_]*\.[ch]')
reason=' includes cJSON: only base/json* does'
[ -z "$strangers" ] || { echo "${strangers//$'\n'/$reason$'\n'}$reason"; bad=1; }
exit "$bad"
