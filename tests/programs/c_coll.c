/* Blocking collective operations (rows 100 to 116), in place too, and between groups. */
#include "oracle.h"

#define W MPI_COMM_WORLD
enum { MOST = 64 }; /* ranks */

static int rank, size, root;
static int out[40 * MOST], in[40 * MOST];
static COUNT counts[MOST], pairs[MOST];
static DISPL displs[MOST], backward[MOST];
static long sum;
static MPI_Datatype pair;

static void add(void)
{
    int i;
    for (i = 0; i < 40 * MOST; i++) {
        sum += in[i] * (i % 100 + 1L);
        in[i] = 0;
    }
}

/* counts: 2, 4, 6 … integers; pairs: the same as pairs; displs: where they lie in a row; backward: back to front. */
static void lengths(void)
{
    int i;
    for (i = 0; i < size; i++) {
        counts[i] = 2 * (i + 1);
        pairs[i] = i + 1;
        displs[i] = i * (i + 1) / 2;
        backward[i] = 5 * (size - 1 - i);
    }
}

static void to_and_from_a_root(void)
{
    int here = rank == root;
    MPI_Barrier(W);
    say("MPI_Barrier comm=MPI_COMM_WORLD");
    memcpy(in, out, sizeof in);
    MPI_Bcast(in, 11, MPI_INT, root, W);
    say("MPI_Bcast count=11 type=MPI_INT root=%r comm=MPI_COMM_WORLD", root);
    add();
    /* Arguments that only the root's process reads are nonsense elsewhere. */
    MPI_Gather(out, 6, MPI_INT, in, here ? 3 : -77, here ? pair : MPI_DATATYPE_NULL, root, W);
    say("MPI_Gather inplace=false sendcount=6 sendtype=MPI_INT recvcount=%d recvtype=%s root=%r comm=MPI_COMM_WORLD",
        here ? 3 : 0, here ? "pair" : "null", root);
    add();
    if (here) {
        MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 7, MPI_INT, root, W);
        say("MPI_Gather inplace=true sendcount=0 sendtype=null recvcount=7 recvtype=MPI_INT root=%r "
            "comm=MPI_COMM_WORLD", root);
    } else {
        MPI_Gather(out, 7, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, root, W);
        say("MPI_Gather inplace=false sendcount=7 sendtype=MPI_INT recvcount=0 recvtype=null root=%r "
            "comm=MPI_COMM_WORLD", root);
    }
    add();
    MPI_Gatherv(out, counts[rank], MPI_INT, in, pairs, backward, pair, root, W);
    say("MPI_Gatherv inplace=false sendcount=%n sendtype=MPI_INT recvcounts=%N displs=%V recvtype=%s root=%r "
        "comm=MPI_COMM_WORLD", counts[rank], here ? size : 0, pairs, here ? size : 0, backward, here ? "pair" : "null",
        root);
    add();
    MPI_Gatherv(out, pairs[rank], pair, in, pairs, displs, pair, root, W);
    say("MPI_Gatherv inplace=false sendcount=%n sendtype=pair recvcounts=%N displs=[] recvtype=%s root=%r "
        "comm=MPI_COMM_WORLD", pairs[rank], here ? size : 0, pairs, here ? "pair" : "null", root);
    add();
    MPI_Scatter(out, 8, MPI_INT, in, 4, pair, root, W);
    say("MPI_Scatter sendcount=%d sendtype=%s inplace=false recvcount=4 recvtype=pair root=%r comm=MPI_COMM_WORLD",
        here ? 8 : 0, here ? "MPI_INT" : "null", root);
    add();
    if (here) {
        MPI_Scatter(out, 9, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, root, W);
        say("MPI_Scatter sendcount=9 sendtype=MPI_INT inplace=true recvcount=0 recvtype=null root=%r "
            "comm=MPI_COMM_WORLD", root);
    } else {
        MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, in, 9, MPI_INT, root, W);
        say("MPI_Scatter sendcount=0 sendtype=null inplace=false recvcount=9 recvtype=MPI_INT root=%r "
            "comm=MPI_COMM_WORLD", root);
    }
    add();
    MPI_Scatterv(out, pairs, backward, pair, in, counts[rank], MPI_INT, root, W);
    say("MPI_Scatterv sendcounts=%N displs=%V sendtype=%s inplace=false recvcount=%n recvtype=MPI_INT root=%r "
        "comm=MPI_COMM_WORLD", here ? size : 0, pairs, here ? size : 0, backward, here ? "pair" : "null", counts[rank],
        root);
    add();
    MPI_Scatterv(out, pairs, displs, pair, in, pairs[rank], pair, root, W);
    say("MPI_Scatterv sendcounts=%N displs=[] sendtype=%s inplace=false recvcount=%n recvtype=pair root=%r "
        "comm=MPI_COMM_WORLD", here ? size : 0, pairs, here ? "pair" : "null", pairs[rank], root);
    add();
}

