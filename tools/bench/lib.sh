# What the groups of cases in tools/bench/groups share; tools/bench/src/group.rs says how they are called.
# shellcheck shell=bash
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=${ST_BENCH_ROOT:?run by st-bench: make bench}
input=${ST_BENCH_INPUT:?}
export PATH=$root/target/release:$PATH
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
# shellcheck source=tools/bench/frames.sh
source "$here/frames.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Leaves a case that cannot be run here.
skip() {
    echo "$*: skipped" >&2
    exit 77
}

# `made NAME COMMAND...`: a file among the inputs, made once, by the programs of the base version; the command writes to $made.
made() {
    local name=$1
    shift
    if [ ! -e "$input/$name" ]; then
        made=$input/$name.part
        PATH=${ST_BENCH_BASE:?}/target/release:$PATH "$@" >&2
        mv "$input/$name.part" "$input/$name"
    fi
    made=$input/$name
}

# `compiled NAME ARGUMENTS...`: a C program of this directory.
compiled() {
    local name=$1
    shift
    made "$name" compile "$@"
}
compile() { "$@" -o "$made"; }

# Prints what a command takes: CPU and the largest resident set of any of its processes. What the command prints is dropped.
usage() {
    compiled usage cc -O1 "$here/usage.c"
    "$made" "$@"
}

# Prints the instructions that a command executes, itself and its threads.
instructions() {
    if ! command -v valgrind >/dev/null; then echo "valgrind is not installed: no instructions" >&2; return; fi
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" >/dev/null 2>"$work/callgrind" ||
        { cat "$work/callgrind" >&2; return 1; }
    awk '/Collected :/ { print "instructions", $NF }' "$work/callgrind"
}

# Calls `list`, or `run CASE`.
dispatch() {
    case ${1-} in
        list) list ;;
        run) run "$2" ;;
        *) echo "usage: $0 list | run CASE" >&2; exit 2 ;;
    esac
}
