/* Neighbourhood collectives (rows 620 to 628, 660 to 676), on each kind of topology. */
#include "oracle.h"

#define W MPI_COMM_WORLD
enum { MOST = 8 }; /* neighbours */

static int rank, size;
static int out[40 * MOST], in[40 * MOST];
static long sum;
static MPI_Datatype pair;

static MPI_Request q[2];
static int s[2];

static void take(void)
{
    int i;
    for (i = 0; i < 40 * MOST; i++) {
        sum += in[i] * (i % 100 + 1L);
        in[i] = 0;
    }
}

/* Waits for the operation, beside which slot 0 stays busy. */
static void finish(void)
{
    MPI_Status st;
    MPI_Wait(&q[1], &st);
    say("MPI_Wait requests=%Q completed=%C", 1, &s[1], 1, all_positions, &s[1], &st);
    take();
}

/* From nin neighbours, to nout ones, on the communicator called name. */
static void blocking(MPI_Comm comm, const char *name, int nin, int nout)
{
    COUNT sendcounts[MOST], recvcounts[MOST];
    DISPL sdispls[MOST], rdispls[MOST];
    int i;
    MPI_Neighbor_allgather(out, 6, MPI_INT, in, 3, pair, comm);
    say("MPI_Neighbor_allgather sendcount=6 sendtype=MPI_INT recvcount=3 recvtype=pair comm=%s", name);
    take();
    for (i = 0; i < nin; i++) {
        recvcounts[i] = 4;
        rdispls[i] = 9 * i + 1;
    }
    MPI_Neighbor_allgatherv(out, 2, pair, in, recvcounts, rdispls, MPI_INT, comm);
    say("MPI_Neighbor_allgatherv sendcount=2 sendtype=pair recvcounts=%N displs=%V recvtype=MPI_INT comm=%s", nin,
        recvcounts, nin, rdispls, name);
    take();
    MPI_Neighbor_alltoall(out, 10, MPI_INT, in, 5, pair, comm);
    say("MPI_Neighbor_alltoall sendcount=10 sendtype=MPI_INT recvcount=5 recvtype=pair comm=%s", name);
    take();
    for (i = 0; i < nin; i++)
        recvcounts[i] = 1;
    for (i = 0; i < nout; i++) {
        sendcounts[i] = 2;
        sdispls[i] = 3 * i + 2;
    }
    MPI_Neighbor_alltoallv(out, sendcounts, sdispls, MPI_INT, in, recvcounts, rdispls, pair, comm);
    say("MPI_Neighbor_alltoallv sendcounts=%N sdispls=%V sendtype=MPI_INT recvcounts=%N rdispls=%V recvtype=pair comm=%s",
        nout, sendcounts, nout, sdispls, nin, recvcounts, nin, rdispls, name);
    take();
}

/* The lists of types "pair" and "MPI_INT". */
static const char *types(int n, const char *what)
{
    static char text[2][200];
    static int turn;
    char *t = text[turn = 1 - turn];
    int i;
    strcpy(t, "[");
    for (i = 0; i < n; i++)
        sprintf(t + strlen(t), "%s\"%s\"", i ? "," : "", what);
    return strcat(t, "]");
}

static void words(MPI_Comm comm, const char *name, int nin, int nout)
{
    COUNT sendcounts[MOST], recvcounts[MOST];
    int i;
    MPI_Aint sdispls[MOST], rdispls[MOST];
    MPI_Datatype sendtypes[MOST], recvtypes[MOST];
    for (i = 0; i < nin; i++) {
        recvcounts[i] = 6;
        rdispls[i] = 36 * i + 4;
        recvtypes[i] = MPI_INT;
    }
    for (i = 0; i < nout; i++) {
        sendcounts[i] = 3;
        sdispls[i] = 32 * i + 8;
        sendtypes[i] = pair;
    }
    MPI_Neighbor_alltoallw(out, sendcounts, sdispls, sendtypes, in, recvcounts, rdispls, recvtypes, comm);
    say("MPI_Neighbor_alltoallw sendcounts=%N sdispls=%A sendtypes=%s recvcounts=%N rdispls=%A recvtypes=%s comm=%s", nout,
        sendcounts, nout, sdispls, types(nout, "pair"), nin, recvcounts, nin, rdispls, types(nin, "MPI_INT"), name);
    take();
    MPI_Ineighbor_alltoallw(out, sendcounts, sdispls, sendtypes, in, recvcounts, rdispls, recvtypes, comm, &q[1]);
    s[1] = slot_send();
    say("MPI_Ineighbor_alltoallw sendcounts=%N sdispls=%A sendtypes=%s recvcounts=%N rdispls=%A recvtypes=%s comm=%s "
        "request=%q", nout, sendcounts, nout, sdispls, types(nout, "pair"), nin, recvcounts, nin, rdispls,
        types(nin, "MPI_INT"), name, s[1]);
    finish();
}

