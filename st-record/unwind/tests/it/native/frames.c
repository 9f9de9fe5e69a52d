// Stacks of many shapes for the tests: every function calls `visit(argument)` from the bottom of its own shape.
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>

typedef void (*visitor)(void *);
// Not static and not inlined, so that each is a frame; the result is used after the call, so that none is a tail call.
#define FRAME __attribute__((noinline, noclone)) int

static volatile int sink;

FRAME frame_1(visitor visit, void *argument) { visit(argument); return ++sink; }
#define NEXT(n, m) FRAME frame_##n(visitor visit, void *argument) { return frame_##m(visit, argument) + ++sink; }
NEXT(2, 1) NEXT(3, 2) NEXT(4, 3) NEXT(5, 4) NEXT(6, 5) NEXT(7, 6) NEXT(8, 7)
NEXT(9, 8) NEXT(10, 9) NEXT(11, 10) NEXT(12, 11) NEXT(13, 12) NEXT(14, 13)

FRAME recursive(int depth, visitor visit, void *argument) {
    if (depth == 0) visit(argument);
    else sink += recursive(depth - 1, visit, argument);
    return ++sink;
}

FRAME with_alloca(int bytes, visitor visit, void *argument) {
    volatile char *room = alloca((size_t)bytes + 1);
    room[bytes] = 1;
    visit(argument);
    return room[bytes];
}

FRAME with_array(int bytes, visitor visit, void *argument) {
    volatile char room[bytes + 1];
    room[bytes] = 1;
    visit(argument);
    return room[bytes];
}

// Realigned to a cache line, with a block of run-time size: GCC keeps the argument pointer in a slot.
FRAME realigned(int bytes, visitor visit, void *argument) {
    volatile __attribute__((aligned(64))) char line[64];
    volatile char *room = alloca((size_t)bytes + 1);
    line[0] = room[bytes] = 1;
    visit(argument);
    return line[0] + room[bytes];
}

static _Thread_local visitor the_visitor;
static _Thread_local void *the_argument;

static int compare(const void *a, const void *b) {
    the_visitor(the_argument);
    return *(const int *)a - *(const int *)b;
}

FRAME sorted(visitor visit, void *argument) {
    int numbers[] = {3, 1, 2};
    the_visitor = visit, the_argument = argument;
    qsort(numbers, 3, sizeof *numbers, compare);
    return numbers[0];
}

static void handle(int signal) {
    (void)signal;
    the_visitor(the_argument);
}

// In a signal handler, on a stack of its own if `alternate`.
FRAME signalled(int alternate, visitor visit, void *argument) {
    size_t size = 1 << 18;
    stack_t stack = {.ss_sp = malloc(size), .ss_size = size}, before;
    struct sigaction action = {.sa_handler = handle, .sa_flags = alternate ? SA_ONSTACK : 0}, old;
    the_visitor = visit, the_argument = argument;
    sigaltstack(&stack, &before);
    sigaction(SIGUSR2, &action, &old);
    raise(SIGUSR2);
    sigaction(SIGUSR2, &old, NULL);
    sigaltstack(&before, NULL);
    free(stack.ss_sp);
    return ++sink;
}

static ucontext_t outside, inside;

static void coroutine(void) {
    sink += 1 + recursive(2, the_visitor, the_argument);
}

// On a stack that the program allocated for a coroutine.
FRAME switched(visitor visit, void *argument) {
    size_t size = 1 << 18;
    void *stack = malloc(size);
    the_visitor = visit, the_argument = argument;
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack, inside.uc_stack.ss_size = size, inside.uc_link = &outside;
    makecontext(&inside, coroutine, 0);
    swapcontext(&outside, &inside);
    free(stack);
    return ++sink;
}

// A random path, different for every seed, through the shapes above.
typedef struct { unsigned state; int depth; visitor visit; void *argument; } walk;

static unsigned draw(walk *w) {
    w->state = w->state * 1664525u + 1013904223u;
    return w->state >> 16;
}

static void stride(void *argument) {
    walk *w = argument;
    if (w->depth-- == 0) {
        w->visit(w->argument);
        return;
    }
    int bytes = (int)(draw(w) % 4) * 40;
    switch (draw(w) % 7) {
    case 0: frame_1(stride, w); break;
    case 1: frame_2(stride, w); break;
    case 2: frame_5(stride, w); break;
    case 3: with_alloca(bytes, stride, w); break;
    case 4: with_array(bytes, stride, w); break;
    case 5: realigned(bytes, stride, w); break;
    default: recursive((int)(draw(w) % 3), stride, w); break;
    }
    ++sink;
}

FRAME wander(unsigned seed, visitor visit, void *argument) {
    walk w = {.state = seed, .visit = visit, .argument = argument};
    w.depth = (int)(draw(&w) % 8);
    stride(&w);
    return ++sink;
}

typedef struct { visitor visit; void *argument; } job;

static void *work(void *argument) {
    job *j = argument;
    frame_3(j->visit, j->argument);
    return NULL;
}

FRAME threaded(visitor visit, void *argument) {
    job j = {visit, argument};
    pthread_t thread;
    pthread_create(&thread, NULL, work, &j);
    pthread_join(thread, NULL);
    return ++sink;
}