static void all_to_all(void)
{
    COUNT sendcounts[MOST], recvcounts[MOST];
    DISPL sdispls[MOST], rdispls[MOST];
    int i;
    MPI_Datatype sendtypes[MOST], recvtypes[MOST];
    char *sendnames, *recvnames;
    MPI_Allgather(out, 6, MPI_INT, in, 3, pair, W);
    say("MPI_Allgather inplace=false sendcount=6 sendtype=MPI_INT recvcount=3 recvtype=pair comm=MPI_COMM_WORLD");
    add();
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 5, MPI_INT, W);
    say("MPI_Allgather inplace=true sendcount=0 sendtype=null recvcount=5 recvtype=MPI_INT comm=MPI_COMM_WORLD");
    add();
    MPI_Allgatherv(out, counts[rank], MPI_INT, in, pairs, backward, pair, W);
    say("MPI_Allgatherv inplace=false sendcount=%n sendtype=MPI_INT recvcounts=%N displs=%V recvtype=pair "
        "comm=MPI_COMM_WORLD", counts[rank], size, pairs, size, backward);
    add();
    MPI_Allgatherv(out, counts[rank], MPI_INT, in, pairs, displs, pair, W);
    say("MPI_Allgatherv inplace=false sendcount=%n sendtype=MPI_INT recvcounts=%N displs=[] recvtype=pair "
        "comm=MPI_COMM_WORLD", counts[rank], size, pairs);
    add();
    MPI_Alltoall(out, 4, MPI_INT, in, 2, pair, W);
    say("MPI_Alltoall inplace=false sendcount=4 sendtype=MPI_INT recvcount=2 recvtype=pair comm=MPI_COMM_WORLD");
    add();
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 3, MPI_INT, W);
    say("MPI_Alltoall inplace=true sendcount=0 sendtype=null recvcount=3 recvtype=MPI_INT comm=MPI_COMM_WORLD");
    add();
    /* a sends b 2 (1 + (a + 2 b) mod 3) integers, which arrive as pairs. */
    for (i = 0; i < size; i++) {
        sendcounts[i] = 2 * (1 + (rank + 2 * i) % 3);
        recvcounts[i] = 1 + (i + 2 * rank) % 3;
        sdispls[i] = i ? sdispls[i - 1] + sendcounts[i - 1] : 0;
        rdispls[i] = 4 * i + 1;
    }
    MPI_Alltoallv(out, sendcounts, sdispls, MPI_INT, in, recvcounts, rdispls, pair, W);
    say("MPI_Alltoallv inplace=false sendcounts=%N sdispls=[] sendtype=MPI_INT recvcounts=%N rdispls=%V recvtype=pair "
        "comm=MPI_COMM_WORLD", size, sendcounts, size, recvcounts, size, rdispls);
    add();
    for (i = 0; i < size; i++) {
        sdispls[i] = 7 * i + 2;
        rdispls[i] = i ? rdispls[i - 1] + recvcounts[i - 1] : 0;
    }
    MPI_Alltoallv(out, sendcounts, sdispls, MPI_INT, in, recvcounts, rdispls, pair, W);
    say("MPI_Alltoallv inplace=false sendcounts=%N sdispls=%V sendtype=MPI_INT recvcounts=%N rdispls=[] recvtype=pair "
        "comm=MPI_COMM_WORLD", size, sendcounts, size, sdispls, size, recvcounts);
    add();
    /* Displacements in bytes. Even ranks are sent integers, odd ones pairs; each receives the other kind. */
    sendnames = malloc(20 * MOST);
    recvnames = malloc(20 * MOST);
    strcpy(sendnames, "[");
    strcpy(recvnames, "[");
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
    MPI_Alltoallw(out, sendcounts, sdispls, sendtypes, in, recvcounts, rdispls, recvtypes, W);
    say("MPI_Alltoallw inplace=false sendcounts=%N sdispls=%V sendtypes=%s recvcounts=%N rdispls=%V recvtypes=%s "
        "comm=MPI_COMM_WORLD", size, sendcounts, size, sdispls, sendnames, size, recvcounts, size, rdispls, recvnames);
    add();
    free(sendnames);
    free(recvnames);
}

