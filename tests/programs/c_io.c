/* Files (rows of MPI_File_*). */
#include "oracle.h"
#include <unistd.h>

/* MPICH cannot read or write by types from the functions for large counts. */
#undef MPI_Type_contiguous
#undef MPI_Type_create_hindexed
#undef MPI_Type_create_resized

#define W MPI_COMM_WORLD
#ifdef LARGE
#define NO_CONVERSION MPI_CONVERSION_FN_NULL_C
#else
#define NO_CONVERSION MPI_CONVERSION_FN_NULL
#endif
enum { N = 16, PART = 1024 }; /* integers in a buffer, bytes of a rank in the file */

static int rank, size;
static int out[N], in[N];
static long sum;
static MPI_Datatype pair, gaps;
static MPI_File f;
static char name[200];
/* Requests that are never started: the others' numbers are those of no file and of no type. */
static MPI_Request idle[2];
static int idle_slots[2];

static void take(void)
{
    int i;
    for (i = 0; i < N; i++) {
        sum += in[i] * (i + 1L);
        in[i] = 0;
    }
}

/* What is known of a file, and what it can be told. */
static void properties(void)
{
    MPI_Group group;
    MPI_Info kept, info;
    MPI_Offset n;
    PLACE extent;
    int v;
    MPI_File_set_size(f, 4000);
    say("MPI_File_set_size file=f size=4000");
    MPI_File_preallocate(f, 5000);
    say("MPI_File_preallocate file=f size=5000");
    MPI_Barrier(W);
    say("MPI_Barrier comm=MPI_COMM_WORLD");
    MPI_File_get_size(f, &n);
    say("MPI_File_get_size file=f size=5000");
    sum += n;
    MPI_File_get_group(f, &group);
    say("MPI_File_get_group file=f newgroup=new:group");
    MPI_Group_size(group, &v);
    say("MPI_Group_size group=group size=%d", size);
    sum += v;
    MPI_Group_free(&group);
    say("MPI_Group_free freegroup=group");
    MPI_File_get_amode(f, &v);
    say("MPI_File_get_amode file=f amode=MPI_MODE_CREATE|MPI_MODE_RDWR|MPI_MODE_UNIQUE_OPEN");
    MPI_Info_create(&kept);
    say("MPI_Info_create newinfo=0");
    MPI_Info_create(&info);
    say("MPI_Info_create newinfo=1");
    MPI_File_set_info(f, info);
    say("MPI_File_set_info file=f info=1");
    MPI_Info_free(&info);
    say("MPI_Info_free freeinfo=1");
    MPI_File_get_info(f, &info);
    say("MPI_File_get_info file=f newinfo=1");
    MPI_Info_free(&info);
    say("MPI_Info_free freeinfo=1");
    MPI_Info_free(&kept);
    say("MPI_Info_free freeinfo=0");
    MPI_File_get_atomicity(f, &v);
    say("MPI_File_get_atomicity file=f atomic=0");
    sum += v;
    /* Open MPI 4 may say that it cannot. */
    v = MPI_File_set_atomicity(f, 1);
    say(v ? "MPI_File_set_atomicity file=f atomic=1 error=MPI_ERR_OTHER" : "MPI_File_set_atomicity file=f atomic=1");
    v = MPI_File_set_atomicity(f, 0);
    say(v ? "MPI_File_set_atomicity file=f atomic=0 error=MPI_ERR_OTHER" : "MPI_File_set_atomicity file=f atomic=0");
    MPI_File_get_type_extent(f, gaps, &extent);
    say("MPI_File_get_type_extent file=f type=gaps extent=12");
    sum += extent;
}

static void at(void)
{
    MPI_Status st;
    MPI_Offset here = rank * PART;
    MPI_File_write_at(f, here, out, 12, MPI_INT, &st);
    say("MPI_File_write_at file=f offset=%d count=12 type=MPI_INT bytes=48", (int)here);
    MPI_File_read_at(f, here + 8, in, 5, pair, MPI_STATUS_IGNORE);
    say("MPI_File_read_at file=f offset=%d count=5 type=pair bytes=40", (int)here + 8);
    take();
    MPI_File_write_at_all(f, here + 100, out, 6, pair, &st);
    say("MPI_File_write_at_all file=f offset=%d count=6 type=pair bytes=48", (int)here + 100);
    MPI_File_read_at_all(f, here + 104, in, 7, MPI_INT, MPI_STATUS_IGNORE);
    say("MPI_File_read_at_all file=f offset=%d count=7 type=MPI_INT bytes=28", (int)here + 104);
    take();
    MPI_File_write_at_all_begin(f, here + 200, out, 4, MPI_INT);
    say("MPI_File_write_at_all_begin file=f offset=%d count=4 type=MPI_INT", (int)here + 200);
    MPI_File_write_at_all_end(f, out, &st);
    say("MPI_File_write_at_all_end file=f bytes=16");
    MPI_File_read_at_all_begin(f, here + 200, in, 2, pair);
    say("MPI_File_read_at_all_begin file=f offset=%d count=2 type=pair", (int)here + 200);
    MPI_File_read_at_all_end(f, in, &st);
    say("MPI_File_read_at_all_end file=f bytes=16");
    take();
}

