/* Attributes, error handlers and classes, and what a type is made of (rows 413 to 499 and 734 to 815 in part). */
#include "oracle.h"

#define W MPI_COMM_WORLD

static int rank, size;
static long sum;

static int forget(MPI_Comm comm, int key, void *value, void *state)
{
    (void)comm, (void)key, (void)state;
    sum += *(int *)value;
    return MPI_SUCCESS;
}

static void of_communicators(void)
{
    int value = 7, other = 30, key, second, flag;
    void *found;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, NULL);
    say("MPI_Comm_create_keyval newkeyval=0");
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &second, NULL);
    say("MPI_Comm_create_keyval newkeyval=1");
    MPI_Comm_get_attr(W, key, &found, &flag);
    say("MPI_Comm_get_attr comm=MPI_COMM_WORLD keyval=0 flag=false");
    MPI_Comm_set_attr(W, key, &value);
    say("MPI_Comm_set_attr comm=MPI_COMM_WORLD keyval=0");
    MPI_Comm_set_attr(MPI_COMM_SELF, key, &other);
    say("MPI_Comm_set_attr comm=MPI_COMM_SELF keyval=0");
    MPI_Comm_set_attr(W, second, &other);
    say("MPI_Comm_set_attr comm=MPI_COMM_WORLD keyval=1");
    MPI_Comm_get_attr(W, key, &found, &flag);
    say("MPI_Comm_get_attr comm=MPI_COMM_WORLD keyval=0 flag=true");
    sum += *(int *)found;
    MPI_Comm_get_attr(W, MPI_TAG_UB, &found, &flag);
    say("MPI_Comm_get_attr comm=MPI_COMM_WORLD keyval=MPI_TAG_UB flag=true");
    sum += flag;
    MPI_Comm_get_attr(W, MPI_WTIME_IS_GLOBAL, &found, &flag);
    say("MPI_Comm_get_attr comm=MPI_COMM_WORLD keyval=MPI_WTIME_IS_GLOBAL flag=%b", flag);
    MPI_Comm_delete_attr(W, key);
    say("MPI_Comm_delete_attr comm=MPI_COMM_WORLD keyval=0");
    MPI_Comm_delete_attr(MPI_COMM_SELF, key);
    say("MPI_Comm_delete_attr comm=MPI_COMM_SELF keyval=0");
    MPI_Comm_delete_attr(W, second);
    say("MPI_Comm_delete_attr comm=MPI_COMM_WORLD keyval=1");
    MPI_Comm_free_keyval(&key);
    say("MPI_Comm_free_keyval freekeyval=0");
    /* Its number is free again. */
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    say("MPI_Comm_create_keyval newkeyval=0");
    MPI_Comm_free_keyval(&second);
    say("MPI_Comm_free_keyval freekeyval=1");
    MPI_Comm_free_keyval(&key);
    say("MPI_Comm_free_keyval freekeyval=0");
}

static void of_others(void)
{
    MPI_Datatype pair;
    MPI_Win win;
    int memory[4] = {0, 0, 0, 0}, value = 5, key, winkey, flag;
    void *found;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    say("MPI_Type_contiguous count=2 type=MPI_INT newtype=new:pair");
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &key, NULL);
    say("MPI_Type_create_keyval newkeyval=0");
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &winkey, NULL);
    say("MPI_Win_create_keyval newkeyval=1");
    MPI_Type_set_attr(pair, key, &value);
    say("MPI_Type_set_attr type=pair keyval=0");
    MPI_Type_get_attr(pair, key, &found, &flag);
    say("MPI_Type_get_attr type=pair keyval=0 flag=true");
    sum += *(int *)found;
    MPI_Type_delete_attr(pair, key);
    say("MPI_Type_delete_attr type=pair keyval=0");
    MPI_Type_get_attr(pair, key, &found, &flag);
    say("MPI_Type_get_attr type=pair keyval=0 flag=false");
    MPI_Type_free(&pair);
    say("MPI_Type_free freetype=pair");
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, W, &win);
    say("MPI_Win_create size=16 dispunit=4 info=null comm=MPI_COMM_WORLD newwin=new:win");
    MPI_Win_set_attr(win, winkey, &value);
    say("MPI_Win_set_attr win=win keyval=1");
    MPI_Win_get_attr(win, winkey, &found, &flag);
    say("MPI_Win_get_attr win=win keyval=1 flag=true");
    sum += *(int *)found;
    MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &found, &flag);
    say("MPI_Win_get_attr win=win keyval=MPI_WIN_DISP_UNIT flag=true");
    sum += *(int *)found;
    MPI_Win_delete_attr(win, winkey);
    say("MPI_Win_delete_attr win=win keyval=1");
    MPI_Win_free(&win);
    say("MPI_Win_free freewin=win");
    MPI_Type_free_keyval(&key);
    say("MPI_Type_free_keyval freekeyval=0");
    MPI_Win_free_keyval(&winkey);
    say("MPI_Win_free_keyval freekeyval=1");
}

