/* Point to point: blocking, non-blocking and persistent sends and receives (rows 20 to 60). */
#include "oracle.h"

#define W MPI_COMM_WORLD

static int rank, size, right, left, after, before;
static int out[100], in[100];
static long sum;

static void add(int n)
{
    int i;
    for (i = 0; i < n; i++)
        sum += in[i] * (i + 1L);
}

/* Every rank but the first receives before it sends, so that no send needs a buffer. */
static void blocking(void)
{
    MPI_Status st;
    int turn;
    for (turn = 0; turn < 2; turn++) {
        if ((rank == 0) == (turn == 0)) {
            MPI_Send(out, 10, MPI_INT, right, 7, W);
            say("MPI_Send count=10 type=MPI_INT dest=%r tag=7 comm=MPI_COMM_WORLD", right);
            MPI_Ssend(out, 12, MPI_UNSIGNED, right, 8, W);
            say("MPI_Ssend count=12 type=MPI_UNSIGNED dest=%r tag=8 comm=MPI_COMM_WORLD", right);
            MPI_Bsend(out, 13, MPI_FLOAT, right, 9, W);
            say("MPI_Bsend count=13 type=MPI_FLOAT dest=%r tag=9 comm=MPI_COMM_WORLD", right);
        } else {
            MPI_Recv(in, 11, MPI_INT, left, 7, W, &st);
            say("MPI_Recv count=11 type=MPI_INT source=%r tag=7 comm=MPI_COMM_WORLD status=%S", left, left, 7, 40, &st);
            add(10);
            /* A wildcard whose status is ignored: the program knows who it is. */
            MPI_Recv(in, 15, MPI_UNSIGNED, MPI_ANY_SOURCE, 8, W, MPI_STATUS_IGNORE);
            say("MPI_Recv count=15 type=MPI_UNSIGNED source=MPI_ANY_SOURCE tag=8 comm=MPI_COMM_WORLD rsource=%r "
                "rtag=8 bytes=48", left);
            add(12);
            MPI_Recv(in, 13, MPI_FLOAT, left, MPI_ANY_TAG, W, &st);
            say("MPI_Recv count=13 type=MPI_FLOAT source=%r tag=MPI_ANY_TAG comm=MPI_COMM_WORLD status=%S", left, left,
                MPI_ANY_TAG, 52, &st);
            add(13);
        }
    }
    MPI_Send(out, 17, MPI_INT, MPI_PROC_NULL, 19, W);
    say("MPI_Send count=17 type=MPI_INT dest=MPI_PROC_NULL tag=19 comm=MPI_COMM_WORLD");
    MPI_Recv(in, 18, MPI_INT, MPI_PROC_NULL, 20, W, &st);
    say("MPI_Recv count=18 type=MPI_INT source=MPI_PROC_NULL tag=20 comm=MPI_COMM_WORLD rsource=null rtag=null bytes=0");
}

/* A ready send needs its receive posted: the receiver says so first. */
static void ready(void)
{
    MPI_Status st;
    MPI_Request q;
    int s;
    MPI_Irecv(in, 22, MPI_INT, left, 23, W, &q);
    s = slot_recv(84);
    say("MPI_Irecv count=22 type=MPI_INT source=%r tag=23 comm=MPI_COMM_WORLD request=%q", left, s);
    MPI_Sendrecv(out, 0, MPI_CHAR, left, 31, in + 50, 1, MPI_BYTE, right, 31, W, &st);
    say("MPI_Sendrecv sendcount=0 sendtype=MPI_CHAR dest=%r sendtag=31 recvcount=1 recvtype=MPI_BYTE source=%r "
        "recvtag=31 comm=MPI_COMM_WORLD status=%S", left, right, right, 31, 0, &st);
    MPI_Rsend(out, 21, MPI_INT, right, 23, W);
    say("MPI_Rsend count=21 type=MPI_INT dest=%r tag=23 comm=MPI_COMM_WORLD", right);
    MPI_Wait(&q, &st);
    say("MPI_Wait requests=%Q completed=%C", 1, &s, 1, all_positions, &s, &st);
    add(21);
}

