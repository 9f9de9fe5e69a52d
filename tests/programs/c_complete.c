/* Completion: the Wait and the Test families (rows 70 to 77), with failing polls, null and persistent requests. */
#include "oracle.h"

#define W MPI_COMM_WORLD

static int rank, size, right, left;
static int out[100], in[100];
static long sum;

static MPI_Request q[6];
static MPI_Status st[6];
static int s[6]; /* slots of q, -1 for a null request */

static void add(void)
{
    int i;
    for (i = 0; i < 100; i++) {
        sum += in[i] * (i + 1L);
        in[i] = 0;
    }
}

/* Three receives, at 1, 2 and 4 of q, from the left, for twice as many integers as will come; 0, 3 and 5 are null. */
static void post(int tag)
{
    int i, at[3] = {1, 2, 4};
    for (i = 0; i < 6; i++) {
        q[i] = MPI_REQUEST_NULL;
        s[i] = -1;
    }
    for (i = 0; i < 3; i++) {
        MPI_Irecv(in + 20 * i, 2 * (i + 5), MPI_INT, left, tag + i, W, &q[at[i]]);
        s[at[i]] = slot_recv(4 * (i + 5));
        say("MPI_Irecv count=%d type=MPI_INT source=%r tag=%d comm=MPI_COMM_WORLD request=%q", 2 * (i + 5), left, tag + i,
            s[at[i]]);
    }
}

/* The messages for post, sent after everyone has come here. */
static void feed(int tag)
{
    int i;
    MPI_Barrier(W);
    say("MPI_Barrier comm=MPI_COMM_WORLD");
    for (i = 0; i < 3; i++) {
        MPI_Send(out, i + 5, MPI_INT, right, tag + i, W);
        say("MPI_Send count=%d type=MPI_INT dest=%r tag=%d comm=MPI_COMM_WORLD", i + 5, right, tag + i);
    }
}

/* A completed request that is not persistent becomes null. */
static void gone(int n, const int *positions)
{
    int i;
    for (i = 0; i < n; i++)
        s[positions[i]] = -1;
}

static void waits(void)
{
    static const int third[] = {1, 2, 4};
    MPI_Status three[3];
    int i, n, at, positions[6];

    post(10);
    feed(10);
    for (i = 0; i < 3; i++) {
        int p = third[i];
        MPI_Wait(&q[p], st);
        say("MPI_Wait requests=%Q completed=%C", 1, &s[p], 1, all_positions, &s[p], st);
        s[p] = -1;
    }
    MPI_Wait(&q[0], st);
    say("MPI_Wait requests=[null] completed=[]");

    post(20);
    feed(20);
    MPI_Waitall(6, q, st);
    for (i = 0; i < 3; i++)
        three[i] = st[third[i]];
    say("MPI_Waitall n=6 requests=%Q completed=%C", 6, s, 3, third, s, three);
    add();
    gone(3, third);

    post(30);
    feed(30);
    MPI_Isend(out, 4, MPI_INT, MPI_PROC_NULL, 39, W, &q[5]);
    s[5] = slot_send();
    say("MPI_Isend count=4 type=MPI_INT dest=MPI_PROC_NULL tag=39 comm=MPI_COMM_WORLD request=%q", s[5]);
    for (i = 0; i < 4; i++) {
        MPI_Waitany(6, q, &at, st);
        say("MPI_Waitany n=6 requests=%Q completed=%C", 6, s, 1, &at, s, st);
        gone(1, &at);
    }
    MPI_Waitany(5, q, &at, st);
    say("MPI_Waitany n=5 requests=%Q completed=[] index=MPI_UNDEFINED", 5, s);
    add();

    post(40);
    feed(40);
    for (i = 0; i < 3; i += n) {
        MPI_Waitsome(5, q, &n, positions, st);
        say("MPI_Waitsome n=5 requests=%Q completed=%C", 5, s, n, positions, s, st);
        gone(n, positions);
    }
    add();

    /* Statuses that the program does not ask for, of receives it knows. */
    post(50);
    feed(50);
    MPI_Waitall(6, q, MPI_STATUSES_IGNORE);
    for (i = 0; i < 3; i++) {
        three[i].MPI_SOURCE = left;
        three[i].MPI_TAG = 50 + i;
    }
    say("MPI_Waitall n=6 requests=%Q completed=%C", 6, s, 3, third, s, three);
    add();
}

