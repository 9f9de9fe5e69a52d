/* Names, generalised requests, statuses set by hand, external packing, hints of communicators, and what MPI 4 adds to
 * point to point where the MPI has it: combined and partitioned operations. */
#include "oracle.h"

#define W MPI_COMM_WORLD

static int rank, size, right, left;
static int out[100], in[100];
static long sum;
static MPI_Comm own; /* a communicator whose number no request and no info object has */

static void names(void)
{
    MPI_Datatype type;
    char text[MPI_MAX_OBJECT_NAME];
    int n;
    MPI_Type_get_name(MPI_CHAR, text, &n);
    say("MPI_Type_get_name type=MPI_CHAR name=MPI_CHAR");
    sum += n;
    MPI_Type_set_name(MPI_CHAR, "a letter");
    say("MPI_Type_set_name type=MPI_CHAR name=%s", "a letter");
    MPI_Type_contiguous(5, MPI_INT, &type);
    say("MPI_Type_contiguous count=5 type=MPI_INT newtype=new:five");
    MPI_Type_set_name(type, "five integers");
    say("MPI_Type_set_name type=five name=%s", "five integers");
    MPI_Type_get_name(type, text, &n);
    say("MPI_Type_get_name type=five name=%s", "five integers");
    sum += n;
    MPI_Type_get_name(MPI_DOUBLE, text, &n);
    say("MPI_Type_get_name type=MPI_DOUBLE name=MPI_DOUBLE");
    sum += n;
    MPI_Type_free(&type);
    say("MPI_Type_free freetype=five");
}

static int query(void *state, MPI_Status *status)
{
    MPI_Status_set_elements(status, MPI_INT, 3);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = *(int *)state;
    return MPI_SUCCESS;
}
static int forget(void *state)
{
    sum += *(int *)state;
    return MPI_SUCCESS;
}
static int cancel(void *state, int complete)
{
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

static void generalised(void)
{
    MPI_Request q;
    MPI_Status st;
    int state = 7, s;
    COUNT n;
    MPI_Count big;
    MPI_Grequest_start(query, forget, cancel, &state, &q);
    s = slot_send();
    say("MPI_Grequest_start request=%q", s);
    MPI_Grequest_complete(q);
    say("MPI_Grequest_complete request=%q", s);
    MPI_Wait(&q, &st);
    say("MPI_Wait requests=%Q completed=%C", 1, &s, 1, all_positions, &s, &st);
    MPI_Status_set_elements(&st, MPI_DOUBLE, 4);
    say("MPI_Status_set_elements type=MPI_DOUBLE count=4");
    MPI_Get_count(&st, MPI_DOUBLE, &n);
    say("MPI_Get_count type=MPI_DOUBLE count=%n", n);
    sum += n;
    MPI_Status_set_elements_x(&st, MPI_INT, 9);
    say("MPI_Status_set_elements_x type=MPI_INT count=9");
    MPI_Get_elements_x(&st, MPI_INT, &big);
    say("MPI_Get_elements_x type=MPI_INT count=%l", (long long)big);
    sum += big;
    MPI_Status_set_cancelled(&st, 1);
    say("MPI_Status_set_cancelled flag=1");
    MPI_Test_cancelled(&st, &s);
    say("MPI_Test_cancelled flag=true");
    sum += s;
}

#ifdef MPICH_VERSION
static int poll(void *state, MPI_Status *status)
{
    (void)state, (void)status;
    return MPI_SUCCESS;
}
static int await(int n, void **states, double seconds, MPI_Status *status)
{
    (void)n, (void)states, (void)seconds, (void)status;
    return MPI_SUCCESS;
}
#endif

/* What only MPICH has. */
static void extensions(void)
{
#ifdef MPICH_VERSION
    {
        MPIX_Grequest_class kind;
        MPI_Request q;
        MPI_Status st;
        int state = 9, s, flag;
        sum += MPIX_Query_cuda_support();
        say("MPIX_Query_cuda_support");
        sum += MPIX_Query_hip_support();
        say("MPIX_Query_hip_support");
        sum += MPIX_Query_ze_support();
        say("MPIX_Query_ze_support");
        MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &flag);
        say("MPIX_GPU_query_support kind=%d flag=%b", MPIX_GPU_SUPPORT_CUDA, flag);
        MPIX_GPU_query_support(MPIX_GPU_SUPPORT_HIP, &flag);
        say("MPIX_GPU_query_support kind=%d flag=%b", MPIX_GPU_SUPPORT_HIP, flag);
        MPIX_Grequest_start(query, forget, cancel, poll, await, &state, &q);
        s = slot_send();
        say("MPIX_Grequest_start request=%q", s);
        MPI_Grequest_complete(q);
        say("MPI_Grequest_complete request=%q", s);
        MPI_Wait(&q, &st);
        say("MPI_Wait requests=%Q completed=%C", 1, &s, 1, all_positions, &s, &st);
        MPIX_Grequest_class_create(query, forget, cancel, poll, await, &kind);
        say("MPIX_Grequest_class_create");
        MPIX_Grequest_class_allocate(kind, &state, &q);
        s = slot_send();
        say("MPIX_Grequest_class_allocate request=%q", s);
        MPI_Grequest_complete(q);
        say("MPI_Grequest_complete request=%q", s);
        MPI_Wait(&q, &st);
        say("MPI_Wait requests=%Q completed=%C", 1, &s, 1, all_positions, &s, &st);
    }
#endif
}