static void note(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    sum += *code != 0;
}
static void note_win(MPI_Win *win, int *code, ...)
{
    (void)win;
    sum += 10 * (*code != 0);
}
static void note_file(MPI_File *file, int *code, ...)
{
    (void)file;
    sum += 100 * (*code != 0);
}

static void handlers(void)
{
    MPI_Errhandler handler, found, of_win, of_file;
    MPI_Win win;
    MPI_File file;
    int memory[4] = {0, 0, 0, 0}, class, code, known, n;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Comm_create_errhandler(note, &handler);
    say("MPI_Comm_create_errhandler newerrhandler=0");
    MPI_Comm_get_errhandler(W, &found);
    say("MPI_Comm_get_errhandler comm=MPI_COMM_WORLD newerrhandler=MPI_ERRORS_ARE_FATAL");
    MPI_Comm_set_errhandler(W, handler);
    say("MPI_Comm_set_errhandler comm=MPI_COMM_WORLD errhandler=0");
    MPI_Comm_get_errhandler(W, &found);
    say("MPI_Comm_get_errhandler comm=MPI_COMM_WORLD newerrhandler=0");
    MPI_Errhandler_free(&found);
    say("MPI_Errhandler_free freeerrhandler=0");
    MPI_Comm_call_errhandler(W, MPI_ERR_OTHER);
    say("MPI_Comm_call_errhandler comm=MPI_COMM_WORLD errorcode=MPI_ERR_OTHER");
    MPI_Comm_set_errhandler(W, MPI_ERRORS_RETURN);
    say("MPI_Comm_set_errhandler comm=MPI_COMM_WORLD errhandler=MPI_ERRORS_RETURN");
    MPI_File_create_errhandler(note_file, &of_file);
    say("MPI_File_create_errhandler newerrhandler=1");
    MPI_Win_create_errhandler(note_win, &of_win);
    say("MPI_Win_create_errhandler newerrhandler=2");
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, W, &win);
    say("MPI_Win_create size=16 dispunit=4 info=null comm=MPI_COMM_WORLD newwin=new:win");
    MPI_Win_set_errhandler(win, of_win);
    say("MPI_Win_set_errhandler win=win errhandler=2");
    MPI_Win_get_errhandler(win, &found);
    say("MPI_Win_get_errhandler win=win newerrhandler=2");
    MPI_Errhandler_free(&found);
    say("MPI_Errhandler_free freeerrhandler=2");
    MPI_Win_call_errhandler(win, MPI_ERR_ARG);
    say("MPI_Win_call_errhandler win=win errorcode=MPI_ERR_ARG");
    MPI_Win_free(&win);
    say("MPI_Win_free freewin=win");
    MPI_File_get_errhandler(MPI_FILE_NULL, &found);
    say("MPI_File_get_errhandler file=null newerrhandler=MPI_ERRORS_RETURN");
    MPI_File_set_errhandler(MPI_FILE_NULL, of_file);
    say("MPI_File_set_errhandler file=null errhandler=1");
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    say("MPI_File_set_errhandler file=null errhandler=MPI_ERRORS_RETURN");
    MPI_File_open(MPI_COMM_SELF, "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    say("MPI_File_open comm=MPI_COMM_SELF filename=/dev/null amode=MPI_MODE_RDONLY info=null newfile=new:file");
    MPI_File_set_errhandler(file, of_file);
    say("MPI_File_set_errhandler file=file errhandler=1");
    MPI_File_call_errhandler(file, MPI_ERR_IO);
    say("MPI_File_call_errhandler file=file errorcode=MPI_ERR_IO");
    MPI_File_close(&file);
    say("MPI_File_close freefile=file");
    MPI_Errhandler_free(&handler);
    say("MPI_Errhandler_free freeerrhandler=0");
    MPI_Errhandler_free(&of_file);
    say("MPI_Errhandler_free freeerrhandler=1");
    MPI_Errhandler_free(&of_win);
    say("MPI_Errhandler_free freeerrhandler=2");

    MPI_Error_class(MPI_ERR_TRUNCATE, &class);
    say("MPI_Error_class errorcode=MPI_ERR_TRUNCATE class=MPI_ERR_TRUNCATE");
    sum += class == MPI_ERR_TRUNCATE;
    MPI_Error_class(MPI_SUCCESS, &class);
    say("MPI_Error_class errorcode=MPI_SUCCESS class=MPI_SUCCESS");
    MPI_Error_string(MPI_ERR_ROOT, text, &n);
    say("MPI_Error_string errorcode=MPI_ERR_ROOT");
    sum += n > 0;
    /* Classes of the program's own follow the sixty of the standard. */
    MPI_Add_error_class(&class);
    say("MPI_Add_error_class class=%d", 61 + class);
    MPI_Add_error_code(class, &code);
    say("MPI_Add_error_code class=%d errorcode=%d", 61 + class, 61 + class);
    MPI_Add_error_string(code, "my error");
    say("MPI_Add_error_string errorcode=%d text=%s", 61 + class, "my error");
    MPI_Error_class(code, &known);
    say("MPI_Error_class errorcode=%d class=%d", 61 + class, 61 + class);
    sum += known == class;
#ifdef MPICH_VERSION
    MPIX_Delete_error_string(code);
    say("MPIX_Delete_error_string errorcode=%d", 61 + class);
    MPIX_Delete_error_code(code);
    say("MPIX_Delete_error_code errorcode=%d", 61 + class);
    MPIX_Delete_error_class(class);
    say("MPIX_Delete_error_class class=%d", 61 + class);
#endif
}

