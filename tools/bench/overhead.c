/* CPU time per MPI call, by the shape of the message sizes: Irecv and Isend to self and Waitall on one rank.
 *
 *   overhead CALLS        prints one line `SHAPE NANOSECONDS` per shape, for CALLS calls each
 *
 * Run bare and recorded; the difference is what recording adds.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LARGEST = 64, LONGEST = 50000 };

static uint64_t state;

static int draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return 1 + (int)(state >> 33) % LARGEST;
}

static double cpu(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static void exchange(int n)
{
    static char in[LARGEST], out[LARGEST];
    MPI_Request requests[2];
    MPI_Irecv(in, LARGEST, MPI_BYTE, 0, 1, MPI_COMM_SELF, &requests[0]);
    MPI_Isend(out, n, MPI_BYTE, 0, 1, MPI_COMM_SELF, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

/* Sizes of this period: 1 is constant, 0 never repeats. */
static void measure(const char *shape, int period, int calls)
{
    static int sizes[LONGEST];
    int i, rounds = calls / 3;
    double start;
    for (i = 0; i < (period ? period : LONGEST); i++)
        sizes[i] = draw();
    for (i = 0; i < rounds / 10; i++) /* warm */
        exchange(sizes[i % (period ? period : LONGEST)]);
    start = cpu();
    for (i = 0; i < rounds; i++)
        exchange(period ? sizes[i % period] : draw());
    printf("%s %.0f\n", shape, (cpu() - start) / (3.0 * rounds));
}

int main(int argc, char **argv)
{
    int calls = argc > 1 ? atoi(argv[1]) : 60000;
    MPI_Init(&argc, &argv);
    measure("constant", 1, calls);
    measure("random", 0, calls);
    measure("period-500", 500, calls);
    measure("period-5000", 5000, calls);
    measure("period-50000", 50000, calls);
    MPI_Finalize();
    return 0;
}
