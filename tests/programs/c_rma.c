/* Windows and one-sided communication (rows of MPI_Win_*, MPI_Put to MPI_Compare_and_swap, MPI_Rput …). */
#include "oracle.h"

#define W MPI_COMM_WORLD
enum { N = 64 }; /* integers in a window */

static int rank, size, left, right;
static int out[N], in[N], in2[N];
static long sum;
static volatile int three = 3; /* unknown to the compiler: one call site */
static MPI_Datatype pair;
/* Requests that are never started: the others' numbers are those of no window. */
static MPI_Request idle[3];
static int idle_slots[3];

static void take(const int *v)
{
    int i;
    for (i = 0; i < N; i++)
        sum += v[i] * (i % 50 + 1L);
}

static void fill(int *v, int start)
{
    int i;
    for (i = 0; i < N; i++)
        v[i] = start + i % 17;
}

/* Fences on a window over all ranks in reverse order: a target is not a rank in the world. */
static void fences(void)
{
    static int memory[N];
    MPI_Comm reverse;
    MPI_Group group;
    MPI_Info kept, info;
    MPI_Win win;
    int me = size - 1 - rank, next = (me + 1) % size, before = (me + size - 1) % size, n;
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Comm_split(W, 0, size - rank, &reverse);
    say("MPI_Comm_split comm=MPI_COMM_WORLD color=0 key=%d newcomm=new:reverse", size - rank);
    fill(memory, rank);
    MPI_Info_create(&kept);
    say("MPI_Info_create newinfo=0");
    MPI_Info_create(&info);
    say("MPI_Info_create newinfo=1");
    MPI_Info_set(info, "no_locks", "yes");
    say("MPI_Info_set info=1 key=no_locks value=yes");
    MPI_Win_create(memory, sizeof memory, sizeof(int), info, reverse, &win);
    say("MPI_Win_create size=%d dispunit=4 info=1 comm=reverse newwin=new:win", (int)sizeof memory);
    MPI_Win_set_info(win, info);
    say("MPI_Win_set_info win=win info=1");
    MPI_Info_free(&info);
    say("MPI_Info_free freeinfo=1");
    MPI_Win_get_info(win, &info);
    say("MPI_Win_get_info win=win newinfo=1");
    MPI_Info_free(&info);
    say("MPI_Info_free freeinfo=1");
    MPI_Info_free(&kept);
    say("MPI_Info_free freeinfo=0");
    MPI_Win_set_name(win, "the window");
    say("MPI_Win_set_name win=win name=%s", "the window");
    MPI_Win_get_name(win, name, &n);
    say("MPI_Win_get_name win=win name=%s", "the window");
    sum += n;
    MPI_Win_get_group(win, &group);
    say("MPI_Win_get_group win=win newgroup=new:group");
    MPI_Group_rank(group, &n);
    say("MPI_Group_rank group=group rank=%d", me);
    sum += n;
    MPI_Group_free(&group);
    say("MPI_Group_free freegroup=group");

    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    say("MPI_Win_fence assert=MPI_MODE_NOPRECEDE win=win");
    MPI_Put(out, 6, MPI_INT, next, 5, 3, pair, win);
    say("MPI_Put origincount=6 origintype=MPI_INT target=%r targetdisp=5 targetcount=3 targettype=pair win=win", next);
    MPI_Put(out, 7, MPI_INT, MPI_PROC_NULL, 0, 7, MPI_INT, win);
    say("MPI_Put origincount=7 origintype=MPI_INT target=MPI_PROC_NULL targetdisp=0 targetcount=7 targettype=MPI_INT win=win");
    MPI_Win_fence(0, win);
    say("MPI_Win_fence assert=0 win=win");
    MPI_Get(in, 2, pair, before, 20, 4, MPI_INT, win);
    say("MPI_Get origincount=2 origintype=pair target=%r targetdisp=20 targetcount=4 targettype=MPI_INT win=win", before);
    MPI_Win_fence(MPI_MODE_NOPUT | MPI_MODE_NOSTORE, win);
    say("MPI_Win_fence assert=MPI_MODE_NOSTORE|MPI_MODE_NOPUT win=win");
    MPI_Accumulate(out, 3, MPI_INT, 0, 40, 3, MPI_INT, MPI_SUM, win);
    say("MPI_Accumulate origincount=3 origintype=MPI_INT target=0 targetdisp=40 targetcount=3 targettype=MPI_INT op=MPI_SUM "
        "win=win");
    MPI_Accumulate(out, 2, MPI_INT, next, 50, 2, MPI_INT, MPI_REPLACE, win);
    say("MPI_Accumulate origincount=2 origintype=MPI_INT target=%r targetdisp=50 targetcount=2 targettype=MPI_INT "
        "op=MPI_REPLACE win=win", next);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    say("MPI_Win_fence assert=MPI_MODE_NOSUCCEED win=win");
    take(memory);
    take(in);
    MPI_Win_free(&win);
    say("MPI_Win_free freewin=win");
    MPI_Comm_free(&reverse);
    say("MPI_Comm_free freecomm=reverse");
}

