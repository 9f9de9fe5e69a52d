/* Loops of many rounds whose calls differ a little, now and then: what a recorder takes for a repetition must be one. */
#include "oracle.h"

#define W MPI_COMM_WORLD

enum { ROUNDS = 60 };

static int rank, size, right, left;
static int out[100], in[100];
static long sum;
static MPI_Request q[4];
static MPI_Status st[4];
static int s[4]; /* slots of q, -1 for a null request */

static void receive(int i, int tag, int bytes)
{
    MPI_Irecv(in + 25 * i, 25, MPI_INT, left, tag, W, &q[i]);
    s[i] = slot_recv(bytes);
    say("MPI_Irecv count=25 type=MPI_INT source=%r tag=%d comm=MPI_COMM_WORLD request=%q", left, tag, s[i]);
}

static void start(int i, int n, int to, int tag)
{
    MPI_Isend(out, n, MPI_INT, to, tag, W, &q[i]);
    s[i] = slot_send();
    say("MPI_Isend count=%d type=MPI_INT dest=%r tag=%d comm=MPI_COMM_WORLD request=%q", n, to, tag, s[i]);
}

/* Completes the first n requests; position i is of a receive with tags[i], or of a send, or null. */
static void waitall(int n, const int *tags, int ask)
{
    int i, m = 0, at[4];
    MPI_Status done[4];
    MPI_Waitall(n, q, ask ? st : MPI_STATUSES_IGNORE);
    for (i = 0; i < n; i++)
        if (s[i] >= 0) {
            done[m].MPI_SOURCE = ask ? st[i].MPI_SOURCE : left;
            done[m].MPI_TAG = ask ? st[i].MPI_TAG : tags[i];
            at[m++] = i;
        }
    say("MPI_Waitall n=%d requests=%Q completed=%C", n, n, s, m, at, s, done);
    for (i = 0; i < n; i++)
        s[i] = -1;
}

static void wait(int i, int tag)
{
    MPI_Wait(&q[i], st);
    st[0].MPI_SOURCE = left;
    st[0].MPI_TAG = tag;
    say("MPI_Wait requests=%Q completed=%C", 1, &s[i], 1, all_positions, &s[i], st);
    s[i] = -1;
}

static void barrier(void)
{
    MPI_Barrier(W);
    say("MPI_Barrier comm=MPI_COMM_WORLD");
}

/* Sizes that change, a tag that changes, a neighbour that is gone, another call in between, another order of completion. */
static void exchanges(int ask)
{
    int i, tags[2];
    for (i = 0; i < ROUNDS; i++) {
        int n = i < 20 ? 5 : 1 + i % 7, tag = i == 25 ? 9 : 3, to = i % 30 == 29 ? MPI_PROC_NULL : right;
        tags[0] = tag;
        if (to == right)
            receive(0, tag, 4 * n);
        else
            s[0] = -1; /* q[0] is null from the round before */
        if (i == 35)
            barrier();
        start(1, n, to, tag);
        if (i == 45) {
            wait(1, 0);
            wait(0, tag);
        } else {
            waitall(2, tags, ask);
        }
        sum += in[i % 5];
    }
}

/* A request that is under way during the loop, and ends in it: others take its number. */
static void guest(void)
{
    int i, tags[2] = {7, 0};
    receive(3, 8, 12);
    for (i = 0; i < ROUNDS; i++) {
        receive(0, 7, 8);
        start(1, 2, right, 7);
        waitall(2, tags, 0);
        if (i == 30) {
            MPI_Send(out, 3, MPI_INT, right, 8, W);
            say("MPI_Send count=3 type=MPI_INT dest=%r tag=8 comm=MPI_COMM_WORLD", right);
            wait(3, 8);
        }
    }
}

/* Requests that live from one round to the next, and requests in other places than they were made in. */
static void moved(void)
{
    int i, k, tags[4] = {5, 0, 5, 0};
    receive(0, 6, 4);
    for (i = 0; i < ROUNDS; i++) {
        start(1, 1, right, 6);
        waitall(2, tags, 1);
        receive(0, 6, 4);
    }
    start(1, 1, right, 6);
    waitall(2, tags, 1);
    for (i = 0; i < ROUNDS; i++) {
        receive(0, 5, 16);
        start(1, 4, right, 5);
        start(2, 3, MPI_PROC_NULL, 5);
        start(3, 2, MPI_PROC_NULL, 5);
        if (i % 20 == 15) {
            MPI_Request r = q[0];
            k = s[0];
            q[0] = q[1];
            s[0] = s[1];
            q[1] = r;
            s[1] = k;
        }
        if (i == 38)
            wait(2, 0);
        tags[1] = 5;
        waitall(4, tags, i > 30);
    }
}

