/* Persistent collective operations: MPI_Bcast_init and the like, which Open MPI 4 calls MPIX_Bcast_init. */
#include "oracle.h"

#define W MPI_COMM_WORLD
enum { MOST = 64 };

#if MPI_VERSION >= 4
#define P "MPI_"
#else
#include <mpi-ext.h>
#define P "MPIX_"
#define MPI_Barrier_init MPIX_Barrier_init
#define MPI_Bcast_init MPIX_Bcast_init
#define MPI_Gather_init MPIX_Gather_init
#define MPI_Gatherv_init MPIX_Gatherv_init
#define MPI_Scatter_init MPIX_Scatter_init
#define MPI_Scatterv_init MPIX_Scatterv_init
#define MPI_Allgather_init MPIX_Allgather_init
#define MPI_Allgatherv_init MPIX_Allgatherv_init
#define MPI_Alltoall_init MPIX_Alltoall_init
#define MPI_Alltoallv_init MPIX_Alltoallv_init
#define MPI_Alltoallw_init MPIX_Alltoallw_init
#define MPI_Reduce_init MPIX_Reduce_init
#define MPI_Allreduce_init MPIX_Allreduce_init
#define MPI_Reduce_scatter_init MPIX_Reduce_scatter_init
#define MPI_Reduce_scatter_block_init MPIX_Reduce_scatter_block_init
#define MPI_Scan_init MPIX_Scan_init
#define MPI_Exscan_init MPIX_Exscan_init
#define MPI_Neighbor_allgather_init MPIX_Neighbor_allgather_init
#define MPI_Neighbor_allgatherv_init MPIX_Neighbor_allgatherv_init
#define MPI_Neighbor_alltoall_init MPIX_Neighbor_alltoall_init
#define MPI_Neighbor_alltoallv_init MPIX_Neighbor_alltoallv_init
#define MPI_Neighbor_alltoallw_init MPIX_Neighbor_alltoallw_init
#endif

static int rank, size, root, s;
static int out[20 * MOST], in[20 * MOST];
static COUNT counts[MOST];
static DISPL backward[MOST];
static MPI_Request q;
static MPI_Comm own; /* a number of its own, which no type and no request has */
static long sum;

/* Starts it twice, and frees it. */
static void use(void)
{
    MPI_Status st;
    int i, turn;
    volatile int two = 2; /* so that the loop stays one */
    for (turn = 0; turn < two; turn++) {
        MPI_Start(&q);
        say("MPI_Start request=%q", s);
        MPI_Wait(&q, &st);
        say("MPI_Wait requests=%Q completed=%C", 1, &s, 1, all_positions, &s, &st);
        for (i = 0; i < 20 * MOST; i++) {
            sum += in[i] * (i % 50 + 1L);
            in[i] = 0;
        }
    }
    MPI_Request_free(&q);
    say("MPI_Request_free request=%q", slot_free(s));
}

static void rooted(void)
{
    int here = rank == root;
    s = slot_send_init();
    MPI_Barrier_init(own, MPI_INFO_NULL, &q);
    say(P "Barrier_init comm=own request=%q", s);
    use();
    s = slot_send_init();
    MPI_Bcast_init(out, 5, MPI_INT, root, own, MPI_INFO_NULL, &q);
    say(P "Bcast_init count=5 type=MPI_INT root=%r comm=own request=%q", root, s);
    use();
    s = slot_send_init();
    MPI_Gather_init(out, 6, MPI_INT, in, 6, MPI_INT, root, own, MPI_INFO_NULL, &q);
    say(P "Gather_init inplace=false sendcount=6 sendtype=MPI_INT recvcount=%d recvtype=%s root=%r comm=own "
        "request=%q", here ? 6 : 0, here ? "MPI_INT" : "null", root, s);
    use();
    s = slot_send_init();
    MPI_Gatherv_init(out, counts[rank], MPI_INT, in, counts, backward, MPI_INT, root, own, MPI_INFO_NULL, &q);
    say(P "Gatherv_init inplace=false sendcount=%n sendtype=MPI_INT recvcounts=%N displs=%V recvtype=%s root=%r "
        "comm=own request=%q", counts[rank], here ? size : 0, counts, here ? size : 0, backward,
        here ? "MPI_INT" : "null", root, s);
    use();
    s = slot_send_init();
    MPI_Scatter_init(out, 7, MPI_INT, in, 7, MPI_INT, root, own, MPI_INFO_NULL, &q);
    say(P "Scatter_init sendcount=%d sendtype=%s inplace=false recvcount=7 recvtype=MPI_INT root=%r comm=own "
        "request=%q", here ? 7 : 0, here ? "MPI_INT" : "null", root, s);
    use();
    s = slot_send_init();
    MPI_Scatterv_init(out, counts, backward, MPI_INT, in, counts[rank], MPI_INT, root, own, MPI_INFO_NULL, &q);
    say(P "Scatterv_init sendcounts=%N displs=%V sendtype=%s inplace=false recvcount=%n recvtype=MPI_INT root=%r "
        "comm=own request=%q", here ? size : 0, counts, here ? size : 0, backward, here ? "MPI_INT" : "null",
        counts[rank], root, s);
    use();
    s = slot_send_init();
    MPI_Reduce_init(out, in, 4, MPI_UNSIGNED, MPI_MAX, root, own, MPI_INFO_NULL, &q);
    say(P "Reduce_init inplace=false count=4 type=MPI_UNSIGNED op=MPI_MAX root=%r comm=own request=%q", root, s);
    use();
}

