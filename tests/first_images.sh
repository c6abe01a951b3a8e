#!/bin/bash
# first_images.sh NAME COUNT: unpacks a file of Fashion-MNIST's, as train-images-idx3-ubyte.gz, to standard output, with its
# first COUNT (to 65,535) images or labels alone.
set -eu
from=/usr/share/datasets/fashion-mnist/$1
count=$(printf '\\x00\\x00\\x%02x\\x%02x' $(($2 >> 8)) $(($2 & 255)))
part() { gzip -dc "$from" | tail -c "+$(($1 + 1))" | head -c "$2"; } # HEADER BYTES: after the header
case $1 in
*-images-*) printf '%b' "\x00\x00\x08\x03$count\x00\x00\x00\x1c\x00\x00\x00\x1c" && part 16 $(($2 * 784)) ;;
*) printf '%b' "\x00\x00\x08\x01$count" && part 8 "$2" ;;
esac