/* Each kind of test fails three times at one place, before anything is sent, and is then repeated until it is true. */
static void tests(void)
{
    volatile int three = 3; /* so that a loop stays one call */
    int i, n, flag, fails, at, positions[6];

    post(60);
    for (i = 0; i < three; i++)
        MPI_Test(&q[2], &flag, st);
    say("MPI_Test requests=%Q flag=false completed=[] times=3", 1, &s[2]);
    feed(60);
    fails = -1;
    do {
        MPI_Test(&q[2], &flag, st);
        fails++;
    } while (!flag);
    if (fails)
        say("MPI_Test requests=%Q flag=false completed=[] times=%d", 1, &s[2], fails);
    say("MPI_Test requests=%Q flag=true completed=%C times=1", 1, &s[2], 1, all_positions, &s[2], st);
    s[2] = -1;
    MPI_Test(&q[2], &flag, st);
    say("MPI_Test requests=[null] flag=true completed=[] times=1");
    MPI_Wait(&q[1], st);
    say("MPI_Wait requests=%Q completed=%C", 1, &s[1], 1, all_positions, &s[1], st);
    MPI_Wait(&q[4], st);
    say("MPI_Wait requests=%Q completed=%C", 1, &s[4], 1, all_positions, &s[4], st);
    add();

    post(70);
    for (i = 0; i < three; i++)
        MPI_Testall(5, q, &flag, st);
    say("MPI_Testall n=5 requests=%Q flag=false completed=[] times=3", 5, s);
    feed(70);
    fails = -1;
    do {
        MPI_Testall(6, q, &flag, st);
        fails++;
    } while (!flag);
    if (fails)
        say("MPI_Testall n=6 requests=%Q flag=false completed=[] times=%d", 6, s, fails);
    st[0] = st[1];
    st[1] = st[2];
    st[2] = st[4];
    positions[0] = 1;
    positions[1] = 2;
    positions[2] = 4;
    say("MPI_Testall n=6 requests=%Q flag=true completed=%C times=1", 6, s, 3, positions, s, st);
    add();

    post(80);
    for (i = 0; i < three; i++)
        MPI_Testany(5, q, &at, &flag, st);
    say("MPI_Testany n=5 requests=%Q flag=false completed=[] times=3", 5, s);
    feed(80);
    for (n = 0; n < 3; n++) {
        fails = -1;
        do {
            MPI_Testany(6, q, &at, &flag, st);
            fails++;
        } while (!flag);
        if (fails)
            say("MPI_Testany n=6 requests=%Q flag=false completed=[] times=%d", 6, s, fails);
        say("MPI_Testany n=6 requests=%Q flag=true completed=%C times=1", 6, s, 1, &at, s, st);
        gone(1, &at);
    }
    MPI_Testany(6, q, &at, &flag, st);
    say("MPI_Testany n=6 requests=%Q flag=true completed=[] index=MPI_UNDEFINED times=1", 6, s);
    add();

    post(90);
    for (i = 0; i < three; i++)
        MPI_Testsome(5, q, &n, positions, st);
    say("MPI_Testsome n=5 requests=%Q completed=[] times=3", 5, s);
    feed(90);
    for (i = 0; i < 3; i += n) {
        fails = -1;
        do {
            MPI_Testsome(6, q, &n, positions, st);
            fails++;
        } while (n == 0);
        if (fails)
            say("MPI_Testsome n=6 requests=%Q completed=[] times=%d", 6, s, fails);
        say("MPI_Testsome n=6 requests=%Q completed=%C times=1", 6, s, n, positions, s, st);
        gone(n, positions);
    }
    add();
}

