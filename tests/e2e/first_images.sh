#!/bin/bash
# first_images.sh NAME COUNT: a file of MNIST's, as train-images-idx3-ubyte.gz, with the first COUNT (to 65,535) of
# Fashion-MNIST's alone, on standard output: a run of a few steps then reads no more than it trains on.
set -eu
from=/usr/share/datasets/fashion-mnist/$1
count=$(printf '\\x00\\x00\\x%02x\\x%02x' $(($2 >> 8)) $(($2 & 255)))
part() { gzip -dc "$from" | tail -c "+$(($1 + 1))" | head -c "$2"; } # HEADER BYTES: after the header
case $1 in
*-images-*) printf '%b' "\x00\x00\x08\x03$count\x00\x00\x00\x1c\x00\x00\x00\x1c" && part 16 $(($2 * 784)) ;;
*) printf '%b' "\x00\x00\x08\x01$count" && part 8 "$2" ;;
esac | gzip -1