/* Post, start, complete, wait: rank 0 exposes, the others reach it. */
static void epochs(void)
{
    int *memory, i, fails = 0, flag, token = 0, ranks[64], n = 0;
    MPI_Group all, group;
    MPI_Win win;
    MPI_Win_allocate(N * sizeof(int), sizeof(int), MPI_INFO_NULL, W, &memory, &win);
    say("MPI_Win_allocate size=%d dispunit=4 info=null comm=MPI_COMM_WORLD newwin=new:exposed", (int)(N * sizeof(int)));
    fill(memory, rank);
    MPI_Comm_group(W, &all);
    say("MPI_Comm_group comm=MPI_COMM_WORLD newgroup=new:all");
    for (i = 1; i < size; i++)
        ranks[n++] = i;
    if (rank) {
        n = 1;
        ranks[0] = 0;
    }
    MPI_Group_incl(all, n, ranks, &group);
    say("MPI_Group_incl group=all n=%d ranks=%D newgroup=new:others", n, n, ranks);
    MPI_Barrier(W);
    say("MPI_Barrier comm=MPI_COMM_WORLD");
    if (rank == 0) {
        MPI_Win_post(group, 0, win);
        say("MPI_Win_post group=others assert=0 win=exposed");
        /* No one has started yet: they wait for the token. */
        for (i = 0; i < three; i++)
            MPI_Win_test(win, &flag);
        say("MPI_Win_test win=exposed flag=false times=3");
        for (i = 1; i < size; i++) {
            MPI_Send(&token, 1, MPI_INT, i, 3, W);
            say("MPI_Send count=1 type=MPI_INT dest=%r tag=3 comm=MPI_COMM_WORLD", i);
        }
        do {
            MPI_Win_test(win, &flag);
            fails += !flag;
        } while (!flag);
        if (fails)
            say("MPI_Win_test win=exposed flag=false times=%d", fails);
        say("MPI_Win_test win=exposed flag=true times=1");
        MPI_Win_post(group, MPI_MODE_NOSTORE, win);
        say("MPI_Win_post group=others assert=MPI_MODE_NOSTORE win=exposed");
        MPI_Win_wait(win);
        say("MPI_Win_wait win=exposed");
        take(memory);
    } else {
        MPI_Recv(&token, 1, MPI_INT, 0, 3, W, MPI_STATUS_IGNORE);
        say("MPI_Recv count=1 type=MPI_INT source=0 tag=3 comm=MPI_COMM_WORLD rsource=null rtag=null bytes=4");
        for (i = 0; i < 2; i++) {
            MPI_Win_start(group, 0, win);
            say("MPI_Win_start group=others assert=0 win=exposed");
            MPI_Put(out, 2, MPI_INT, 0, 2 * rank + i, 2, MPI_INT, win);
            say("MPI_Put origincount=2 origintype=MPI_INT target=0 targetdisp=%d targetcount=2 targettype=MPI_INT win=exposed",
                2 * rank + i);
            MPI_Win_complete(win);
            say("MPI_Win_complete win=exposed");
        }
    }
    MPI_Group_free(&group);
    say("MPI_Group_free freegroup=others");
    MPI_Group_free(&all);
    say("MPI_Group_free freegroup=all");
    MPI_Win_free(&win);
    say("MPI_Win_free freewin=exposed");
}