/* Two callers of one function: the call sites differ, the calls do not. */
static __attribute__((noinline)) void deep(int i)
{
    receive(0, 4, 4);
    start(1, 1, right, 4);
    waitall(2, (const int[]){4, 0}, i & 1);
}
static __attribute__((noinline)) void one(int i) { deep(i); sum++; }
static __attribute__((noinline)) void two(int i) { deep(i); sum += 2; }

/* Blocking calls: wildcards, nobody, sizes that come as they come. */
static void blocking(void)
{
    int i;
    for (i = 0; i < ROUNDS; i++) {
        int n = i < 20 ? 6 : i % 9, from = i > 40 ? MPI_ANY_SOURCE : left, tag = i > 50 ? MPI_ANY_TAG : 2;
        MPI_Sendrecv(out, n, MPI_INT, right, 2, in, 50, MPI_INT, from, tag, W, &st[0]);
        say("MPI_Sendrecv sendcount=%d sendtype=MPI_INT dest=%r sendtag=2 recvcount=50 recvtype=MPI_INT source=%r "
            "recvtag=%t comm=MPI_COMM_WORLD status=%S", n, right, from, tag, from, tag, 4 * n, &st[0]);
        if (rank == 0) {
            MPI_Send(out, n, MPI_INT, 1, i, W);
            say("MPI_Send count=%d type=MPI_INT dest=1 tag=%d comm=MPI_COMM_WORLD", n, i);
        } else if (rank == 1) {
            MPI_Recv(in, 50, MPI_INT, 0, MPI_ANY_TAG, W, i % 2 ? MPI_STATUS_IGNORE : &st[1]);
            st[1].MPI_SOURCE = 0;
            st[1].MPI_TAG = i;
            say("MPI_Recv count=50 type=MPI_INT source=0 tag=MPI_ANY_TAG comm=MPI_COMM_WORLD status=%S", 0,
                MPI_ANY_TAG, 4 * n, &st[1]);
        }
    }
}

/* Collective calls whose count, operation, root or place change. */
static void collectives(void)
{
    int i;
    for (i = 0; i < ROUNDS; i++) {
        int n = i % 15 == 14 ? 3 : 2, root = i > 40 ? 1 : 0, same = i == 30;
        MPI_Op op = i == 50 ? MPI_MAX : MPI_SUM;
        MPI_Allreduce(same ? MPI_IN_PLACE : out, in, n, MPI_INT, op, W);
        say("MPI_Allreduce inplace=%b count=%d type=MPI_INT op=%s comm=MPI_COMM_WORLD", same, n,
            i == 50 ? "MPI_MAX" : "MPI_SUM");
        sum += in[0];
        MPI_Bcast(in, n, MPI_INT, root, W);
        say("MPI_Bcast count=%d type=MPI_INT root=%d comm=MPI_COMM_WORLD", n, root);
    }
}

