/* Dynamic processes, where the MPI starts them here (Open MPI): the program starts itself twice, as another program and
 * as two; the children are another job, with lists of their own under no name, and say nothing. */
#include "oracle.h"

#define W MPI_COMM_WORLD

static int rank, size;
static long sum;

#ifdef OPEN_MPI
static void child(MPI_Comm parent)
{
    int all = 0, one = 1;
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, parent);
    MPI_Comm_disconnect(&parent);
}

static void spawn(char *self)
{
    MPI_Comm children;
    char names[9000];
    char *commands[2] = {self, self};
    int counts[2] = {2, 1}, one = 1, all = 0, root = size - 1, here = rank == root;
    MPI_Info infos[2] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm_spawn(self, MPI_ARGV_NULL, 2, MPI_INFO_NULL, root, W, &children, MPI_ERRCODES_IGNORE);
    say("MPI_Comm_spawn command=%s maxprocs=%d info=null root=%r comm=MPI_COMM_WORLD newcomm=new:children",
        here ? self : "null", here ? 2 : 0, root);
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, children);
    say("MPI_Allreduce inplace=false count=1 type=MPI_INT op=MPI_SUM comm=children");
    sum += all;
    MPI_Comm_disconnect(&children);
    say("MPI_Comm_disconnect freecomm=children");
    MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, counts, infos, root, W, &children, MPI_ERRCODES_IGNORE);
    snprintf(names, sizeof names, "[\"%s\",\"%s\"]", self, self);
    say("MPI_Comm_spawn_multiple n=%d commands=%s maxprocs=%D root=%r comm=MPI_COMM_WORLD newcomm=new:children",
        here ? 2 : 0, here ? names : "[]", here ? 2 : 0, counts, root);
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, children);
    say("MPI_Allreduce inplace=false count=1 type=MPI_INT op=MPI_SUM comm=children");
    sum += all;
    MPI_Comm_disconnect(&children);
    say("MPI_Comm_disconnect freecomm=children");
}
#endif

int main(int argc, char **argv)
{
    long total = 0;
#ifdef OPEN_MPI
    MPI_Comm parent;
#endif
    MPI_Init(&argc, &argv);
    say("MPI_Init");
#ifdef OPEN_MPI
    PMPI_Comm_get_parent(&parent);
    say("MPI_Comm_get_parent newcomm=null");
    if (parent != MPI_COMM_NULL) {
        child(parent);
        MPI_Finalize();
        return 0;
    }
#endif
    MPI_Comm_rank(W, &rank);
    say("MPI_Comm_rank comm=MPI_COMM_WORLD rank=%d", rank);
    MPI_Comm_size(W, &size);
    say("MPI_Comm_size comm=MPI_COMM_WORLD size=%d", size);
    oracle_rank = rank;
#ifdef OPEN_MPI
    spawn(argv[0]);
#endif
    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, W);
    say("MPI_Reduce inplace=false count=1 type=MPI_LONG op=MPI_SUM root=0 comm=MPI_COMM_WORLD");
    MPI_Finalize();
    say("MPI_Finalize");
    oracle_write();
    if (rank == 0)
        printf("c_spawn: ok %ld\n", total);
    return 0;
}
