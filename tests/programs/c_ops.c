/* Reduction operations (rows 117, 270 to 272). */
#include "oracle.h"

#define W MPI_COMM_WORLD

/* What an operator calls is the library's affair: nested in the reduction, it is not in the list. */
static void keep_larger(void *a, void *b, COUNT *n, MPI_Datatype *type)
{
    int *from = a, *to = b, i;
    COUNT bytes;
    MPI_Type_size(*type, &bytes);
    for (i = 0; i < *n * bytes / (int)sizeof(int); i++)
        to[i] = from[i] > to[i] ? from[i] : to[i];
}

static void keep_left(void *a, void *b, COUNT *n, MPI_Datatype *type)
{
    (void)type;
    memcpy(b, a, (size_t)*n * sizeof(int));
}

int main(int argc, char **argv)
{
    int rank, size, commute, i, a[20], b[20];
    long sum = 0, total = 0;
    MPI_Op larger, first;
    MPI_Init(&argc, &argv);
    say("MPI_Init");
    MPI_Comm_rank(W, &rank);
    say("MPI_Comm_rank comm=MPI_COMM_WORLD rank=%d", rank);
    MPI_Comm_size(W, &size);
    say("MPI_Comm_size comm=MPI_COMM_WORLD size=%d", size);
    oracle_rank = rank;
    for (i = 0; i < 20; i++) {
        a[i] = (rank + 1) * (i % 5 - 2);
        b[i] = i - 10;
    }
    MPI_Op_create(keep_larger, 1, &larger);
    say("MPI_Op_create commute=1 newop=new:larger");
    MPI_Op_create(keep_left, 0, &first);
    say("MPI_Op_create commute=0 newop=new:first");
    MPI_Op_commutative(larger, &commute);
    say("MPI_Op_commutative op=larger commute=1");
    sum += commute;
    MPI_Op_commutative(first, &commute);
    say("MPI_Op_commutative op=first commute=0");
    sum += 2 * commute;
    MPI_Op_commutative(MPI_SUM, &commute);
    say("MPI_Op_commutative op=MPI_SUM commute=1");
    sum += 4 * commute;

    MPI_Reduce_local(a, b, 17, MPI_INT, MPI_SUM);
    say("MPI_Reduce_local count=17 type=MPI_INT op=MPI_SUM");
    MPI_Reduce_local(a, b, 18, MPI_INT, larger);
    say("MPI_Reduce_local count=18 type=MPI_INT op=larger");
    for (i = 0; i < 20; i++)
        sum += b[i];
    MPI_Allreduce(a, b, 19, MPI_INT, larger, W);
    say("MPI_Allreduce inplace=false count=19 type=MPI_INT op=larger comm=MPI_COMM_WORLD");
    MPI_Scan(a, b, 12, MPI_INT, first, W);
    say("MPI_Scan inplace=false count=12 type=MPI_INT op=first comm=MPI_COMM_WORLD");
    for (i = 0; i < 20; i++)
        sum += (i + 1) * b[i];
    MPI_Op_free(&larger);
    say("MPI_Op_free freeop=larger");
    MPI_Op_create(keep_larger, 1, &larger);
    say("MPI_Op_create commute=1 newop=new:larger2");
    MPI_Reduce(a, b, 13, MPI_INT, larger, size - 1, W);
    say("MPI_Reduce inplace=false count=13 type=MPI_INT op=larger2 root=%r comm=MPI_COMM_WORLD", size - 1);
    if (rank == size - 1)
        sum += b[3];
    MPI_Op_free(&first);
    say("MPI_Op_free freeop=first");
    MPI_Op_free(&larger);
    say("MPI_Op_free freeop=larger2");

    /* Predefined operations, and the types made for them. */
    {
        struct {
            double value;
            int where;
        } mine = {(rank + 1) % size, rank}, best;
        int flags[2] = {rank == 0, 1}, all[2];
        MPI_Allreduce(&mine, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, W);
        say("MPI_Allreduce inplace=false count=1 type=MPI_DOUBLE_INT op=MPI_MAXLOC comm=MPI_COMM_WORLD");
        sum += best.where;
        MPI_Allreduce(flags, all, 2, MPI_INT, MPI_LAND, W);
        say("MPI_Allreduce inplace=false count=2 type=MPI_INT op=MPI_LAND comm=MPI_COMM_WORLD");
        sum += 10 * all[0] + 100 * all[1];
    }

    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, W);
    say("MPI_Reduce inplace=false count=1 type=MPI_LONG op=MPI_SUM root=0 comm=MPI_COMM_WORLD");
    MPI_Finalize();
    say("MPI_Finalize");
    oracle_write();
    if (rank == 0)
        printf(PROGRAM("ops") ": ok %ld\n", total);
    return 0;
}
