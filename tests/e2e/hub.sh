# shellcheck shell=bash
# Stand-ins for what the pages of docs/guides fetch, in small: `. tests/e2e/hub.sh`, after tests/tap.sh and tests/e2e/t5.sh.

# hub_place FOLDER: makes FOLDER/hub with repositories of the Hub, and FOLDER/bin with the programs that would fetch them.
hub_place() {
    local hub=$1/hub split
    mkdir -p "$hub"/{google-t5/t5-small,google-bert/bert-base-uncased,hf-internal-testing/llama-tokenizer,allenai/c4/en} "$1/bin" || return
    cp tests/data/tiny/t5/config.json tests/data/tokenizers/spm_t5/spiece.model tests/data/tokenizers/unigram_t5/tokenizer.json \
        "$hub/google-t5/t5-small"
    cp tests/data/tokenizers/bert_uncased/tokenizer.json tests/data/tokenizers/bert_uncased_files/* "$hub/google-bert/bert-base-uncased"
    sed 's/"max_position_embeddings": [0-9]*/"max_position_embeddings": 512/' tests/data/tiny/bert/config.json \
        >"$hub/google-bert/bert-base-uncased/config.json"
    echo '{}' | tee "$hub/google-t5/t5-small/generation_config.json" >"$hub/google-t5/t5-small/tokenizer_config.json"
    cp tests/data/tokenizers/llama2_metaspace/tokenizer.json "$hub/hf-internal-testing/llama-tokenizer"
    for split in train.00000-of-01024 train.00001-of-01024 train.00010-of-01024 validation.00000-of-00008; do
        seq -f '{"text": "the quick brown fox %g jumps over the lazy dog and runs away from it"}' 200 |
            gzip >"$hub/allenai/c4/en/c4-$split.json.gz"
    done
    seq -f '{"text": "the fox %g jumps", "summary": "a fox jumps"}' 8 >"$1/rows.jsonl"
    draw_weights "$hub/google-t5/t5-small" --dataset "$1/rows.jsonl" --max_target_length 8 &&
        draw_weights "$hub/google-bert/bert-base-uncased" --head masked_lm --dataset "$1/rows.jsonl" --max_seq_length 16 &&
        hub_llama "$hub/meta-llama/Meta-Llama-3-8B" "$1/rows.jsonl" || return
    hub_programs "$1"
}

# hub_llama FOLDER DATA: a Llama of 2 layers, and a file beside it that nobody wants.
hub_llama() {
    mkdir -p "$1/original" && touch "$1/original/consolidated.00.pth" || return
    shoal-agent --device cpu --model_type llama --hidden_size 64 --num_hidden_layers 2 --num_attention_heads 4 \
        --num_key_value_heads 2 --intermediate_size 128 --vocab_size 1024 --max_position_embeddings 128 --format jsonl \
        --tokenizer tests/data/tokenizers/llama3 --dataset "$2" --max_seq_length 8 --max_steps 1 --eval_strategy no \
        --prometheus_port 0 --save_model "$1/made" >"$1/log" 2>&1 || { cat "$1/log"; return 1; }
    mv "$1"/made/* "$1" && rmdir "$1/made" && rm "$1/log"
}

hub_programs() { # FOLDER
    # hf: as the real one, a folder of blobs and a snapshot of links to them
    cat >"$1/bin/hf" <<END
#!/bin/bash
set -eu
[ "\$1 \$2" != "auth login" ] || exit 0
[ "\$1" = download ]; repo=\$2 kind=models wanted=() excluded=
shift 2
while [ \$# -gt 0 ]; do
    case \$1 in
    --repo-type) [ "\$2" = dataset ] && kind=datasets; shift ;;
    --include) wanted+=("\$2"); shift ;;
    --exclude) excluded=\$2; shift ;;
    -*) echo "hf: \$1" >&2; exit 2 ;;
    *) wanted+=("\$1") ;;
    esac
    shift
done
to=\${HF_HOME:-\$HOME/.cache/huggingface}/hub/\$kind--\${repo//\\//--}
mkdir -p "\$to/refs" "\$to/blobs" "\$to/snapshots/abc"
printf abc >"\$to/refs/main"
cd "$1/hub/\$repo"
[ \${#wanted[@]} -gt 0 ] || wanted=('*')
for pattern in "\${wanted[@]}"; do
    found=
    while read -r file; do
        # shellcheck disable=SC2053
        [[ \$file == \$pattern ]] && { [ -z "\$excluded" ] || [[ \$file != \$excluded ]]; } || continue
        found=1 blob=\$(sha256sum "\$file" | cut -c1-40)
        cp "\$file" "\$to/blobs/\$blob"
        mkdir -p "\$to/snapshots/abc/\$(dirname "\$file")"
        ln -sf "\$(realpath "\$to/blobs/\$blob")" "\$to/snapshots/abc/\$file"
    done < <(find . -type f -printf '%P\\n')
    [ -n "\$found" ] || { echo "hf: \$repo has no \$pattern" >&2; exit 1; }
done
END
    # Python's library: rows of the right columns
    mkdir -p "$1/python"
    cat >"$1/python/datasets.py" <<'END'
FOX = "the quick brown fox %d jumps over the lazy dog and runs away from it"

class Dataset:
    def __init__(self, rows):
        self.rows = rows

    def filter(self, keep):
        return Dataset([row for row in self.rows if keep(row)])

    def train_test_split(self, test_size, seed):
        return {"train": Dataset(self.rows[4:]), "test": Dataset(self.rows[:4])}

    def to_json(self, path):
        with open(path, "w") as out:
            for row in self.rows:
                out.write("{" + ", ".join('"%s": "%s"' % pair for pair in row.items()) + "}\n")

def load_dataset(name, config=None, split=None):
    if name == "FiscalNote/billsum":
        return Dataset([{"text": FOX % i, "summary": "a fox jumps", "title": "fox"} for i in range(64)])
    if (name, config) in (("Salesforce/wikitext", "wikitext-2-raw-v1"), ("wikimedia/wikipedia", "20231101.es")):
        return Dataset([{"text": " " if i % 8 == 7 else FOX % i} for i in range(64)])
    raise ValueError("there is no %s, %s" % (name, config))
END
    # MNIST's files: the first few of Fashion-MNIST
    cat >"$1/bin/curl" <<'END'
#!/bin/bash
set -eu
[ "$1" = -fsSLo ]
[[ $3 == *-ubyte.gz ]]
count=64
[[ $3 != */train-*ubyte.gz ]] || count=256
"${0%/*}/first_images.sh" "${3##*/}" "$count" | gzip >"$2"
END
    cp tests/first_images.sh "$1/bin"
    # Slurm: a batch shell is not interactive; a task a node, and no others. Sizes are those of a small machine.
    cat >"$1/bin/sbatch" <<'END'
