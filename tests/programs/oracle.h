/* The oracle of the C and C++ test programs: what a program says it called, from its own source.
 *
 * A program writes, next to every MPI call, one line
 *
 *     MPI_Send(buf, 10, MPI_INT, right, 7, MPI_COMM_WORLD);
 *     say("MPI_Send count=10 type=MPI_INT dest=%r tag=7 comm=MPI_COMM_WORLD", right);
 *
 * that states the call, field by field, by hand. Nothing here knows which fields a call has. README.md gives
 * the format of the files. If ST_ORACLE is unset the lines are kept in memory and dropped at the end.
 *
 * A word of the text is NAME=VALUE. VALUE is printed bare if it is a number, a list, true, false or null, and
 * else as a string. The values that are not known in the text:
 *
 *   %d int                 %l long long            %s const char *         %b int, as true or false
 *   %r rank, or one of the rank constants          %t tag, or MPI_ANY_TAG  %u int, or MPI_UNDEFINED
 *   %x const char *, a string whatever it looks like
 *   %q request slot, -1 is null
 *   %n COUNT, an int, or an MPI_Count where -DLARGE asks for the functions with large counts (large.h)
 *   %D int n, const int *                          list of %d
 *   %N int n, const COUNT *                        list of %n
 *   %V int n, const DISPL *                        list of displacements, int or MPI_Aint
 *   %W int n, const PLACE *                        list of displacements, MPI_Aint or MPI_Count
 *   %U int n, const int *                          list of %u
 *   %B int n, const int *                          list of %b
 *   %A int n, const MPI_Aint *                     list of addresses
 *   %Q int n, const int *                          list of %q
 *   %C int n, const int *positions, const int *slots, const MPI_Status *
 *                                                  the completed requests; frees their slots
 *   status=%S int source, int tag, int bytes, const MPI_Status *
 *                                                  rsource, rtag, bytes of a receive that asked for source, tag
 */
#ifndef ORACLE_H
#define ORACLE_H

#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ORACLE __attribute__((unused)) static

#ifdef LARGE
#include "large.h"
#define PROGRAM(name) "large_" name
#else
typedef int COUNT;
typedef int DISPL;
typedef MPI_Aint PLACE;
#define PROGRAM(name) "c_" name
ORACLE int is_large(const char *call)
{
    (void)call;
    return 0;
}
#endif

/* ---- the text of the calls so far ---- */

static char *oracle_text;
static size_t oracle_used, oracle_room;
static int oracle_calls;
static int oracle_rank;
/* Set where the source calls the functions without large counts in spite of -DLARGE. */
static int oracle_small;

ORACLE void oracle_put(const char *format, ...)
{
    va_list args;
    if (oracle_room - oracle_used < 4000) {
        oracle_room = 2 * oracle_room + 10000;
        oracle_text = (char *)realloc(oracle_text, oracle_room);
    }
    va_start(args, format);
    oracle_used += (size_t)vsnprintf(oracle_text + oracle_used, 4000, format, args);
    va_end(args);
}

/* ---- request slots: the lowest free number, from the start of an operation to its completion ---- */

enum { SLOTS = 64 };
static struct oracle_slot {
    int used, persistent, receive, cancelled;
    int bytes; /* that a receive is known to get */
} oracle_slots[SLOTS];

ORACLE int slot_take(int persistent, int receive, int bytes)
{
    int s = 0;
    while (oracle_slots[s].used)
        s++;
    oracle_slots[s].used = 1;
    oracle_slots[s].persistent = persistent;
    oracle_slots[s].receive = receive;
    oracle_slots[s].cancelled = 0;
    oracle_slots[s].bytes = bytes;
    return s;
}

/* A slot for a send, a collective operation or any other thing that is not a receive. */
ORACLE int slot_send(void) { return slot_take(0, 0, 0); }
/* A slot for a receive that will get so many bytes (or, found out later, slot_bytes; -1 if nobody can tell). */
ORACLE int slot_recv(int bytes) { return slot_take(0, 1, bytes); }
/* A slot for a read or write of so many bytes of a file. */
ORACLE int slot_file(int bytes) { return slot_take(0, 2, bytes); }
ORACLE int slot_send_init(void) { return slot_take(1, 0, 0); }
ORACLE int slot_recv_init(int bytes) { return slot_take(1, 1, bytes); }
ORACLE void slot_bytes(int s, int bytes) { oracle_slots[s].bytes = bytes; }
ORACLE void slot_cancelled(int s) { oracle_slots[s].cancelled = 1; }
/* The request is gone: MPI_Request_free, or the message was received. Returns the slot. */
ORACLE int slot_free(int s)
{
    oracle_slots[s].used = 0;
    return s;
}

