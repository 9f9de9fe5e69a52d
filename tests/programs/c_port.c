/* Ports, published names and joined sockets, where the MPI has them here (Open MPI): one half of the job offers a port and
 * the other connects to it. */
#include "oracle.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#define W MPI_COMM_WORLD

static int rank, size;
static long sum;

#ifdef OPEN_MPI
static void meet(MPI_Comm other, const char *name)
{
    int one = rank + 1, all = 0;
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, other);
    say("MPI_Allreduce inplace=false count=1 type=MPI_INT op=MPI_SUM comm=%s", name);
    sum += all;
    MPI_Comm_disconnect(&other);
    say("MPI_Comm_disconnect freecomm=%s", name);
}

/* The even ranks accept, the odd ones connect; only the last of each half knows the port. */
static void ports(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm half, other;
    int odd = rank % 2, n = (size + !odd) / 2, root = n - 1, here = rank / 2 == root;
    MPI_Comm_split(W, odd, rank + 5, &half);
    say("MPI_Comm_split comm=MPI_COMM_WORLD color=%d key=%d newcomm=new:half", odd, rank + 5);
    if (here && !odd) {
        MPI_Open_port(MPI_INFO_NULL, port);
        say("MPI_Open_port info=null port=%x", port);
        MPI_Publish_name("st-service", MPI_INFO_NULL, port);
        say("MPI_Publish_name service=st-service info=null port=%x", port);
    }
    MPI_Barrier(W);
    say("MPI_Barrier comm=MPI_COMM_WORLD");
    if (here && odd) {
        MPI_Lookup_name("st-service", MPI_INFO_NULL, port);
        say("MPI_Lookup_name service=st-service info=null port=%x", port);
    }
    if (odd)
        MPI_Comm_connect(port, MPI_INFO_NULL, root, half, &other);
    else
        MPI_Comm_accept(port, MPI_INFO_NULL, root, half, &other);
    if (!here)
        say(odd ? "MPI_Comm_connect port=null info=null root=%r comm=half newcomm=new:other"
                : "MPI_Comm_accept port=null info=null root=%r comm=half newcomm=new:other", root);
    else
        say(odd ? "MPI_Comm_connect port=%x info=null root=%r comm=half newcomm=new:other"
                : "MPI_Comm_accept port=%x info=null root=%r comm=half newcomm=new:other", port, root);
    meet(other, "other");
    if (here && !odd) {
        MPI_Unpublish_name("st-service", MPI_INFO_NULL, port);
        say("MPI_Unpublish_name service=st-service info=null port=%x", port);
        MPI_Close_port(port);
        say("MPI_Close_port port=%x", port);
    }
    MPI_Comm_free(&half);
    say("MPI_Comm_free freecomm=half");
}

/* The first two ranks, which have a connection of their own. */
static void sockets(void)
{
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    MPI_Comm joined;
    int fd, listening;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (rank == 0) {
        listening = socket(AF_INET, SOCK_STREAM, 0);
        if (bind(listening, (struct sockaddr *)&address, length) || listen(listening, 1)
            || getsockname(listening, (struct sockaddr *)&address, &length))
            abort();
        MPI_Send(&address, sizeof address, MPI_BYTE, 1, 3, W);
        say("MPI_Send count=%d type=MPI_BYTE dest=1 tag=3 comm=MPI_COMM_WORLD", (int)sizeof address);
        fd = accept(listening, NULL, NULL);
        close(listening);
    } else {
        MPI_Recv(&address, sizeof address, MPI_BYTE, 0, 3, W, MPI_STATUS_IGNORE);
        say("MPI_Recv count=%d type=MPI_BYTE source=0 tag=3 comm=MPI_COMM_WORLD rsource=null rtag=null bytes=%d",
            (int)sizeof address, (int)sizeof address);
        fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&address, length))
            abort();
    }
    MPI_Comm_join(fd, &joined);
    say("MPI_Comm_join fd=%d newcomm=new:joined", fd);
    meet(joined, "joined");
    close(fd);
}
#endif

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
#ifdef OPEN_MPI
    ports();
    if (rank < 2)
        sockets();
#endif
    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, W);
    say("MPI_Reduce inplace=false count=1 type=MPI_LONG op=MPI_SUM root=0 comm=MPI_COMM_WORLD");
    MPI_Finalize();
    say("MPI_Finalize");
    oracle_write();
    if (rank == 0)
        printf("c_port: ok %ld\n", total);
    return 0;
}
