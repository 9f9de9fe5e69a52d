/* Partitioned communication, where the MPI has it. */
#include "oracle.h"

#define W MPI_COMM_WORLD

static int rank, size;
static long sum;

#if MPI_VERSION >= 4
/* Each even rank sends 12 partitions of 5 integers to the next one. */
static void partitions(void)
{
    static int buffer[60];
    static const int some[3] = {2, 0, 1};
    MPI_Comm own; /* with a number that no request has */
    MPI_Request q;
    MPI_Status st;
    int s, i, flag, peer = rank ^ 1, turn;
    MPI_Comm_dup(W, &own);
    say("MPI_Comm_dup comm=MPI_COMM_WORLD newcomm=new:own");
    if (peer >= size) {
        MPI_Comm_free(&own);
        say("MPI_Comm_free freecomm=own");
        return;
    }
    if (rank % 2 == 0) {
        MPI_Psend_init(buffer, 12, 5, MPI_INT, peer, 3, own, MPI_INFO_NULL, &q);
        s = slot_send_init();
        say("MPI_Psend_init partitions=12 count=5 type=MPI_INT dest=%r tag=3 comm=own request=%q", peer, s);
    } else {
        MPI_Precv_init(buffer, 12, 5, MPI_INT, peer, 3, own, MPI_INFO_NULL, &q);
        s = slot_recv_init(240);
        say("MPI_Precv_init partitions=12 count=5 type=MPI_INT source=%r tag=3 comm=own request=%q", peer, s);
    }
    for (turn = 0; turn < 2; turn++) {
        MPI_Start(&q);
        say("MPI_Start request=%q", s);
        if (rank % 2 == 0) {
            for (i = 0; i < 60; i++)
                buffer[i] = i + turn;
            MPI_Pready_list(3, (int *)some, q);
            say("MPI_Pready_list n=3 partitions=%D request=%q", 3, some, s);
            MPI_Pready_range(3, 10, q);
            say("MPI_Pready_range low=3 high=10 request=%q", s);
            MPI_Pready(11, q);
            say("MPI_Pready partition=11 request=%q", s);
        }
        if (rank % 2) {
            /* The polls that failed are one event, the one that did not another. */
            int fails = -1;
            do {
                MPI_Parrived(q, 7, &flag);
                fails++;
            } while (!flag);
            if (fails)
                say("MPI_Parrived request=%q partition=7 flag=false times=%d", s, fails);
            say("MPI_Parrived request=%q partition=7 flag=true times=1", s);
        }
        MPI_Wait(&q, &st);
        say("MPI_Wait requests=%Q completed=%C", 1, &s, 1, all_positions, &s, &st);
        if (rank % 2)
            sum += buffer[59];
    }
    MPI_Request_free(&q);
    say("MPI_Request_free request=%q", slot_free(s));
    MPI_Comm_free(&own);
    say("MPI_Comm_free freecomm=own");
}
#endif

int main(int argc, char **argv)
{
    long total = 0;
    char letter = 'a';
    MPI_Init(&argc, &argv);
    say("MPI_Init");
    MPI_Comm_rank(W, &rank);
    say("MPI_Comm_rank comm=MPI_COMM_WORLD rank=%d", rank);
    MPI_Comm_size(W, &size);
    say("MPI_Comm_size comm=MPI_COMM_WORLD size=%d", size);
    oracle_rank = rank;
    /* Types before the one of the partitions, so that its number is not that of a rank. */
    MPI_Bcast(&letter, 1, MPI_CHAR, 0, W);
    say("MPI_Bcast count=1 type=MPI_CHAR root=0 comm=MPI_COMM_WORLD");
    MPI_Bcast(&total, 1, MPI_LONG, 0, W);
    say("MPI_Bcast count=1 type=MPI_LONG root=0 comm=MPI_COMM_WORLD");
#if MPI_VERSION >= 4
    partitions();
#endif
    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, W);
    say("MPI_Reduce inplace=false count=1 type=MPI_LONG op=MPI_SUM root=0 comm=MPI_COMM_WORLD");
    MPI_Finalize();
    say("MPI_Finalize");
    oracle_write();
    if (rank == 0)
        printf("c_part: ok %ld\n", total);
    return 0;
}