/* ---- values ---- */

ORACLE void oracle_word(const char *s)
{
    int bare = (*s >= '0' && *s <= '9') || *s == '-' || *s == '[' || !strcmp(s, "null") || !strcmp(s, "true")
               || !strcmp(s, "false");
    oracle_put(bare ? "%s" : "\"%s\"", s);
}

ORACLE void oracle_rank_value(int r)
{
    if (r == MPI_PROC_NULL)
        oracle_put("\"MPI_PROC_NULL\"");
    else if (r == MPI_ANY_SOURCE)
        oracle_put("\"MPI_ANY_SOURCE\"");
    else if (r == MPI_ROOT)
        oracle_put("\"MPI_ROOT\"");
    else
        oracle_put("%d", r);
}

ORACLE void oracle_tag_value(int t)
{
    if (t == MPI_ANY_TAG)
        oracle_put("\"MPI_ANY_TAG\"");
    else
        oracle_put("%d", t);
}

ORACLE void oracle_int_value(char kind, int v)
{
    if (kind == 'B')
        oracle_put(v ? "true" : "false");
    else if (kind == 'U' && v == MPI_UNDEFINED)
        oracle_put("\"MPI_UNDEFINED\"");
    else if (kind == 'Q' && v < 0)
        oracle_put("null");
    else
        oracle_put("%d", v);
}

ORACLE void oracle_list(char kind, int n, const int *v)
{
    int i;
    oracle_put("[");
    for (i = 0; i < n; i++) {
        oracle_put(i ? "," : "");
        oracle_int_value(kind, v[i]);
    }
    oracle_put("]");
}

ORACLE void oracle_completed(int n, const int *positions, const int *slots, const MPI_Status *status)
{
    int i;
    oracle_put("[");
    for (i = 0; i < n; i++) {
        int s = slots[positions[i]];
        oracle_put("%s{\"request\":%d,", i ? "," : "", s);
        if (oracle_slots[s].receive && oracle_slots[s].cancelled) {
            oracle_put("\"source\":null,\"tag\":null,\"bytes\":\"cancelled\"}");
        } else if (oracle_slots[s].receive == 2) {
            oracle_put("\"source\":null,\"tag\":null,\"bytes\":%d}", oracle_slots[s].bytes);
        } else if (oracle_slots[s].receive) {
            oracle_put("\"source\":");
            oracle_rank_value(status[i].MPI_SOURCE);
            oracle_put(",\"tag\":");
            oracle_tag_value(status[i].MPI_TAG);
            oracle_put(oracle_slots[s].bytes < 0 ? ",\"bytes\":null}" : ",\"bytes\":%d}", oracle_slots[s].bytes);
        } else {
            oracle_put("\"source\":null,\"tag\":null,\"bytes\":null}");
        }
    }
    /* Two completed at once keep their numbers until both are printed. */
    for (i = 0; i < n; i++)
        if (!oracle_slots[slots[positions[i]]].persistent)
            slot_free(slots[positions[i]]);
    oracle_put("]");
}

ORACLE void oracle_status(int source, int tag, int bytes, const MPI_Status *status)
{
    if (source == MPI_ANY_SOURCE || tag == MPI_ANY_TAG) {
        oracle_put("\"rsource\":");
        oracle_rank_value(status->MPI_SOURCE);
        oracle_put(",\"rtag\":");
        oracle_tag_value(status->MPI_TAG);
    } else {
        oracle_put("\"rsource\":null,\"rtag\":null");
    }
    oracle_put(",\"bytes\":%d", bytes);
}

/* ---- one call ---- */

/* A field's name; the second of a name in one object (rank, i and call are there already) is NAME2. */
ORACLE void oracle_name(const char *name, const char **before, int n)
{
    int i, again = !strcmp(name, "rank");
    for (i = 0; i < n; i++)
        again |= !strcmp(name, before[i]);
    oracle_put(again ? "\"%s2\":" : "\"%s\":", name);
}

