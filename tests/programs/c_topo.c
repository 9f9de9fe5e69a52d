/* Topologies (rows 200 to 219). */
#include "oracle.h"

#define W MPI_COMM_WORLD
enum { MOST = 64 }; /* ranks */

static int rank, size;
static long sum;

static const char *kind(int topology)
{
    return topology == MPI_CART         ? "MPI_CART"
           : topology == MPI_GRAPH      ? "MPI_GRAPH"
           : topology == MPI_DIST_GRAPH ? "MPI_DIST_GRAPH"
                                        : "MPI_UNDEFINED";
}

static void grid(void)
{
    MPI_Comm cart, row, torus;
    int dims[2] = {0, 0}, three[3], periods[3] = {1, 0, 1}, coords[3], got[3], wrap[3], remain[3] = {0, 1, 1};
    int n, from, to;
    three[0] = 0;
    three[1] = 5;
    three[2] = 0;
    MPI_Dims_create(60, 3, three);
    say("MPI_Dims_create nnodes=60 ndims=3 dims=%D", 3, three);
    sum += three[0] + 10 * three[2];
    MPI_Dims_create(size, 2, dims);
    say("MPI_Dims_create nnodes=%d ndims=2 dims=%D", size, 2, dims);
    three[0] = dims[0];
    three[1] = 1;
    three[2] = dims[1];
    MPI_Cart_map(W, 3, three, periods, &n);
    say("MPI_Cart_map comm=MPI_COMM_WORLD ndims=3 dims=%D periods=%B rank=%d", 3, three, 3, periods, n);
    MPI_Cart_create(W, 3, three, periods, 0, &cart);
    say("MPI_Cart_create comm=MPI_COMM_WORLD ndims=3 dims=%D periods=%B reorder=0 newcomm=new:cart", 3, three, 3, periods);
    MPI_Topo_test(cart, &n);
    say("MPI_Topo_test comm=cart status=%s", kind(n));
    sum += n == MPI_CART;
    MPI_Cartdim_get(cart, &n);
    say("MPI_Cartdim_get comm=cart ndims=3");
    sum += n;
    MPI_Cart_get(cart, 3, got, wrap, coords);
    say("MPI_Cart_get comm=cart maxdims=3 dims=%D periods=%D coords=%D", 3, got, 3, wrap, 3, coords);
    sum += got[0] + 3 * got[2] + wrap[0] + wrap[2];
    MPI_Cart_coords(cart, size - 1, 3, coords);
    say("MPI_Cart_coords comm=cart rank=%d maxdims=3 coords=%D", size - 1, 3, coords);
    sum += coords[0] + 2 * coords[2];
    MPI_Cart_rank(cart, coords, &n);
    say("MPI_Cart_rank comm=cart coords=%D rank=%d", 3, coords, n);
    sum += n;
    MPI_Cart_shift(cart, 0, 1, &from, &to);
    say("MPI_Cart_shift comm=cart direction=0 disp=1 source=%r dest=%r", from, to);
    MPI_Sendrecv(&rank, 1, MPI_INT, to, 4, &n, 2, MPI_INT, from, 4, cart, MPI_STATUS_IGNORE);
    say("MPI_Sendrecv sendcount=1 sendtype=MPI_INT dest=%r sendtag=4 recvcount=2 recvtype=MPI_INT source=%r recvtag=4 "
        "comm=cart rsource=null rtag=null bytes=4", to, from);
    sum += n * (rank + 1);
    MPI_Cart_shift(cart, 1, -1, &from, &to);
    say("MPI_Cart_shift comm=cart direction=1 disp=-1 source=MPI_PROC_NULL dest=MPI_PROC_NULL");
    sum += from == to;
    MPI_Cart_sub(cart, remain, &row);
    say("MPI_Cart_sub comm=cart remain=%B newcomm=new:row", 3, remain);
    MPI_Allreduce(&rank, &n, 1, MPI_INT, MPI_SUM, row);
    say("MPI_Allreduce inplace=false count=1 type=MPI_INT op=MPI_SUM comm=row");
    sum += n;
    MPI_Cartdim_get(row, &n);
    say("MPI_Cartdim_get comm=row ndims=2");
    sum += n;
    MPI_Comm_free(&row);
    say("MPI_Comm_free freecomm=row");
    MPI_Comm_free(&cart);
    say("MPI_Comm_free freecomm=cart");
    /* One rank less than there are: the last one stays outside. */
    n = size - 1;
    periods[0] = 0;
    MPI_Cart_create(W, 1, &n, periods, 1, &torus);
    to = torus == MPI_COMM_NULL;
    say("MPI_Cart_create comm=MPI_COMM_WORLD ndims=1 dims=%D periods=[false] reorder=1 newcomm=%s", 1, &n,
        to ? "null" : "new:line");
    sum += 3 * to;
    if (!to) {
        MPI_Comm_free(&torus);
        say("MPI_Comm_free freecomm=line");
    }
    MPI_Topo_test(W, &n);
    say("MPI_Topo_test comm=MPI_COMM_WORLD status=%s", kind(n));
    sum += n == MPI_UNDEFINED;
}

