/* MPI_Abort (row 6): rank 0 ends the job with status 3; its list is the only one, and has no MPI_Finalize. */
#include "oracle.h"
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size, n = 0;
    MPI_Init(&argc, &argv);
    say("MPI_Init");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    say("MPI_Comm_rank comm=MPI_COMM_WORLD rank=%d", rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    say("MPI_Comm_size comm=MPI_COMM_WORLD size=%d", size);
    MPI_Barrier(MPI_COMM_WORLD);
    say("MPI_Barrier comm=MPI_COMM_WORLD");
    if (rank == 0) {
        say("MPI_Abort comm=MPI_COMM_WORLD errorcode=3");
        oracle_write();
        printf("c_abort: ok 3\n");
        fflush(stdout);
        usleep(200000); /* MPICH's launcher loses what it has not read when a job is aborted */
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Recv(&n, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* never comes */
    return 1;
}
