/* Runs a command and prints what it took: milliseconds of processor time, user and system, of it and of all processes that it
 * waited for, and the largest resident set of any of them. Exit status of the command. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static double ms(struct timeval t)
{
    return 1e3 * (double)t.tv_sec + 1e-3 * (double)t.tv_usec;
}

int main(int argc, char **argv)
{
    struct rusage r;
    int status = 0, to;
    pid_t pid;
    if (argc < 2) {
        fprintf(stderr, "usage: usage COMMAND...\n");
        return 2;
    }
    to = dup(1);
    pid = fork();
    if (pid == 0) {
        freopen("/dev/null", "w", stdout);
        execvp(argv[1], argv + 1);
        perror(argv[1]);
        _exit(127);
    }
    if (pid < 0 || wait4(pid, &status, 0, &r) != pid) {
        perror("usage");
        return 1;
    }
    dprintf(to, "cpu_ms %.3f\npeak_mb %.3f\n", ms(r.ru_utime) + ms(r.ru_stime), (double)r.ru_maxrss / 1024);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
