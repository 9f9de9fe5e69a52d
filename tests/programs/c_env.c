/* The environment (rows 2 to 14), and functions that st records by name only. */
#include "oracle.h"

#define W MPI_COMM_WORLD

int main(int argc, char **argv)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    volatile int times = 5; /* so that the loop stays one call */
    int rank, size, flag, provided, version, subversion, n, i;
    long sum = 0, total = 0;
    double t = 0;
    MPI_Info info;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    say("MPI_Init_thread required=1 provided=%d", provided);
    MPI_Comm_rank(W, &rank);
    say("MPI_Comm_rank comm=MPI_COMM_WORLD rank=%d", rank);
    MPI_Comm_size(W, &size);
    say("MPI_Comm_size comm=MPI_COMM_WORLD size=%d", size);
    oracle_rank = rank;
    MPI_Initialized(&flag);
    say("MPI_Initialized flag=true");
    sum += flag;
    MPI_Finalized(&flag);
    say("MPI_Finalized flag=false");
    sum += 10 * flag;
    MPI_Query_thread(&n);
    say("MPI_Query_thread provided=%d", n);
    sum += n == provided;
    MPI_Is_thread_main(&flag);
    say("MPI_Is_thread_main flag=true");
    sum += flag;

    /* Five at one place are one event; one elsewhere is another. */
    for (i = 0; i < times; i++)
        t += MPI_Wtime();
    say("MPI_Wtime times=5");
    t += MPI_Wtime();
    say("MPI_Wtime times=1");
    t += MPI_Wtick();
    say("MPI_Wtick times=1");
    sum += t > 0;

    MPI_Get_processor_name(text, &n);
    say("MPI_Get_processor_name");
    sum += n > 0;
    MPI_Get_library_version(text, &n);
    say("MPI_Get_library_version");
    sum += n > 0;
    MPI_Get_version(&version, &subversion);
    say("MPI_Get_version version=%d subversion=%d", version, subversion);
    sum += 10 * version + subversion;
    MPI_Pcontrol(3);
    say("MPI_Pcontrol level=3");
    MPI_Pcontrol(1);
    say("MPI_Pcontrol level=1");

    MPI_Info_create(&info);
    say("MPI_Info_create newinfo=0");
    MPI_Info_set(info, "key", "value");
    say("MPI_Info_set info=0 key=key value=value");
    MPI_Info_get_nkeys(info, &n);
    say("MPI_Info_get_nkeys info=0 n=1");
    sum += n;
    MPI_Info_free(&info);
    say("MPI_Info_free freeinfo=0");

    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, W);
    say("MPI_Reduce inplace=false count=1 type=MPI_LONG op=MPI_SUM root=0 comm=MPI_COMM_WORLD");
    MPI_Finalize();
    say("MPI_Finalize");
    oracle_write();
    if (rank == 0)
        printf(PROGRAM("env") ": ok %ld\n", total);
    return 0;
}
