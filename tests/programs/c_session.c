/* Sessions, where the MPI has them: a program without MPI_Init. Elsewhere it asks for the world in the usual way. */
#include "oracle.h"

static int rank, size;
static long sum;

#if MPI_VERSION >= 4
static void note(MPI_Session *session, int *code, ...)
{
    (void)session;
    sum += *code != 0;
}

static void session(void)
{
    MPI_Session session;
    MPI_Errhandler spare, handler, found;
    MPI_Info kept, info;
    MPI_Group all, mine;
    MPI_Comm comm, other;
    char name[MPI_MAX_PSET_NAME_LEN];
    int n, length = MPI_MAX_PSET_NAME_LEN, color, one = 1, total = 0;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    say("MPI_Session_init info=null errhandler=MPI_ERRORS_RETURN newsession=0");
    /* The first of each kind, so that the others' numbers are not the session's. */
    MPI_Session_create_errhandler(note, &spare);
    say("MPI_Session_create_errhandler newerrhandler=0");
    MPI_Info_create(&kept);
    say("MPI_Info_create newinfo=0");
    MPI_Session_create_errhandler(note, &handler);
    say("MPI_Session_create_errhandler newerrhandler=1");
    MPI_Session_set_errhandler(session, handler);
    say("MPI_Session_set_errhandler session=0 errhandler=1");
    MPI_Session_call_errhandler(session, MPI_ERR_OTHER);
    say("MPI_Session_call_errhandler session=0 errorcode=MPI_ERR_OTHER");
    MPI_Session_get_errhandler(session, &found);
    say("MPI_Session_get_errhandler session=0 newerrhandler=1");
    MPI_Errhandler_free(&found);
    say("MPI_Errhandler_free freeerrhandler=1");
    MPI_Errhandler_free(&handler);
    say("MPI_Errhandler_free freeerrhandler=1");
    MPI_Errhandler_free(&spare);
    say("MPI_Errhandler_free freeerrhandler=0");
    MPI_Session_get_info(session, &info);
    say("MPI_Session_get_info session=0 newinfo=1");
    MPI_Info_free(&info);
    say("MPI_Info_free freeinfo=1");
    MPI_Info_free(&kept);
    say("MPI_Info_free freeinfo=0");
    MPI_Session_get_num_psets(session, MPI_INFO_NULL, &n);
    say("MPI_Session_get_num_psets session=0 info=null n=%d", n);
    sum += n;
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, name);
    say("MPI_Session_get_nth_pset session=0 info=null n=0 buflen=%d length=%d name=%s", MPI_MAX_PSET_NAME_LEN, length, name);
    MPI_Session_get_pset_info(session, "mpi://SELF", &info);
    say("MPI_Session_get_pset_info session=0 name=mpi://SELF newinfo=0");
    MPI_Info_free(&info);
    say("MPI_Info_free freeinfo=0");
    MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
    say("MPI_Group_from_session_pset session=0 name=mpi://WORLD newgroup=new:all");
    MPI_Comm_create_from_group(all, "st-all", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    say("MPI_Comm_create_from_group group=all stringtag=st-all info=null errhandler=MPI_ERRORS_ARE_FATAL newcomm=new:everyone");
    MPI_Comm_rank(comm, &rank);
    say("MPI_Comm_rank comm=everyone rank=%d", rank);
    MPI_Comm_size(comm, &size);
    say("MPI_Comm_size comm=everyone size=%d", size);
    oracle_rank = rank;
    MPI_Allreduce(&one, &total, 1, MPI_INT, MPI_SUM, comm);
    say("MPI_Allreduce inplace=false count=1 type=MPI_INT op=MPI_SUM comm=everyone");
    sum += total;
    /* The first rank and the others, and between them. */
    color = rank > 0;
    {
        int first[1] = {0};
        MPI_Group rest;
        MPI_Group_incl(all, 1, first, &mine);
        say("MPI_Group_incl group=all n=1 ranks=[0] newgroup=new:first");
        MPI_Group_excl(all, 1, first, &rest);
        say("MPI_Group_excl group=all n=1 ranks=[0] newgroup=new:rest");
        if (color == 0)
            MPI_Intercomm_create_from_groups(mine, 0, rest, 0, "st-inter", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &other);
        else
            MPI_Intercomm_create_from_groups(rest, 0, mine, 0, "st-inter", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &other);
        say("MPI_Intercomm_create_from_groups group=%s leader=0 group2=%s remoteleader=0 stringtag=st-inter info=null "
            "errhandler=MPI_ERRORS_ARE_FATAL newcomm=new:inter", color ? "rest" : "first", color ? "first" : "rest");
        MPI_Barrier(other);
        say("MPI_Barrier comm=inter");
        MPI_Comm_free(&other);
        say("MPI_Comm_free freecomm=inter");
        MPI_Group_free(&rest);
        say("MPI_Group_free freegroup=rest");
    }
    MPI_Group_free(&mine);
    say("MPI_Group_free freegroup=first");
    MPI_Group_free(&all);
    say("MPI_Group_free freegroup=all");
    MPI_Comm_free(&comm);
    say("MPI_Comm_free freecomm=everyone");
    MPI_Session_finalize(&session);
    say("MPI_Session_finalize freesession=0");
}
#else
static void session(void)
{
    MPI_Init(NULL, NULL);
    say("MPI_Init");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    say("MPI_Comm_rank comm=MPI_COMM_WORLD rank=%d", rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    say("MPI_Comm_size comm=MPI_COMM_WORLD size=%d", size);
    oracle_rank = rank;
    sum = size;
    MPI_Finalize();
    say("MPI_Finalize");
}
#endif

int main(void)
{
    session();
    oracle_write();
    if (rank == 0)
        printf("c_session: ok %ld\n", sum);
    return 0;
}
