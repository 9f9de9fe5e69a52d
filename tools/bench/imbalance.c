/* Imbalance that varies: imbalance MODE STEPS LONG SHORT [ring]. In each step each rank takes LONG or SHORT microseconds, asleep so that
 * ranks do not take processors from each other, and then all wait for all, or in a ring for their neighbours. MODE says who takes long:
 *   independent: each rank with a probability of 1/8;
 *   together: all at once, with a probability of 1/8;
 *   moving: one after the other, step by step;
 *   a number: this rank, always. */
#define _POSIX_C_SOURCE 199309L
#include <errno.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    double own, all;
    int ring, before, after;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    ring = argc == 6 && !strcmp(argv[5], "ring");
    before = (rank + ranks - 1) % ranks, after = (rank + 1) % ranks;
    if (argc != 5 && !ring) {
        fprintf(stderr, "usage: imbalance independent|together|moving|RANK STEPS LONG SHORT [ring]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    own = rank;
    for (uint64_t step = 0; step < strtoull(argv[2], NULL, 10); step++) {
        int slow;
        if (!strcmp(argv[1], "independent"))
            slow = splitmix(step << 32 | (uint32_t)rank) % 8 == 0;
        else if (!strcmp(argv[1], "together"))
            slow = splitmix(step) % 8 == 0;
        else if (!strcmp(argv[1], "moving"))
            slow = step % (uint64_t)ranks == (uint64_t)rank;
        else
            slow = strtol(argv[1], NULL, 10) == rank;
        long us = strtol(argv[slow ? 3 : 4], NULL, 10);
        struct timespec left = {us / 1000000, us % 1000000 * 1000};
        while (nanosleep(&left, &left) && errno == EINTR)
            continue;
        if (ring) {
            MPI_Sendrecv(&own, 1, MPI_DOUBLE, after, 0, &all, 1, MPI_DOUBLE, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Sendrecv(&own, 1, MPI_DOUBLE, before, 1, &all, 1, MPI_DOUBLE, after, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            continue;
        }
        MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
