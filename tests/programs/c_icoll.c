/* Non-blocking collective operations (rows 120 to 136), in place too, and between groups. */
#include "oracle.h"

#define W MPI_COMM_WORLD
enum { MOST = 64 }; /* ranks */

static int rank, size, root;
static int out[40 * MOST], in[40 * MOST];
static COUNT counts[MOST], pairs[MOST];
static DISPL displs[MOST], backward[MOST];
static long sum;
static MPI_Datatype pair;

static MPI_Request q[3];
static int s[3];

/* Waits for operation k alone and takes in what it received. */
static void finish(int k)
{
    MPI_Status st;
    int i;
    MPI_Wait(&q[k], &st);
    say("MPI_Wait requests=%Q completed=%C", 1, &s[k], 1, all_positions, &s[k], &st);
    for (i = 0; i < 40 * MOST; i++) {
        sum += in[i] * (i % 100 + 1L);
        in[i] = 0;
    }
}

static void to_and_from_a_root(void)
{
    int here = rank == root;
    MPI_Status st[2];
    memcpy(in, out, sizeof in);
    MPI_Ibarrier(W, &q[0]);
    s[0] = slot_send();
    say("MPI_Ibarrier comm=MPI_COMM_WORLD request=%q", s[0]);
    MPI_Ibcast(in, 11, MPI_INT, root, W, &q[1]);
    s[1] = slot_send();
    say("MPI_Ibcast count=11 type=MPI_INT root=%r comm=MPI_COMM_WORLD request=%q", root, s[1]);
    MPI_Waitall(2, q, st);
    say("MPI_Waitall n=2 requests=%Q completed=%C", 2, s, 2, all_positions, s, st);

    /* Slots 0 and 1 are busy until the end, so that the others' is not the lowest. */
    MPI_Ibarrier(W, &q[0]);
    s[0] = slot_send();
    say("MPI_Ibarrier comm=MPI_COMM_WORLD request=%q", s[0]);
    MPI_Ibarrier(W, &q[2]);
    s[2] = slot_send();
    say("MPI_Ibarrier comm=MPI_COMM_WORLD request=%q", s[2]);
    MPI_Igather(out, 6, MPI_INT, in, here ? 3 : -77, here ? pair : MPI_DATATYPE_NULL, root, W, &q[1]);
    s[1] = slot_send();
    say("MPI_Igather inplace=false sendcount=6 sendtype=MPI_INT recvcount=%d recvtype=%s root=%r comm=MPI_COMM_WORLD "
        "request=%q", here ? 3 : 0, here ? "pair" : "null", root, s[1]);
    finish(1);
    if (here) {
        MPI_Igather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 7, MPI_INT, root, W, &q[1]);
        s[1] = slot_send();
        say("MPI_Igather inplace=true sendcount=0 sendtype=null recvcount=7 recvtype=MPI_INT root=%r "
            "comm=MPI_COMM_WORLD request=%q", root, s[1]);
    } else {
        MPI_Igather(out, 7, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, root, W, &q[1]);
        s[1] = slot_send();
        say("MPI_Igather inplace=false sendcount=7 sendtype=MPI_INT recvcount=0 recvtype=null root=%r "
            "comm=MPI_COMM_WORLD request=%q", root, s[1]);
    }
    finish(1);
    MPI_Igatherv(out, counts[rank], MPI_INT, in, pairs, backward, pair, root, W, &q[1]);
    s[1] = slot_send();
    say("MPI_Igatherv inplace=false sendcount=%n sendtype=MPI_INT recvcounts=%N displs=%V recvtype=%s root=%r "
        "comm=MPI_COMM_WORLD request=%q", counts[rank], here ? size : 0, pairs, here ? size : 0, backward,
        here ? "pair" : "null", root, s[1]);
    finish(1);
    MPI_Igatherv(out, pairs[rank], pair, in, pairs, displs, pair, root, W, &q[1]);
    s[1] = slot_send();
    say("MPI_Igatherv inplace=false sendcount=%n sendtype=pair recvcounts=%N displs=[] recvtype=%s root=%r "
        "comm=MPI_COMM_WORLD request=%q", pairs[rank], here ? size : 0, pairs, here ? "pair" : "null", root, s[1]);
    finish(1);
    MPI_Iscatter(out, 8, MPI_INT, in, 4, pair, root, W, &q[1]);
    s[1] = slot_send();
    say("MPI_Iscatter sendcount=%d sendtype=%s inplace=false recvcount=4 recvtype=pair root=%r comm=MPI_COMM_WORLD "
        "request=%q", here ? 8 : 0, here ? "MPI_INT" : "null", root, s[1]);
    finish(1);
    if (here) {
        MPI_Iscatter(out, 9, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, root, W, &q[1]);
        s[1] = slot_send();
        say("MPI_Iscatter sendcount=9 sendtype=MPI_INT inplace=true recvcount=0 recvtype=null root=%r "
            "comm=MPI_COMM_WORLD request=%q", root, s[1]);
    } else {
        MPI_Iscatter(NULL, 0, MPI_DATATYPE_NULL, in, 9, MPI_INT, root, W, &q[1]);
        s[1] = slot_send();
        say("MPI_Iscatter sendcount=0 sendtype=null inplace=false recvcount=9 recvtype=MPI_INT root=%r "
            "comm=MPI_COMM_WORLD request=%q", root, s[1]);
    }
    finish(1);
    MPI_Iscatterv(out, pairs, backward, pair, in, counts[rank], MPI_INT, root, W, &q[1]);
    s[1] = slot_send();
    say("MPI_Iscatterv sendcounts=%N displs=%V sendtype=%s inplace=false recvcount=%d recvtype=MPI_INT root=%r "
        "comm=MPI_COMM_WORLD request=%q", here ? size : 0, pairs, here ? size : 0, backward, here ? "pair" : "null",
        counts[rank], root, s[1]);
    finish(1);
    MPI_Iscatterv(out, pairs, displs, pair, in, pairs[rank], pair, root, W, &q[1]);
    s[1] = slot_send();
    say("MPI_Iscatterv sendcounts=%N displs=[] sendtype=%s inplace=false recvcount=%n recvtype=pair root=%r "
        "comm=MPI_COMM_WORLD request=%q", here ? size : 0, pairs, here ? "pair" : "null", pairs[rank], root, s[1]);
    finish(1);
    finish(2);
    finish(0);
}