/* Calls that fail in the middle of a loop, before and after anything is done. */
static void failing(void)
{
    int i;
    MPI_Comm_set_errhandler(W, MPI_ERRORS_RETURN);
    say("MPI_Comm_set_errhandler comm=MPI_COMM_WORLD errhandler=MPI_ERRORS_RETURN");
    for (i = 0; i < ROUNDS; i++) {
        int n = i == 20 ? -3 : 4;
        MPI_Send(out, n, MPI_INT, right, 1, W);
        say(n < 0 ? "MPI_Send count=%d type=MPI_INT dest=%r tag=1 comm=MPI_COMM_WORLD error=MPI_ERR_COUNT"
                  : "MPI_Send count=%d type=MPI_INT dest=%r tag=1 comm=MPI_COMM_WORLD", n, right);
        if (n > 0) {
            MPI_Recv(in, 4, MPI_INT, left, 1, W, &st[0]);
            say("MPI_Recv count=4 type=MPI_INT source=%r tag=1 comm=MPI_COMM_WORLD status=%S", left, left, 1, 16, &st[0]);
        }
    }
    for (i = 0; i < ROUNDS; i++) {
        /* Under a tag of its own: a replay, which makes no call that failed, leaves this message alone. */
        int n = i == 40 ? 6 : 4, tag = i == 40 ? 40 : 2;
        MPI_Send(out, n, MPI_INT, right, tag, W);
        say("MPI_Send count=%d type=MPI_INT dest=%r tag=%d comm=MPI_COMM_WORLD", n, right, tag);
        MPI_Recv(in, 5, MPI_INT, left, tag, W, &st[0]);
        if (n > 5)
            say("MPI_Recv count=5 type=MPI_INT source=%r tag=%d comm=MPI_COMM_WORLD rsource=null rtag=null "
                "bytes=-1 error=MPI_ERR_TRUNCATE", left, tag);
        else
            say("MPI_Recv count=5 type=MPI_INT source=%r tag=2 comm=MPI_COMM_WORLD status=%S", left, left, 2, 16, &st[0]);
    }
    for (i = 0; i < ROUNDS; i++) {
        barrier();
        MPI_Isend(out, 1, MPI_INT, i == 33 ? 9999 : MPI_PROC_NULL, 3, W, &q[0]);
        if (i == 33) {
            say("MPI_Isend count=1 type=MPI_INT dest=9999 tag=3 comm=MPI_COMM_WORLD request=null error=MPI_ERR_RANK");
            continue;
        }
        s[0] = slot_send();
        say("MPI_Isend count=1 type=MPI_INT dest=MPI_PROC_NULL tag=3 comm=MPI_COMM_WORLD request=%q", s[0]);
        wait(0, 0);
    }
}

static __attribute__((noinline)) void ask(volatile int times)
{
    do
        MPI_Wtime();
    while (--times > 0);
}

/* What only asks, between messages: answers that change, a clock that is read once in most rounds and thrice in some. */
static void asking(MPI_Comm half, int me)
{
    int i, n;
    for (i = 0; i < ROUNDS; i++) {
        int count = i < 20 ? 3 : 1 + i % 4, times = i % 25 == 24 ? 3 : 1;
        MPI_Aint low, extent;
        ask(times);
        if (i == 24) { /* a loop that has always read it once is no longer one */
            say("MPI_Wtime times=1");
            say("MPI_Wtime times=2");
        } else {
            say("MPI_Wtime times=%d", times);
        }
        MPI_Comm_rank(i == 40 ? half : W, &n);
        say(i == 40 ? "MPI_Comm_rank comm=half rank=%d" : "MPI_Comm_rank comm=MPI_COMM_WORLD rank=%d", i == 40 ? me : rank);
        MPI_Type_size(i == 45 ? MPI_DOUBLE : MPI_INT, &n);
        say(i == 45 ? "MPI_Type_size type=MPI_DOUBLE size=8" : "MPI_Type_size type=MPI_INT size=4");
        MPI_Sendrecv(out, count, MPI_INT, right, 2, in, 50, MPI_INT, left, 2, W, &st[0]);
        say("MPI_Sendrecv sendcount=%d sendtype=MPI_INT dest=%r sendtag=2 recvcount=50 recvtype=MPI_INT source=%r "
            "recvtag=2 comm=MPI_COMM_WORLD status=%S", count, right, left, left, 2, 4 * count, &st[0]);
        MPI_Get_count(&st[0], MPI_INT, &n);
        say("MPI_Get_count type=MPI_INT count=%d", count);
        sum += n;
        MPI_Wtime();
        say("MPI_Wtime times=1");
        MPI_Type_get_extent(MPI_INT, &low, &extent);
        say("MPI_Type_get_extent type=MPI_INT lb=0 extent=4");
        MPI_Wtime();
        say("MPI_Wtime times=1");
    }
}

