# What the experiments in tools/experiments/figures share. Each is a program:
#   list     its cases in this MODE (tiny, quick or full), one a line
#   run CASE rows program,series,x,run,value of a case, without a header line
# Beside it NAME.json says what the figure shows, what the paper found, and what is claimed of it.
# shellcheck shell=bash
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
mode=${MODE:-quick}
export PATH=$root/target/release:$PATH
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
mpirun=$(command -v mpirun.openmpi || command -v mpirun)
mpicc=$(command -v mpicc.openmpi || command -v mpicc)
# shellcheck source=tools/bench/frames.sh
source "$root/tools/bench/frames.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# `by TINY QUICK FULL`: the word for this mode.
by() {
    case $mode in
        tiny) echo "$1" ;;
        quick) echo "$2" ;;
        full) echo "$3" ;;
        *) echo "MODE=$mode: not tiny, quick or full" >&2; exit 2 ;;
    esac
}

# Ranks of programs that are timed: where there are more than processors they wait for these.
processors=$(nproc)

# The user's programs are named and run from where their file is: make has gone elsewhere.
if [ -n "${PROGRAMS-}" ]; then
    PROGRAMS=$(realpath "$PROGRAMS")
    cd "${PROGRAMS%/*}"
fi

# The programs of the user's file, NAME RANKS,RANKS… COMMAND… on each line; # begins a comment.
users() { if [ -n "${PROGRAMS-}" ]; then sed 's/#.*//; /^[[:space:]]*$/d' "$PROGRAMS"; fi; }

# `cases KERNELS RANKS`: KERNEL/RANKS for each, or those of the user's file.
cases() {
    local name ranks kernel
    if [ -n "${PROGRAMS-}" ]; then
        users | while read -r name ranks _; do
            tr , '\n' <<<"$ranks" | sed "s|^|$name/|"
        done
        return
    fi
    for kernel in $1; do
        for ranks in $2; do echo "$kernel/$ranks"; done
    done
}

# `scaled KERNELS RANKS`: KERNEL/RANKS/SCALING for each: strong, where more ranks share one problem, and weak, where each has as much
# of it. What programs of the user's file do with more ranks is theirs: own.
scaled() {
    local scaling
    if [ -n "${PROGRAMS-}" ]; then
        cases "" "" | sed 's|$|/own|'
        return
    fi
    for scaling in strong weak; do cases "$1" "$2" | sed "s|\$|/$scaling|"; done
}

# `scaling_of SCALING`: in words, behind a program's name.
scaling_of() { [ "$1" = own ] || echo ", $1 scaling"; }

# `size_of KERNEL RANKS SCALING`: st-kernels' --size; none for what is not scaled. 16 ranks have the same problem both ways.
size_of() {
    [ "$3" != own ] || return 0
    awk -v kernel="$1" -v ranks="$2" -v scaling="$3" 'BEGIN {
        # A kernel whose size is that of its messages: how that goes with ranks under strong scaling, and not at all under weak.
        strong["stencil2d"] = strong["wavefront"] = strong["transpose"] = -1 / 2
        strong["stencil3d"] = -2 / 3; strong["multigrid"] = strong["sort"] = -1
        size["stencil2d"] = 1000; size["wavefront"] = 200; size["transpose"] = size["sort"] = 500
        size["stencil3d"] = 300; size["multigrid"] = 256
        # One whose size is a side of the whole: that is the same under strong scaling.
        weak["multigrid3d"] = weak["fft"] = weak["sweeps"] = 1 / 3
        size["multigrid3d"] = size["fft"] = 128; size["sweeps"] = 25
        if (!(kernel in size)) exit 1
        n = int(size[kernel] * (ranks / 16) ^ (scaling == "strong" ? strong[kernel] : weak[kernel]) + 0.5)
        print n < 1 ? 1 : n
    }'
}

# The words that start a program: the user's command, or a kernel that computes for some seconds in so many steps.
command_of() {
    if [ -n "${PROGRAMS-}" ]; then
        users | awk -v name="$1" '$1 == name { $1 = $2 = ""; print }'
    else
        echo "st-kernels $1 --seconds ${SECONDS_EACH:-$(by 0.2 0.3 10)} --seed ${SEED:-1} ${STEPS:+--steps $STEPS} ${SIZE:+--size $SIZE}"
    fi
}

# `recorded OUT PROGRAM RANKS OPTION…`: records a run. timeout stays in the foreground everywhere, so that who stops make stops what it started.
recorded() {
    local out=$1 program=$2 ranks=$3
    shift 3
    # shellcheck disable=SC2046
    timeout --foreground 1800 st-record -q -o "$out" "$@" -- "$mpirun" -n "$ranks" $(command_of "$program") >/dev/null
}

# `lasted RANKS COMMAND…`: seconds between MPI_Init and MPI_Finalize of the longest rank of a run that nothing records.
lasted() {
    local ranks=$1
    shift
    [ -e "$work/stopwatch.so" ] || cc -shared -fPIC -O1 -o "$work/stopwatch.so" "$here/stopwatch.c" -ldl
    rm -f "$work/lasted"
    ST_STOPWATCH=$work/lasted LD_PRELOAD=$work/stopwatch.so timeout --foreground 1800 "$mpirun" -n "$ranks" "$@" >/dev/null
    awk -v ranks="$ranks" '$1 > most { most = $1 } END { if (NR != ranks) exit 1; print most }' "$work/lasted"
}