/* With the ranks' own pointers, through a view that leaves out every third integer. */
static void own(void)
{
    MPI_Status st;
    MPI_Offset n;
    MPI_Datatype etype, filetype;
    char datarep[MPI_MAX_DATAREP_STRING];
    MPI_File_set_view(f, rank * PART + 400, MPI_INT, gaps, "native", MPI_INFO_NULL);
    say("MPI_File_set_view file=f disp=%d etype=MPI_INT filetype=gaps datarep=native info=null", rank * PART + 400);
    MPI_File_get_byte_offset(f, 3, &n);
    say("MPI_File_get_byte_offset file=f offset=3 disp=%d", rank * PART + 400 + 16);
    sum += n;
    MPI_File_write(f, out, 9, MPI_INT, &st);
    say("MPI_File_write file=f count=9 type=MPI_INT bytes=36");
    MPI_File_get_position(f, &n);
    say("MPI_File_get_position file=f offset=9");
    sum += n;
    MPI_File_seek(f, -4, MPI_SEEK_CUR);
    say("MPI_File_seek file=f offset=-4 whence=MPI_SEEK_CUR");
    MPI_File_read(f, in, 2, pair, MPI_STATUS_IGNORE);
    say("MPI_File_read file=f count=2 type=pair bytes=16");
    take();
    MPI_File_seek(f, 1, MPI_SEEK_SET);
    say("MPI_File_seek file=f offset=1 whence=MPI_SEEK_SET");
    MPI_File_write_all(f, out, 4, pair, MPI_STATUS_IGNORE);
    say("MPI_File_write_all file=f count=4 type=pair bytes=32");
    MPI_File_seek(f, 2, MPI_SEEK_SET);
    say("MPI_File_seek file=f offset=2 whence=MPI_SEEK_SET");
    MPI_File_read_all(f, in, 6, MPI_INT, &st);
    say("MPI_File_read_all file=f count=6 type=MPI_INT bytes=24");
    take();
    MPI_File_write_all_begin(f, out, 3, MPI_INT);
    say("MPI_File_write_all_begin file=f count=3 type=MPI_INT");
    MPI_File_write_all_end(f, out, &st);
    say("MPI_File_write_all_end file=f bytes=12");
    MPI_File_seek(f, 0, MPI_SEEK_SET);
    say("MPI_File_seek file=f offset=0 whence=MPI_SEEK_SET");
    MPI_File_read_all_begin(f, in, 2, pair);
    say("MPI_File_read_all_begin file=f count=2 type=pair");
    MPI_File_read_all_end(f, in, &st);
    say("MPI_File_read_all_end file=f bytes=16");
    take();
    MPI_File_set_view(f, 48, MPI_BYTE, MPI_INT, "native", MPI_INFO_NULL);
    say("MPI_File_set_view file=f disp=48 etype=MPI_BYTE filetype=MPI_INT datarep=native info=null");
    MPI_File_get_view(f, &n, &etype, &filetype, datarep);
    say("MPI_File_get_view file=f disp=48 etype=MPI_BYTE filetype=MPI_INT datarep=native");
    sum += n;
    MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    say("MPI_File_set_view file=f disp=0 etype=MPI_BYTE filetype=MPI_BYTE datarep=native info=null");
}

static MPI_Request q[2];
static int s[2];

/* Waits for the operation, beside which slot 0 stays busy. */
static void finish(void)
{
    MPI_Status st;
    MPI_Wait(&q[1], &st);
    say("MPI_Wait requests=%Q completed=%C", 1, &s[1], 1, all_positions, &s[1], &st);
    take();
}

