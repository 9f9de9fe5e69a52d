/* Constants that bindings cannot carry: mpi.h has them only as macros with casts. */

#include <mpi.h>
#include <string.h>

/* st_type and st_op: predefined handles by name. */
#include "names.h"

/* ST_KEYVALS, ST_ERRHANDLERS, ST_ERRORS and so on, each a list in the order of st_model::values, and their lengths. */
#include "lists.h"

/* New in MPI 4. */
#ifndef MPI_ERRORS_ABORT
#define MPI_ERRORS_ABORT MPI_ERRHANDLER_NULL
#endif

/* The order of the fields is that of `Constants` in constants.rs. */
struct st_constants {
    void *in_place;
    int *unweighted;
    int *weights_empty;
    MPI_Comm comm_world, comm_self, comm_null;
    MPI_Group group_empty, group_null;
    MPI_Datatype type_null, byte;
    MPI_Op op_null;
    MPI_Request request_null;
    MPI_Message message_null, message_no_proc;
    MPI_Win win_null;
    MPI_File file_null;
    MPI_Info info_null, info_env;
    MPI_Errhandler errhandler_null, errhandlers[ST_N_ERRHANDLERS];
    int proc_null, any_source, any_tag, root, undefined;
    int order[2], distribute[3], default_argument, split_shared, type_class[3], topologies[3];
    int asserts[ST_N_ASSERTS], amodes[ST_N_AMODES], lock_types[ST_N_LOCK_TYPES], whences[ST_N_WHENCES];
    int keyvals[ST_N_KEYVALS], errors[ST_N_ERRORS];
};

void st_constants(struct st_constants *out)
{
    struct st_constants all = {
        MPI_IN_PLACE, MPI_UNWEIGHTED, MPI_WEIGHTS_EMPTY,
        MPI_COMM_WORLD, MPI_COMM_SELF, MPI_COMM_NULL,
        MPI_GROUP_EMPTY, MPI_GROUP_NULL,
        MPI_DATATYPE_NULL, MPI_BYTE,
        MPI_OP_NULL,
        MPI_REQUEST_NULL,
        MPI_MESSAGE_NULL, MPI_MESSAGE_NO_PROC,
        MPI_WIN_NULL, MPI_FILE_NULL,
        MPI_INFO_NULL, MPI_INFO_ENV,
        MPI_ERRHANDLER_NULL, {ST_ERRHANDLERS},
        MPI_PROC_NULL, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_ROOT, MPI_UNDEFINED,
        {MPI_ORDER_C, MPI_ORDER_FORTRAN},
        {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE},
        MPI_DISTRIBUTE_DFLT_DARG,
        MPI_COMM_TYPE_SHARED,
        {MPI_TYPECLASS_REAL, MPI_TYPECLASS_INTEGER, MPI_TYPECLASS_COMPLEX},
        {MPI_GRAPH, MPI_CART, MPI_DIST_GRAPH},
        {ST_ASSERTS}, {ST_AMODES}, {ST_LOCK_TYPES}, {ST_WHENCES},
        {ST_KEYVALS},
        {ST_ERRORS},
    };
    *out = all;
}

/* Error handlers are variadic, which only C can define. */
void st_no_handler(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
}

void st_no_win_handler(MPI_Win *win, int *code, ...)
{
    (void)win;
    (void)code;
}

void st_no_file_handler(MPI_File *file, int *code, ...)
{
    (void)file;
    (void)code;
}