static void exchange(MPI_Datatype pair)
{
    MPI_Status st;
    COUNT n;
    MPI_Count big;
    MPI_Sendrecv(out, 14, MPI_INT, right, 100 + rank, in, 8, pair, left, 100 + left, W, &st);
    say("MPI_Sendrecv sendcount=14 sendtype=MPI_INT dest=%r sendtag=%t recvcount=8 recvtype=pair source=%r recvtag=%t "
        "comm=MPI_COMM_WORLD status=%S", right, 100 + rank, left, 100 + left, left, 100 + left, 56, &st);
    add(14);
    MPI_Get_count(&st, pair, &n);
    say("MPI_Get_count type=pair count=%n", n);
    MPI_Get_elements(&st, pair, &n);
    say("MPI_Get_elements type=pair count=%n", n);
    MPI_Get_elements_x(&st, pair, &big);
    say("MPI_Get_elements_x type=pair count=%l", (long long)big);
    sum += n + big;
    /* An open chain: the ends send to, or receive from, nobody. */
    MPI_Sendrecv(out, 5, pair, after, 41, in, 16, MPI_INT, before, MPI_ANY_TAG, W, &st);
    n = before == MPI_PROC_NULL ? 0 : 40;
    say("MPI_Sendrecv sendcount=5 sendtype=pair dest=%r sendtag=41 recvcount=16 recvtype=MPI_INT source=%r "
        "recvtag=MPI_ANY_TAG comm=MPI_COMM_WORLD status=%S", after, before, before, MPI_ANY_TAG, n, &st);
    add(n / 4);
    MPI_Sendrecv_replace(in, 19, MPI_INT, after, 42, before, 42, W, &st);
    n = before == MPI_PROC_NULL ? 0 : 76;
    say("MPI_Sendrecv_replace count=19 type=MPI_INT dest=%r sendtag=42 source=%r recvtag=42 comm=MPI_COMM_WORLD status=%S",
        after, before, before, 42, n, &st);
    MPI_Sendrecv_replace(in, 20, MPI_INT, right, 200 + rank, MPI_ANY_SOURCE, 200 + left, W, &st);
    say("MPI_Sendrecv_replace count=20 type=MPI_INT dest=%r sendtag=%t source=MPI_ANY_SOURCE recvtag=%t "
        "comm=MPI_COMM_WORLD status=%S", right, 200 + rank, 200 + left, MPI_ANY_SOURCE, 200 + left, 80, &st);
    add(14);
}

static void nonblocking(void)
{
    MPI_Request q[8];
    MPI_Status st[8];
    int s[8];
    MPI_Irecv(in, 30, MPI_INT, left, 51, W, &q[0]);
    s[0] = slot_recv(80);
    say("MPI_Irecv count=30 type=MPI_INT source=%r tag=51 comm=MPI_COMM_WORLD request=%q", left, s[0]);
    MPI_Irecv(in + 30, 23, MPI_INT, left, 52, W, &q[1]);
    s[1] = slot_recv(84);
    say("MPI_Irecv count=23 type=MPI_INT source=%r tag=52 comm=MPI_COMM_WORLD request=%q", left, s[1]);
    MPI_Irecv(in + 60, 24, MPI_INT, MPI_ANY_SOURCE, 53, W, &q[2]);
    s[2] = slot_recv(88);
    say("MPI_Irecv count=24 type=MPI_INT source=MPI_ANY_SOURCE tag=53 comm=MPI_COMM_WORLD request=%q", s[2]);
    MPI_Irecv(in + 90, 9, MPI_INT, left, 54, W, &q[3]);
    s[3] = slot_recv(32);
    say("MPI_Irecv count=9 type=MPI_INT source=%r tag=54 comm=MPI_COMM_WORLD request=%q", left, s[3]);
    MPI_Barrier(W);
    say("MPI_Barrier comm=MPI_COMM_WORLD");
    MPI_Isend(out, 20, MPI_INT, right, 51, W, &q[4]);
    s[4] = slot_send();
    say("MPI_Isend count=20 type=MPI_INT dest=%r tag=51 comm=MPI_COMM_WORLD request=%q", right, s[4]);
    MPI_Issend(out, 21, MPI_INT, right, 52, W, &q[5]);
    s[5] = slot_send();
    say("MPI_Issend count=21 type=MPI_INT dest=%r tag=52 comm=MPI_COMM_WORLD request=%q", right, s[5]);
    MPI_Ibsend(out, 22, MPI_INT, right, 53, W, &q[6]);
    s[6] = slot_send();
    say("MPI_Ibsend count=22 type=MPI_INT dest=%r tag=53 comm=MPI_COMM_WORLD request=%q", right, s[6]);
    MPI_Irsend(out, 8, MPI_INT, right, 54, W, &q[7]);
    s[7] = slot_send();
    say("MPI_Irsend count=8 type=MPI_INT dest=%r tag=54 comm=MPI_COMM_WORLD request=%q", right, s[7]);
    MPI_Waitall(8, q, st);
    say("MPI_Waitall n=8 requests=%Q completed=%C", 8, s, 8, all_positions, s, st);
    add(98);
}

