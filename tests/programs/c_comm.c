/* Communicators and groups (rows 150 to 191). */
#include "oracle.h"

#define W MPI_COMM_WORLD
enum { MOST = 64 }; /* ranks */

static int rank, size;
static long sum;

/* A new communicator: its members agree on a number of its own. */
static void use(MPI_Comm comm, const char *name, int count)
{
    int a[8] = {rank, 2 * rank, 3 * rank, 1, 2, 3, 4, 5}, b[8];
    MPI_Allreduce(a, b, count, MPI_INT, MPI_SUM, comm);
    say("MPI_Allreduce inplace=false count=%d type=MPI_INT op=MPI_SUM comm=%s", count, name);
    sum += b[0] + count * b[count - 1];
}

static const char *compared(int result)
{
    return result == MPI_IDENT       ? "MPI_IDENT"
           : result == MPI_CONGRUENT ? "MPI_CONGRUENT"
           : result == MPI_SIMILAR   ? "MPI_SIMILAR"
                                     : "MPI_UNEQUAL";
}

static void intracommunicators(void)
{
    MPI_Comm dup, info, idup, some, others, split, none, node, back;
    MPI_Group world, tail;
    MPI_Request q[2];
    MPI_Status st[2];
    int i, n, result, s[2], from1[MOST];
    char text[MPI_MAX_OBJECT_NAME];

    MPI_Comm_dup(W, &dup);
    say("MPI_Comm_dup comm=MPI_COMM_WORLD newcomm=new:dup");
    use(dup, "dup", 2);
    MPI_Comm_compare(dup, W, &result);
    say("MPI_Comm_compare comm=dup comm2=MPI_COMM_WORLD result=%s", compared(result));
    sum += result == MPI_CONGRUENT;
    MPI_Comm_compare(W, MPI_COMM_SELF, &result);
    say("MPI_Comm_compare comm=MPI_COMM_WORLD comm2=MPI_COMM_SELF result=%s", compared(result));
    sum += result == MPI_UNEQUAL;
    MPI_Comm_dup_with_info(dup, MPI_INFO_NULL, &info);
    say("MPI_Comm_dup_with_info comm=dup newcomm=new:info");
    use(info, "info", 3);
    MPI_Ibarrier(W, &q[0]);
    s[0] = slot_send();
    say("MPI_Ibarrier comm=MPI_COMM_WORLD request=%q", s[0]);
    MPI_Comm_idup(info, &idup, &q[1]);
    s[1] = slot_send();
    say("MPI_Comm_idup comm=info newcomm=new:idup request=%q", s[1]);
    MPI_Waitall(2, q, st);
    say("MPI_Waitall n=2 requests=%Q completed=%C", 2, s, 2, all_positions, s, st);
    use(idup, "idup", 4);
    MPI_Comm_free(&info);
    say("MPI_Comm_free freecomm=info");
    MPI_Comm_free(&idup);
    say("MPI_Comm_free freecomm=idup");

    MPI_Comm_set_name(dup, "a name");
    say("MPI_Comm_set_name comm=dup name=%s", "a name");
    MPI_Comm_get_name(dup, text, &n);
    say("MPI_Comm_get_name comm=dup name=%s", "a name");
    sum += n + text[0];

    /* Everyone but rank 0, in both ways. */
    MPI_Comm_group(W, &world);
    say("MPI_Comm_group comm=MPI_COMM_WORLD newgroup=new:world");
    for (i = 1; i < size; i++)
        from1[i - 1] = i;
    MPI_Group_incl(world, size - 1, from1, &tail);
    say("MPI_Group_incl group=world n=%d ranks=%D newgroup=new:tail", size - 1, size - 1, from1);
    MPI_Comm_create(dup, tail, &some);
    say("MPI_Comm_create comm=dup group=tail newcomm=%s", rank ? "new:some" : "null");
    if (rank) {
        use(some, "some", 5);
        MPI_Comm_create_group(W, tail, 77, &others);
        say("MPI_Comm_create_group comm=MPI_COMM_WORLD group=tail tag=77 newcomm=new:others");
        use(others, "others", 6);
        MPI_Comm_free(&others);
        say("MPI_Comm_free freecomm=others");
        MPI_Comm_free(&some);
        say("MPI_Comm_free freecomm=some");
    }
    MPI_Group_free(&tail);
    say("MPI_Group_free freegroup=tail");
    MPI_Group_free(&world);
    say("MPI_Group_free freegroup=world");

    /* Colours and keys that no rule of the rank explains at once; the last rank stands aside. */
    MPI_Comm_split(dup, rank / 2 + 3, 50 - rank, &split);
    say("MPI_Comm_split comm=dup color=%d key=%d newcomm=new:split", rank / 2 + 3, 50 - rank);
    use(split, "split", 7);
    MPI_Comm_rank(split, &n);
    say("MPI_Comm_rank comm=split rank=%d", n);
    sum += 5 * n;
    MPI_Comm_size(split, &n);
    say("MPI_Comm_size comm=split size=%d", n);
    sum += 7 * n;
    MPI_Comm_free(&split);
    say("MPI_Comm_free freecomm=split");
    n = rank == size - 1 ? MPI_UNDEFINED : 4;
    MPI_Comm_split(W, n, rank, &none);
    say("MPI_Comm_split comm=MPI_COMM_WORLD color=%u key=%d newcomm=%s", n, rank,
        n == MPI_UNDEFINED ? "null" : "new:most");
    if (n != MPI_UNDEFINED) {
        use(none, "most", 8);
        MPI_Comm_free(&none);
        say("MPI_Comm_free freecomm=most");
    }
    MPI_Comm_split_type(dup, MPI_COMM_TYPE_SHARED, 90 - rank, MPI_INFO_NULL, &node);
    say("MPI_Comm_split_type comm=dup splittype=MPI_COMM_TYPE_SHARED key=%d newcomm=new:node", 90 - rank);
    use(node, "node", 1);
    MPI_Comm_disconnect(&node);
    say("MPI_Comm_disconnect freecomm=node");
    /* The order turned round: similar. */
    MPI_Comm_split(W, 2, -rank, &back);
    say("MPI_Comm_split comm=MPI_COMM_WORLD color=2 key=%d newcomm=new:back", -rank);
    MPI_Comm_compare(back, dup, &result);
    say("MPI_Comm_compare comm=back comm2=dup result=%s", compared(result));
    sum += result == MPI_SIMILAR;
    n = rank;
    MPI_Bcast(&n, 1, MPI_INT, 0, back);
    say("MPI_Bcast count=1 type=MPI_INT root=0 comm=back");
    sum += n;
    MPI_Comm_free(&back);
    say("MPI_Comm_free freecomm=back");
    MPI_Comm_free(&dup);
    say("MPI_Comm_free freecomm=dup");
}

