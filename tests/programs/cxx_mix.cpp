// C++: MPI called from constructors, destructors, templates and lambdas, and errors that become exceptions which pass
// through the MPI library's frames.
#include "oracle.h"
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#define W MPI_COMM_WORLD

namespace {

int rank, size, right, left;
long sum;

// A type's MPI type and its name.
template <class T> struct mpi;
template <> struct mpi<int> {
    static MPI_Datatype type() { return MPI_INT; }
    static constexpr const char *name = "MPI_INT";
};
template <> struct mpi<double> {
    static MPI_Datatype type() { return MPI_DOUBLE; }
    static constexpr const char *name = "MPI_DOUBLE";
};
template <> struct mpi<bool> {
    static MPI_Datatype type() { return MPI_CXX_BOOL; }
    static constexpr const char *name = "MPI_CXX_BOOL";
};

// Calls MPI_Init when it begins and MPI_Finalize when it ends.
struct session {
    session(int *argc, char ***argv)
    {
        MPI_Init(argc, argv);
        say("MPI_Init");
        MPI_Comm_rank(W, &rank);
        say("MPI_Comm_rank comm=MPI_COMM_WORLD rank=%d", rank);
        MPI_Comm_size(W, &size);
        say("MPI_Comm_size comm=MPI_COMM_WORLD size=%d", size);
        oracle_rank = rank;
        right = (rank + 1) % size;
        left = (rank + size - 1) % size;
    }
    ~session()
    {
        MPI_Finalize();
        say("MPI_Finalize");
        oracle_write();
    }
    session(const session &) = delete;
};

// A part of a communicator, as long as it lives.
struct part {
    MPI_Comm comm;
    std::string name;
    part(MPI_Comm of, const char *from, int color, std::string called) : name(std::move(called))
    {
        MPI_Comm_split(of, color, rank + 60, &comm);
        say("MPI_Comm_split comm=%s color=%d key=%d newcomm=%s", from, color, rank + 60, ("new:" + name).c_str());
    }
    ~part()
    {
        MPI_Comm_free(&comm);
        say("MPI_Comm_free freecomm=%s", name.c_str());
    }
    part(const part &) = delete;
};

// A row of n numbers, stride apart.
class strided {
  public:
    strided(int n, int stride) : name_("strided" + std::to_string(made++))
    {
        MPI_Type_vector(n, 1, stride, MPI_DOUBLE, &type_);
        say("MPI_Type_vector count=%d blocklength=1 stride=%d type=MPI_DOUBLE newtype=%s", n, stride,
            ("new:" + name_).c_str());
        MPI_Type_commit(&type_);
        say("MPI_Type_commit committype=%s", name_.c_str());
    }
    ~strided()
    {
        MPI_Type_free(&type_);
        say("MPI_Type_free freetype=%s", name_.c_str());
    }
    strided(const strided &) = delete;
    MPI_Datatype type() const { return type_; }
    const char *name() const { return name_.c_str(); }