static void reductions(void)
{
    long a[2] = {rank + 1, 3 * rank}, b[2] = {0, 0}, many[MOST * 8];
    double x = 0.5 * rank, y = 0;
    int i;
    MPI_Reduce(a, b, 2, MPI_LONG, MPI_MAX, root, W);
    say("MPI_Reduce inplace=false count=2 type=MPI_LONG op=MPI_MAX root=%r comm=MPI_COMM_WORLD", root);
    sum += b[0] + b[1];
    if (rank == root) {
        MPI_Reduce(MPI_IN_PLACE, &x, 1, MPI_DOUBLE, MPI_SUM, root, W);
        say("MPI_Reduce inplace=true count=1 type=MPI_DOUBLE op=MPI_SUM root=%r comm=MPI_COMM_WORLD", root);
        sum += (long)(2 * x);
    } else {
        MPI_Reduce(&x, NULL, 1, MPI_DOUBLE, MPI_SUM, root, W);
        say("MPI_Reduce inplace=false count=1 type=MPI_DOUBLE op=MPI_SUM root=%r comm=MPI_COMM_WORLD", root);
    }
    MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_MIN, W);
    say("MPI_Allreduce inplace=false count=1 type=MPI_DOUBLE op=MPI_MIN comm=MPI_COMM_WORLD");
    MPI_Allreduce(MPI_IN_PLACE, a, 2, MPI_LONG, MPI_BOR, W);
    say("MPI_Allreduce inplace=true count=2 type=MPI_LONG op=MPI_BOR comm=MPI_COMM_WORLD");
    sum += a[0] + a[1] + (long)(2 * y);
    MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, W);
    say("MPI_Reduce_scatter inplace=false counts=%N type=MPI_INT op=MPI_SUM comm=MPI_COMM_WORLD", size, counts);
    add();
    for (i = 0; i < 8 * size; i++)
        many[i] = rank ^ i;
    MPI_Reduce_scatter(MPI_IN_PLACE, many, pairs, MPI_LONG, MPI_BXOR, W);
    say("MPI_Reduce_scatter inplace=true counts=%N type=MPI_LONG op=MPI_BXOR comm=MPI_COMM_WORLD", size, pairs);
    sum += many[0];
    for (i = 0; i < 8 * size; i++)
        many[i] = rank + i;
    MPI_Reduce_scatter_block(many, a, 2, MPI_LONG, MPI_SUM, W);
    say("MPI_Reduce_scatter_block inplace=false count=2 type=MPI_LONG op=MPI_SUM comm=MPI_COMM_WORLD");
    MPI_Reduce_scatter_block(MPI_IN_PLACE, many, 8, MPI_LONG, MPI_MAX, W);
    say("MPI_Reduce_scatter_block inplace=true count=8 type=MPI_LONG op=MPI_MAX comm=MPI_COMM_WORLD");
    sum += a[0] + many[7];
    MPI_Scan(out, in, 9, MPI_INT, MPI_SUM, W);
    say("MPI_Scan inplace=false count=9 type=MPI_INT op=MPI_SUM comm=MPI_COMM_WORLD");
    MPI_Scan(MPI_IN_PLACE, in, 4, MPI_INT, MPI_BAND, W);
    say("MPI_Scan inplace=true count=4 type=MPI_INT op=MPI_BAND comm=MPI_COMM_WORLD");
    add();
    MPI_Exscan(out, in, 10, MPI_INT, MPI_SUM, W);
    say("MPI_Exscan inplace=false count=10 type=MPI_INT op=MPI_SUM comm=MPI_COMM_WORLD");
    MPI_Exscan(MPI_IN_PLACE, in, 3, MPI_INT, MPI_MIN, W);
    say("MPI_Exscan inplace=true count=3 type=MPI_INT op=MPI_MIN comm=MPI_COMM_WORLD");
    if (rank == 0)
        memset(in, 0, sizeof in); /* undefined there */
    add();
}