ORACLE void say(const char *text, ...)
{
    char copy[1000], *word, *save = NULL;
    const char *names[32];
    int fields = 0;
    va_list args;
    snprintf(copy, sizeof copy, "%s", text);
    word = strtok_r(copy, " ", &save);
    /* The rank is put in when the file is written: it is not known at MPI_Init. */
    oracle_put("\"i\":%d,\"call\":\"%s%s\"", oracle_calls++, word, !oracle_small && is_large(word) ? "_c" : "");
    va_start(args, text);
    while ((word = strtok_r(NULL, " ", &save)) != NULL) {
        char *value = strchr(word, '=');
        int n, source, tag;
        const int *list, *slots;
        const MPI_Aint *addresses;
        const COUNT *counts;
        const DISPL *displs;
        const PLACE *places;
        *value++ = '\0';
        oracle_put(",");
        if (strcmp(value, "%S"))
            oracle_name(word, names, fields);
        names[fields++] = word;
        if (value[0] != '%') {
            oracle_word(value);
            continue;
        }
        switch (value[1]) {
        case 'd': oracle_put("%d", va_arg(args, int)); break;
        case 'l': oracle_put("%lld", va_arg(args, long long)); break;
        case 'n': oracle_put("%lld", (long long)va_arg(args, COUNT)); break;
        case 's': oracle_word(va_arg(args, const char *)); break;
        case 'x': oracle_put("\"%s\"", va_arg(args, const char *)); break;
        case 'b': oracle_int_value('B', va_arg(args, int)); break;
        case 'u': oracle_int_value('U', va_arg(args, int)); break;
        case 'q': oracle_int_value('Q', va_arg(args, int)); break;
        case 'r': oracle_rank_value(va_arg(args, int)); break;
        case 't': oracle_tag_value(va_arg(args, int)); break;
        case 'D':
        case 'U':
        case 'B':
        case 'Q':
            n = va_arg(args, int);
            oracle_list(value[1], n, va_arg(args, const int *));
            break;
        case 'A':
            n = va_arg(args, int);
            addresses = va_arg(args, const MPI_Aint *);
            oracle_put("[");
            for (tag = 0; tag < n; tag++)
                oracle_put("%s%lld", tag ? "," : "", (long long)addresses[tag]);
            oracle_put("]");
            break;
        case 'N':
            n = va_arg(args, int);
            counts = va_arg(args, const COUNT *);
            oracle_put("[");
            for (tag = 0; tag < n; tag++)
                oracle_put("%s%lld", tag ? "," : "", (long long)counts[tag]);
            oracle_put("]");
            break;
        case 'V':
            n = va_arg(args, int);
            displs = va_arg(args, const DISPL *);
            oracle_put("[");
            for (tag = 0; tag < n; tag++)
                oracle_put("%s%lld", tag ? "," : "", (long long)displs[tag]);
            oracle_put("]");
            break;
        case 'W':
            n = va_arg(args, int);
            places = va_arg(args, const PLACE *);
            oracle_put("[");
            for (tag = 0; tag < n; tag++)
                oracle_put("%s%lld", tag ? "," : "", (long long)places[tag]);
            oracle_put("]");
            break;
        case 'C':
            n = va_arg(args, int);
            list = va_arg(args, const int *);
            slots = va_arg(args, const int *);
            oracle_completed(n, list, slots, va_arg(args, const MPI_Status *));
            break;
        case 'S':
            source = va_arg(args, int);
            tag = va_arg(args, int);
            n = va_arg(args, int);
            oracle_status(source, tag, n, va_arg(args, const MPI_Status *));
            break;
        default:
            fprintf(stderr, "oracle: %s: unknown value %s\n", text, value);
            abort();
        }
    }
    va_end(args);
    oracle_put("\n");
}

/* Writes PREFIX.<rank>.jsonl. Call it last. */
ORACLE void oracle_write(void)
{
    const char *prefix = getenv("ST_ORACLE");
    char path[4000], *line, *save = NULL;
    FILE *f;
    if (!prefix)
        return;
    snprintf(path, sizeof path, "%s.%d.jsonl", prefix, oracle_rank);
    f = fopen(path, "w");
    if (!f) {
        perror(path);
        exit(1);
    }
    for (line = strtok_r(oracle_text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        fprintf(f, "{\"rank\":%d,%s}\n", oracle_rank, line);
    if (fclose(f)) {
        perror(path);
        exit(1);
    }
}

/* The positions 0, 1, …, n-1: what MPI_Waitall completes. */
static const int all_positions[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

#endif
