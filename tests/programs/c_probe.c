/* Probes and matched probes (rows 80 to 85). The message of a matched probe takes a request slot. */
#include "oracle.h"

#define W MPI_COMM_WORLD

static int rank, size, right, left;
static int out[100], in[100];
static long sum;

static void add(void)
{
    int i;
    for (i = 0; i < 100; i++) {
        sum += in[i] * (i + 1L);
        in[i] = 0;
    }
}

static void send(int count, int tag)
{
    MPI_Send(out, count, MPI_INT, right, tag, W);
    say("MPI_Send count=%d type=MPI_INT dest=%r tag=%d comm=MPI_COMM_WORLD", count, right, tag);
}

static void probe(void)
{
    MPI_Status st;
    volatile int four = 4; /* so that a loop stays one call */
    int flag, i, fails;
    send(5, 11);
    MPI_Probe(left, 11, W, &st);
    say("MPI_Probe source=%r tag=11 comm=MPI_COMM_WORLD status=%S", left, left, 11, 20, &st);
    MPI_Recv(in, 9, MPI_INT, left, 11, W, &st);
    say("MPI_Recv count=9 type=MPI_INT source=%r tag=11 comm=MPI_COMM_WORLD status=%S", left, left, 11, 20, &st);
    send(6, 12);
    MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, W, &st);
    say("MPI_Probe source=MPI_ANY_SOURCE tag=MPI_ANY_TAG comm=MPI_COMM_WORLD status=%S", MPI_ANY_SOURCE, MPI_ANY_TAG, 24,
        &st);
    MPI_Recv(in + 10, 6, MPI_INT, st.MPI_SOURCE, st.MPI_TAG, W, MPI_STATUS_IGNORE);
    say("MPI_Recv count=6 type=MPI_INT source=%r tag=12 comm=MPI_COMM_WORLD rsource=null rtag=null bytes=24", left);
    MPI_Probe(MPI_PROC_NULL, 13, W, MPI_STATUS_IGNORE);
    say("MPI_Probe source=MPI_PROC_NULL tag=13 comm=MPI_COMM_WORLD rsource=null rtag=null bytes=0");
    add();

    for (i = 0; i < four; i++)
        MPI_Iprobe(left, 14, W, &flag, &st);
    say("MPI_Iprobe source=%r tag=14 comm=MPI_COMM_WORLD flag=false rsource=null rtag=null bytes=null times=4", left);
    MPI_Barrier(W);
    say("MPI_Barrier comm=MPI_COMM_WORLD");
    send(7, 14);
    fails = -1;
    do {
        MPI_Iprobe(MPI_ANY_SOURCE, 14, W, &flag, &st);
        fails++;
    } while (!flag);
    if (fails)
        say("MPI_Iprobe source=MPI_ANY_SOURCE tag=14 comm=MPI_COMM_WORLD flag=false rsource=null rtag=null bytes=null "
            "times=%d", fails);
    say("MPI_Iprobe source=MPI_ANY_SOURCE tag=14 comm=MPI_COMM_WORLD flag=true status=%S times=1", MPI_ANY_SOURCE, 14, 28,
        &st);
    MPI_Recv(in, 8, MPI_INT, left, 14, W, &st);
    say("MPI_Recv count=8 type=MPI_INT source=%r tag=14 comm=MPI_COMM_WORLD status=%S", left, left, 14, 28, &st);
    add();
}

static void matched(void)
{
    MPI_Request q[2];
    MPI_Status st[2];
    MPI_Message m[2];
    volatile int three = 3;
    int flag, i, fails, s[2], slot;

    /* Two messages at once, taken out in the other order. */
    send(3, 21);
    send(4, 22);
    MPI_Mprobe(left, 21, W, &m[0], st);
    s[0] = slot_send();
    say("MPI_Mprobe source=%r tag=21 comm=MPI_COMM_WORLD request=%q status=%S", left, s[0], left, 21, 12, st);
    MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, W, &m[1], st);
    s[1] = slot_send();
    say("MPI_Mprobe source=MPI_ANY_SOURCE tag=MPI_ANY_TAG comm=MPI_COMM_WORLD request=%q status=%S", s[1], MPI_ANY_SOURCE,
        MPI_ANY_TAG, 16, st);
    MPI_Mrecv(in + 20, 6, MPI_INT, &m[1], st);
    say("MPI_Mrecv count=6 type=MPI_INT request=%q rsource=null rtag=null bytes=16", slot_free(s[1]));
    MPI_Mrecv(in, 5, MPI_INT, &m[0], MPI_STATUS_IGNORE);
    say("MPI_Mrecv count=5 type=MPI_INT request=%q rsource=null rtag=null bytes=12", slot_free(s[0]));
    add();

    for (i = 0; i < three; i++)
        MPI_Improbe(left, 23, W, &flag, &m[0], st);
    say("MPI_Improbe source=%r tag=23 comm=MPI_COMM_WORLD flag=false request=null rsource=null rtag=null bytes=null "
        "times=3", left);
    MPI_Barrier(W);
    say("MPI_Barrier comm=MPI_COMM_WORLD");
    send(2, 29);
    send(8, 23);
    /* Slot 0 is busy while the message takes slot 1, and free when it becomes a request. */
    MPI_Irecv(in + 50, 3, MPI_INT, left, 29, W, &q[0]);
    s[0] = slot_recv(8);
    say("MPI_Irecv count=3 type=MPI_INT source=%r tag=29 comm=MPI_COMM_WORLD request=%q", left, s[0]);
    fails = -1;
    do {
        MPI_Improbe(left, MPI_ANY_TAG, W, &flag, &m[0], st);
        fails++;
    } while (!flag);
    if (fails)
        say("MPI_Improbe source=%r tag=MPI_ANY_TAG comm=MPI_COMM_WORLD flag=false request=null rsource=null rtag=null "
            "bytes=null times=%d", left, fails);
    slot = slot_send();
    say("MPI_Improbe source=%r tag=MPI_ANY_TAG comm=MPI_COMM_WORLD flag=true request=%q status=%S times=1", left, slot,
        left, MPI_ANY_TAG, 32, st);
    MPI_Wait(&q[0], st);
    say("MPI_Wait requests=%Q completed=%C", 1, s, 1, all_positions, s, st);
    MPI_Imrecv(in, 9, MPI_INT, &m[0], &q[0]);
    s[0] = slot_recv(32);
    slot_free(slot);
    say("MPI_Imrecv count=9 type=MPI_INT request=%q request=%q", slot, s[0]);
    MPI_Wait(&q[0], st);
    say("MPI_Wait requests=%Q completed=%C", 1, s, 1, all_positions, s, st);
    add();
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
    for (i = 0; i < 100; i++)
        out[i] = 1000 * rank + i;

    probe();
    matched();

    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, W);
    say("MPI_Reduce inplace=false count=1 type=MPI_LONG op=MPI_SUM root=0 comm=MPI_COMM_WORLD");
    MPI_Finalize();
    say("MPI_Finalize");
    oracle_write();
    if (rank == 0)
        printf(PROGRAM("probe") ": ok %ld\n", total);
    return 0;
}
