/* Datatypes and packing (rows 230 to 255). */
#include "oracle.h"
#include <stddef.h>

#define W MPI_COMM_WORLD

static int rank, size, right, left;
static int out[400], in[400];
static long sum;

struct mixed {
    char flag;
    double value;
    int numbers[3];
};

/* Commits a type, asks for its measures, passes some of it round the ring, and frees it. */
static void use(MPI_Datatype type, const char *name, int count, int bytes)
{
    PLACE lb, extent;
    MPI_Count big;
    COUNT n;
    int i;
    MPI_Type_commit(&type);
    say("MPI_Type_commit committype=%s", name);
    MPI_Type_size(type, &n);
    say("MPI_Type_size type=%s size=%n", name, n);
    sum += n;
    MPI_Type_size_x(type, &big);
    say("MPI_Type_size_x type=%s size=%n", name, n);
    sum += big;
    MPI_Type_get_extent(type, &lb, &extent);
    say("MPI_Type_get_extent type=%s lb=%l extent=%l", name, (long long)lb, (long long)extent);
    sum += lb + 3 * extent;
    MPI_Type_get_true_extent(type, &lb, &extent);
    say("MPI_Type_get_true_extent type=%s lb=%l extent=%l", name, (long long)lb, (long long)extent);
    sum += lb + 3 * extent;
    MPI_Sendrecv(out + 100, count, type, right, 3, in + 100, count + 1, type, left, 3, W, MPI_STATUS_IGNORE);
    say("MPI_Sendrecv sendcount=%d sendtype=%s dest=%r sendtag=3 recvcount=%d recvtype=%s source=%r recvtag=3 "
        "comm=MPI_COMM_WORLD rsource=null rtag=null bytes=%d", count, name, right, count + 1, name, left, bytes);
    for (i = 0; i < 400; i++) {
        sum += in[i] * (i % 50 + 1L);
        in[i] = 0;
    }
    MPI_Type_free(&type);
    say("MPI_Type_free freetype=%s", name);
}

static void rows(void)
{
    MPI_Datatype t, pair;
    COUNT lengths[3] = {2, 1, 4}, places[3] = {9, 0, 3}, three[3] = {12, 5, 1};
    PLACE far[3] = {48, 4, 20}, farther[2] = {60, 8}, address[3];
    MPI_Type_contiguous(3, MPI_INT, &t);
    say("MPI_Type_contiguous count=3 type=MPI_INT newtype=new:contiguous");
    use(t, "contiguous", 2, 24);
    MPI_Type_vector(4, 2, 5, MPI_INT, &t);
    say("MPI_Type_vector count=4 blocklength=2 stride=5 type=MPI_INT newtype=new:vector");
    use(t, "vector", 3, 96);
    MPI_Type_create_hvector(5, 3, 36, MPI_INT, &t);
    say("MPI_Type_create_hvector count=5 blocklength=3 stride=36 type=MPI_INT newtype=new:hvector");
    use(t, "hvector", 2, 120);
    MPI_Type_indexed(3, lengths, places, MPI_INT, &t);
    say("MPI_Type_indexed count=3 blocklengths=%N displacements=%N type=MPI_INT newtype=new:indexed", 3, lengths, 3, places);
    use(t, "indexed", 2, 56);
    MPI_Type_create_hindexed(3, lengths, far, MPI_INT, &t);
    say("MPI_Type_create_hindexed count=3 blocklengths=%N displacements=%W type=MPI_INT newtype=new:hindexed", 3, lengths,
        3, far);
    use(t, "hindexed", 1, 28);
    /* Absolute addresses: relative to the lowest in the list. */
    MPI_Get_address(out + 7, &address[0]);
    say("MPI_Get_address");
    MPI_Get_address(out + 2, &address[1]);
    say("MPI_Get_address");
    MPI_Get_address(out + 15, &address[2]);
    say("MPI_Get_address");
    MPI_Type_create_hindexed(3, lengths, address, MPI_INT, &t);
    say("MPI_Type_create_hindexed count=3 blocklengths=%N displacements=[20,0,52] type=MPI_INT newtype=new:absolute", 3,
        lengths);
    MPI_Type_commit(&t);
    say("MPI_Type_commit committype=absolute");
    MPI_Sendrecv(MPI_BOTTOM, 1, t, right, 4, in, 8, MPI_INT, left, 4, W, MPI_STATUS_IGNORE);
    say("MPI_Sendrecv sendcount=1 sendtype=absolute dest=%r sendtag=4 recvcount=8 recvtype=MPI_INT source=%r recvtag=4 "
        "comm=MPI_COMM_WORLD rsource=null rtag=null bytes=28", right, left);
    sum += in[0] + in[6];
    MPI_Type_free(&t);
    say("MPI_Type_free freetype=absolute");
    MPI_Type_create_indexed_block(3, 2, three, MPI_INT, &t);
    say("MPI_Type_create_indexed_block count=3 blocklength=2 displacements=%N type=MPI_INT newtype=new:block", 3, three);
    use(t, "block", 2, 48);
    MPI_Type_create_hindexed_block(2, 3, farther, MPI_INT, &t);
    say("MPI_Type_create_hindexed_block count=2 blocklength=3 displacements=%W type=MPI_INT newtype=new:hblock", 2, farther);
    use(t, "hblock", 2, 48);
    /* A type made of another one, which goes first. */
    MPI_Type_contiguous(2, MPI_INT, &pair);
    say("MPI_Type_contiguous count=2 type=MPI_INT newtype=new:pair");
    MPI_Type_create_resized(pair, -4, 24, &t);
    say("MPI_Type_create_resized type=pair lb=-4 extent=24 newtype=new:resized");
    MPI_Type_free(&pair);
    say("MPI_Type_free freetype=pair");
    MPI_Type_dup(t, &pair);
    say("MPI_Type_dup type=resized newtype=new:dup");
    use(pair, "dup", 4, 32);
    use(t, "resized", 5, 40);
}

