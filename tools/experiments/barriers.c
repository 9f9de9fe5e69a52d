/* Barriers, and a message to the next rank between them: barriers STEPS MICROSECONDS. In each step each rank computes for so long,
 * some a tenth longer, so that none is always the last. */
#define _POSIX_C_SOURCE 199309L
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
    int rank, ranks;
    double sent, got;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 3) {
        fprintf(stderr, "usage: barriers STEPS MICROSECONDS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    sent = rank;
    for (long step = 0; step < strtol(argv[1], NULL, 10); step++) {
        long us = strtol(argv[2], NULL, 10) * (step % ranks == rank ? 11 : 10) / 10;
        struct timespec left = {us / 1000000, us % 1000000 * 1000};
        while (nanosleep(&left, &left) && errno == EINTR)
            continue;
        MPI_Sendrecv(&sent, 1, MPI_DOUBLE, (rank + 1) % ranks, 0, &got, 1, MPI_DOUBLE, (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