static void intercommunicators(void)
{
    MPI_Comm half, inter, merged;
    MPI_Group theirs;
    MPI_Status st;
    int odd = rank % 2, there = odd ? (size + 1) / 2 : size / 2, here = size - there;
    int flag, n, got[3], last = there - 1, peer = rank / 2;
    MPI_Comm_split(W, odd, rank, &half);
    say("MPI_Comm_split comm=MPI_COMM_WORLD color=%d key=%d newcomm=new:half", odd, rank);
    /* Leaders are the last of each half: world ranks that differ from those in the half. */
    n = odd ? 2 * ((size + 1) / 2) - 2 : 2 * (size / 2) - 1;
    MPI_Intercomm_create(half, here - 1, W, n, 66, &inter);
    say("MPI_Intercomm_create comm=half leader=%r peercomm=MPI_COMM_WORLD remoteleader=%r tag=66 newcomm=new:inter",
        here - 1, n);
    MPI_Comm_test_inter(inter, &flag);
    say("MPI_Comm_test_inter comm=inter flag=true");
    sum += flag;
    MPI_Comm_test_inter(half, &flag);
    say("MPI_Comm_test_inter comm=half flag=false");
    sum += 10 * flag;
    MPI_Comm_remote_size(inter, &n);
    say("MPI_Comm_remote_size comm=inter size=%d", there);
    sum += n;
    MPI_Comm_remote_group(inter, &theirs);
    say("MPI_Comm_remote_group comm=inter newgroup=new:theirs");
    MPI_Group_size(theirs, &n);
    say("MPI_Group_size group=theirs size=%d", there);
    sum += n;
    MPI_Group_rank(theirs, &n);
    say("MPI_Group_rank group=theirs rank=MPI_UNDEFINED");
    MPI_Group_free(&theirs);
    say("MPI_Group_free freegroup=theirs");
    /* Peers are ranks in the other group. With an odd number of ranks the last even one has nobody. */
    if (peer <= last && peer < here) {
        MPI_Sendrecv(&rank, 1, MPI_INT, peer, 67, got, 3, MPI_INT, MPI_ANY_SOURCE, 67, inter, &st);
        say("MPI_Sendrecv sendcount=1 sendtype=MPI_INT dest=%r sendtag=67 recvcount=3 recvtype=MPI_INT "
            "source=MPI_ANY_SOURCE recvtag=67 comm=inter status=%S", peer, MPI_ANY_SOURCE, 67, 4, &st);
        sum += got[0] + 100 * st.MPI_SOURCE;
    }
    MPI_Intercomm_merge(inter, odd, &merged);
    say("MPI_Intercomm_merge comm=inter high=%d newcomm=new:merged", odd);
    MPI_Comm_rank(merged, &n);
    say("MPI_Comm_rank comm=merged rank=%d", n);
    sum += n;
    use(merged, "merged", 2);
    MPI_Comm_free(&merged);
    say("MPI_Comm_free freecomm=merged");
    MPI_Comm_free(&inter);
    say("MPI_Comm_free freecomm=inter");
    MPI_Comm_free(&half);
    say("MPI_Comm_free freecomm=half");
}