/* Wildcards: which receive got which message is known from the status only. */
static void wildcards(void)
{
    int i, at, positions[2] = {0, 1};
    for (i = 0; i < 2; i++) {
        MPI_Irecv(in + 20 * i, 9, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, W, &q[i]);
        s[i] = slot_recv(-1);
        say("MPI_Irecv count=9 type=MPI_INT source=MPI_ANY_SOURCE tag=MPI_ANY_TAG comm=MPI_COMM_WORLD request=%q", s[i]);
    }
    MPI_Send(out, 3, MPI_INT, right, 93, W);
    say("MPI_Send count=3 type=MPI_INT dest=%r tag=93 comm=MPI_COMM_WORLD", right);
    MPI_Send(out, 4, MPI_INT, left, 94, W);
    say("MPI_Send count=4 type=MPI_INT dest=%r tag=94 comm=MPI_COMM_WORLD", left);
    MPI_Waitany(2, q, &at, st);
    /* 4 bytes times what is the tag without 90. */
    slot_bytes(s[at], 4 * (st->MPI_TAG - 90));
    say("MPI_Waitany n=2 requests=%Q completed=%C", 2, s, 1, &at, s, st);
    gone(1, &at);
    at = 1 - at;
    MPI_Waitall(2, q, st);
    st[0] = st[at];
    slot_bytes(s[at], 4 * (st->MPI_TAG - 90));
    say("MPI_Waitall n=2 requests=%Q completed=%C", 2, s, 1, &positions[at], s, st);
    for (i = 0; i < 100; i++) {
        sum += in[i]; /* in any order */
        in[i] = 0;
    }
}

/* Persistent requests stay in their slots. */
static void persistent(void)
{
    int i, n, turn, positions[2];
    MPI_Recv_init(in, 8, MPI_INT, left, 97, W, &q[0]);
    s[0] = slot_recv_init(28);
    say("MPI_Recv_init count=8 type=MPI_INT source=%r tag=97 comm=MPI_COMM_WORLD request=%q", left, s[0]);
    MPI_Send_init(out, 7, MPI_INT, right, 97, W, &q[1]);
    s[1] = slot_send_init();
    say("MPI_Send_init count=7 type=MPI_INT dest=%r tag=97 comm=MPI_COMM_WORLD request=%q", right, s[1]);
    for (turn = 0; turn < 2; turn++) {
        MPI_Startall(2, q);
        say("MPI_Startall n=2 requests=%Q", 2, s);
        for (i = 0; i < 2; i += n) {
            MPI_Waitsome(2, q, &n, positions, st);
            say("MPI_Waitsome n=2 requests=%Q completed=%C", 2, s, n, positions, s, st);
        }
        add();
    }
    for (i = 0; i < 2; i++) {
        MPI_Request_free(&q[i]);
        say("MPI_Request_free request=%q", slot_free(s[i]));
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
    for (i = 0; i < 100; i++)
        out[i] = 1000 * rank + i;

    waits();
    tests();
    /* No message of the wildcard receives may come from what was before. */
    MPI_Barrier(W);
    say("MPI_Barrier comm=MPI_COMM_WORLD");
    wildcards();
    MPI_Barrier(W);
    say("MPI_Barrier comm=MPI_COMM_WORLD");
    persistent();

    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, W);
    say("MPI_Reduce inplace=false count=1 type=MPI_LONG op=MPI_SUM root=0 comm=MPI_COMM_WORLD");
    MPI_Finalize();
    say("MPI_Finalize");
    oracle_write();
    if (rank == 0)
        printf(PROGRAM("complete") ": ok %ld\n", total);
    return 0;
}