static void starting(MPI_Comm comm, const char *name, int nin, int nout)
{
    COUNT sendcounts[MOST], recvcounts[MOST];
    DISPL sdispls[MOST], rdispls[MOST];
    int i;
    MPI_Ineighbor_allgather(out, 8, MPI_INT, in, 4, pair, comm, &q[1]);
    s[1] = slot_send();
    say("MPI_Ineighbor_allgather sendcount=8 sendtype=MPI_INT recvcount=4 recvtype=pair comm=%s request=%q", name, s[1]);
    finish();
    for (i = 0; i < nin; i++) {
        recvcounts[i] = 6;
        rdispls[i] = 8 * i + 2;
    }
    MPI_Ineighbor_allgatherv(out, 3, pair, in, recvcounts, rdispls, MPI_INT, comm, &q[1]);
    s[1] = slot_send();
    say("MPI_Ineighbor_allgatherv sendcount=3 sendtype=pair recvcounts=%N displs=%V recvtype=MPI_INT comm=%s request=%q",
        nin, recvcounts, nin, rdispls, name, s[1]);
    finish();
    MPI_Ineighbor_alltoall(out, 3, pair, in, 6, MPI_INT, comm, &q[1]);
    s[1] = slot_send();
    say("MPI_Ineighbor_alltoall sendcount=3 sendtype=pair recvcount=6 recvtype=MPI_INT comm=%s request=%q", name, s[1]);
    finish();
    for (i = 0; i < nin; i++) {
        recvcounts[i] = 3;
        rdispls[i] = 3 * i;
    }
    for (i = 0; i < nout; i++) {
        sendcounts[i] = 6;
        sdispls[i] = 7 * i + 3;
    }
    MPI_Ineighbor_alltoallv(out, sendcounts, sdispls, MPI_INT, in, recvcounts, rdispls, pair, comm, &q[1]);
    s[1] = slot_send();
    say("MPI_Ineighbor_alltoallv sendcounts=%N sdispls=%V sendtype=MPI_INT recvcounts=%N rdispls=[] recvtype=pair comm=%s "
        "request=%q", nout, sendcounts, nout, sdispls, nin, recvcounts, name, s[1]);
    finish();
}

static void all(MPI_Comm comm, const char *name, int nin, int nout)
{
    blocking(comm, name, nin, nout);
    words(comm, name, nin, nout);
    starting(comm, name, nin, nout);
}

int main(int argc, char **argv)
{
    long total = 0;
    int i, n = 0, dims[2], periods[2] = {1, 0}, ends[64], edges[128];
    MPI_Comm cart, line, star;
    MPI_Status st;
    MPI_Init(&argc, &argv);
    say("MPI_Init");
    MPI_Comm_rank(W, &rank);
    say("MPI_Comm_rank comm=MPI_COMM_WORLD rank=%d", rank);
    MPI_Comm_size(W, &size);
    say("MPI_Comm_size comm=MPI_COMM_WORLD size=%d", size);
    oracle_rank = rank;
    for (i = 0; i < 40 * MOST; i++)
        out[i] = 7 * rank + i % 13;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    say("MPI_Type_contiguous count=2 type=MPI_INT newtype=new:pair");
    MPI_Type_commit(&pair);
    say("MPI_Type_commit committype=pair");
    MPI_Ibarrier(W, &q[0]);
    s[0] = slot_send();
    say("MPI_Ibarrier comm=MPI_COMM_WORLD request=%q", s[0]);

    /* Four neighbours, two of which are nobody. */
    dims[0] = size;
    dims[1] = 1;
    MPI_Cart_create(W, 2, dims, periods, 0, &cart);
    say("MPI_Cart_create comm=MPI_COMM_WORLD ndims=2 dims=%D periods=%B reorder=0 newcomm=new:cart", 2, dims, 2, periods);
    all(cart, "cart", 4, 4);
    MPI_Comm_free(&cart);
    say("MPI_Comm_free freecomm=cart");

    /* A line: one or two neighbours. */
    for (i = 0; i < size; i++) {
        if (i > 0)
            edges[n++] = i - 1;
        if (i + 1 < size)
            edges[n++] = i + 1;
        ends[i] = n;
    }
    MPI_Graph_create(W, size, ends, edges, 0, &line);
    say("MPI_Graph_create comm=MPI_COMM_WORLD nnodes=%d index=%D edges=%D reorder=0 newcomm=new:line", size, size, ends, n,
        edges);
    n = (rank > 0) + (rank + 1 < size);
    all(line, "line", n, n);
    MPI_Comm_free(&line);
    say("MPI_Comm_free freecomm=line");

    /* Everyone sends to rank 0 and to himself. */
    {
        int sources[64], destinations[2] = {0, rank}, degree = rank ? 1 : size + 1;
        if (size > 7)
            degree = rank ? 1 : 8;
        for (i = 0; i + 1 < degree; i++)
            sources[i] = i;
        sources[degree - 1] = rank;
        n = rank < 7 ? 2 : 1;
        MPI_Dist_graph_create_adjacent(W, degree, sources, MPI_UNWEIGHTED, n, destinations + 2 - n, MPI_UNWEIGHTED,
                                       MPI_INFO_NULL, 0, &star);
        say("MPI_Dist_graph_create_adjacent comm=MPI_COMM_WORLD indegree=%d sources=%D sourceweights=[\"MPI_UNWEIGHTED\"] "
            "outdegree=%d destinations=%D destweights=[\"MPI_UNWEIGHTED\"] reorder=0 newcomm=new:star", degree, degree,
            sources, n, n, destinations + 2 - n);
        all(star, "star", degree, n);
        MPI_Comm_free(&star);
        say("MPI_Comm_free freecomm=star");
    }

    MPI_Wait(&q[0], &st);
    say("MPI_Wait requests=%Q completed=%C", 1, &s[0], 1, all_positions, &s[0], &st);
    MPI_Type_free(&pair);
    say("MPI_Type_free freetype=pair");
    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, W);
    say("MPI_Reduce inplace=false count=1 type=MPI_LONG op=MPI_SUM root=0 comm=MPI_COMM_WORLD");
    MPI_Finalize();
    say("MPI_Finalize");
    oracle_write();
    if (rank == 0)
        printf(PROGRAM("neighbor") ": ok %ld\n", total);
    return 0;
}
