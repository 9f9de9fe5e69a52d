/* Loops in loops: nested STEPS INNER LONG SHORT. In each step each rank takes LONG microseconds, and then exchanges messages with its
 * neighbours on a ring INNER times, SHORT microseconds apart: the first exchange of a step comes after a long computation, the others
 * after short ones. Ranks sleep, so that they do not take processors from each other. */
#define _POSIX_C_SOURCE 199309L
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void compute(long us)
{
    struct timespec left = {us / 1000000, us % 1000000 * 1000};
    while (nanosleep(&left, &left) && errno == EINTR)
        continue;
}

int main(int argc, char **argv)
{
    int rank, ranks;
    double own, other;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 5) {
        fprintf(stderr, "usage: nested STEPS INNER LONG SHORT\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    long inner = strtol(argv[2], NULL, 10), takes = strtol(argv[3], NULL, 10), between = strtol(argv[4], NULL, 10);
    own = rank;
    for (long step = strtol(argv[1], NULL, 10); step > 0; step--) {
        compute(takes);
        for (long i = 0; i < inner; i++) {
            if (i > 0)
                compute(between);
            MPI_Sendrecv(&own, 1, MPI_DOUBLE, right, 0, &other, 1, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        MPI_Sendrecv(&own, 1, MPI_DOUBLE, left, 1, &other, 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
