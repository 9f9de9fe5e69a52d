// Checks the sites that libpreloaded.so gives calls of this program; every failed check is printed. Linked without
// position independence, so that offsets are addresses. With an argument, measures instead.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

uint32_t probe_site(void);
int probe_frames(uint32_t site, uint64_t *offsets, int room);
int probe_module(uint32_t site, uint32_t frame);

static int failures;
static volatile int sink;
#define FRAME __attribute__((noinline, noclone))

static void check(int good, const char *what) {
    if (!good) {
        printf("wrong: %s\n", what);
        fflush(stdout);
        failures++;
    }
}

// Whether a return address lies in a function, none of which is longer than this here.
static int within(uint64_t address, void *function) {
    return address > (uint64_t)function && address < (uint64_t)function + 1000;
}

FRAME uint32_t caller(void) {
    uint32_t site = probe_site();
    sink++;
    return site;
}

static uint32_t sites[4];

FRAME void *thread(void *unused) {
    sites[2] = caller();
    sink++;
    return unused;
}

FRAME void at_exit(void) {
    uint64_t frames[64];
    uint32_t site = caller();
    int n = probe_frames(site, frames, 64);
    check(n >= 2 && n <= 5, "frames at exit");
    check(within(frames[0], caller) && within(frames[1], at_exit), "the handler is on the stack");
    if (failures) _Exit(1);
}

#define NEXT(n, m) FRAME uint32_t frame_##n(void) { uint32_t site = frame_##m(); sink++; return site; }
#define frame_1 caller
NEXT(2, 1) NEXT(3, 2) NEXT(4, 3) NEXT(5, 4) NEXT(6, 5) NEXT(7, 6) NEXT(8, 7)
NEXT(9, 8) NEXT(10, 9) NEXT(11, 10) NEXT(12, 11) NEXT(13, 12)

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

FRAME uint32_t empty(void) { return (uint32_t)sink; }
static uint32_t (*volatile bottom)(void) = probe_site;

FRAME uint32_t timed_1(void) {
    double best = 1e9;
    for (int round = 0; round < 20; round++) {
        double start = now();
        for (int i = 0; i < 100000; i++) sink += (int)bottom();
        double each = (now() - start) / 100000;
        if (each < best) best = each;
    }
    printf("%.1f ns\n", best);
    return 0;
}
#define TIMED(n, m) FRAME uint32_t timed_##n(void) { uint32_t site = timed_##m(); sink++; return site; }
TIMED(2, 1) TIMED(3, 2) TIMED(4, 3) TIMED(5, 4) TIMED(6, 5) TIMED(7, 6) TIMED(8, 7)
TIMED(9, 8) TIMED(10, 9) TIMED(11, 10) TIMED(12, 11) TIMED(13, 12)

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) {
        timed_13();
        bottom = empty;
        timed_13();
        return 0;
    }
    for (volatile int i = 0; i < 2; i++) sites[i] = frame_13();
    check(sites[0] == sites[1], "the same path, the same site");
    uint64_t frames[64];
    int n = probe_frames(sites[0], frames, 64);
    check(n == 14, "13 frames and main");
    check(within(frames[0], caller) && within(frames[12], frame_13) && within(frames[13], main), "their order");
    check(probe_module(sites[0], 0) == 0 && probe_module(sites[0], 13) == 0, "all in the program");

    pthread_t t;
    pthread_create(&t, NULL, thread, NULL);
    pthread_join(t, NULL);
    n = probe_frames(sites[2], frames, 64);
    check(n == 2, "a thread's stack begins with its function");
    check(within(frames[0], caller) && within(frames[1], thread), "their order in a thread");

    sites[3] = caller();
    check(sites[3] != sites[0] && sites[3] != sites[2], "other paths, other sites");
    check(probe_frames(sites[3], frames, 64) == 2 && within(frames[1], main), "called from main");
    atexit(at_exit);
    return failures != 0;
}
