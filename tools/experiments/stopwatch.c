/* Preloaded into a program that is not recorded: appends to the file that ST_STOPWATCH names, a line for each rank, the seconds
 * between MPI_Init and MPI_Finalize, which is what st-replay compares. Fortran's wrappers call the functions of MPI past
 * those of C, so they are here by their own names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double began;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *next(const char *name) {
    void *found = dlsym(RTLD_NEXT, name), *mpi;
    /* Python's modules bring MPI where it is not seen from here. */
    if (!found && ((mpi = dlopen("libmpi.so.40", RTLD_LAZY | RTLD_NOLOAD)) || (mpi = dlopen("libmpi.so.12", RTLD_LAZY | RTLD_NOLOAD))))
        found = dlsym(mpi, name);
    if (found) return found;
    fprintf(stderr, "stopwatch: no %s\n", name);
    exit(1);
}

static void end(void) {
    const char *file = getenv("ST_STOPWATCH");
    int to = file ? open(file, O_WRONLY | O_CREAT | O_APPEND, 0666) : -1;
    if (to < 0) return;
    dprintf(to, "%.6f\n", now() - began);
    close(to);
}

int MPI_Init(int *argc, char ***argv) {
    int result = ((int (*)(int *, char ***))next("MPI_Init"))(argc, argv);
    began = now();
    return result;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    int result = ((int (*)(int *, char ***, int, int *))next("MPI_Init_thread"))(argc, argv, required, provided);
    began = now();
    return result;
}

int MPI_Finalize(void) {
    end();
    return ((int (*)(void))next("MPI_Finalize"))();
}

#define FORTRAN(INIT, INIT_THREAD, FINALIZE)                                          \
    void INIT(int *error) {                                                           \
        ((void (*)(int *))next(#INIT))(error);                                        \
        began = now();                                                                \
    }                                                                                 \
    void INIT_THREAD(int *required, int *provided, int *error) {                      \
        ((void (*)(int *, int *, int *))next(#INIT_THREAD))(required, provided, error); \
        began = now();                                                                \
    }                                                                                 \
    void FINALIZE(int *error) {                                                       \
        end();                                                                        \
        ((void (*)(int *))next(#FINALIZE))(error);                                    \
    }

FORTRAN(mpi_init_, mpi_init_thread_, mpi_finalize_)
FORTRAN(mpi_init_f08_, mpi_init_thread_f08_, mpi_finalize_f08_)