static void pieces(void)
{
    MPI_Datatype inner, outer, types[1];
    int ints, addresses, n, combiner, integers[2], given;
    MPI_Aint where[1];
    char again[32];
    MPI_Type_contiguous(3, MPI_INT, &inner);
    say("MPI_Type_contiguous count=3 type=MPI_INT newtype=new:inner");
    MPI_Type_create_resized(inner, 0, 32, &outer);
    say("MPI_Type_create_resized type=inner lb=0 extent=32 newtype=new:outer");
    MPI_Type_get_envelope(outer, &ints, &addresses, &n, &combiner);
    say("MPI_Type_get_envelope type=outer integers=0 addresses=2 types=1 combiner=MPI_COMBINER_RESIZED");
    MPI_Type_get_envelope(inner, &ints, &addresses, &n, &combiner);
    say("MPI_Type_get_envelope type=inner integers=1 addresses=0 types=1 combiner=MPI_COMBINER_CONTIGUOUS");
    MPI_Type_get_contents(inner, 2, 1, 1, integers, where, types);
    say("MPI_Type_get_contents type=inner maxintegers=2 maxaddresses=1 maxtypes=1 types=[\"MPI_INT\"]");
    sum += integers[0];
    MPI_Type_free(&outer);
    say("MPI_Type_free freetype=outer");
    MPI_Type_contiguous(2, inner, &outer);
    say("MPI_Type_contiguous count=2 type=inner newtype=new:twice");
    MPI_Type_get_contents(outer, 1, 0, 1, integers, where, types);
    /* One library gives the type itself once more, the other a copy. */
    snprintf(again, sizeof again, "[\"%s\"]", types[0] == inner ? "inner" : "new:again");
    say("MPI_Type_get_contents type=twice maxintegers=1 maxaddresses=0 maxtypes=1 types=%s", again);
    sum += integers[0];
#if MPI_VERSION >= 4
    {
        MPI_Count big[4], few[2];
        MPI_Datatype six, wide, inside[1];
        MPI_Aint bounds[2];
        MPI_Type_get_envelope_c(MPI_FLOAT, &big[0], &big[1], &big[2], &big[3], &combiner);
        say("MPI_Type_get_envelope_c type=MPI_FLOAT integers=0 addresses=0 counts=0 types=0 combiner=MPI_COMBINER_NAMED");
        MPI_Type_contiguous_c(6, MPI_INT, &six);
        say("MPI_Type_contiguous_c count=6 type=MPI_INT newtype=new:six");
        MPI_Type_get_envelope_c(six, &big[0], &big[1], &big[2], &big[3], &combiner);
        say("MPI_Type_get_envelope_c type=six integers=0 addresses=0 counts=1 types=1 combiner=MPI_COMBINER_CONTIGUOUS");
        MPI_Type_get_contents_c(six, 0, 0, 1, 1, integers, where, few, inside);
        say("MPI_Type_get_contents_c type=six maxintegers=0 maxaddresses=0 maxcounts=1 maxtypes=1 types=[\"MPI_INT\"]");
        /* Made without large counts, it has addresses and no counts. */
        MPI_Type_create_resized(MPI_INT, 0, 16, &wide);
        say("MPI_Type_create_resized type=MPI_INT lb=0 extent=16 newtype=new:wide");
        MPI_Type_get_envelope_c(wide, &big[0], &big[1], &big[2], &big[3], &combiner);
        say("MPI_Type_get_envelope_c type=wide integers=0 addresses=2 counts=0 types=1 combiner=MPI_COMBINER_RESIZED");
        MPI_Type_get_contents_c(wide, 0, 2, 0, 1, integers, bounds, few, inside);
        say("MPI_Type_get_contents_c type=wide maxintegers=0 maxaddresses=2 maxcounts=0 maxtypes=1 types=[\"MPI_INT\"]");
        sum += bounds[1];
        MPI_Type_free(&wide);
        say("MPI_Type_free freetype=wide");
        MPI_Type_free(&six);
        say("MPI_Type_free freetype=six");
    }
#endif
    MPI_Type_get_envelope(MPI_DOUBLE, &ints, &addresses, &n, &combiner);
    say("MPI_Type_get_envelope type=MPI_DOUBLE integers=0 addresses=0 types=0 combiner=MPI_COMBINER_NAMED");
    MPI_Type_free(&outer);
    say("MPI_Type_free freetype=twice");
    given = types[0] == inner;
    MPI_Type_free(&types[0]);
    say("MPI_Type_free freetype=%s", given ? "inner" : "again");
    MPI_Type_free(&inner);
    say("MPI_Type_free freetype=%s", given ? "new:inner" : "inner");
}

int main(int argc, char **argv)
{
    long total = 0;
    MPI_Init(&argc, &argv);
    say("MPI_Init");
    MPI_Comm_rank(W, &rank);
    say("MPI_Comm_rank comm=MPI_COMM_WORLD rank=%d", rank);
    MPI_Comm_size(W, &size);
    say("MPI_Comm_size comm=MPI_COMM_WORLD size=%d", size);
    oracle_rank = rank;

    of_communicators();
    of_others();
    handlers();
    pieces();

    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, W);
    say("MPI_Reduce inplace=false count=1 type=MPI_LONG op=MPI_SUM root=0 comm=MPI_COMM_WORLD");
    MPI_Finalize();
    say("MPI_Finalize");
    oracle_write();
    if (rank == 0)
        printf("c_attr: ok %ld\n", total);
    return 0;
}