/* A line: everyone's neighbours are the ones before and after; rank 0 is its own, too. */
static void graph(void)
{
    MPI_Comm line;
    int ends[MOST], edges[2 * MOST], ends2[MOST], edges2[2 * MOST], near[2], i, n = 0, m;
    for (i = 0; i < size; i++) {
        edges[n++] = i > 0 ? i - 1 : 0;
        if (i + 1 < size)
            edges[n++] = i + 1;
        ends[i] = n;
    }
    MPI_Graph_map(W, size, ends, edges, &m);
    say("MPI_Graph_map comm=MPI_COMM_WORLD nnodes=%d index=%D edges=%D rank=%d", size, size, ends, n, edges, m);
    MPI_Graph_create(W, size, ends, edges, 0, &line);
    say("MPI_Graph_create comm=MPI_COMM_WORLD nnodes=%d index=%D edges=%D reorder=0 newcomm=new:graph", size, size, ends,
        n, edges);
    MPI_Topo_test(line, &m);
    say("MPI_Topo_test comm=graph status=%s", kind(m));
    MPI_Graphdims_get(line, &m, &i);
    say("MPI_Graphdims_get comm=graph nnodes=%d nedges=%d", size, n);
    sum += m + 10 * i;
    MPI_Graph_get(line, size, n, ends2, edges2);
    say("MPI_Graph_get comm=graph maxindex=%d maxedges=%d index=%D edges=%D", size, n, size, ends, n, edges);
    sum += ends2[size - 1] + edges2[n - 1];
    MPI_Graph_neighbors_count(line, (rank + 1) % size, &m);
    i = (rank + 1) % size;
    say("MPI_Graph_neighbors_count comm=graph rank=%d n=%d", i, i == size - 1 ? 1 : 2);
    sum += m;
    MPI_Graph_neighbors(line, (rank + 1) % size, m, near);
    say("MPI_Graph_neighbors comm=graph rank=%d max=%d neighbors=%D", i, m, m, near);
    sum += near[0];
    MPI_Comm_free(&line);
    say("MPI_Comm_free freecomm=graph");
}