static void all_to_all(void)
{
    COUNT sendcounts[MOST], recvcounts[MOST];
    DISPL sdispls[MOST], rdispls[MOST];
    int i;
    MPI_Datatype sendtypes[MOST], recvtypes[MOST];
    char sendnames[20 * MOST] = "[", recvnames[20 * MOST] = "[";
    MPI_Iallgather(out, 6, MPI_INT, in, 3, pair, W, &q[1]);
    s[1] = slot_send();
    say("MPI_Iallgather inplace=false sendcount=6 sendtype=MPI_INT recvcount=3 recvtype=pair comm=MPI_COMM_WORLD "
        "request=%q", s[1]);
    finish(1);
    MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 5, MPI_INT, W, &q[1]);
    s[1] = slot_send();
    say("MPI_Iallgather inplace=true sendcount=0 sendtype=null recvcount=5 recvtype=MPI_INT comm=MPI_COMM_WORLD "
        "request=%q", s[1]);
    finish(1);
    MPI_Iallgatherv(out, counts[rank], MPI_INT, in, pairs, backward, pair, W, &q[1]);
    s[1] = slot_send();
    say("MPI_Iallgatherv inplace=false sendcount=%n sendtype=MPI_INT recvcounts=%N displs=%V recvtype=pair "
        "comm=MPI_COMM_WORLD request=%q", counts[rank], size, pairs, size, backward, s[1]);
    finish(1);
    MPI_Iallgatherv(out, counts[rank], MPI_INT, in, pairs, displs, pair, W, &q[1]);
    s[1] = slot_send();
    say("MPI_Iallgatherv inplace=false sendcount=%n sendtype=MPI_INT recvcounts=%N displs=[] recvtype=pair "
        "comm=MPI_COMM_WORLD request=%q", counts[rank], size, pairs, s[1]);
    finish(1);
    MPI_Ialltoall(out, 4, MPI_INT, in, 2, pair, W, &q[1]);
    s[1] = slot_send();
    say("MPI_Ialltoall inplace=false sendcount=4 sendtype=MPI_INT recvcount=2 recvtype=pair comm=MPI_COMM_WORLD "
        "request=%q", s[1]);
    finish(1);
    MPI_Ialltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 3, MPI_INT, W, &q[1]);
    s[1] = slot_send();
    say("MPI_Ialltoall inplace=true sendcount=0 sendtype=null recvcount=3 recvtype=MPI_INT comm=MPI_COMM_WORLD "
        "request=%q", s[1]);
    finish(1);
    /* a sends b 2 (1 + (a + 2 b) mod 3) integers, which arrive as pairs. */
    for (i = 0; i < size; i++) {
        sendcounts[i] = 2 * (1 + (rank + 2 * i) % 3);
        recvcounts[i] = 1 + (i + 2 * rank) % 3;
        sdispls[i] = i ? sdispls[i - 1] + sendcounts[i - 1] : 0;
        rdispls[i] = 4 * i + 1;
    }
    MPI_Ialltoallv(out, sendcounts, sdispls, MPI_INT, in, recvcounts, rdispls, pair, W, &q[1]);
    s[1] = slot_send();
    say("MPI_Ialltoallv inplace=false sendcounts=%N sdispls=[] sendtype=MPI_INT recvcounts=%N rdispls=%V recvtype=pair "
        "comm=MPI_COMM_WORLD request=%q", size, sendcounts, size, recvcounts, size, rdispls, s[1]);
    finish(1);
    for (i = 0; i < size; i++) {
        sdispls[i] = 7 * i + 2;
        rdispls[i] = i ? rdispls[i - 1] + recvcounts[i - 1] : 0;
    }
    MPI_Ialltoallv(out, sendcounts, sdispls, MPI_INT, in, recvcounts, rdispls, pair, W, &q[1]);
    s[1] = slot_send();
    say("MPI_Ialltoallv inplace=false sendcounts=%N sdispls=%V sendtype=MPI_INT recvcounts=%N rdispls=[] recvtype=pair "
        "comm=MPI_COMM_WORLD request=%q", size, sendcounts, size, sdispls, size, recvcounts, s[1]);
    finish(1);
    /* Displacements in bytes. Even ranks are sent integers, odd ones pairs; each receives the other kind. */
    for (i = 0; i < size; i++) {
        sendtypes[i] = i % 2 ? pair : MPI_INT;
        sendcounts[i] = i % 2 ? 5 : 10;
        recvtypes[i] = rank % 2 ? MPI_INT : pair;
        recvcounts[i] = rank % 2 ? 10 : 5;
        sdispls[i] = 48 * i + 4;
        rdispls[i] = 44 * i + 8;
        strcat(strcat(sendnames, i ? "," : ""), i % 2 ? "\"pair\"" : "\"MPI_INT\"");
        strcat(strcat(recvnames, i ? "," : ""), rank % 2 ? "\"MPI_INT\"" : "\"pair\"");
    }
    strcat(sendnames, "]");
    strcat(recvnames, "]");
    MPI_Ialltoallw(out, sendcounts, sdispls, sendtypes, in, recvcounts, rdispls, recvtypes, W, &q[1]);
    s[1] = slot_send();
    say("MPI_Ialltoallw inplace=false sendcounts=%N sdispls=%V sendtypes=%s recvcounts=%N rdispls=%V recvtypes=%s "
        "comm=MPI_COMM_WORLD request=%q", size, sendcounts, size, sdispls, sendnames, size, recvcounts, size, rdispls,
        recvnames, s[1]);
    finish(1);
}

