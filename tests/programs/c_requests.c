/* Which request is meant: small sends are complete at once, and libraries give all of them one handle. */
#include "oracle.h"

#define W MPI_COMM_WORLD
#define N 3

/* Requests are kept where they were made, or made in one variable and then copied. */
enum how { IN_PLACE, COPIED };

static int rank, size, right, left;
static int out[4 * N], in[4 * N];
static long sum;

/* A batch: N receives and N sends, in the order in which it names them. */
struct batch {
    MPI_Request q[2 * N];
    int s[2 * N];
};

static void receive(struct batch *b, int at, int tag, enum how how)
{
    MPI_Request r, *made = how == COPIED ? &r : &b->q[at];
    MPI_Irecv(in + tag, 1, MPI_INT, left, tag, W, made);
    b->s[at] = slot_recv(4);
    say("MPI_Irecv count=1 type=MPI_INT source=%r tag=%d comm=MPI_COMM_WORLD request=%q", left, tag, b->s[at]);
    b->q[at] = *made;
}

static void send(struct batch *b, int at, int tag, enum how how)
{
    MPI_Request r, *made = how == COPIED ? &r : &b->q[at];
    MPI_Isend(out + tag, 1, MPI_INT, right, tag, W, made);
    b->s[at] = slot_send();
    say("MPI_Isend count=1 type=MPI_INT dest=%r tag=%d comm=MPI_COMM_WORLD request=%q", right, tag, b->s[at]);
    b->q[at] = *made;
}

/* Receives before sends. */
static void start(struct batch *b, int tag, enum how how)
{
    int i;
    for (i = 0; i < N; i++)
        receive(b, i, tag + i, how);
    for (i = 0; i < N; i++)
        send(b, N + i, tag + i, how);
}

/* Waits for n of a batch. */
static void wait(struct batch *b, int from, int n)
{
    MPI_Status st[2 * N];
    MPI_Waitall(n, b->q + from, st);
    say("MPI_Waitall n=%d requests=%Q completed=%C", n, n, b->s + from, n, all_positions, b->s + from, st);
}

/* Two batches; the second one is waited for first. */
static void two(enum how how)
{
    struct batch a, b;
    int i;
    start(&a, 0, how);
    start(&b, N, how);
    wait(&b, 0, 2 * N);
    wait(&a, 0, 2 * N);
    for (i = 0; i < 2 * N; i++) {
        sum += in[i] * (i + 1L);
        in[i] = 0;
        out[i]++;
    }
}

/* Each by itself, the youngest first: only for those that are where they were made can anybody know which one is meant. */
static void one_by_one(void)
{
    struct batch a;
    MPI_Status st;
    int i;
    start(&a, 0, IN_PLACE);
    for (i = 2 * N; i-- > 0;) {
        MPI_Wait(&a.q[i], &st);
        say("MPI_Wait requests=%Q completed=%C", 1, &a.s[i], 1, all_positions, &a.s[i], &st);
    }
}

/* Rounds of a loop that differ only in the sends that are waited for first. */
static void rounds(void)
{
    struct batch both[2];
    int i, first;
    for (i = 0; i < 60; i++) {
        first = i >= 20 && i < 40;
        start(&both[0], 0, IN_PLACE);
        start(&both[1], N, IN_PLACE);
        wait(&both[first], N, N);
        wait(&both[1 - first], N, N);
        wait(&both[0], 0, N);
        wait(&both[1], 0, N);
    }
}

int main(int argc, char **argv)
{
    long total = 0;
    int i;
    MPI_Init(&argc, &argv);
    say("MPI_Init");
    MPI_Comm_rank(W, &rank);
    say("MPI_Comm_rank comm=MPI_COMM_WORLD rank=%d", rank);
    MPI_Comm_size(W, &size);
    say("MPI_Comm_size comm=MPI_COMM_WORLD size=%d", size);
    oracle_rank = rank;
    right = (rank + 1) % size;
    left = (rank + size - 1) % size;
    for (i = 0; i < 4 * N; i++)
        out[i] = 1000 * rank + i;

    two(IN_PLACE);
    two(COPIED);
    one_by_one();
    rounds();

    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, W);
    say("MPI_Reduce inplace=false count=1 type=MPI_LONG op=MPI_SUM root=0 comm=MPI_COMM_WORLD");
    MPI_Finalize();
    say("MPI_Finalize");
    oracle_write();
    if (rank == 0)
        printf(PROGRAM("requests") ": ok %ld\n", total);
    return 0;
}