static void persistent(void)
{
    MPI_Request q[6];
    MPI_Status st[6];
    int s[6], turn;
    MPI_Recv_init(in, 33, MPI_INT, left, 61, W, &q[0]);
    s[0] = slot_recv_init(44);
    say("MPI_Recv_init count=33 type=MPI_INT source=%r tag=61 comm=MPI_COMM_WORLD request=%q", left, s[0]);
    MPI_Send_init(out, 11, MPI_INT, right, 61, W, &q[1]);
    s[1] = slot_send_init();
    say("MPI_Send_init count=11 type=MPI_INT dest=%r tag=61 comm=MPI_COMM_WORLD request=%q", right, s[1]);
    MPI_Bsend_init(out, 12, MPI_INT, MPI_PROC_NULL, 62, W, &q[2]);
    s[2] = slot_send_init();
    say("MPI_Bsend_init count=12 type=MPI_INT dest=MPI_PROC_NULL tag=62 comm=MPI_COMM_WORLD request=%q", s[2]);
    MPI_Ssend_init(out, 13, MPI_INT, after, 63, W, &q[3]);
    s[3] = slot_send_init();
    say("MPI_Ssend_init count=13 type=MPI_INT dest=%r tag=63 comm=MPI_COMM_WORLD request=%q", after, s[3]);
    MPI_Recv_init(in + 40, 14, MPI_INT, before, 63, W, &q[4]);
    s[4] = slot_recv_init(before == MPI_PROC_NULL ? 0 : 52);
    say("MPI_Recv_init count=14 type=MPI_INT source=%r tag=63 comm=MPI_COMM_WORLD request=%q", before, s[4]);
    MPI_Rsend_init(out, 15, MPI_INT, MPI_PROC_NULL, 64, W, &q[5]);
    s[5] = slot_send_init();
    say("MPI_Rsend_init count=15 type=MPI_INT dest=MPI_PROC_NULL tag=64 comm=MPI_COMM_WORLD request=%q", s[5]);
    for (turn = 0; turn < 3; turn++) {
        MPI_Start(&q[0]);
        say("MPI_Start request=%q", s[0]);
        MPI_Startall(4, q + 1);
        say("MPI_Startall n=4 requests=%Q", 4, s + 1);
        MPI_Waitall(5, q, st);
        say("MPI_Waitall n=5 requests=%Q completed=%C", 5, s, 5, all_positions, s, st);
        add(11);
    }
    MPI_Start(&q[5]);
    say("MPI_Start request=%q", s[5]);
    MPI_Wait(&q[5], st);
    say("MPI_Wait requests=%Q completed=%C", 1, s + 5, 1, all_positions, s + 5, st);
    /* Slot 2 becomes free before slot 0 and is the next one taken only if the number is right. */
    for (turn = 2; turn < 6; turn++) {
        MPI_Request_free(&q[turn]);
        say("MPI_Request_free request=%q", slot_free(s[turn]));
    }
    MPI_Irecv(in, 1, MPI_INT, MPI_PROC_NULL, 66, W, &q[2]);
    s[2] = slot_recv(0);
    say("MPI_Irecv count=1 type=MPI_INT source=MPI_PROC_NULL tag=66 comm=MPI_COMM_WORLD request=%q", s[2]);
    MPI_Wait(&q[2], st);
    say("MPI_Wait requests=%Q completed=%C", 1, s + 2, 1, all_positions, s + 2, st);
    for (turn = 0; turn < 2; turn++) {
        MPI_Request_free(&q[turn]);
        say("MPI_Request_free request=%q", slot_free(s[turn]));
    }
}