/* Accesses to windows whose target or place changes; addresses, too. */
static void accesses(void)
{
    static int shown[64], hidden[64];
    int i, k, one = 1, old;
    MPI_Aint own, all[64];
    MPI_Win win, dyn;
    MPI_Win_create(shown, sizeof shown, sizeof(int), MPI_INFO_NULL, W, &win);
    say("MPI_Win_create size=%d dispunit=4 info=null comm=MPI_COMM_WORLD newwin=new:win", (int)sizeof shown);
    MPI_Win_create_dynamic(MPI_INFO_NULL, W, &dyn);
    say("MPI_Win_create_dynamic info=null comm=MPI_COMM_WORLD newwin=new:dyn");
    MPI_Win_attach(dyn, hidden, sizeof hidden);
    say("MPI_Win_attach win=dyn size=%d", (int)sizeof hidden);
    MPI_Get_address(hidden, &own);
    say("MPI_Get_address");
    for (k = 0; k < size; k++) {
        all[k] = own;
        MPI_Bcast(&all[k], 1, MPI_AINT, k, W);
        say("MPI_Bcast count=1 type=MPI_AINT root=%d comm=MPI_COMM_WORLD", k);
    }
    MPI_Win_fence(0, dyn);
    say("MPI_Win_fence assert=0 win=dyn");
    for (i = 0; i < ROUNDS; i++) {
        int at = i < 20 ? 3 : 3 + i % 5, to = i % 15 == 14 ? left : right;
        MPI_Win_fence(i == 33 ? MPI_MODE_NOSTORE : 0, win);
        say(i == 33 ? "MPI_Win_fence assert=MPI_MODE_NOSTORE win=win" : "MPI_Win_fence assert=0 win=win");
        MPI_Put(out, 2, MPI_INT, to, at, 2, MPI_INT, win);
        say("MPI_Put origincount=2 origintype=MPI_INT target=%r targetdisp=%d targetcount=2 targettype=MPI_INT win=win", to, at);
        MPI_Win_fence(0, win);
        say("MPI_Win_fence assert=0 win=win");
    }
    for (i = 0; i < ROUNDS; i++) {
        int to = i % 15 == 14 ? left : right, at = i < 20 ? 0 : i % 3;
        MPI_Win_lock(i == 40 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, to, 0, win);
        say(i == 40 ? "MPI_Win_lock locktype=MPI_LOCK_EXCLUSIVE target=%r assert=0 win=win"
                    : "MPI_Win_lock locktype=MPI_LOCK_SHARED target=%r assert=0 win=win", to);
        MPI_Fetch_and_op(&one, &old, MPI_INT, to, 40 + at, MPI_SUM, win);
        say("MPI_Fetch_and_op type=MPI_INT target=%r targetdisp=%d op=MPI_SUM win=win", to, 40 + at);
        MPI_Win_flush(to, win);
        say("MPI_Win_flush target=%r win=win", to);
        MPI_Win_unlock(to, win);
        say("MPI_Win_unlock target=%r win=win", to);
        /* Counted from the first address that was used at this target. */
        MPI_Put(out, 1, MPI_INT, to, all[to] + 4 * (5 + at), 1, MPI_INT, dyn);
        say("MPI_Put origincount=1 origintype=MPI_INT target=%r targetdisp=%d targetcount=1 targettype=MPI_INT win=dyn", to,
            4 * at);
        MPI_Win_fence(0, dyn);
        say("MPI_Win_fence assert=0 win=dyn");
    }
    MPI_Win_detach(dyn, hidden);
    say("MPI_Win_detach win=dyn");
    MPI_Win_free(&dyn);
    say("MPI_Win_free freewin=dyn");
    MPI_Win_free(&win);
    say("MPI_Win_free freewin=win");
}

int main(int argc, char **argv)
{
    int i, me;
    long total = 0;
    MPI_Comm half;
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
        out[i] = 10 * rank + i;
    for (i = 0; i < 4; i++)
        q[i] = MPI_REQUEST_NULL;

    exchanges(0);
    exchanges(1);
    guest();
    moved();
    for (i = 0; i < ROUNDS; i++)
        i % 20 == 17 ? two(i) : one(i);
    blocking();
    barrier();
    collectives();
    failing();
    barrier();
    MPI_Comm_split(W, rank % 2, 0, &half);
    say("MPI_Comm_split comm=MPI_COMM_WORLD color=%d key=0 newcomm=new:half", rank % 2);
    MPI_Comm_rank(half, &me);
    say("MPI_Comm_rank comm=half rank=%d", me);
    asking(half, me);
    accesses();
    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, W);
    say("MPI_Reduce inplace=false count=1 type=MPI_LONG op=MPI_SUM root=0 comm=MPI_COMM_WORLD");
    MPI_Finalize();
    say("MPI_Finalize");
    oracle_write();
    if (rank == 0)
        printf(PROGRAM("loops") ": ok %ld\n", total);
    return 0;
}