static void structure(void)
{
    MPI_Datatype t, types[3] = {MPI_CHAR, MPI_DOUBLE, MPI_INT};
    struct mixed a[3], b[3];
    COUNT lengths[3] = {1, 1, 3};
    PLACE places[3] = {offsetof(struct mixed, flag), offsetof(struct mixed, value), offsetof(struct mixed, numbers)};
    memset(a, 0, sizeof a);
    a[1].flag = (char)(rank + 1);
    a[1].value = 0.25;
    a[2].numbers[2] = 5 * rank;
    MPI_Type_create_struct(3, lengths, places, types, &t);
    say("MPI_Type_create_struct count=3 blocklengths=%N displacements=%W types=[\"MPI_CHAR\",\"MPI_DOUBLE\",\"MPI_INT\"] "
        "newtype=new:struct", 3, lengths, 3, places);
    MPI_Type_commit(&t);
    say("MPI_Type_commit committype=struct");
    MPI_Sendrecv(a, 3, t, right, 5, b, 3, t, left, 6 - 1, W, MPI_STATUS_IGNORE);
    say("MPI_Sendrecv sendcount=3 sendtype=struct dest=%r sendtag=5 recvcount=3 recvtype=struct source=%r recvtag=5 "
        "comm=MPI_COMM_WORLD rsource=null rtag=null bytes=63", right, left);
    sum += b[1].flag + (long)(4 * b[1].value) + b[2].numbers[2];
    MPI_Type_free(&t);
    say("MPI_Type_free freetype=struct");
}