static void requests(void)
{
    MPI_Offset here = rank * PART + 700;
    MPI_Status st;
    int flag, fails = 0;
    MPI_Ibarrier(W, &q[0]);
    s[0] = slot_send();
    say("MPI_Ibarrier comm=MPI_COMM_WORLD request=%q", s[0]);
    MPI_File_iwrite_at(f, here, out, 8, MPI_INT, &q[1]);
    s[1] = slot_file(32);
    say("MPI_File_iwrite_at file=f offset=%d count=8 type=MPI_INT request=%q", (int)here, s[1]);
    finish();
    MPI_File_iread_at(f, here + 4, in, 2, pair, &q[1]);
    s[1] = slot_file(16);
    say("MPI_File_iread_at file=f offset=%d count=2 type=pair request=%q", (int)here + 4, s[1]);
    finish();
    MPI_File_iwrite_at_all(f, here + 40, out, 3, pair, &q[1]);
    s[1] = slot_file(24);
    say("MPI_File_iwrite_at_all file=f offset=%d count=3 type=pair request=%q", (int)here + 40, s[1]);
    finish();
    MPI_File_iread_at_all(f, here + 40, in, 5, MPI_INT, &q[1]);
    s[1] = slot_file(20);
    say("MPI_File_iread_at_all file=f offset=%d count=5 type=MPI_INT request=%q", (int)here + 40, s[1]);
    finish();
    MPI_File_seek(f, here + 80, MPI_SEEK_SET);
    say("MPI_File_seek file=f offset=%d whence=MPI_SEEK_SET", (int)here + 80);
    MPI_File_iwrite(f, out, 6, MPI_INT, &q[1]);
    s[1] = slot_file(24);
    say("MPI_File_iwrite file=f count=6 type=MPI_INT request=%q", s[1]);
    finish();
    MPI_File_seek(f, here + 80, MPI_SEEK_SET);
    say("MPI_File_seek file=f offset=%d whence=MPI_SEEK_SET", (int)here + 80);
    MPI_File_iread(f, in, 2, pair, &q[1]);
    s[1] = slot_file(16);
    say("MPI_File_iread file=f count=2 type=pair request=%q", s[1]);
    finish();
    MPI_File_iwrite_all(f, out, 7, MPI_INT, &q[1]);
    s[1] = slot_file(28);
    say("MPI_File_iwrite_all file=f count=7 type=MPI_INT request=%q", s[1]);
    finish();
    MPI_File_seek(f, here + 80, MPI_SEEK_SET);
    say("MPI_File_seek file=f offset=%d whence=MPI_SEEK_SET", (int)here + 80);
    MPI_File_iread_all(f, in, 3, pair, &q[1]);
    s[1] = slot_file(24);
    say("MPI_File_iread_all file=f count=3 type=pair request=%q", s[1]);
    do {
        MPI_Test(&q[1], &flag, &st);
        fails += !flag;
    } while (!flag);
    if (fails)
        say("MPI_Test requests=%Q flag=false completed=[] times=%d", 1, &s[1], fails);
    say("MPI_Test requests=%Q flag=true completed=%C times=1", 1, &s[1], 1, all_positions, &s[1], &st);
    take();
    MPI_Wait(&q[0], &st);
    say("MPI_Wait requests=%Q completed=%C", 1, &s[0], 1, all_positions, &s[0], &st);
}