static void external(void)
{
    char buffer[400];
    PLACE n, at = 0;
    MPI_Pack_external_size("external32", 20, MPI_INT, &n);
    say("MPI_Pack_external_size datarep=external32 count=20 type=MPI_INT size=80");
    sum += n;
    MPI_Pack_external("external32", out, 20, MPI_INT, buffer, 400, &at);
    say("MPI_Pack_external datarep=external32 count=20 type=MPI_INT size=400");
    sum += at;
    at = 0;
    MPI_Unpack_external("external32", buffer, 390, &at, in, 20, MPI_INT);
    say("MPI_Unpack_external datarep=external32 size=390 count=20 type=MPI_INT");
    sum += in[19];
}

static void hints(void)
{
    MPI_Info info, used;
    MPI_Info_create(&info);
    say("MPI_Info_create newinfo=0");
    MPI_Info_set(info, "st_key", "st_value");
    say("MPI_Info_set info=0 key=st_key value=st_value");
    MPI_Comm_set_info(own, info);
    say("MPI_Comm_set_info comm=own info=0");
    MPI_Comm_get_info(own, &used);
    say("MPI_Comm_get_info comm=own newinfo=1");
    MPI_Info_free(&used);
    say("MPI_Info_free freeinfo=1");
#if MPI_VERSION >= 4
    {
        MPI_Comm copy;
        MPI_Request q;
        MPI_Status st;
        int s;
        MPI_Comm_idup_with_info(own, info, &copy, &q);
        s = slot_send();
        say("MPI_Comm_idup_with_info comm=own info=0 newcomm=new:copy request=%q", s);
        MPI_Wait(&q, &st);
        say("MPI_Wait requests=%Q completed=%C", 1, &s, 1, all_positions, &s, &st);
        MPI_Comm_free(&copy);
        say("MPI_Comm_free freecomm=copy");
    }
#endif
    MPI_Info_free(&info);
    say("MPI_Info_free freeinfo=0");
}

#if MPI_VERSION >= 4
static void combined(void)
{
    MPI_Request q;
    MPI_Status st;
    int s;
    MPI_Isendrecv(out, 9, MPI_INT, right, 5, in, 10, MPI_INT, left, 5, own, &q);
    s = slot_send();
    say("MPI_Isendrecv sendcount=9 sendtype=MPI_INT dest=%r sendtag=5 recvcount=10 recvtype=MPI_INT source=%r recvtag=5 "
        "comm=own request=%q", right, left, s);
    MPI_Wait(&q, &st);
    say("MPI_Wait requests=%Q completed=%C", 1, &s, 1, all_positions, &s, &st);
    sum += in[8];
    MPI_Isendrecv_replace(in, 8, MPI_INT, right, 6, left, 6, own, &q);
    s = slot_send();
    say("MPI_Isendrecv_replace count=8 type=MPI_INT dest=%r sendtag=6 source=%r recvtag=6 comm=own request=%q",
        right, left, s);
    MPI_Wait(&q, &st);
    say("MPI_Wait requests=%Q completed=%C", 1, &s, 1, all_positions, &s, &st);
    sum += in[7];
}
#endif

int main(int argc, char **argv)
{
    long total = 0;
    int i;
    MPI_Init(&argc, &argv);
    say("MPI_Init");
    MPI_Comm_rank(W, &rank);
    say("MPI_Comm_rank comm=MPI_COMM_WORLD rank=%d", rank);
    MPI_Comm_size(W, &size);
    say("MPI_Comm_size comm=MPI_COMM_WORLD size=%d", size);
    oracle_rank = rank;
    right = (rank + 1) % size;
    left = (rank + size - 1) % size;
    for (i = 0; i < 100; i++)
        out[i] = 100 * rank + i;

    MPI_Comm_dup(W, &own);
    say("MPI_Comm_dup comm=MPI_COMM_WORLD newcomm=new:own");
    names();
    generalised();
    extensions();
    external();
    hints();
#if MPI_VERSION >= 4
    combined();
#endif
    MPI_Comm_free(&own);
    say("MPI_Comm_free freecomm=own");

    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, W);
    say("MPI_Reduce inplace=false count=1 type=MPI_LONG op=MPI_SUM root=0 comm=MPI_COMM_WORLD");
    MPI_Finalize();
    say("MPI_Finalize");
    oracle_write();
    if (rank == 0)
        printf(PROGRAM("misc") ": ok %ld\n", total);
    return 0;
}