static void all(void)
{
    COUNT three[MOST];
    DISPL apart[MOST];
    char names[20 * MOST] = "[";
    MPI_Datatype types[MOST];
    int i;
    s = slot_send_init();
    MPI_Allgather_init(out, 8, MPI_INT, in, 8, MPI_INT, own, MPI_INFO_NULL, &q);
    say(P "Allgather_init inplace=false sendcount=8 sendtype=MPI_INT recvcount=8 recvtype=MPI_INT comm=own "
        "request=%q", s);
    use();
    s = slot_send_init();
    MPI_Allgatherv_init(out, counts[rank], MPI_INT, in, counts, backward, MPI_INT, own, MPI_INFO_NULL, &q);
    say(P "Allgatherv_init inplace=false sendcount=%n sendtype=MPI_INT recvcounts=%N displs=%V recvtype=MPI_INT "
        "comm=own request=%q", counts[rank], size, counts, size, backward, s);
    use();
    s = slot_send_init();
    MPI_Alltoall_init(out, 3, MPI_INT, in, 3, MPI_INT, own, MPI_INFO_NULL, &q);
    say(P "Alltoall_init inplace=false sendcount=3 sendtype=MPI_INT recvcount=3 recvtype=MPI_INT comm=own "
        "request=%q", s);
    use();
    for (i = 0; i < size; i++) {
        three[i] = 3;
        apart[i] = 5 * i + 1;
        types[i] = MPI_INT;
        sprintf(names + strlen(names), "%s\"MPI_INT\"", i ? "," : "");
    }
    strcat(names, "]");
    s = slot_send_init();
    MPI_Alltoallv_init(out, three, apart, MPI_INT, in, three, apart, MPI_INT, own, MPI_INFO_NULL, &q);
    say(P "Alltoallv_init inplace=false sendcounts=%N sdispls=%V sendtype=MPI_INT recvcounts=%N rdispls=%V recvtype=MPI_INT "
        "comm=own request=%q", size, three, size, apart, size, three, size, apart, s);
    use();
    for (i = 0; i < size; i++)
        apart[i] = 20 * i + 4;
    s = slot_send_init();
    MPI_Alltoallw_init(out, three, apart, types, in, three, apart, types, own, MPI_INFO_NULL, &q);
    say(P "Alltoallw_init inplace=false sendcounts=%N sdispls=%V sendtypes=%s recvcounts=%N rdispls=%V recvtypes=%s "
        "comm=own request=%q", size, three, size, apart, names, size, three, size, apart, names, s);
    use();
    s = slot_send_init();
    MPI_Allreduce_init(out, in, 9, MPI_INT, MPI_SUM, own, MPI_INFO_NULL, &q);
    say(P "Allreduce_init inplace=false count=9 type=MPI_INT op=MPI_SUM comm=own request=%q", s);
    use();
    s = slot_send_init();
    MPI_Reduce_scatter_init(out, in, counts, MPI_INT, MPI_SUM, own, MPI_INFO_NULL, &q);
    say(P "Reduce_scatter_init inplace=false counts=%N type=MPI_INT op=MPI_SUM comm=own request=%q", size, counts, s);
    use();
    s = slot_send_init();
    MPI_Reduce_scatter_block_init(out, in, 2, MPI_INT, MPI_SUM, own, MPI_INFO_NULL, &q);
    say(P "Reduce_scatter_block_init inplace=false count=2 type=MPI_INT op=MPI_SUM comm=own request=%q", s);
    use();
    s = slot_send_init();
    MPI_Scan_init(out, in, 10, MPI_INT, MPI_SUM, own, MPI_INFO_NULL, &q);
    say(P "Scan_init inplace=false count=10 type=MPI_INT op=MPI_SUM comm=own request=%q", s);
    use();
    s = slot_send_init();
    MPI_Exscan_init(out, in, 11, MPI_INT, MPI_SUM, own, MPI_INFO_NULL, &q);
    say(P "Exscan_init inplace=false count=11 type=MPI_INT op=MPI_SUM comm=own request=%q", s);
    use();
}

