/* Messages that are longer than their receives: the calls fail, the messages are received, and all requests are complete. */
#include "oracle.h"

#define W MPI_COMM_WORLD

enum { LONG = 12, ROOM = 5 };

static int rank, size, right, left;
static int out[LONG], in[2][LONG];
static long sum;
static MPI_Request q[2];
static MPI_Status st[2];
static int s[2];

static void send(int n, int tag)
{
    MPI_Send(out, n, MPI_INT, right, tag, W);
    say("MPI_Send count=%d type=MPI_INT dest=%r tag=%d comm=MPI_COMM_WORLD", n, right, tag);
}

static void barrier(void)
{
    MPI_Barrier(W);
    say("MPI_Barrier comm=MPI_COMM_WORLD");
}

static void post(int i, int source, int tag)
{
    MPI_Irecv(in[i], ROOM, MPI_INT, source, tag, W, &q[i]);
    s[i] = slot_recv(4 * ROOM);
    say("MPI_Irecv count=5 type=MPI_INT source=%r tag=%t comm=MPI_COMM_WORLD request=%q", source, tag, s[i]);
}

/* What the status of a message that was cut off says of its size is the library's own affair; of its source and tag, not. */
static const MPI_Status *from_left(int tag)
{
    static MPI_Status status;
    status.MPI_SOURCE = left;
    status.MPI_TAG = tag;
    return &status;
}

static void expect(int code, int class, const char *name)
{
    int found;
    MPI_Error_class(code, &found);
    say("MPI_Error_class errorcode=%s class=%s", name, name);
    sum = 3 * sum + (found == class) + (q[0] == MPI_REQUEST_NULL) + (q[1] == MPI_REQUEST_NULL);
}

static void receive(int source, int tag)
{
    int code = MPI_Recv(in[0], ROOM, MPI_INT, source, tag, W, &st[0]);
    say("MPI_Recv count=5 type=MPI_INT source=%r tag=%t comm=MPI_COMM_WORLD status=%S error=MPI_ERR_TRUNCATE", source, tag,
        source, tag, -1, from_left(1));
    expect(code, MPI_ERR_TRUNCATE, "MPI_ERR_TRUNCATE");
}

static void exchange(void)
{
    int code = MPI_Sendrecv(out, LONG, MPI_INT, right, 3, in[0], ROOM, MPI_INT, left, 3, W, &st[0]);
    say("MPI_Sendrecv sendcount=12 sendtype=MPI_INT dest=%r sendtag=3 recvcount=5 recvtype=MPI_INT source=%r recvtag=3 "
        "comm=MPI_COMM_WORLD status=%S error=MPI_ERR_TRUNCATE", right, left, left, 3, -1, &st[0]);
    expect(code, MPI_ERR_TRUNCATE, "MPI_ERR_TRUNCATE");
}

static void one(int source, int tag)
{
    int code;
    post(0, source, tag);
    send(LONG, 4);
    code = MPI_Wait(&q[0], &st[0]);
    slot_bytes(s[0], -1);
    say("MPI_Wait requests=%Q completed=%C error=MPI_ERR_TRUNCATE", 1, s, 1, all_positions, s, from_left(4));
    expect(code, MPI_ERR_TRUNCATE, "MPI_ERR_TRUNCATE");
}

/* The first of two is cut off, the other is not: it is complete, too, or an MPI leaves it for later. */
static void both(int source, int first)
{
    int code, i, m = 0, at[2];
    MPI_Status done[2];
    post(0, source, first);
    post(1, source, 6);
    send(LONG, 5);
    send(ROOM, 6);
    barrier();
    code = MPI_Waitall(2, q, st);
    slot_bytes(s[0], -1);
    for (i = 0; i < 2; i++)
        if (st[i].MPI_ERROR != MPI_ERR_PENDING) {
            done[m] = *from_left(5 + i);
            at[m++] = i;
        }
    say("MPI_Waitall n=2 requests=%Q completed=%C error=MPI_ERR_IN_STATUS", 2, s, m, at, s, done);
    if (m < 2) {
        MPI_Wait(&q[1], &st[1]);
        say("MPI_Wait requests=%Q completed=%C", 1, &s[1], 1, all_positions, &s[1], &st[1]);
    }
    expect(code, MPI_ERR_IN_STATUS, "MPI_ERR_IN_STATUS");
}

int main(int argc, char **argv)
{
    int i;
    long total = 0;
    MPI_Init(&argc, &argv);
    say("MPI_Init");
    MPI_Comm_rank(W, &rank);
    say("MPI_Comm_rank comm=MPI_COMM_WORLD rank=%d", rank);
    MPI_Comm_size(W, &size);
    say("MPI_Comm_size comm=MPI_COMM_WORLD size=%d", size);
    oracle_rank = rank;
    right = (rank + 1) % size;
    left = (rank + size - 1) % size;
    MPI_Comm_set_errhandler(W, MPI_ERRORS_RETURN);
    say("MPI_Comm_set_errhandler comm=MPI_COMM_WORLD errhandler=MPI_ERRORS_RETURN");
    for (i = 0; i < 2; i++)
        q[i] = MPI_REQUEST_NULL;

    for (i = 0; i < 4; i++) {
        send(LONG, 1);
        receive(i < 2 ? left : MPI_ANY_SOURCE, i % 2 ? 1 : MPI_ANY_TAG);
        exchange();
        one(i < 2 ? left : MPI_ANY_SOURCE, i % 2 ? 4 : MPI_ANY_TAG);
        both(i < 2 ? left : MPI_ANY_SOURCE, 5);
        barrier();
    }
    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, W);
    say("MPI_Reduce inplace=false count=1 type=MPI_LONG op=MPI_SUM root=0 comm=MPI_COMM_WORLD");
    MPI_Finalize();
    say("MPI_Finalize");
    oracle_write();
    if (rank == 0)
        printf(PROGRAM("truncate") ": ok %ld\n", total);
    return 0;
}
