/* Calls that fail and return: each is recorded with its error class. Their outputs mean nothing. */
#include "oracle.h"

#define W MPI_COMM_WORLD

static long sum;

/* The class that the program expects is in its text; this asks the library whether it agrees. */
#define expect(code, class) expected(code, class, #class)
static void expected(int code, int class, const char *name)
{
    int found;
    MPI_Error_class(code, &found);
    say("MPI_Error_class errorcode=%s class=%s", name, name);
    sum = 3 * sum + (found == class);
}

int main(int argc, char **argv)
{
    int rank, size, right, left, out[20] = {1, 2, 3}, in[20], code;
    long total = 0;
    MPI_Comm other;
    MPI_Datatype type;
    MPI_Init(&argc, &argv);
    say("MPI_Init");
    MPI_Comm_rank(W, &rank);
    say("MPI_Comm_rank comm=MPI_COMM_WORLD rank=%d", rank);
    MPI_Comm_size(W, &size);
    say("MPI_Comm_size comm=MPI_COMM_WORLD size=%d", size);
    oracle_rank = rank;
    right = (rank + 1) % size;
    left = (rank + size - 1) % size;
    MPI_Comm_set_errhandler(W, MPI_ERRORS_RETURN);
    say("MPI_Comm_set_errhandler comm=MPI_COMM_WORLD errhandler=MPI_ERRORS_RETURN");

    code = MPI_Send(out, 10, MPI_INT, 9999, 7, W);
    say("MPI_Send count=10 type=MPI_INT dest=9999 tag=7 comm=MPI_COMM_WORLD error=MPI_ERR_RANK");
    expect(code, MPI_ERR_RANK);
    code = MPI_Send(out, -11, MPI_INT, right, 8, W);
    say("MPI_Send count=-11 type=MPI_INT dest=%r tag=8 comm=MPI_COMM_WORLD error=MPI_ERR_COUNT", right);
    expect(code, MPI_ERR_COUNT);
    code = MPI_Send(out, 12, MPI_DATATYPE_NULL, right, 9, W);
    say("MPI_Send count=12 type=null dest=%r tag=9 comm=MPI_COMM_WORLD error=MPI_ERR_TYPE", right);
    expect(code, MPI_ERR_TYPE);
    code = MPI_Send(out, 13, MPI_INT, right, -100, W);
    say("MPI_Send count=13 type=MPI_INT dest=%r tag=-100 comm=MPI_COMM_WORLD error=MPI_ERR_TAG", right);
    expect(code, MPI_ERR_TAG);
    code = MPI_Bcast(out, 14, MPI_INT, 9998, W);
    say("MPI_Bcast count=14 type=MPI_INT root=9998 comm=MPI_COMM_WORLD error=MPI_ERR_ROOT");
    expect(code, MPI_ERR_ROOT);
    code = MPI_Reduce(out, in, 15, MPI_INT, MPI_OP_NULL, size - 1, W);
    say("MPI_Reduce inplace=false count=15 type=MPI_INT op=null root=%r comm=MPI_COMM_WORLD error=MPI_ERR_OP", size - 1);
    expect(code, MPI_ERR_OP);
    code = MPI_Comm_dup(MPI_COMM_NULL, &other);
    say("MPI_Comm_dup comm=null newcomm=null error=MPI_ERR_COMM");
    expect(code, MPI_ERR_COMM);
    code = MPI_Type_contiguous(-16, MPI_INT, &type);
    say("MPI_Type_contiguous count=-16 type=MPI_INT newtype=null error=MPI_ERR_COUNT");
    expect(code, MPI_ERR_COUNT);

    /* The same calls go on as if nothing had been. */
    MPI_Sendrecv(out, 3, MPI_INT, right, 5, in, 4, MPI_INT, left, 5, W, MPI_STATUS_IGNORE);
    say("MPI_Sendrecv sendcount=3 sendtype=MPI_INT dest=%r sendtag=5 recvcount=4 recvtype=MPI_INT source=%r recvtag=5 "
        "comm=MPI_COMM_WORLD rsource=null rtag=null bytes=12", right, left);
    sum = 10 * sum + in[2];

    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, W);
    say("MPI_Reduce inplace=false count=1 type=MPI_LONG op=MPI_SUM root=0 comm=MPI_COMM_WORLD");
    MPI_Finalize();
    say("MPI_Finalize");
    oracle_write();
    if (rank == 0)
        printf(PROGRAM("error") ": ok %ld\n", total);
    return 0;
}