static void reductions(void)
{
    int i;
    MPI_Ireduce(out, in, 2, MPI_INT, MPI_MAX, root, W, &q[1]);
    s[1] = slot_send();
    say("MPI_Ireduce inplace=false count=2 type=MPI_INT op=MPI_MAX root=%r comm=MPI_COMM_WORLD request=%q", root, s[1]);
    finish(1);
    if (rank == root) {
        MPI_Ireduce(MPI_IN_PLACE, in, 3, MPI_UNSIGNED, MPI_SUM, root, W, &q[1]);
        s[1] = slot_send();
        say("MPI_Ireduce inplace=true count=3 type=MPI_UNSIGNED op=MPI_SUM root=%r comm=MPI_COMM_WORLD request=%q", root,
            s[1]);
    } else {
        MPI_Ireduce(out, NULL, 3, MPI_UNSIGNED, MPI_SUM, root, W, &q[1]);
        s[1] = slot_send();
        say("MPI_Ireduce inplace=false count=3 type=MPI_UNSIGNED op=MPI_SUM root=%r comm=MPI_COMM_WORLD request=%q", root,
            s[1]);
    }
    finish(1);
    MPI_Iallreduce(out, in, 4, MPI_INT, MPI_MIN, W, &q[1]);
    s[1] = slot_send();
    say("MPI_Iallreduce inplace=false count=4 type=MPI_INT op=MPI_MIN comm=MPI_COMM_WORLD request=%q", s[1]);
    finish(1);
    memcpy(in, out, sizeof in);
    MPI_Iallreduce(MPI_IN_PLACE, in, 5, MPI_INT, MPI_BOR, W, &q[1]);
    s[1] = slot_send();
    say("MPI_Iallreduce inplace=true count=5 type=MPI_INT op=MPI_BOR comm=MPI_COMM_WORLD request=%q", s[1]);
    finish(1);
    MPI_Ireduce_scatter(out, in, counts, MPI_INT, MPI_SUM, W, &q[1]);
    s[1] = slot_send();
    say("MPI_Ireduce_scatter inplace=false counts=%N type=MPI_INT op=MPI_SUM comm=MPI_COMM_WORLD request=%q", size, counts,
        s[1]);
    finish(1);
    MPI_Ireduce_scatter_block(out, in, 6, MPI_INT, MPI_BXOR, W, &q[1]);
    s[1] = slot_send();
    say("MPI_Ireduce_scatter_block inplace=false count=6 type=MPI_INT op=MPI_BXOR comm=MPI_COMM_WORLD request=%q", s[1]);
    finish(1);
    for (i = 0; i < 40 * MOST; i++)
        in[i] = 0;
    MPI_Iscan(out, in, 9, MPI_INT, MPI_SUM, W, &q[1]);
    s[1] = slot_send();
    say("MPI_Iscan inplace=false count=9 type=MPI_INT op=MPI_SUM comm=MPI_COMM_WORLD request=%q", s[1]);
    finish(1);
    memcpy(in, out, 40);
    MPI_Iscan(MPI_IN_PLACE, in, 8, MPI_INT, MPI_MAX, W, &q[1]);
    s[1] = slot_send();
    say("MPI_Iscan inplace=true count=8 type=MPI_INT op=MPI_MAX comm=MPI_COMM_WORLD request=%q", s[1]);
    finish(1);
    /* Undefined on rank 0: nothing is taken in there. */
    MPI_Iexscan(out, rank ? in : out + 100, 10, MPI_INT, MPI_SUM, W, &q[1]);
    s[1] = slot_send();
    say("MPI_Iexscan inplace=false count=10 type=MPI_INT op=MPI_SUM comm=MPI_COMM_WORLD request=%q", s[1]);
    finish(1);
    MPI_Iexscan(MPI_IN_PLACE, out, 3, MPI_INT, MPI_MIN, W, &q[1]);
    s[1] = slot_send();
    say("MPI_Iexscan inplace=true count=3 type=MPI_INT op=MPI_MIN comm=MPI_COMM_WORLD request=%q", s[1]);
    finish(1);
}

