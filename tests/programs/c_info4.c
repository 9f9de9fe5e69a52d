/* What MPI 4 adds to info objects; nothing under an older MPI. */
#include "oracle.h"

#define W MPI_COMM_WORLD

int main(int argc, char **argv)
{
    int rank;
    long sum = 0, total = 0;
    MPI_Init(&argc, &argv);
    say("MPI_Init");
    MPI_Comm_rank(W, &rank);
    say("MPI_Comm_rank comm=MPI_COMM_WORLD rank=%d", rank);
    oracle_rank = rank;
#if MPI_VERSION >= 4
    {
        int n, flag;
        char text[20];
        MPI_Info a, b;
        MPI_Info_create(&a);
        say("MPI_Info_create newinfo=0");
        MPI_Info_set(a, "key", "value");
        say("MPI_Info_set info=0 key=key value=value");
        n = 4;
        MPI_Info_get_string(a, "key", &n, text, &flag);
        say("MPI_Info_get_string info=0 key=key buflen=4 length=6 value=val flag=true");
        sum += n;
        n = 0;
        MPI_Info_get_string(a, "key", &n, text, &flag);
        say("MPI_Info_get_string info=0 key=key buflen=0 length=6 value=null flag=true");
        n = 9;
        MPI_Info_get_string(a, "nothing", &n, text, &flag);
        say("MPI_Info_get_string info=0 key=nothing buflen=9 length=-9 value=null flag=false");
        MPI_Info_create_env(argc, argv, &b);
        say("MPI_Info_create_env newinfo=1");
        MPI_Info_free(&b);
        say("MPI_Info_free freeinfo=1");
        MPI_Info_free(&a);
        say("MPI_Info_free freeinfo=0");
    }
#endif
    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, W);
    say("MPI_Reduce inplace=false count=1 type=MPI_LONG op=MPI_SUM root=0 comm=MPI_COMM_WORLD");
    MPI_Finalize();
    say("MPI_Finalize");
    oracle_write();
    if (rank == 0)
        printf("c_info4: ok %ld\n", total);
    return 0;
}