/* Between the even and the odd ranks. The second process of the first group (or the first) is the root. */
static void between_groups(void)
{
    MPI_Comm half, inter;
    int odd = rank % 2, there = odd ? (size + 1) / 2 : size / 2, i;
    int chief = (size + 1) / 2 > 1; /* its rank among the even ones */
    int role = odd ? chief : rank == 2 * chief ? MPI_ROOT : MPI_PROC_NULL;
    MPI_Comm_split(W, odd, 10 * rank, &half);
    say("MPI_Comm_split comm=MPI_COMM_WORLD color=%d key=%d newcomm=new:half", odd, 10 * rank);
    MPI_Intercomm_create(half, 0, W, 1 - odd, 55, &inter);
    say("MPI_Intercomm_create comm=half leader=0 peercomm=MPI_COMM_WORLD remoteleader=%r tag=55 newcomm=new:inter",
        1 - odd);
    MPI_Barrier(inter);
    say("MPI_Barrier comm=inter");
    memcpy(in, out, sizeof in);
    MPI_Bcast(in, 12, MPI_INT, role, inter);
    if (role == MPI_PROC_NULL)
        say("MPI_Bcast count=0 type=null root=MPI_PROC_NULL comm=inter");
    else
        say("MPI_Bcast count=12 type=MPI_INT root=%r comm=inter", role);
    add();
    MPI_Allgather(out, 6, MPI_INT, in, 3, pair, inter);
    say("MPI_Allgather inplace=false sendcount=6 sendtype=MPI_INT recvcount=3 recvtype=pair comm=inter");
    add();
    for (i = 0; i < there; i++)
        pairs[i] = 1 + 2 * i + (1 - odd); /* the odd ranks send even numbers of pairs */
    MPI_Allgatherv(out, 2 * (1 + 2 * (rank / 2) + odd), MPI_INT, in, pairs, backward, pair, inter);
    say("MPI_Allgatherv inplace=false sendcount=%d sendtype=MPI_INT recvcounts=%N displs=%V recvtype=pair comm=inter",
        2 * (1 + 2 * (rank / 2) + odd), there, pairs, there, backward);
    add();
    /* What the root sends to itself, and all that the others of its group say, means nothing. */
    MPI_Gather(out, role == MPI_ROOT ? 5 : 8, MPI_INT, in, 4, pair, role, inter);
    if (role == MPI_ROOT)
        say("MPI_Gather inplace=false sendcount=0 sendtype=null recvcount=4 recvtype=pair root=MPI_ROOT comm=inter");
    else if (role == MPI_PROC_NULL)
        say("MPI_Gather inplace=false sendcount=0 sendtype=null recvcount=0 recvtype=null root=MPI_PROC_NULL comm=inter");
    else
        say("MPI_Gather inplace=false sendcount=8 sendtype=MPI_INT recvcount=0 recvtype=null root=%r comm=inter", role);
    add();
    MPI_Reduce(out, in, 5, MPI_INT, MPI_SUM, role, inter);
    if (role == MPI_PROC_NULL)
        say("MPI_Reduce inplace=false count=0 type=null op=null root=MPI_PROC_NULL comm=inter");
    else
        say("MPI_Reduce inplace=false count=5 type=MPI_INT op=MPI_SUM root=%r comm=inter", role);
    add();
    MPI_Allreduce(out, in, 6, MPI_INT, MPI_MAX, inter);
    say("MPI_Allreduce inplace=false count=6 type=MPI_INT op=MPI_MAX comm=inter");
    add();
    /* Counts of the local group; both groups receive as much. */
    for (i = 0; i < size - there; i++)
        counts[i] = 3 * there;
    MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, inter);
    say("MPI_Reduce_scatter inplace=false counts=%N type=MPI_INT op=MPI_SUM comm=inter", size - there, counts);
    add();
    MPI_Comm_free(&inter);
    say("MPI_Comm_free freecomm=inter");
    MPI_Comm_free(&half);
    say("MPI_Comm_free freecomm=half");
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
    root = size - 1;
    for (i = 0; i < 40 * MOST; i++)
        out[i] = 100 * rank + i;
    lengths();
    MPI_Type_contiguous(2, MPI_INT, &pair);
    say("MPI_Type_contiguous count=2 type=MPI_INT newtype=new:pair");
    MPI_Type_commit(&pair);
    say("MPI_Type_commit committype=pair");

    to_and_from_a_root();
    all_to_all();
    reductions();
    between_groups();

    MPI_Type_free(&pair);
    say("MPI_Type_free freetype=pair");
    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, W);
    say("MPI_Reduce inplace=false count=1 type=MPI_LONG op=MPI_SUM root=0 comm=MPI_COMM_WORLD");
    MPI_Finalize();
    say("MPI_Finalize");
    oracle_write();
    if (rank == 0)
        printf(PROGRAM("coll") ": ok %ld\n", total);
    return 0;
}