/* Locks, atomic operations, and requests. */
static void locks(void)
{
    static int memory[N];
    MPI_Win win;
    MPI_Request q[4];
    MPI_Status st[4];
    int s[4], i, one = 1, got = 0, zero = 0;
    fill(memory, 0);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, W, &win);
    say("MPI_Win_create size=%d dispunit=4 info=null comm=MPI_COMM_WORLD newwin=new:locked", (int)sizeof memory);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win);
    say("MPI_Win_lock locktype=MPI_LOCK_EXCLUSIVE target=%r assert=0 win=locked", right);
    MPI_Put(out, 3, MPI_INT, right, 7, 3, MPI_INT, win);
    say("MPI_Put origincount=3 origintype=MPI_INT target=%r targetdisp=7 targetcount=3 targettype=MPI_INT win=locked", right);
    MPI_Win_unlock(right, win);
    say("MPI_Win_unlock target=%r win=locked", right);
    MPI_Barrier(W);
    say("MPI_Barrier comm=MPI_COMM_WORLD");
    MPI_Win_lock(MPI_LOCK_SHARED, left, MPI_MODE_NOCHECK, win);
    say("MPI_Win_lock locktype=MPI_LOCK_SHARED target=%r assert=MPI_MODE_NOCHECK win=locked", left);
    MPI_Get(in, 3, MPI_INT, left, 7, 3, MPI_INT, win);
    say("MPI_Get origincount=3 origintype=MPI_INT target=%r targetdisp=7 targetcount=3 targettype=MPI_INT win=locked", left);
    MPI_Win_unlock(left, win);
    say("MPI_Win_unlock target=%r win=locked", left);
    take(in);

    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    say("MPI_Win_lock_all assert=MPI_MODE_NOCHECK win=locked");
    MPI_Fetch_and_op(&one, &got, MPI_INT, size - 1, 30, MPI_SUM, win);
    say("MPI_Fetch_and_op type=MPI_INT target=%r targetdisp=30 op=MPI_SUM win=locked", size - 1);
    MPI_Win_flush(size - 1, win);
    say("MPI_Win_flush target=%r win=locked", size - 1);
    MPI_Compare_and_swap(&one, &zero, &got, MPI_INT, right, 31, win);
    say("MPI_Compare_and_swap type=MPI_INT target=%r targetdisp=31 win=locked", right);
    MPI_Win_flush_local(right, win);
    say("MPI_Win_flush_local target=%r win=locked", right);
    sum += got;
    MPI_Get_accumulate(out, 2, MPI_INT, in, 1, pair, 1, 32, 2, MPI_INT, MPI_SUM, win);
    say("MPI_Get_accumulate origincount=2 origintype=MPI_INT resultcount=1 resulttype=pair target=1 targetdisp=32 "
        "targetcount=2 targettype=MPI_INT op=MPI_SUM win=locked");
    MPI_Win_flush_all(win);
    say("MPI_Win_flush_all win=locked");
    /* The origin is not read. */
    MPI_Get_accumulate(NULL, 9, MPI_INT, in2, 4, MPI_INT, right, 36, 2, pair, MPI_NO_OP, win);
    say("MPI_Get_accumulate origincount=0 origintype=null resultcount=4 resulttype=MPI_INT target=%r targetdisp=36 "
        "targetcount=2 targettype=pair op=MPI_NO_OP win=locked", right);
    MPI_Win_flush_local_all(win);
    say("MPI_Win_flush_local_all win=locked");
    MPI_Win_sync(win);
    say("MPI_Win_sync win=locked");

    MPI_Rput(out, 4, MPI_INT, right, 40, 2, pair, win, &q[0]);
    s[0] = slot_send();
    say("MPI_Rput origincount=4 origintype=MPI_INT target=%r targetdisp=40 targetcount=2 targettype=pair win=locked request=%q",
        right, s[0]);
    MPI_Rget(in + 20, 2, pair, left, 50, 4, MPI_INT, win, &q[1]);
    s[1] = slot_send();
    say("MPI_Rget origincount=2 origintype=pair target=%r targetdisp=50 targetcount=4 targettype=MPI_INT win=locked request=%q",
        left, s[1]);
    MPI_Raccumulate(out, 3, MPI_INT, 1, 55, 3, MPI_INT, MPI_MAX, win, &q[2]);
    s[2] = slot_send();
    say("MPI_Raccumulate origincount=3 origintype=MPI_INT target=1 targetdisp=55 targetcount=3 targettype=MPI_INT op=MPI_MAX "
        "win=locked request=%q", s[2]);
    MPI_Rget_accumulate(out, 4, MPI_INT, in2 + 30, 2, pair, 0, 60, 4, MPI_INT, MPI_NO_OP, win, &q[3]);
    s[3] = slot_send();
    say("MPI_Rget_accumulate origincount=0 origintype=null resultcount=2 resulttype=pair target=0 targetdisp=60 targetcount=4 "
        "targettype=MPI_INT op=MPI_NO_OP win=locked request=%q", s[3]);
    MPI_Waitall(4, q, st);
    say("MPI_Waitall n=4 requests=%Q completed=%C", 4, s, 4, all_positions, s, st);
    MPI_Rget_accumulate(out, 4, MPI_INT, in2 + 34, 2, pair, 1, 58, 4, MPI_INT, MPI_MAX, win, &q[0]);
    s[0] = slot_send();
    say("MPI_Rget_accumulate origincount=4 origintype=MPI_INT resultcount=2 resulttype=pair target=1 targetdisp=58 "
        "targetcount=4 targettype=MPI_INT op=MPI_MAX win=locked request=%q", s[0]);
    MPI_Wait(&q[0], MPI_STATUS_IGNORE);
    say("MPI_Wait requests=%Q completed=%C", 1, s, 1, all_positions, s, st);
    MPI_Win_unlock_all(win);
    say("MPI_Win_unlock_all win=locked");
    MPI_Barrier(W);
    say("MPI_Barrier comm=MPI_COMM_WORLD");
    for (i = 0; i < N; i++)
        sum += memory[i];
    for (i = 0; i < 4; i++)
        sum += in2[i] + in[20 + i % 2];
    MPI_Win_free(&win);
    say("MPI_Win_free freewin=locked");
}