/* A ring with an edge more from rank 0 to rank 1, and everyone to himself. The edge from a to b weighs 10 a + b + 1. */
static void distributed(void)
{
    MPI_Comm ring;
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    int in = 2 + (rank == 1), out = 2 + (rank == 0), i, n, m, weighted;
    int sources[3] = {left, rank, 0}, destinations[3] = {right, rank, 1}, inw[3], outw[3], got[3], gotw[3], to[3], tow[3];
    for (i = 0; i < 3; i++) {
        inw[i] = 10 * sources[i] + rank + 1;
        outw[i] = 10 * rank + destinations[i] + 1;
    }
    MPI_Dist_graph_create_adjacent(W, in, sources, inw, out, destinations, outw, MPI_INFO_NULL, 0, &ring);
    say("MPI_Dist_graph_create_adjacent comm=MPI_COMM_WORLD indegree=%d sources=%D sourceweights=%D outdegree=%d "
        "destinations=%D destweights=%D reorder=0 newcomm=new:ring", in, in, sources, in, inw, out, out, destinations,
        out, outw);
    MPI_Topo_test(ring, &n);
    say("MPI_Topo_test comm=ring status=%s", kind(n));
    MPI_Dist_graph_neighbors_count(ring, &n, &m, &weighted);
    say("MPI_Dist_graph_neighbors_count comm=ring indegree=%d outdegree=%d weighted=1", in, out);
    sum += n + 10 * m + weighted;
    MPI_Dist_graph_neighbors(ring, n, got, gotw, m, to, tow);
    say("MPI_Dist_graph_neighbors comm=ring maxin=%d sources=%D maxout=%d destinations=%D", in, in, got, out, out, to);
    sum += gotw[0] + 2 * tow[0];
    MPI_Comm_free(&ring);
    say("MPI_Comm_free freecomm=ring");

    MPI_Dist_graph_create_adjacent(W, 1, sources, MPI_UNWEIGHTED, 1, destinations, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
    say("MPI_Dist_graph_create_adjacent comm=MPI_COMM_WORLD indegree=1 sources=%D sourceweights=[\"MPI_UNWEIGHTED\"] outdegree=1 "
        "destinations=%D destweights=[\"MPI_UNWEIGHTED\"] reorder=0 newcomm=new:plain", 1, sources, 1, destinations);
    MPI_Dist_graph_neighbors_count(ring, &n, &m, &weighted);
    say("MPI_Dist_graph_neighbors_count comm=plain indegree=1 outdegree=1 weighted=0");
    sum += n + 10 * m + 100 * weighted;
    MPI_Comm_free(&ring);
    say("MPI_Comm_free freecomm=plain");

    /* Each rank states the edges that leave it and those of its left neighbour to itself: two sources. */
    {
        int two[2] = {rank, left}, degrees[2] = {2, 1}, ends[3] = {right, rank, left}, weights[3] = {7, 8, 9};
        MPI_Dist_graph_create(W, 2, two, degrees, ends, weights, MPI_INFO_NULL, 0, &ring);
        say("MPI_Dist_graph_create comm=MPI_COMM_WORLD n=2 sources=%D degrees=%D destinations=%D weights=%D reorder=0 "
            "newcomm=new:stated", 2, two, 2, degrees, 3, ends, 3, weights);
        MPI_Dist_graph_neighbors_count(ring, &n, &m, &weighted);
        say("MPI_Dist_graph_neighbors_count comm=stated indegree=%d outdegree=%d weighted=%d", n, m, weighted);
        sum += n + 10 * m + 100 * weighted;
        MPI_Comm_free(&ring);
        say("MPI_Comm_free freecomm=stated");
        MPI_Dist_graph_create(W, 1, two, degrees, ends, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
        say("MPI_Dist_graph_create comm=MPI_COMM_WORLD n=1 sources=%D degrees=%D destinations=%D weights=[\"MPI_UNWEIGHTED\"] reorder=0 "
            "newcomm=new:unweighted", 1, two, 1, degrees, 2, ends);
        MPI_Comm_free(&ring);
        say("MPI_Comm_free freecomm=unweighted");
    }
}

int main(int argc, char **argv)
{
    long total = 0;
    MPI_Init(&argc, &argv);
    say("MPI_Init");
    MPI_Comm_rank(W, &rank);
    say("MPI_Comm_rank comm=MPI_COMM_WORLD rank=%d", rank);
    MPI_Comm_size(W, &size);
    say("MPI_Comm_size comm=MPI_COMM_WORLD size=%d", size);
    oracle_rank = rank;

    grid();
    graph();
    distributed();

    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, W);
    say("MPI_Reduce inplace=false count=1 type=MPI_LONG op=MPI_SUM root=0 comm=MPI_COMM_WORLD");
    MPI_Finalize();
    say("MPI_Finalize");
    oracle_write();
    if (rank == 0)
        printf(PROGRAM("topo") ": ok %ld\n", total);
    return 0;
}
