#!/bin/bash
# shellcheck disable=SC1003,SC1091,SC2016,SC2154 # see tap.sh
# `shoal tokenize`: ids, pieces, token files and back.
. "$(dirname "$0")/../tap.sh"
data=tests/data/tokenizers
says() { # WANTED COMMAND...: its whole output
    local wanted=$1 got
    shift
    got=$("$@") || return
    [ "$got" = "$wanted" ] || { printf 'got: %s\nnot: %s\n' "$got" "$wanted"; return 1; }
}
words() { # FILE TYPE: its numbers in one line
    od -An -v -t "$2" "$1" | tr -s ' \n' ' ' | sed 's/^ //; s/ $//'
}
header() { head -c 12 "$1" >"$work/header" && words "$work/header" d4; }
body() { tail -c +1025 "$1" >"$work/body" && words "$work/body" "$2"; }
tokenize() { shoal tokenize --tokenizer "$data/$1" "${@:2}"; }

printf 'Hello world' >"$work/hello"
printf 'a  b\n\\' >"$work/odd"
gzip -c "$work/hello" >"$work/hello.gz"
ids=$(tokenize llama3 "$work/hello")
bos=${ids%% *}
plain=${ids#* }

# ---- printing
check "bos comes first" test "$(tokenize llama3 --pieces "$work/hello" | cut -d' ' -f1)" = "<|begin_of_text|>"
check "and can be left out" says "$plain" tokenize llama3 --no_special "$work/hello"
check "gzipped" says "$ids" tokenize llama3 "$work/hello.gz"
check "from stdin" says "$ids" tokenize llama3 - <"$work/hello"
byte_by_byte() { head -c 1 "$work/hello.gz" && sleep 0.2 && tail -c +2 "$work/hello.gz"; }
check "gzipped, from a pipe that gives its first byte alone" says "$ids" tokenize llama3 - < <(byte_by_byte)
rest_of() { { dd bs=1 count=6 >/dev/null 2>&1 && tokenize llama3 -; } < <(cat "$1"); } # FILE: but for its first bytes
from_within() { { dd bs=1 count=6 >/dev/null 2>&1 && tokenize llama3 -; } <"$1"; }
check "from within a file" says "$(rest_of "$work/hello")" from_within "$work/hello"
check "... which is not all of it" test "$(from_within "$work/hello")" != "$ids"
check "a line per file" says "$ids"$'\n'"$ids" tokenize llama3 "$work/hello" "$work/hello"
check "a file by its name" says "$ids" tokenize llama3/tokenizer.json "$work/hello"
mkdir -p "$work/hub/models--org--fox/snapshots"
ln -s "$PWD/$data/llama3" "$work/hub/models--org--fox/snapshots/main"
export HF_HUB_CACHE=$work/hub
check "an id that the hub's cache has" says "$ids" shoal tokenize --tokenizer org/fox "$work/hello"
check "one that it has not" fails 2 "; if the Hub has it: hf download org/wolf" shoal tokenize --tokenizer org/wolf "$work/hello"
check "what would break the line is spelled out" \
    says 'a Ġ Ġb Ċ \x5c' tokenize llama3 --no_special --pieces "$work/odd"

# ---- and back
echo "$ids" >"$work/ids"
check "ids to text" says "<|begin_of_text|>Hello world" tokenize llama3 --decode "$work/ids"
check "a text for each line of ids" says "$(printf 'Hello world\nHello world')" \
    eval 'tokenize spm_bpe "$work/hello" "$work/hello" | tokenize spm_bpe --decode -'
check "without special tokens" says "Hello world" tokenize llama3 --decode --no_special "$work/ids"
check "SentencePiece too" says "Hello world" eval 'tokenize spm_bpe "$work/hello" | tokenize spm_bpe --decode -'
check "BERT's list of pieces, as its tokenizer.json" says "$(tokenize bert_uncased "$work/hello")" tokenize bert_uncased_files "$work/hello"
check "and back" says "hello world" eval 'tokenize bert_uncased_files "$work/hello" | tokenize bert_uncased_files --decode --no_special -'

# ---- JSON lines and token files
printf '%s\n' '{"text": "Hello world", "url": "x"}' '' '{"text": ""}' '{"text": "Hello world"}' >"$work/lines.jsonl"
check "a line is a document" says "$ids"$'\n'"$bos"$'\n'"$ids" tokenize llama3 --jsonl "$work/lines.jsonl"
sed 's/"text"/"body"/' "$work/lines.jsonl" | gzip >"$work/lines.jsonl.gz"
{ cat "$work/lines.jsonl" && echo '  '; } >"$work/blank.jsonl"
check "... and lines of blanks are none" says "$ids"$'\n'"$bos"$'\n'"$ids" tokenize llama3 --jsonl "$work/blank.jsonl"
sed 's/}$/, "score": NaN, "most": [-Infinity]}/' "$work/lines.jsonl" >"$work/python.jsonl"
check "... with numbers as Python writes them" says "$ids"$'\n'"$bos"$'\n'"$ids" tokenize llama3 --jsonl "$work/python.jsonl"
check "of another column, gzipped" says "$ids"$'\n'"$bos"$'\n'"$ids" \
    tokenize llama3 --jsonl --text_column body "$work/lines.jsonl.gz"
check "a token file" contains <(tokenize llama3 --jsonl "$work/lines.jsonl" --out "$work/small.bin" 2>&1) \
    "shoal tokenize: $work/small.bin: 3 documents, $(($(wc -w <<<"$ids") * 2 + 1)) ids"
check "GPT-2's header" says "20240520 1 $(($(wc -w <<<"$ids") * 2 + 1))" header "$work/small.bin"
check "each document begins with bos" says "$ids $bos $ids" body "$work/small.bin" u2

# ids beyond 16 bits: the same with a piece that has a high id
sed 's/"<|eot_id|>"/"<|eot_id|>x"/; s/"added_tokens": \[/&{"id": 70000, "content": "Hello", "special": false},/' \
    "$data/llama3/tokenizer.json" >"$work/tokenizer.json"
check "a large vocabulary" contains <(shoal tokenize -t "$work" -o "$work/large.bin" "$work/hello" 2>&1) "1 documents"
check "Llama 3's header" says "20240801 7 $(body "$work/large.bin" u4 | wc -w)" header "$work/large.bin"
check "32 bits" says "$bos 70000" eval 'body "$work/large.bin" u4 | cut -d" " -f1-2'

# ---- what cannot be
check "a column without rows" fails 2 "--text_column is for JSON lines" tokenize llama3 --text_column x "$work/hello"
check "what only printing has" fails 2 "--no_special is for printing" tokenize llama3 --no_special --out "$work/none" "$work/hello"
check "a directory for the token file is refused first" fails 2 "$work is a directory: name a file" \
    tokenize llama3 --out "$work" "$work/none"
check "no tokenizer" fails 2 "shoal tokenize: --tokenizer PATH must be given" shoal tokenize "$work/hello"
check "no file" fails 2 "shoal tokenize: nothing to read: give FILE..., or - for stdin" tokenize llama3
check "a tokenizer that is not there" fails 2 "shoal tokenize: --tokenizer: there is no '$work/none' here" shoal tokenize -t "$work/none" -
check "a directory without one" fails 2 "no tokenizer is in it: looked for tokenizer.json, spiece.model" shoal tokenize -t "$data" -
check "a text that is not there" fails 2 "shoal tokenize: $work/none: No such file or directory" tokenize llama3 "$work/none"
head -c 30 "$work/hello.gz" >"$work/cut.gz"
check "a cut gzip stream" fails 2 \
    "shoal tokenize: $work/cut.gz: offset 30: the gzip stream is cut off: download it again" tokenize llama3 "$work/cut.gz"
{ cat "$work/hello.gz" && echo damaged; } >"$work/tail.gz"
check "what is none behind a gzip stream" fails 2 "the gzip stream is followed by what is none" tokenize llama3 "$work/tail.gz"
printf '{"text": "a"}\n{"text": 1}\n' >"$work/bad.jsonl"
check "a bad line" fails 2 "shoal tokenize: $work/bad.jsonl:2: " tokenize llama3 --jsonl --out "$work/bad.bin" "$work/bad.jsonl"
check "leaves no file" eval '! compgen -G "$work/bad.bin*"'
check "no parting token" fails 2 "has neither bos nor eos" tokenize split_next --out "$work/x.bin" "$work/hello"
check "an id that is none" fails 2 "word 2, x, is no id" tokenize llama3 --decode - <<<"1 x"
check "an id without a piece" fails 2 "id 99999, the one at place 1: no piece" tokenize llama3 --decode - <<<"1 99999"
check "an option that does not fit" fails 2 "--decode goes with none of" tokenize llama3 --decode --jsonl -
check "help" contains <(shoal tokenize --help) "  FILE "
tap_done
