/* Info objects, and memory from MPI (rows of MPI_Info_*, MPI_Alloc_mem, MPI_Free_mem). */
#include "oracle.h"

#define W MPI_COMM_WORLD

int main(int argc, char **argv)
{
    int rank, size, flag, n, i;
    long sum = 0, total = 0;
    char text[MPI_MAX_INFO_VAL + 1], key[MPI_MAX_INFO_KEY + 1], own[20];
    double *memory;
    MPI_Info a, b;
    MPI_Init(&argc, &argv);
    say("MPI_Init");
    MPI_Comm_rank(W, &rank);
    say("MPI_Comm_rank comm=MPI_COMM_WORLD rank=%d", rank);
    MPI_Comm_size(W, &size);
    say("MPI_Comm_size comm=MPI_COMM_WORLD size=%d", size);
    oracle_rank = rank;

    MPI_Info_create(&a);
    say("MPI_Info_create newinfo=0");
    MPI_Info_set(a, "striping_factor", "x16");
    say("MPI_Info_set info=0 key=striping_factor value=x16");
    sprintf(own, "node_%d", rank);
    MPI_Info_set(a, "access style", own);
    say("MPI_Info_set info=0 key=%s value=%s", "access style", own);
    MPI_Info_dup(a, &b);
    say("MPI_Info_dup info=0 newinfo=1");
    MPI_Info_get_nkeys(b, &n);
    say("MPI_Info_get_nkeys info=1 n=2");
    for (i = 0; i < n; i++) {
        MPI_Info_get_nthkey(b, i, key);
        say("MPI_Info_get_nthkey info=1 n=%d key=%s", i, key);
        sum += (long)strlen(key) * (i + 1);
    }
    MPI_Info_get_valuelen(b, "striping_factor", &n, &flag);
    say("MPI_Info_get_valuelen info=1 key=striping_factor valuelen=3 flag=true");
    sum += n;
    MPI_Info_get_valuelen(b, "nothing", &n, &flag);
    say("MPI_Info_get_valuelen info=1 key=nothing valuelen=-9 flag=false");
    MPI_Info_get(b, "access style", MPI_MAX_INFO_VAL, text, &flag);
    say("MPI_Info_get info=1 key=%s valuelen=%d value=%s flag=true", "access style", MPI_MAX_INFO_VAL, own);
    sum += flag + (long)strlen(text);
#ifdef OPEN_MPI
    /* Room for two letters: an error under MPICH. */
    memset(text, 'x', sizeof text);
    MPI_Info_get(b, "striping_factor", 2, text, &flag);
    say("MPI_Info_get info=1 key=striping_factor valuelen=2 value=x1 flag=true");
    sum += text[1];
#endif
    MPI_Info_get(b, "nothing", 30, text, &flag);
    say("MPI_Info_get info=1 key=nothing valuelen=30 value=null flag=false");
    MPI_Info_delete(b, "striping_factor");
    say("MPI_Info_delete info=1 key=striping_factor");
    MPI_Info_free(&a);
    say("MPI_Info_free freeinfo=0");
    /* The lowest number is free again. */
    MPI_Info_create(&a);
    say("MPI_Info_create newinfo=0");
    MPI_Info_free(&b);
    say("MPI_Info_free freeinfo=1");
    MPI_Info_dup(MPI_INFO_ENV, &b);
    say("MPI_Info_dup info=MPI_INFO_ENV newinfo=1");
    MPI_Info_free(&b);
    say("MPI_Info_free freeinfo=1");

    MPI_Alloc_mem(100 * sizeof *memory, a, &memory);
    say("MPI_Alloc_mem size=800 info=0");
    memory[99] = rank;
    sum += (long)memory[99];
    MPI_Free_mem(memory);
    say("MPI_Free_mem");
    MPI_Info_free(&a);
    say("MPI_Info_free freeinfo=0");
    MPI_Alloc_mem(24, MPI_INFO_NULL, &memory);
    say("MPI_Alloc_mem size=24 info=null");
    MPI_Free_mem(memory);
    say("MPI_Free_mem");

    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, W);
    say("MPI_Reduce inplace=false count=1 type=MPI_LONG op=MPI_SUM root=0 comm=MPI_COMM_WORLD");
    MPI_Finalize();
    say("MPI_Finalize");
    oracle_write();
    if (rank == 0)
        printf("c_info: ok %ld\n", total);
    return 0;
}
