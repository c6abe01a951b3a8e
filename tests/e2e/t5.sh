# shellcheck shell=bash
# A place with a tiny T5 under the name that t5-fsdp.py has for its model, and bills for it: what an image or a volume
# brings a job. `. tests/e2e/t5.sh`, after tests/tap.sh.

# t5_place FOLDER [ROWS]: makes FOLDER/hf (a Hugging Face cache) and FOLDER/datasets.
t5_place() {
    local snapshots=$1/hf/hub/models--google-t5--t5-small
    mkdir -p "$snapshots/refs" "$snapshots/snapshots/abc" "$1/datasets/billsum" &&
        printf abc >"$snapshots/refs/main" &&
        cp tests/data/tiny/t5/config.json tests/data/tokenizers/spm_t5/spiece.model "$snapshots/snapshots/abc" &&
        seq "${2:-64}" | sed 's/.*/{"text": "the quick brown fox & jumps over the lazy dog", "summary": "a fox jumps", "title": "&"}/' \
            >"$1/datasets/billsum/train.jsonl"
}