/* With the pointer that all ranks share. All write the same. */
static void shared(void)
{
    MPI_Status st;
    MPI_Offset n;
    int i;
    for (i = 0; i < N; i++)
        out[i] = 5 * i + 1;
    MPI_File_seek_shared(f, 16, MPI_SEEK_SET);
    say("MPI_File_seek_shared file=f offset=16 whence=MPI_SEEK_SET");
    MPI_File_write_shared(f, out, 3, pair, &st);
    say("MPI_File_write_shared file=f count=3 type=pair bytes=24");
    MPI_Barrier(W);
    say("MPI_Barrier comm=MPI_COMM_WORLD");
    MPI_File_get_position_shared(f, &n);
    say("MPI_File_get_position_shared file=f offset=%d", 16 + 24 * size);
    sum += n;
    MPI_Barrier(W);
    say("MPI_Barrier comm=MPI_COMM_WORLD");
    MPI_File_seek_shared(f, 16, MPI_SEEK_SET);
    say("MPI_File_seek_shared file=f offset=16 whence=MPI_SEEK_SET");
    MPI_File_read_shared(f, in, 6, MPI_INT, &st);
    say("MPI_File_read_shared file=f count=6 type=MPI_INT bytes=24");
    take();
    MPI_Barrier(W);
    say("MPI_Barrier comm=MPI_COMM_WORLD");
    MPI_File_write_ordered(f, out, 4, MPI_INT, &st);
    say("MPI_File_write_ordered file=f count=4 type=MPI_INT bytes=16");
    MPI_File_write_ordered_begin(f, out, 2, pair);
    say("MPI_File_write_ordered_begin file=f count=2 type=pair");
    MPI_File_write_ordered_end(f, out, &st);
    say("MPI_File_write_ordered_end file=f bytes=16");
    MPI_File_seek_shared(f, 16 + 24 * size, MPI_SEEK_SET);
    say("MPI_File_seek_shared file=f offset=%d whence=MPI_SEEK_SET", 16 + 24 * size);
    MPI_File_read_ordered(f, in, 2, pair, &st);
    say("MPI_File_read_ordered file=f count=2 type=pair bytes=16");
    take();
    MPI_File_read_ordered_begin(f, in, 4, MPI_INT);
    say("MPI_File_read_ordered_begin file=f count=4 type=MPI_INT");
    MPI_File_read_ordered_end(f, in, &st);
    say("MPI_File_read_ordered_end file=f bytes=16");
    take();
    MPI_Barrier(W);
    say("MPI_Barrier comm=MPI_COMM_WORLD");
    MPI_File_seek_shared(f, 32, MPI_SEEK_SET);
    say("MPI_File_seek_shared file=f offset=32 whence=MPI_SEEK_SET");
    MPI_File_iwrite_shared(f, out, 4, MPI_INT, &q[1]);
    s[1] = slot_file(16);
    say("MPI_File_iwrite_shared file=f count=4 type=MPI_INT request=%q", s[1]);
    finish();
    MPI_Barrier(W);
    say("MPI_Barrier comm=MPI_COMM_WORLD");
    MPI_File_seek_shared(f, 32, MPI_SEEK_SET);
    say("MPI_File_seek_shared file=f offset=32 whence=MPI_SEEK_SET");
    MPI_File_iread_shared(f, in, 2, pair, &q[1]);
    s[1] = slot_file(16);
    say("MPI_File_iread_shared file=f count=2 type=pair request=%q", s[1]);
    finish();
}

static int extent_of(MPI_Datatype type, MPI_Aint *extent, void *state)
{
    (void)type, (void)state;
    *extent = 4;
    return MPI_SUCCESS;
}

/* A representation of the program's own, which Open MPI 4 refuses. */
static void representation(void)
{
    int v = MPI_Register_datarep("st-own", NO_CONVERSION, NO_CONVERSION, extent_of, NULL);
    say(v ? "MPI_Register_datarep datarep=st-own error=MPI_ERR_OTHER" : "MPI_Register_datarep datarep=st-own");
}

/* A file of its own for each rank. */
static void alone(void)
{
    char mine[220];
    MPI_File g;
    MPI_Info info;
    MPI_Status st;
    int atomic;
    snprintf(mine, sizeof mine, "%s.%d", name, rank);
    MPI_Info_create(&info);
    say("MPI_Info_create newinfo=0");
    MPI_File_open(MPI_COMM_SELF, mine, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY, info, &g);
    say("MPI_File_open comm=MPI_COMM_SELF filename=%s amode=MPI_MODE_CREATE|MPI_MODE_WRONLY|MPI_MODE_EXCL info=0 "
        "newfile=new:mine", mine);
    MPI_File_get_atomicity(g, &atomic);
    say("MPI_File_get_atomicity file=mine atomic=0");
    sum += atomic;
    MPI_File_write(g, out, 3, MPI_INT, &st);
    say("MPI_File_write file=mine count=3 type=MPI_INT bytes=12");
    MPI_File_sync(g);
    say("MPI_File_sync file=mine");
    MPI_File_close(&g);
    say("MPI_File_close freefile=mine");
    MPI_File_open(MPI_COMM_SELF, mine, MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &g);
    say("MPI_File_open comm=MPI_COMM_SELF filename=%s amode=MPI_MODE_RDONLY|MPI_MODE_DELETE_ON_CLOSE info=null "
        "newfile=new:mine", mine);
    /* There are not so many in it. */
    MPI_File_read(g, in, 10, MPI_INT, &st);
    say("MPI_File_read file=mine count=10 type=MPI_INT bytes=12");
    take();
    MPI_File_seek(g, -8, MPI_SEEK_END);
    say("MPI_File_seek file=mine offset=-8 whence=MPI_SEEK_END");
    MPI_File_read(g, in, 1, pair, MPI_STATUS_IGNORE);
    say("MPI_File_read file=mine count=1 type=pair bytes=8");
    take();
    MPI_File_close(&g);
    say("MPI_File_close freefile=mine");
    MPI_Info_free(&info);
    say("MPI_Info_free freeinfo=0");
}