  private:
    static inline int made = 0;
    MPI_Datatype type_;
    std::string name_;
};

// Passes n things of a type round the ring.
template <class T> void around(int n, int tag)
{
    std::unique_ptr<T[]> out(new T[n]), in(new T[n + 1]);
    for (int i = 0; i < n; i++)
        out[i] = static_cast<T>(rank + i);
    MPI_Request q[2];
    MPI_Status st[2];
    int s[2];
    MPI_Irecv(in.get(), n + 1, mpi<T>::type(), left, tag, W, &q[0]);
    s[0] = slot_recv(n * static_cast<int>(sizeof(T)));
    say("MPI_Irecv count=%d type=%s source=%r tag=%d comm=MPI_COMM_WORLD request=%q", n + 1, mpi<T>::name, left, tag, s[0]);
    MPI_Isend(out.get(), n, mpi<T>::type(), right, tag, W, &q[1]);
    s[1] = slot_send();
    say("MPI_Isend count=%d type=%s dest=%r tag=%d comm=MPI_COMM_WORLD request=%q", n, mpi<T>::name, right, tag, s[1]);
    MPI_Waitall(2, q, st);
    say("MPI_Waitall n=2 requests=%Q completed=%C", 2, s, 2, all_positions, s, st);
    for (int i = 0; i < n; i++)
        sum += static_cast<long>(in[i]) * (i + 1);
}

// Halves a communicator until one rank is left; all the halves live at once.
int halve(MPI_Comm comm, const char *name, int depth)
{
    int n, me;
    MPI_Comm_size(comm, &n);
    say("MPI_Comm_size comm=%s size=%d", name, n);
    if (n == 1)
        return depth;
    MPI_Comm_rank(comm, &me);
    say("MPI_Comm_rank comm=%s rank=%d", name, me);
    part half(comm, name, me < n / 2, "half" + std::to_string(depth));
    return halve(half.comm, half.name.c_str(), depth + 1);
}

// An operator that is a class's.
struct largest {
    static void apply(void *a, void *b, int *n, MPI_Datatype *)
    {
        for (int i = 0; i < *n; i++)
            static_cast<int *>(b)[i] = std::max(static_cast<int *>(a)[i], static_cast<int *>(b)[i]);
    }
};

// The error handler throws: the exception leaves through MPI_Send.
void thrower(MPI_Comm *, int *code, ...)
{
    throw *code;
}

void exceptions()
{
    MPI_Errhandler handler;
    int caught = 0;
    MPI_Comm_create_errhandler(thrower, &handler);
    say("MPI_Comm_create_errhandler newerrhandler=0");
    MPI_Comm_set_errhandler(W, handler);
    say("MPI_Comm_set_errhandler comm=MPI_COMM_WORLD errhandler=0");
    for (int i = 0; i < 3; i++) {
        try {
            std::vector<int> v(4, i); // freed on the way out
            MPI_Send(v.data(), i + 1, MPI_INT, 9999, 30 + i, W);
        } catch (int code) {
            // The call was made, failed, and never returned a code.
            say("MPI_Send count=%d type=MPI_INT dest=9999 tag=%d comm=MPI_COMM_WORLD error=MPI_ERR_UNKNOWN", i + 1, 30 + i);
            caught++;
        }
        MPI_Allreduce(&caught, &i, 1, MPI_INT, MPI_MIN, MPI_COMM_SELF);
        say("MPI_Allreduce inplace=false count=1 type=MPI_INT op=MPI_MIN comm=MPI_COMM_SELF");
        i--;
    }
    sum += caught;
    MPI_Comm_set_errhandler(W, MPI_ERRORS_ARE_FATAL);
    say("MPI_Comm_set_errhandler comm=MPI_COMM_WORLD errhandler=MPI_ERRORS_ARE_FATAL");
    MPI_Errhandler_free(&handler);
    say("MPI_Errhandler_free freeerrhandler=0");
}

} // namespace

int main(int argc, char **argv)
{
    long total = 0;
    int first;
    {
        session s(&argc, &argv);
        first = rank == 0;
        around<int>(9, 5);
        around<double>(8, 6);
        around<bool>(7, 8);
        {
            strided column(4, 3), row(6, 2);
            std::vector<double> grid(24), other(24);
            std::iota(grid.begin(), grid.end(), rank);
            MPI_Sendrecv(grid.data(), 1, column.type(), right, 11, other.data(), 1, column.type(), left, 11, W,
                         MPI_STATUS_IGNORE);
            say("MPI_Sendrecv sendcount=1 sendtype=%s dest=%r sendtag=11 recvcount=1 recvtype=%s source=%r recvtag=11 "
                "comm=MPI_COMM_WORLD rsource=null rtag=null bytes=32", column.name(), right, column.name(), left);
            MPI_Sendrecv(grid.data(), 1, row.type(), left, 12, other.data(), 2, row.type(), right, 12, W,
                         MPI_STATUS_IGNORE);
            say("MPI_Sendrecv sendcount=1 sendtype=%s dest=%r sendtag=12 recvcount=2 recvtype=%s source=%r recvtag=12 "
                "comm=MPI_COMM_WORLD rsource=null rtag=null bytes=48", row.name(), left, row.name(), right);
            for (double x : other)
                sum += static_cast<long>(x);
        }
        sum += halve(W, "MPI_COMM_WORLD", 1);

        MPI_Op op;
        int mine[3] = {rank, -rank, 7}, all[3];
        MPI_Op_create(largest::apply, 1, &op);
        say("MPI_Op_create commute=1 newop=new:largest");
        std::function<void(int)> reduce = [&](int n) {
            MPI_Allreduce(mine, all, n, MPI_INT, op, W);
            say("MPI_Allreduce inplace=false count=%d type=MPI_INT op=largest comm=MPI_COMM_WORLD", n);
            sum += all[0] + 2 * all[n - 1];
        };
        for (int n = 1; n <= 3; n++)
            reduce(n);
        MPI_Op_free(&op);
        say("MPI_Op_free freeop=largest");

        exceptions();

        MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, W);
        say("MPI_Reduce inplace=false count=1 type=MPI_LONG op=MPI_SUM root=0 comm=MPI_COMM_WORLD");
    }
    if (first)
        printf("cxx_mix: ok %ld\n", total);
    return 0;
}