#!/bin/bash
set -eu
small=$(mktemp)
sed -e 's/^GPUS_PER_NODE=8/GPUS_PER_NODE=1/' -e 's/--hidden_width=2048/--hidden_width=64/' -e 's/--intermediate_size=8192/--intermediate_size=128/' \
    -e 's/--num_layers=16/--num_layers=2/' -e 's/--num_heads=32/--num_heads=4/' -e 's/--max_context_width=8192/--max_context_width=64/' \
    -e 's/--max_context_width=2048/--max_context_width=64 --hidden_width=64 --intermediate_size=128 --num_layers=2 --num_heads=4 --num_key_value_heads=2/' \
    -e 's/--max_steps=100/--max_steps=4/' -e 's/--checkpoint_freq=50/--checkpoint_freq=2/' -e 's/--validation_freq=100/--validation_freq=4/' \
    -e "s/^    --rdzv_endpoint=.*/    --rdzv_endpoint=\"\$(hostname):$SLURM_TEST_PORT\"/" "$1" >"$small"
SLURM_JOB_ID=$(find logs -name '*.out' | wc -l) SLURM_JOB_NUM_NODES=$(sed -n 's/^#SBATCH --nodes=//p' "$1")
export SLURM_JOB_ID SLURM_JOB_NUM_NODES
log=logs/$(sed -n 's/^#SBATCH --job-name=//p' "$1")_$SLURM_JOB_ID
bash "$small" >"$log.out" 2>"$log.err" || { cat "$log.out" "$log.err"; exit 1; }
END
    # With pyxis' flags the tasks run in the image's root tree, with its PATH and what is mounted: as enroot does it.
    cat >"$1/bin/srun" <<'END'
#!/bin/bash
set -eu
container=()
while [[ $1 == -* ]]; do
    case $1 in
    --container-image) tree=$2; shift ;;
    --container-mounts) mounts=/proc:/proc,/dev:/dev,$2; shift ;;
    --container-workdir) folder=$2; shift ;;
    esac
    shift
done
[ -z "${tree:-}" ] || container=(unshare --mount bash -c '
    for mount in ${2//,/ }; do
        mkdir -p "$1${mount#*:}" && mount --rbind "${mount%%:*}" "$1${mount#*:}" || exit
    done
    cp /etc/hosts /etc/nsswitch.conf "$1/etc"
    PATH=/usr/local/bin:/usr/bin:/bin exec /usr/sbin/chroot "$1" /bin/bash -c "cd \"\$0\" && exec \"\$@\"" "${@:3}"
    ' - "$tree" "$mounts" "$folder")
pids=()
for ((node = 0; node < SLURM_JOB_NUM_NODES; node++)); do
    SLURM_NODEID=$node SLURM_PROCID=$node SLURM_NTASKS=$SLURM_JOB_NUM_NODES SLURM_LOCALID=0 "${container[@]}" "$@" &
    pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
END
    printf '#!/bin/sh\n' | tee "$1/bin/pip" "$1/bin/squeue" >/dev/null
    chmod +x "$1"/bin/*
}