static void queries(void)
{
    MPI_Request q[2];
    MPI_Status st;
    int s[2], flag, n = 0;
    MPI_Irecv(in, 3, MPI_INT, left, 71, W, &q[0]);
    s[0] = slot_recv(8);
    say("MPI_Irecv count=3 type=MPI_INT source=%r tag=71 comm=MPI_COMM_WORLD request=%q", left, s[0]);
    MPI_Irecv(in + 5, 4, MPI_INT, left, 72, W, &q[1]);
    s[1] = slot_recv(0);
    say("MPI_Irecv count=4 type=MPI_INT source=%r tag=72 comm=MPI_COMM_WORLD request=%q", left, s[1]);
    MPI_Send(out, 2, MPI_INT, right, 71, W);
    say("MPI_Send count=2 type=MPI_INT dest=%r tag=71 comm=MPI_COMM_WORLD", right);
    do {
        MPI_Request_get_status(q[0], &flag, &st);
        n++;
    } while (!flag);
    if (n > 1)
        say("MPI_Request_get_status request=%q flag=false times=%d", s[0], n - 1);
    say("MPI_Request_get_status request=%q flag=true times=1", s[0]);
    MPI_Wait(&q[0], &st);
    say("MPI_Wait requests=%Q completed=%C", 1, s, 1, all_positions, s, &st);
    add(2);
    /* Nobody sends tag 72. */
    MPI_Cancel(&q[1]);
    say("MPI_Cancel request=%q", s[1]);
    slot_cancelled(s[1]);
    MPI_Wait(&q[1], &st);
    say("MPI_Wait requests=%Q completed=%C", 1, s + 1, 1, all_positions, s + 1, &st);
    MPI_Test_cancelled(&st, &flag);
    say("MPI_Test_cancelled flag=%b", flag);
    sum += flag;
    /* A send whose request is let go before it is complete. */
    MPI_Isend(out, 6, MPI_INT, right, 73, W, &q[0]);
    s[0] = slot_send();
    say("MPI_Isend count=6 type=MPI_INT dest=%r tag=73 comm=MPI_COMM_WORLD request=%q", right, s[0]);
    MPI_Request_free(&q[0]);
    say("MPI_Request_free request=%q", slot_free(s[0]));
    MPI_Recv(in, 6, MPI_INT, left, 73, W, &st);
    say("MPI_Recv count=6 type=MPI_INT source=%r tag=73 comm=MPI_COMM_WORLD status=%S", left, left, 73, 24, &st);
    add(6);
}

int main(int argc, char **argv)
{
    static char buffer[100000];
    void *detached;
    MPI_Datatype pair;
    long total = 0;
    COUNT n;
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
    after = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    before = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    for (i = 0; i < 100; i++)
        out[i] = 1000 * rank + i;

    MPI_Buffer_attach(buffer, 100000);
    say("MPI_Buffer_attach size=100000");
    MPI_Type_contiguous(2, MPI_INT, &pair);
    say("MPI_Type_contiguous count=2 type=MPI_INT newtype=new:pair");
    MPI_Type_commit(&pair);
    say("MPI_Type_commit committype=pair");
    blocking();
    ready();
    exchange(pair);
    nonblocking();
    persistent();
    queries();
    MPI_Type_free(&pair);
    say("MPI_Type_free freetype=pair");
    MPI_Buffer_detach(&detached, &n);
    say("MPI_Buffer_detach size=%n", n);

    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, W);
    say("MPI_Reduce inplace=false count=1 type=MPI_LONG op=MPI_SUM root=0 comm=MPI_COMM_WORLD");
    MPI_Finalize();
    say("MPI_Finalize");
    oracle_write();
    if (rank == 0)
        printf(PROGRAM("p2p") ": ok %ld\n", total);
    return 0;
}
