/* CPU time per MPI call, by the shape of the message sizes: Irecv and Isend to self and Waitall on one rank.
 *
 *   overhead CALLS [SHAPE]    prints one line `SHAPE NANOSECONDS` for CALLS calls of the shape, or of each, one after the other
 *
 * Shapes: constant, random (1 to 64 bytes), period-500, period-5000, period-50000; sites-20: constant, each call from one of 20
 * call sites of its function, at random. Run bare and recorded; the difference is what recording adds.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static char in[LARGEST], out[LARGEST];

static void exchange(int n)
{
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

/* Functions that the compiler must not take for one. */
#define SITE(n) \
    static __attribute__((noinline)) void receive##n(MPI_Request *r) \
    { \
        __asm__ volatile("# " #n); \
        MPI_Irecv(in, LARGEST, MPI_BYTE, 0, 1, MPI_COMM_SELF, r); \
    } \
    static __attribute__((noinline)) void send##n(MPI_Request *r) \
    { \
        __asm__ volatile("# " #n); \
        MPI_Isend(out, 1, MPI_BYTE, 0, 1, MPI_COMM_SELF, r); \
    } \
    static __attribute__((noinline)) void wait##n(MPI_Request *r) \
    { \
        __asm__ volatile("# " #n); \
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE); \
    }
#define SITES(x) x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11) x(12) x(13) x(14) x(15) x(16) x(17) x(18) x(19)
#define RECEIVE(n) receive##n,
#define SEND(n) send##n,
#define WAIT(n) wait##n,
SITES(SITE)

enum { MANY = 20 };
static void (*const receives[MANY])(MPI_Request *) = {SITES(RECEIVE)};
static void (*const sends[MANY])(MPI_Request *) = {SITES(SEND)};
static void (*const waits[MANY])(MPI_Request *) = {SITES(WAIT)};

static void measure_sites(const char *shape, int calls)
{
    int i, rounds = calls / 3;
    double start = 0;
    MPI_Request requests[2];
    for (i = -rounds / 10; i < rounds; i++) {
        if (i == 0) start = cpu();
        receives[draw() % MANY](&requests[0]);
        sends[draw() % MANY](&requests[1]);
        waits[draw() % MANY](requests);
    }
    printf("%s %.0f\n", shape, (cpu() - start) / (3.0 * rounds));
}

int main(int argc, char **argv)
{
    static const struct { const char *name; int period; } shapes[] = {
        {"constant", 1}, {"random", 0}, {"period-500", 500}, {"period-5000", 5000}, {"period-50000", 50000}};
    int calls = argc > 1 ? atoi(argv[1]) : 60000;
    const char *only = argc > 2 ? argv[2] : NULL;
    size_t i;
    MPI_Init(&argc, &argv);
    for (i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (!only || !strcmp(only, shapes[i].name))
            measure(shapes[i].name, shapes[i].period, calls);
    if (!only || !strcmp(only, "sites-20"))
        measure_sites("sites-20", calls);
    MPI_Finalize();
    return 0;
}
