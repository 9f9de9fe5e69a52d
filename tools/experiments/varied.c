/* Messages between two neighbours, and computation that varies between them: varied STEPS MICROSECONDS. In each step each rank computes
 * from a tenth of so long to ten times as long, evenly spread by its logarithm, the same for both of a pair, then one sends and the
 * other receives. Ranks sleep, so that they do not take processors from each other. */
#define _POSIX_C_SOURCE 199309L
#include <errno.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Steele, Lea, Flood 2014: the same numbers in each run. */
static uint64_t splitmix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

int main(int argc, char **argv)
{
    int rank, ranks;
    double sent, got;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 3 || ranks % 2) {
        fprintf(stderr, "usage: varied STEPS MICROSECONDS, on an even number of ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    sent = rank;
    for (uint64_t step = 0; step < strtoull(argv[1], NULL, 10); step++) {
        /* A hundred lengths, 4.7 % apart. */
        long us = strtol(argv[2], NULL, 10) / 10;
        for (uint64_t n = splitmix(step << 32 | (uint32_t)(rank / 2)) % 100; n > 0; n--)
            us += us * 47 / 1000;
        struct timespec left = {us / 1000000, us % 1000000 * 1000};
        while (nanosleep(&left, &left) && errno == EINTR)
            continue;
        if (rank % 2 == 0)
            MPI_Send(&sent, 1, MPI_DOUBLE, rank + 1, 0, MPI_COMM_WORLD);
        else
            MPI_Recv(&got, 1, MPI_DOUBLE, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
