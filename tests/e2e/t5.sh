# shellcheck shell=bash
# A place with a tiny T5 under the name that t5-fsdp.py has for its model, and bills for it: what an image or a volume
# brings a job. `. tests/e2e/t5.sh`, after tests/tap.sh.

# t5_place FOLDER [ROWS]: makes FOLDER/hf (a Hugging Face cache) and FOLDER/datasets; the weights are drawn.
t5_place() {
    local snapshots=$1/hf/hub/models--google-t5--t5-small
    mkdir -p "$snapshots/refs" "$snapshots/snapshots/abc" "$1/datasets/billsum" &&
        printf abc >"$snapshots/refs/main" &&
        cp tests/data/tiny/t5/config.json tests/data/tokenizers/spm_t5/spiece.model "$snapshots/snapshots/abc" &&
        seq "${2:-64}" | sed 's/.*/{"text": "the quick brown fox & jumps over the lazy dog", "summary": "a fox jumps", "title": "&"}/' \
            >"$1/datasets/billsum/train.jsonl" &&
        draw_weights "$snapshots/snapshots/abc" --dataset "$1/datasets/billsum" --max_target_length 8
}

# draw_weights MODEL FLAGS...: gives a folder with a config.json and a tokenizer the weights of a first step.
draw_weights() {
    shoal-agent --device cpu --model.name_or_path "$1" --init random --max_steps 1 --eval_strategy no --prometheus_port 0 \
        --save_model "$1/drawn" "${@:2}" >"$1/log" 2>&1 || { cat "$1/log"; return 1; }
    mv "$1/drawn/model.safetensors" "$1" && rm -r "$1/drawn" "$1/log"
}