int main(int argc, char **argv)
{
    long total = 0;
    int i, lengths[2] = {2, 0};
    MPI_Aint displacements[2] = {0, 0};
    MPI_Datatype two;
    /* Open MPI 4.1.4's own choice crashes in MPI_File_write_at_all with 4 ranks. */
    setenv("OMPI_MCA_fcoll", "individual", 0);
    MPI_Init(&argc, &argv);
    say("MPI_Init");
    MPI_Comm_rank(W, &rank);
    say("MPI_Comm_rank comm=MPI_COMM_WORLD rank=%d", rank);
    MPI_Comm_size(W, &size);
    say("MPI_Comm_size comm=MPI_COMM_WORLD size=%d", size);
    oracle_rank = rank;
    for (i = 0; i < N; i++)
        out[i] = 10 * rank + i;
    oracle_small = 1;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    say("MPI_Type_contiguous count=2 type=MPI_INT newtype=new:pair");
    MPI_Type_commit(&pair);
    say("MPI_Type_commit committype=pair");
    MPI_Type_create_hindexed(1, lengths, displacements, MPI_INT, &two);
    say("MPI_Type_create_hindexed count=1 blocklengths=[2] displacements=[0] type=MPI_INT newtype=new:two");
    MPI_Type_create_resized(two, 0, 12, &gaps);
    say("MPI_Type_create_resized type=two lb=0 extent=12 newtype=new:gaps");
    MPI_Type_commit(&gaps);
    say("MPI_Type_commit committype=gaps");
    oracle_small = 0;
    if (rank == 0) {
        const char *dir = getenv("TMPDIR");
        int fd;
        snprintf(name, sizeof name, "%s/st-c_io-XXXXXX", dir && strlen(dir) < 100 ? dir : "/tmp");
        fd = mkstemp(name);
        if (fd < 0 || close(fd))
            abort();
    }
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, W);
    say("MPI_Bcast count=%d type=MPI_CHAR root=0 comm=MPI_COMM_WORLD", (int)sizeof name);

    MPI_File_open(W, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_UNIQUE_OPEN, MPI_INFO_NULL, &f);
    say("MPI_File_open comm=MPI_COMM_WORLD filename=%s amode=MPI_MODE_CREATE|MPI_MODE_RDWR|MPI_MODE_UNIQUE_OPEN info=null "
        "newfile=new:f", name);
    for (i = 0; i < 2; i++) {
        MPI_Send_init(out, 1, MPI_INT, 0, i, MPI_COMM_SELF, &idle[i]);
        idle_slots[i] = slot_send_init();
        say("MPI_Send_init count=1 type=MPI_INT dest=0 tag=%d comm=MPI_COMM_SELF request=%q", i, idle_slots[i]);
    }
    properties();
    at();
    own();
    requests();
    MPI_File_sync(f);
    say("MPI_File_sync file=f");
    MPI_Barrier(W);
    say("MPI_Barrier comm=MPI_COMM_WORLD");
    shared();
    MPI_File_close(&f);
    say("MPI_File_close freefile=f");
    alone();
    representation();
    for (i = 0; i < 2; i++) {
        MPI_Request_free(&idle[i]);
        say("MPI_Request_free request=%q", slot_free(idle_slots[i]));
    }
    if (rank == 0) {
        MPI_File_delete(name, MPI_INFO_NULL);
        say("MPI_File_delete filename=%s info=null", name);
    }

    MPI_Type_free(&gaps);
    say("MPI_Type_free freetype=gaps");
    MPI_Type_free(&two);
    say("MPI_Type_free freetype=two");
    MPI_Type_free(&pair);
    say("MPI_Type_free freetype=pair");
    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, W);
    say("MPI_Reduce inplace=false count=1 type=MPI_LONG op=MPI_SUM root=0 comm=MPI_COMM_WORLD");
    MPI_Finalize();
    say("MPI_Finalize");
    oracle_write();
    if (rank == 0)
        printf(PROGRAM("io") ": ok %ld\n", total);
    return 0;
}