/* In a ring, where everyone has two neighbours. */
static void neighbours(void)
{
    MPI_Comm ring;
    COUNT two[2] = {2, 2};
    DISPL apart[2] = {7, 1};
    MPI_Aint far[2] = {28, 4};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    int dims[1] = {size}, periods[1] = {1};
    MPI_Cart_create(W, 1, dims, periods, 0, &ring);
    say("MPI_Cart_create comm=MPI_COMM_WORLD ndims=1 dims=%D periods=[true] reorder=0 newcomm=new:ring", 1, dims);
    s = slot_send_init();
    MPI_Neighbor_allgather_init(out, 3, MPI_INT, in, 3, MPI_INT, ring, MPI_INFO_NULL, &q);
    say(P "Neighbor_allgather_init sendcount=3 sendtype=MPI_INT recvcount=3 recvtype=MPI_INT comm=ring request=%q", s);
    use();
    s = slot_send_init();
    MPI_Neighbor_allgatherv_init(out, 2, MPI_INT, in, two, apart, MPI_INT, ring, MPI_INFO_NULL, &q);
    say(P "Neighbor_allgatherv_init sendcount=2 sendtype=MPI_INT recvcounts=%N displs=%V recvtype=MPI_INT comm=ring "
        "request=%q", 2, two, 2, apart, s);
    use();
    s = slot_send_init();
    MPI_Neighbor_alltoall_init(out, 4, MPI_INT, in, 4, MPI_INT, ring, MPI_INFO_NULL, &q);
    say(P "Neighbor_alltoall_init sendcount=4 sendtype=MPI_INT recvcount=4 recvtype=MPI_INT comm=ring request=%q", s);
    use();
    s = slot_send_init();
    MPI_Neighbor_alltoallv_init(out, two, apart, MPI_INT, in, two, apart, MPI_INT, ring, MPI_INFO_NULL, &q);
    say(P "Neighbor_alltoallv_init sendcounts=%N sdispls=%V sendtype=MPI_INT recvcounts=%N rdispls=%V recvtype=MPI_INT "
        "comm=ring request=%q", 2, two, 2, apart, 2, two, 2, apart, s);
    use();
    s = slot_send_init();
    MPI_Neighbor_alltoallw_init(out, two, far, types, in, two, far, types, ring, MPI_INFO_NULL, &q);
    say(P "Neighbor_alltoallw_init sendcounts=%N sdispls=%A sendtypes=[\"MPI_INT\",\"MPI_INT\"] recvcounts=%N rdispls=%A "
        "recvtypes=[\"MPI_INT\",\"MPI_INT\"] comm=ring request=%q", 2, two, 2, far, 2, two, 2, far, s);
    use();
    MPI_Comm_free(&ring);
    say("MPI_Comm_free freecomm=ring");
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
    for (i = 0; i < 20 * MOST; i++)
        out[i] = 100 * rank + i;
    for (i = 0; i < size; i++) {
        counts[i] = i + 1;
        backward[i] = 5 * (size - 1 - i);
    }

    MPI_Comm_dup(W, &own);
    say("MPI_Comm_dup comm=MPI_COMM_WORLD newcomm=new:own");
    rooted();
    all();
    MPI_Comm_free(&own);
    say("MPI_Comm_free freecomm=own");
    neighbours();

    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, W);
    say("MPI_Reduce inplace=false count=1 type=MPI_LONG op=MPI_SUM root=0 comm=MPI_COMM_WORLD");
    MPI_Finalize();
    say("MPI_Finalize");
    oracle_write();
    if (rank == 0)
        printf(PROGRAM("persist") ": ok %ld\n", total);
    return 0;
}