/* Memory that the ranks of a node share. */
static void shared(void)
{
    MPI_Comm node;
    MPI_Win win;
    MPI_Aint bytes;
    int *mine, *theirs, me;
    DISPL unit;
    MPI_Comm_split_type(W, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    say("MPI_Comm_split_type comm=MPI_COMM_WORLD splittype=MPI_COMM_TYPE_SHARED key=0 newcomm=new:node");
    MPI_Comm_rank(node, &me);
    say("MPI_Comm_rank comm=node rank=%d", me);
    MPI_Win_allocate_shared((me + 2) * 64, 8, MPI_INFO_NULL, node, &mine, &win);
    say("MPI_Win_allocate_shared size=%d dispunit=8 info=null comm=node newwin=new:common", (me + 2) * 64);
    MPI_Win_lock_all(0, win);
    say("MPI_Win_lock_all assert=0 win=common");
    mine[3] = 5 * rank + 1;
    MPI_Win_sync(win);
    say("MPI_Win_sync win=common");
    MPI_Barrier(node);
    say("MPI_Barrier comm=node");
    MPI_Win_shared_query(win, 1, &bytes, &unit, &theirs);
    say("MPI_Win_shared_query win=common target=1 size=192 dispunit=8");
    sum += theirs[3] + unit + bytes;
    MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &theirs);
    say("MPI_Win_shared_query win=common target=MPI_PROC_NULL size=%l dispunit=%d", (long long)bytes,
        (int)unit);
    MPI_Win_unlock_all(win);
    say("MPI_Win_unlock_all win=common");
    MPI_Win_free(&win);
    say("MPI_Win_free freewin=common");
    MPI_Comm_free(&node);
    say("MPI_Comm_free freecomm=node");
}