static void groups(void)
{
    MPI_Group world, odd, even, both, low, common, rest, first, without, stride;
    int i, n, odds[MOST], ranks[MOST], found[MOST], result;
    int range[2][3] = {{size - 1, 0, -2}, {size - 2, 0, -4}}, lower[1][3] = {{0, size / 2, 1}};
    MPI_Comm_group(W, &world);
    say("MPI_Comm_group comm=MPI_COMM_WORLD newgroup=new:world");
    MPI_Group_size(world, &n);
    say("MPI_Group_size group=world size=%d", size);
    MPI_Group_rank(world, &n);
    say("MPI_Group_rank group=world rank=%d", rank);
    for (i = 0; 2 * i + 1 < size; i++)
        odds[i] = 2 * i + 1;
    n = size / 2;
    MPI_Group_incl(world, n, odds, &odd);
    say("MPI_Group_incl group=world n=%d ranks=%D newgroup=new:odd", n, n, odds);
    MPI_Group_excl(world, n, odds, &even);
    say("MPI_Group_excl group=world n=%d ranks=%D newgroup=new:even", n, n, odds);
    MPI_Group_rank(odd, &n);
    say("MPI_Group_rank group=odd rank=%u", rank % 2 ? rank / 2 : MPI_UNDEFINED);
    MPI_Group_union(odd, even, &both);
    say("MPI_Group_union group=odd group2=even newgroup=new:both");
    MPI_Group_compare(both, world, &result);
    say("MPI_Group_compare group=both group2=world result=%s", compared(result));
    sum += result == MPI_SIMILAR;
    MPI_Group_compare(odd, even, &result);
    say("MPI_Group_compare group=odd group2=even result=%s", compared(result));
    sum += result == MPI_UNEQUAL;
    MPI_Group_range_incl(world, 1, lower, &low);
    say("MPI_Group_range_incl group=world n=1 ranges=%D newgroup=new:low", 3, lower[0]);
    MPI_Group_intersection(low, odd, &common);
    say("MPI_Group_intersection group=low group2=odd newgroup=new:common");
    MPI_Group_difference(both, low, &rest);
    say("MPI_Group_difference group=both group2=low newgroup=%s", size > 2 ? "new:rest" : "MPI_GROUP_EMPTY");
    MPI_Group_union(low, MPI_GROUP_EMPTY, &first);
    say("MPI_Group_union group=low group2=MPI_GROUP_EMPTY newgroup=new:first");
    MPI_Group_size(common, &n);
    say("MPI_Group_size group=common size=%d", n);
    sum += n;
    for (i = 0; i < n; i++)
        ranks[i] = n - 1 - i;
    MPI_Group_translate_ranks(common, n, ranks, even, found);
    say("MPI_Group_translate_ranks group=common n=%d ranks=%D group2=even outranks=%U", n, n, ranks, n, found);
    for (i = 0; i < size; i++)
        ranks[i] = i;
    MPI_Group_translate_ranks(odd, size / 2, ranks, both, found);
    say("MPI_Group_translate_ranks group=odd n=%d ranks=%D group2=both outranks=%U", size / 2, size / 2, ranks, size / 2,
        found);
    MPI_Group_translate_ranks(both, size, ranks, world, found);
    say("MPI_Group_translate_ranks group=both n=%d ranks=%D group2=world outranks=%U", size, size, ranks, size, found);
    for (i = 0; i < size; i++)
        sum += found[i] * (i + 1);
    MPI_Group_range_excl(world, 1, range, &without);
    say("MPI_Group_range_excl group=world n=1 ranges=%D newgroup=new:without", 3, range[0]);
    MPI_Group_size(without, &n);
    say("MPI_Group_size group=without size=%d", n);
    sum += n;
    MPI_Group_range_incl(world, 2, range, &stride);
    say("MPI_Group_range_incl group=world n=2 ranges=%D newgroup=new:stride", 6, range[0]);
    MPI_Group_free(&stride);
    say("MPI_Group_free freegroup=stride");
    MPI_Group_free(&without);
    say("MPI_Group_free freegroup=without");
    MPI_Group_free(&first);
    say("MPI_Group_free freegroup=first");
    if (size > 2) {
        MPI_Group_free(&rest);
        say("MPI_Group_free freegroup=rest");
    }
    MPI_Group_free(&common);
    say("MPI_Group_free freegroup=common");
    MPI_Group_free(&low);
    say("MPI_Group_free freegroup=low");
    MPI_Group_free(&both);
    say("MPI_Group_free freegroup=both");
    MPI_Group_free(&even);
    say("MPI_Group_free freegroup=even");
    MPI_Group_free(&odd);
    say("MPI_Group_free freegroup=odd");
    MPI_Group_free(&world);
    say("MPI_Group_free freegroup=world");
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

    intracommunicators();
    intercommunicators();
    groups();

    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, W);
    say("MPI_Reduce inplace=false count=1 type=MPI_LONG op=MPI_SUM root=0 comm=MPI_COMM_WORLD");
    MPI_Finalize();
    say("MPI_Finalize");
    oracle_write();
    if (rank == 0)
        printf(PROGRAM("comm") ": ok %ld\n", total);
    return 0;
}
