/* What MPI-3.0 removed and every library still has: types, attributes and error handlers of MPI-1. */
#define OMPI_OMIT_MPI1_COMPAT_DECLS 0
#include "oracle.h"

#define W MPI_COMM_WORLD
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* Open MPI 4 names the callbacks only where it hides nothing. */
int MPI_Address(void *, MPI_Aint *);
int MPI_Type_hindexed(int, int[], MPI_Aint[], MPI_Datatype, MPI_Datatype *);
int MPI_Type_hvector(int, int, MPI_Aint, MPI_Datatype, MPI_Datatype *);
int MPI_Type_struct(int, int[], MPI_Aint[], MPI_Datatype[], MPI_Datatype *);
int MPI_Type_extent(MPI_Datatype, MPI_Aint *);
int MPI_Type_lb(MPI_Datatype, MPI_Aint *);
int MPI_Type_ub(MPI_Datatype, MPI_Aint *);
int MPI_Errhandler_get(MPI_Comm, MPI_Errhandler *);
int MPI_Errhandler_set(MPI_Comm, MPI_Errhandler);

static int rank, size;
static long sum;

static void note(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
}

static int keep(MPI_Comm comm, int key, void *state, void *from, void *to, int *flag)
{
    (void)comm, (void)key, (void)state, (void)from, (void)to;
    *flag = 0;
    return MPI_SUCCESS;
}

static int drop(MPI_Comm comm, int key, void *value, void *state)
{
    (void)comm, (void)key, (void)value, (void)state;
    return MPI_SUCCESS;
}

static void measure(MPI_Datatype type, const char *name)
{
    MPI_Aint at;
    MPI_Type_extent(type, &at);
    say("MPI_Type_extent type=%s extent=%l", name, (long long)at);
    sum += at;
    MPI_Type_lb(type, &at);
    say("MPI_Type_lb type=%s displacement=%l", name, (long long)at);
    sum += 3 * at;
    MPI_Type_ub(type, &at);
    say("MPI_Type_ub type=%s displacement=%l", name, (long long)at);
    sum += 5 * at;
    MPI_Type_free(&type);
    say("MPI_Type_free freetype=%s", name);
}

int main(int argc, char **argv)
{
    long total = 0;
    int lengths[2] = {2, 3}, first, key, flag, value = 4;
    MPI_Aint places[2] = {8, 40}, address;
    MPI_Count lb, extent;
    MPI_Datatype kinds[2] = {MPI_INT, MPI_CHAR}, t;
    MPI_Errhandler spare, handler, found;
    void *attribute;
    MPI_Init(&argc, &argv);
    say("MPI_Init");
    MPI_Comm_rank(W, &rank);
    say("MPI_Comm_rank comm=MPI_COMM_WORLD rank=%d", rank);
    MPI_Comm_size(W, &size);
    say("MPI_Comm_size comm=MPI_COMM_WORLD size=%d", size);
    oracle_rank = rank;

    MPI_Address(&value, &address);
    say("MPI_Address");
    sum += address != 0;
    MPI_Type_hvector(3, 2, 24, MPI_INT, &t);
    say("MPI_Type_hvector count=3 blocklength=2 stride=24 type=MPI_INT newtype=new:hvector");
    measure(t, "hvector");
    MPI_Type_hindexed(2, lengths, places, MPI_INT, &t);
    say("MPI_Type_hindexed count=2 blocklengths=%D displacements=%A type=MPI_INT newtype=new:hindexed", 2, lengths, 2, places);
    measure(t, "hindexed");
    MPI_Type_struct(2, lengths, places, kinds, &t);
    say("MPI_Type_struct count=2 blocklengths=%D displacements=%A types=[\"MPI_INT\",\"MPI_CHAR\"] newtype=new:struct", 2,
        lengths, 2, places);
    MPI_Type_get_extent_x(t, &lb, &extent);
    say("MPI_Type_get_extent_x type=struct lb=%l extent=%l", (long long)lb, (long long)extent);
    MPI_Type_get_true_extent_x(t, &lb, &extent);
    say("MPI_Type_get_true_extent_x type=struct lb=%l extent=%l", (long long)lb, (long long)extent);
    measure(t, "struct");

    /* The first, so that the other's number is not the communicator's. */
    MPI_Errhandler_create(note, &spare);
    say("MPI_Errhandler_create newerrhandler=0");
    MPI_Errhandler_create(note, &handler);
    say("MPI_Errhandler_create newerrhandler=1");
    MPI_Errhandler_set(W, handler);
    say("MPI_Errhandler_set comm=MPI_COMM_WORLD errhandler=1");
    MPI_Errhandler_get(W, &found);
    say("MPI_Errhandler_get comm=MPI_COMM_WORLD newerrhandler=1");
    MPI_Errhandler_free(&found);
    say("MPI_Errhandler_free freeerrhandler=1");
    MPI_Errhandler_set(W, MPI_ERRORS_ARE_FATAL);
    say("MPI_Errhandler_set comm=MPI_COMM_WORLD errhandler=MPI_ERRORS_ARE_FATAL");
    MPI_Errhandler_free(&handler);
    say("MPI_Errhandler_free freeerrhandler=1");
    MPI_Errhandler_free(&spare);
    say("MPI_Errhandler_free freeerrhandler=0");

    MPI_Keyval_create(keep, drop, &first, NULL);
    say("MPI_Keyval_create newkeyval=0");
    MPI_Keyval_create(keep, drop, &key, NULL);
    say("MPI_Keyval_create newkeyval=1");
    MPI_Attr_get(W, key, &attribute, &flag);
    say("MPI_Attr_get comm=MPI_COMM_WORLD keyval=1 flag=false");
    MPI_Attr_put(W, key, &value);
    say("MPI_Attr_put comm=MPI_COMM_WORLD keyval=1");
    MPI_Attr_get(W, key, &attribute, &flag);
    say("MPI_Attr_get comm=MPI_COMM_WORLD keyval=1 flag=true");
    sum += *(int *)attribute;
    MPI_Attr_delete(W, key);
    say("MPI_Attr_delete comm=MPI_COMM_WORLD keyval=1");
    MPI_Keyval_free(&key);
    say("MPI_Keyval_free freekeyval=1");
    MPI_Keyval_free(&first);
    say("MPI_Keyval_free freekeyval=0");

    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, W);
    say("MPI_Reduce inplace=false count=1 type=MPI_LONG op=MPI_SUM root=0 comm=MPI_COMM_WORLD");
    MPI_Finalize();
    say("MPI_Finalize");
    oracle_write();
    if (rank == 0)
        printf("c_old: ok %ld\n", total);
    return 0;
}
