#!/bin/bash
# What became of a demo's training, epoch by epoch, as a picture.
#   deploy/demo/accuracy.sh LOG
set -eu
awk '
    match($0, /^Test set: .*Accuracy: [0-9]+\/[0-9]+/) {
        split(substr($0, 1, RLENGTH), part, /Accuracy: |\//)
        right = part[2]; all = part[3]
        if (!seen++) print "Pictures of clothes that it has not seen, named right (at random: 10 %)"
        bar = ""
        for (i = 1; i <= 50; i++) bar = bar (i <= 50 * right / all ? "#" : ".")
        printf "  epoch %2d  %s  %d of %d, %.1f %%\n", seen, bar, right, all, 100 * right / all
    }
    END { exit !seen }' "$1"