/* Between the even and the odd ranks. The second process of the first group (or the first) is the root. */
static void between_groups(void)
{
    MPI_Comm half, inter;
    int odd = rank % 2;
    int chief = (size + 1) / 2 > 1; /* its rank among the even ones */
    int role = odd ? chief : rank == 2 * chief ? MPI_ROOT : MPI_PROC_NULL;
    MPI_Comm_split(W, odd, 10 * rank, &half);
    say("MPI_Comm_split comm=MPI_COMM_WORLD color=%d key=%d newcomm=new:half", odd, 10 * rank);
    MPI_Intercomm_create(half, 0, W, 1 - odd, 55, &inter);
    say("MPI_Intercomm_create comm=half leader=0 peercomm=MPI_COMM_WORLD remoteleader=%r tag=55 newcomm=new:inter",
        1 - odd);
    MPI_Ibarrier(inter, &q[1]);
    s[1] = slot_send();
    say("MPI_Ibarrier comm=inter request=%q", s[1]);
    finish(1);
    memcpy(in, out, sizeof in);
    MPI_Ibcast(in, 12, MPI_INT, role, inter, &q[1]);
    s[1] = slot_send();
    if (role == MPI_PROC_NULL)
        say("MPI_Ibcast count=0 type=null root=MPI_PROC_NULL comm=inter request=%q", s[1]);
    else
        say("MPI_Ibcast count=12 type=MPI_INT root=%r comm=inter request=%q", role, s[1]);
    finish(1);
    MPI_Iallgather(out, 6, MPI_INT, in, 3, pair, inter, &q[1]);
    s[1] = slot_send();
    say("MPI_Iallgather inplace=false sendcount=6 sendtype=MPI_INT recvcount=3 recvtype=pair comm=inter request=%q", s[1]);
    finish(1);
    MPI_Comm_free(&inter);
    say("MPI_Comm_free freecomm=inter");
    MPI_Comm_free(&half);
    say("MPI_Comm_free freecomm=half");
}