static void arrays(void)
{
    MPI_Datatype t;
    COUNT sizes[3] = {4, 6, 5}, part[3] = {2, 3, 4}, starts[3] = {1, 2, 0}, global[2] = {10, 7};
    int distribs[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
    int dargs[2] = {MPI_DISTRIBUTE_DFLT_DARG, 3}, procs[2] = {2, 3};
    MPI_Type_create_subarray(3, sizes, part, starts, MPI_ORDER_C, MPI_INT, &t);
    say("MPI_Type_create_subarray ndims=3 sizes=%N subsizes=%N starts=%N order=MPI_ORDER_C type=MPI_INT newtype=new:sub",
        3, sizes, 3, part, 3, starts);
    use(t, "sub", 1, 96);
    MPI_Type_create_subarray(2, sizes, part, starts, MPI_ORDER_FORTRAN, MPI_INT, &t);
    say("MPI_Type_create_subarray ndims=2 sizes=%N subsizes=%N starts=%N order=MPI_ORDER_FORTRAN type=MPI_INT "
        "newtype=new:sub2", 2, sizes, 2, part, 2, starts);
    use(t, "sub2", 2, 48);
    MPI_Type_create_darray(6, 4, 2, global, distribs, dargs, procs, MPI_ORDER_C, MPI_INT, &t);
    say("MPI_Type_create_darray size=6 rank=4 ndims=2 gsizes=%N "
        "distribs=[\"MPI_DISTRIBUTE_BLOCK\",\"MPI_DISTRIBUTE_CYCLIC\"] dargs=[\"MPI_DISTRIBUTE_DFLT_DARG\",3] psizes=%D "
        "order=MPI_ORDER_C type=MPI_INT newtype=new:darray", 2, global, 2, procs);
    use(t, "darray", 1, 60);
    distribs[0] = MPI_DISTRIBUTE_NONE;
    distribs[1] = MPI_DISTRIBUTE_BLOCK;
    dargs[0] = MPI_DISTRIBUTE_DFLT_DARG;
    dargs[1] = 4;
    procs[0] = 1;
    procs[1] = 2;
    MPI_Type_create_darray(2, 1, 2, global, distribs, dargs, procs, MPI_ORDER_FORTRAN, MPI_INT, &t);
    say("MPI_Type_create_darray size=2 rank=1 ndims=2 gsizes=%N "
        "distribs=[\"MPI_DISTRIBUTE_NONE\",\"MPI_DISTRIBUTE_BLOCK\"] dargs=[\"MPI_DISTRIBUTE_DFLT_DARG\",4] psizes=%D "
        "order=MPI_ORDER_FORTRAN type=MPI_INT newtype=new:darray2", 2, global, 2, procs);
    use(t, "darray2", 1, 120);
}

/* Types found by what they can hold. They are not freed. */
static void found(void)
{
    MPI_Datatype t;
    COUNT n;
    MPI_Type_create_f90_integer(9, &t);
    say("MPI_Type_create_f90_integer range=9 newtype=new:f90integer");
    MPI_Type_size(t, &n);
    say("MPI_Type_size type=f90integer size=%d", n);
    sum += n;
    MPI_Type_create_f90_real(6, 30, &t);
    say("MPI_Type_create_f90_real precision=6 range=30 newtype=new:f90real");
    MPI_Type_size(t, &n);
    say("MPI_Type_size type=f90real size=%d", n);
    sum += n;
    MPI_Type_create_f90_complex(12, 100, &t);
    say("MPI_Type_create_f90_complex precision=12 range=100 newtype=new:f90complex");
    MPI_Type_size(t, &n);
    say("MPI_Type_size type=f90complex size=%d", n);
    sum += n;
    /* Which of the types of that size it is, the library decides. */
    MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &t);
    say("MPI_Type_match_size class=MPI_TYPECLASS_REAL size=8 newtype=%s",
        t == MPI_DOUBLE             ? "MPI_DOUBLE"
        : t == MPI_REAL8            ? "MPI_REAL8"
        : t == MPI_DOUBLE_PRECISION ? "MPI_DOUBLE_PRECISION"
                                    : "?");
    MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 4, &t);
    say("MPI_Type_match_size class=MPI_TYPECLASS_INTEGER size=4 newtype=%s",
        t == MPI_INT        ? "MPI_INT"
        : t == MPI_INTEGER4 ? "MPI_INTEGER4"
        : t == MPI_INTEGER  ? "MPI_INTEGER"
        : t == MPI_INT32_T  ? "MPI_INT32_T"
                            : "?");
    MPI_Type_match_size(MPI_TYPECLASS_COMPLEX, 16, &t);
    say("MPI_Type_match_size class=MPI_TYPECLASS_COMPLEX size=16 newtype=%s",
        t == MPI_COMPLEX16              ? "MPI_COMPLEX16"
        : t == MPI_DOUBLE_COMPLEX       ? "MPI_DOUBLE_COMPLEX"
        : t == MPI_C_DOUBLE_COMPLEX     ? "MPI_C_DOUBLE_COMPLEX"
                                        : "?");
    MPI_Type_size(t, &n);
    say("MPI_Type_size type=%s size=16",
        t == MPI_COMPLEX16              ? "MPI_COMPLEX16"
        : t == MPI_DOUBLE_COMPLEX       ? "MPI_DOUBLE_COMPLEX"
        : t == MPI_C_DOUBLE_COMPLEX     ? "MPI_C_DOUBLE_COMPLEX"
                                        : "?");
    sum += n;
}

static void packing(void)
{
    char buffer[500];
    double x[4] = {1.5, 2.5, 3.5, 4.5}, y[4];
    COUNT at = 0, n;
    MPI_Pack_size(6, MPI_DOUBLE, W, &n);
    say("MPI_Pack_size count=6 type=MPI_DOUBLE comm=MPI_COMM_WORLD size=%n", n);
    sum += n >= 48;
    MPI_Pack(out, 13, MPI_INT, buffer, 500, &at, W);
    say("MPI_Pack count=13 type=MPI_INT size=500 comm=MPI_COMM_WORLD");
    MPI_Pack(x, 4, MPI_DOUBLE, buffer, 490, &at, MPI_COMM_SELF);
    say("MPI_Pack count=4 type=MPI_DOUBLE size=490 comm=MPI_COMM_SELF");
    MPI_Sendrecv_replace(buffer, at, MPI_PACKED, right, 8, left, 8, W, MPI_STATUS_IGNORE);
    say("MPI_Sendrecv_replace count=%n type=MPI_PACKED dest=%r sendtag=8 source=%r recvtag=8 comm=MPI_COMM_WORLD "
        "rsource=null rtag=null bytes=%n", at, right, left, at);
    at = 0;
    MPI_Unpack(buffer, 480, &at, in, 13, MPI_INT, W);
    say("MPI_Unpack size=480 count=13 type=MPI_INT comm=MPI_COMM_WORLD");
    MPI_Unpack(buffer, 470, &at, y, 4, MPI_DOUBLE, MPI_COMM_SELF);
    say("MPI_Unpack size=470 count=4 type=MPI_DOUBLE comm=MPI_COMM_SELF");
    sum += in[12] + (long)(2 * y[3]);
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
    for (i = 0; i < 400; i++)
        out[i] = 1000 * rank + i;

    rows();
    structure();
    arrays();
    found();
    packing();

    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, W);
    say("MPI_Reduce inplace=false count=1 type=MPI_LONG op=MPI_SUM root=0 comm=MPI_COMM_WORLD");
    MPI_Finalize();
    say("MPI_Finalize");
    oracle_write();
    if (rank == 0)
        printf(PROGRAM("types") ": ok %ld\n", total);
    return 0;
}
