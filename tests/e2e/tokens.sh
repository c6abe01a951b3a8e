# shellcheck shell=bash disable=SC2154 # tap.sh sets work
# For tests that train on ids: sourced after tap.sh, it leaves some in $work/tokens.bin.

# a llm.c token file: 256 int32 of header (magic, version, tokens), then 16-bit tokens 0 .. 31
le32() { printf '%b' "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $(($1 & 255)) $(($1 >> 8 & 255)) $(($1 >> 16 & 255)) $(($1 >> 24 & 255)))"; }
{
    le32 20240520
    le32 1
    le32 4096
    head -c 1012 /dev/zero
    head -c 4096 /dev/zero | od -An -v -tu1 -w1 | awk '{printf "%c%c", 64 + (NR * NR + NR % 3) % 32, 0}' | tr '\100-\137' '\000-\037'
} >"$work/tokens.bin"
