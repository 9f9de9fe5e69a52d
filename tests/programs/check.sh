#!/bin/sh
# Runs each program at 2 and 4 ranks, without and with ST_ORACLE, and looks at what it says.
#   MPIRUN=mpirun.openmpi ./check.sh DIR PROGRAM...
# RANKS (default "2 4") are the numbers of ranks.
set -u
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
out=$1
shift
failed=0

complain() {
    echo "$1"
    failed=1
}

for program; do
    for n in ${RANKS:-2 4}; do
        name="$program at $n ranks"
        oracle=$out/$program-$n
        rm -f "$oracle".*.jsonl
        plain=$(timeout 60 ${MPIRUN:-mpirun} -n "$n" "$out/$program") || complain "$name: status $?"
        said=$(ST_ORACLE=$oracle timeout 60 ${MPIRUN:-mpirun} -n "$n" "$out/$program") || complain "$name: status $?"
        case $plain in
        "$program: ok "*) ;;
        *) complain "$name: printed '$plain'" ;;
        esac
        [ "$plain" = "$said" ] || complain "$name: prints something else with ST_ORACLE: '$said'"
        rank=0
        while [ "$rank" -lt "$n" ]; do
            file=$oracle.$rank.jsonl
            rank=$((rank + 1))
            if [ ! -f "$file" ]; then
                complain "$name: no $file"
                continue
            fi
            # Each line an object of this rank, in order, from MPI_Init to MPI_Finalize.
            awk -v rank="$((rank - 1))" '
                index($0, "{\"rank\":" rank ",\"i\":" NR - 1 ",\"call\":\"MPI") != 1 || $0 !~ /}$/ { bad = 1; exit }
                NR == 1 && $0 !~ /"MPI_Init(_thread)?"/ { bad = 1; exit }
                { last = $0 }
                END { exit bad || last !~ /"MPI_Finalize"}$/ }' "$file" || complain "$name: $file is not a list of calls"
            if command -v python3 >/dev/null; then
                python3 -m json.tool --json-lines "$file" >/dev/null || complain "$name: $file is not JSON lines"
            fi
        done
    done
done
[ "$failed" = 0 ] && echo "$out: $(echo "$@" | wc -w) programs ok"
exit "$failed"