# Preloaded: clocks that drift by known amounts.
drifting_clocks() {
    cc -shared -fPIC -o "$work/clocks.so" "$root/tests/fixtures/clocks.c"
}

# `drifting OUT RANKS DRIFT RUN KINK COMMAND…`: records a run whose ranks' clocks are apart and drift by so many µs a second;
# from KINK ms after the start on half as fast; 0 for never. Needs drifting_clocks.
drifting() {
    local out=$1 ranks=$2 drift=$3 run=$4 kink=$5 fakes rank ns
    shift 5
    # Offsets and signs by the run's number: the same in each measurement.
    fakes=$(for rank in $(seq 0 $((ranks - 1))); do
        ns=$((rank % 2 ? drift * 1000 : -drift * 1000))
        echo "$(((rank * 333331 + run * 104729) % 1000000)):$ns:$((kink ? kink : 1 << 40)):$((ns / 2))"
    done | paste -sd ' ')
    LD_PRELOAD=$work/clocks.so ST_FAKE_CLOCKS=$fakes ST_FAKE_BASE=$(awk '{ printf "%.0f", $1 * 1e9 }' /proc/uptime) \
        timeout --foreground 1800 st-record -q -o "$out" --clock monotonic -- "$mpirun" -n "$ranks" "$@" >/dev/null
}

# `traced OUT PROGRAM RANKS FOLD`: a kernel's trace on paper, or that of a run of the user's program.
traced() {
    if [ -n "${PROGRAMS-}" ]; then
        recorded "$1" "$2" "$3" --fold "${4%%:*}" --time sketch
    else
        # shellcheck disable=SC2086
        st-kernels "$2" --paper --ranks "$3" --fold "$4" --seed "${SEED:-1}" ${STEPS:+--steps $STEPS} ${SIZE:+--size $SIZE} -o "$1"
    fi
}

# `traced_exactly OUT PROGRAM RANKS`: with exact times of all calls.
traced_exactly() {
    if [ -n "${PROGRAMS-}" ]; then recorded "$@"; else traced "$@" exact; fi
}

# Whether EZTrace is there for this MPI; said if not.
has_eztrace() {
    [ "${mpirun##*.}" = openmpi ] && command -v eztrace >/dev/null && return
    echo "${0##*/}: without EZTrace, which is not installed for Open MPI (Debian: eztrace)" >&2
    return 1
}

# `eztraced OUT RANKS COMMAND…`: an archive of OTF2 by EZTrace, in place of one that is there.
eztraced() {
    local out=$1 ranks=$2
    shift 2
    rm -rf "$out"
    timeout --foreground 1800 "$mpirun" -n "$ranks" eztrace -t openmpi -o "$out" "$@"
}

# What st-record's --time keeps, with its further options, in words.
kept_of() {
    case $1 in
        stats) echo "statistics" ;;
        hist) echo "5 bins" ;;
        "hist --hist-bins "*) echo "${1##* } bins" ;;
        sketch) echo "distributions" ;;
        columns) echo "exact times" ;;
    esac
}

# Bytes of a trace without its times, header and proofs: structure, parameters, objects and call sites.
structure() {
    frames 'STRUCT|OBJECTS|SITES' "$1" | awk '{ print $2 }'
}

# Seconds that a program took when it was recorded, by its trace, and that the replay takes; of the longest rank.
replayed() {
    timeout --foreground 1800 st-replay -q --csv "$@" | awk -F, '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["recorded_s"] > recorded { recorded = $at["recorded_s"] }
        $at["replayed_s"] > replayed { replayed = $at["replayed_s"] }
        END { if (!recorded || !replayed) exit 1; print recorded, replayed }'
}

# `off SECONDS TRUE`: signed error, percent.
off() { awk -v s="$1" -v t="$2" 'BEGIN { print 100 * (s - t) / t }'; }

# Signed error of the total of a replay, percent.
replay_error() { replayed "$@" | awk '{ print 100 * ($2 - $1) / $1 }'; }

# `sum COLUMN`: of a table of st-stat; fails if there is no such column.
sum() {
    awk -F, -v what="$1" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; if (!(what in at)) { missing = 1; exit 1 }; next } { n += $at[what] }
        END { if (!missing) printf "%.0f\n", n }'
}

# Seconds of processor time that a command takes; what it prints is dropped. None if it fails.
cpu() {
    local TIMEFORMAT='%U %S' took
    took=$({ time "$@" >/dev/null 2>&1; } 2>&1) || { echo "$* failed" >&2; return 1; }
    awk '{ print $1 + $2 }' <<<"$took"
}

# Names may have commas. A value that could not be measured ends the case.
row() {
    [ -n "$5" ] || { echo "${0##*/}: no value of $1, $2, $3" >&2; exit 1; }
    printf '"%s","%s",%s,%s,%s\n' "$@"
}

dispatch() {
    case ${1-} in
        list) list ;;
        run) run "$2" ;;
        *) echo "usage: $0 list | run CASE" >&2; exit 2 ;;
    esac
}