/* A window whose memory comes later: displacements are addresses, and are recorded relative to the first one used. */
static void dynamic(void)
{
    static int memory[N];
    MPI_Win win;
    MPI_Aint address, theirs[64];
    fill(memory, rank);
    MPI_Win_create_dynamic(MPI_INFO_NULL, W, &win);
    say("MPI_Win_create_dynamic info=null comm=MPI_COMM_WORLD newwin=new:dynamic");
    MPI_Win_attach(win, memory, sizeof memory);
    say("MPI_Win_attach win=dynamic size=%d", (int)sizeof memory);
    MPI_Get_address(memory, &address);
    say("MPI_Get_address");
    MPI_Allgather(&address, 1, MPI_AINT, theirs, 1, MPI_AINT, W);
    say("MPI_Allgather inplace=false sendcount=1 sendtype=MPI_AINT recvcount=1 recvtype=MPI_AINT comm=MPI_COMM_WORLD");
    MPI_Win_fence(0, win);
    say("MPI_Win_fence assert=0 win=dynamic");
    MPI_Put(out, 2, MPI_INT, right, theirs[right] + 24, 2, MPI_INT, win);
    say("MPI_Put origincount=2 origintype=MPI_INT target=%r targetdisp=0 targetcount=2 targettype=MPI_INT win=dynamic", right);
    MPI_Put(out, 2, MPI_INT, right, theirs[right] + 8, 2, MPI_INT, win);
    say("MPI_Put origincount=2 origintype=MPI_INT target=%r targetdisp=-16 targetcount=2 targettype=MPI_INT win=dynamic", right);
    MPI_Win_fence(0, win);
    say("MPI_Win_fence assert=0 win=dynamic");
    take(memory);
    MPI_Win_detach(win, memory);
    say("MPI_Win_detach win=dynamic");
    MPI_Win_free(&win);
    say("MPI_Win_free freewin=dynamic");
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
    fill(out, 100 * rank);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    say("MPI_Type_contiguous count=2 type=MPI_INT newtype=new:pair");
    MPI_Type_commit(&pair);
    say("MPI_Type_commit committype=pair");

    for (i = 0; i < 3; i++) {
        MPI_Send_init(out, 1, MPI_INT, 0, i, MPI_COMM_SELF, &idle[i]);
        idle_slots[i] = slot_send_init();
        say("MPI_Send_init count=1 type=MPI_INT dest=0 tag=%d comm=MPI_COMM_SELF request=%q", i, idle_slots[i]);
    }
    fences();
    epochs();
    locks();
    /* Last, when its window and its communicator are not the same number. */
    dynamic();
    shared();

    for (i = 0; i < 3; i++) {
        MPI_Request_free(&idle[i]);
        say("MPI_Request_free request=%q", slot_free(idle_slots[i]));
    }
    MPI_Type_free(&pair);
    say("MPI_Type_free freetype=pair");
    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, W);
    say("MPI_Reduce inplace=false count=1 type=MPI_LONG op=MPI_SUM root=0 comm=MPI_COMM_WORLD");
    MPI_Finalize();
    say("MPI_Finalize");
    oracle_write();
    if (rank == 0)
        printf(PROGRAM("rma") ": ok %ld\n", total);
    return 0;
}