int main(int argc, char **argv)
{
    long total = 0;
    int i, held = 0, first;
    MPI_Request kept;
    MPI_Init(&argc, &argv);
    say("MPI_Init");
    MPI_Comm_rank(W, &rank);
    say("MPI_Comm_rank comm=MPI_COMM_WORLD rank=%d", rank);
    MPI_Comm_size(W, &size);
    say("MPI_Comm_size comm=MPI_COMM_WORLD size=%d", size);
    oracle_rank = rank;
    root = size - 1;
    for (i = 0; i < 40 * MOST; i++)
        out[i] = 100 * rank + i;
    /* counts: 2, 4, 6 … integers; pairs: the same as pairs; displs: where they lie in a row; backward: back to front. */
    for (i = 0; i < size; i++) {
        counts[i] = 2 * (i + 1);
        pairs[i] = i + 1;
        displs[i] = i * (i + 1) / 2;
        backward[i] = 5 * (size - 1 - i);
    }
    MPI_Type_contiguous(2, MPI_INT, &pair);
    say("MPI_Type_contiguous count=2 type=MPI_INT newtype=new:pair");
    MPI_Type_commit(&pair);
    say("MPI_Type_commit committype=pair");
    /* Keeps slot 0, so that no request below has the number of the communicator. */
    MPI_Recv_init(&held, 1, MPI_INT, 0, 99, W, &kept);
    first = slot_recv_init(4);
    say("MPI_Recv_init count=1 type=MPI_INT source=0 tag=99 comm=MPI_COMM_WORLD request=%q", first);

    to_and_from_a_root();
    all_to_all();
    reductions();
    between_groups();

    MPI_Request_free(&kept);
    say("MPI_Request_free request=%q", slot_free(first));
    MPI_Type_free(&pair);
    say("MPI_Type_free freetype=pair");
    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, W);
    say("MPI_Reduce inplace=false count=1 type=MPI_LONG op=MPI_SUM root=0 comm=MPI_COMM_WORLD");
    MPI_Finalize();
    say("MPI_Finalize");
    oracle_write();
    if (rank == 0)
        printf(PROGRAM("icoll") ": ok %ld\n", total);
    return 0;
}
