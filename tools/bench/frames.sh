# What a file consists of, for benchmarks and experiments.
# shellcheck shell=bash

# Prints the bytes of frames of a stream, as stored: `frames FRAME|FRAME... FILE`.
frames() {
    st-stat sizes --by frame --format csv "$2" | awk -F, -v want="^($1)$" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["frame"] ~ want { bytes += $at["bytes"] }
        END { print "bytes", bytes + 0 }'
}
