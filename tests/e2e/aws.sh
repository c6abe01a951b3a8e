# shellcheck shell=bash
# What the jobs of AWS's FSDP sample find on their volume, in small: `. tests/e2e/aws.sh`, after tests/tap.sh.

# aws_place FOLDER: makes FOLDER/hf (a Hugging Face cache with their tokenizer) and FOLDER/data (a mirror of C4).
aws_place() {
    local tokenizer=$1/hf/hub/models--hf-internal-testing--llama-tokenizer c4=$1/data/allenai/c4/en split
    mkdir -p "$tokenizer/refs" "$tokenizer/snapshots" "$c4" && printf abc >"$tokenizer/refs/main" &&
        cp -r tests/data/tokenizers/llama2_metaspace "$tokenizer/snapshots/abc" || return
    for split in train validation; do
        seq -f '{"text": "the quick brown fox %g jumps over the lazy dog and runs away from it"}' 400 |
            gzip >"$c4/c4-$split.00000-of-00001.json.gz" || return
    done
}
