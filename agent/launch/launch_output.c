#include "agent/launch/launch_output.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const stream_names[] = {"stdout", "stderr"};

/* One "WHICH" or "LOCAL_RANK:WHICH" of `length` bytes; local rank -1: of all. */
static bool parse_item(const char *item, size_t length, int *ret_local_rank, int *ret_which)
{
    const char *which = memchr(item, ':', length);
    int64_t rank = -1;
    char number[16];
    if (which) {
        snprintf(number, sizeof number, "%.*s", (int)(which - item), item);
        if (!str_to_i64(number, 0, 1 << 20, &rank))
            return false;
        which++;
    } else {
        which = item;
    }
    *ret_local_rank = (int)rank;
    *ret_which = *which - '0';
    return item + length == which + 1 && *ret_which >= 0 && *ret_which <= 3;
}

/* The streams (bit 0: stdout, bit 1: stderr) that the text names for a rank; -1: it is wrong. */
static int streams_of(const char *text, int local_rank)
{
    int streams = 0, rank, which;
    for (const char *item = text ? text : ""; *item;) {
        size_t length = strcspn(item, ",");
        if (!parse_item(item, length, &rank, &which))
            return -1;
        if (rank < 0 || rank == local_rank)
            streams = which;
        item += length + (item[length] == ',');
    }
    return streams;
}

/* Of a text that streams_of() takes: 0 alone, torchrun's default, leaves all where it is. */
static bool names_a_stream(const char *text)
{
    int rank, which = 0;
    for (const char *item = text ? text : ""; *item && which == 0;) {
        size_t length = strcspn(item, ",");
        parse_item(item, length, &rank, &which);
        item += length + (item[length] == ',');
    }
    return which > 0;
}

int launch_output_check(const struct launch_output_spec *spec, struct error *err)
{
    const char *const texts[] = {spec->redirects, spec->tee};
    for (int i = 0; i < 2; i++)
        if (streams_of(texts[i], 0) < 0)
            return error_set(err, ERR_CONFIG,
                             "runtime.%s: '%s' is not 0, 1, 2, 3 or LOCAL_RANK:WHICH,...",
                             i ? "tee" : "redirects", texts[i]);
    if (names_a_stream(spec->redirects) && (!spec->log_dir || !spec->log_dir[0]))
        return error_set(err, ERR_CONFIG, "runtime.redirects needs runtime.log_dir");
    return 0;
}

/* Makes the directories above the last part of the path. */
static int make_parents(char *path, struct error *err)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int failed = mkdir(path, 0777) && errno != EEXIST ? errno : 0;
        if (failed)
            return error_errno(err, failed, "make %s", path);
        *slash = '/';
    }
    return 0;
}

static int open_log(const struct launch_output_spec *spec, int attempt, int local_rank,
                    const char *name, int *ret_fd, struct error *err)
{
    auto_free char *path =
        /* torchrun's layout, which tools look into. */
        xasprintf("%s/%s/attempt_%d/%d/%s.log", spec->log_dir,
                  spec->run && spec->run[0] ? spec->run : "none", attempt, local_rank, name);
    if (make_parents(path, err))
        return -1;
    *ret_fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    return *ret_fd < 0 ? error_errno(err, errno, "open %s", path) : 0;
}

static int open_pipe(struct launch_stream *stream, int *ret_fd, struct error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return error_errno(err, errno, "pipe");
    /* Our end only: a rank that writes faster than the terminal takes it waits in write(), as it
     * would without us. */
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    stream->pipe = ends[0];
    stream->line = xmalloc(LAUNCH_LINE_BYTES);
    *ret_fd = ends[1];
    return 0;
}

/* The rank writes it itself. The end of its stderr is read when the rank has ended. */
static int leave_file(struct launch_stream *stream, int file, int *ret_fd, struct error *err)
{
    *ret_fd = file;
    if (stream->terminal != STDERR_FILENO)
        return 0;
    stream->file = fcntl(file, F_DUPFD_CLOEXEC, 3);
    if (stream->file < 0)
        return error_errno(err, errno, "stderr of local rank %d", stream->local_rank);
    stream->file_begin = lseek(file, 0, SEEK_END);
    return 0;
}

int launch_output_open(const struct launch_output_spec *spec, int attempt, int local_rank,
                       struct output_tail *tail, struct launch_stream ret_streams[2],
                       int ret_fds[2], struct error *err)
{
    int redirects = streams_of(spec->redirects, local_rank),
        tee = streams_of(spec->tee, local_rank);
    bool has_files = spec->log_dir && spec->log_dir[0];
    for (int i = 0; i < 2; i++) {
        struct launch_stream *stream = &ret_streams[i];
        *stream = (struct launch_stream){
            .pipe = -1, .file = -1, .terminal = i + 1, .local_rank = local_rank, .tail = tail};
        ret_fds[i] = -1;
    }
    for (int i = 0; i < 2; i++) {
        struct launch_stream *stream = &ret_streams[i];
        int file = -1;
        bool is_tee = tee >> i & 1;
        if ((is_tee || redirects >> i & 1) && has_files &&
            open_log(spec, attempt, local_rank, stream_names[i], &file, err))
            return -1;
        if (file >= 0 && !is_tee) {
            if (leave_file(stream, file, &ret_fds[i], err))
                return -1;
            continue;
        }
        stream->file = file;
        stream->is_plain = !is_tee;
        if ((is_tee || stream->terminal == STDERR_FILENO) && open_pipe(stream, &ret_fds[i], err))
            return -1;
    }
    return 0;
}

/* Whether something can be written within so long; also if that will fail. -1: without end. */
static bool waits_for(int fd, int patience_ms)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
    return poll(&poll_fd, 1, patience_ms) != 0;
}

/* Output that cannot be written is lost, which is logged once; the ranks go on. */
static void write_all(const struct launch_stream *stream, int fd, bool *lost, const char *bytes,
                      size_t count)
{
    while (count > 0) {
        ssize_t n = write(fd, bytes, count);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN && waits_for(fd, -1)) /* another process has set O_NONBLOCK */
            continue;
        if (n < 0 && !*lost && errno != EPIPE)
            log_warning("local rank %d: its %s is lost%s: %s", stream->local_rank,
                        stream_names[stream->terminal - 1],
                        fd == stream->file ? " for runtime.log_dir" : "", strerror(errno));
        *lost |= n < 0;
        if (n <= 0)
            return;
        bytes += n;
        count -= (size_t)n;
    }
}

static void write_line(struct launch_stream *stream, const char *line, size_t length)
{
    /* torchrun's form: "default" is the name of its role. One write a line, so that lines of ranks
     * do not mix. */
    char text[LAUNCH_LINE_BYTES + 64];
    int n =
        snprintf(text, sizeof text, "[default%d]:%.*s\n", stream->local_rank, (int)length, line);
    write_all(stream, stream->terminal, &stream->lost_terminal, text, (size_t)n);
}

/* Tells the whole lines of what has come and keeps the rest. */
static void write_lines(struct launch_stream *stream)
{
    size_t from = 0;
    for (char *end; (end = memchr(stream->line + from, '\n', stream->length - from));) {
        write_line(stream, stream->line + from, (size_t)(end - stream->line) - from);
        from = (size_t)(end - stream->line) + 1;
    }
    stream->length -= from;
    memmove(stream->line, stream->line + from, stream->length);
    if (stream->length == LAUNCH_LINE_BYTES) {
        write_line(stream, stream->line, stream->length);
        stream->length = 0;
    }
}

/* A pipe that can be written to takes PIPE_BUF bytes at least, so at most so many are passed on
 * without waiting. Lines stay whole where they fit. */
static void pass_on(struct launch_stream *stream, bool is_all)
{
    const char *newline = is_all ? NULL : memrchr(stream->line, '\n', stream->length);
    size_t count = newline ? (size_t)(newline + 1 - stream->line) : stream->length;
    write_all(stream, stream->terminal, &stream->lost_terminal, stream->line, count);
    stream->length -= count;
    memmove(stream->line, stream->line + count, stream->length);
}

static bool is_stalled(const struct launch_stream *stream)
{
    return stream->is_plain && !waits_for(stream->terminal, 0);
}

bool launch_stream_poll(const struct launch_stream *stream, struct pollfd *ret_poll)
{
    if (stream->pipe < 0)
        return false;
    *ret_poll = is_stalled(stream) ? (struct pollfd){.fd = stream->terminal, .events = POLLOUT}
                                   : (struct pollfd){.fd = stream->pipe, .events = POLLIN};
    return true;
}

/* Returns whether more may be there. */
static bool read_some(struct launch_stream *stream)
{
    size_t most = stream->is_plain ? PIPE_BUF : LAUNCH_LINE_BYTES;
    /* A rank may write without end, and the launcher has more to do. */
    enum { READS_MOST = 16 };
    for (int reads = 0; reads < READS_MOST && stream->pipe >= 0 && !is_stalled(stream); reads++) {
        ssize_t n = read(stream->pipe, stream->line + stream->length, most - stream->length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 && stream->is_plain && stream->length > 0)
            pass_on(stream, true);
        if (n < 0 && errno == EAGAIN)
            return false;
        if (n <= 0) {
            close(stream->pipe);
            stream->pipe = -1;
            return false;
        }
        output_tail_add(stream->tail, stream->line + stream->length, (size_t)n);
        if (stream->file >= 0)
            write_all(stream, stream->file, &stream->lost_file, stream->line + stream->length,
                      (size_t)n);
        stream->length += (size_t)n;
        if (stream->is_plain)
            pass_on(stream, stream->length < most);
        else
            write_lines(stream);
    }
    if (stream->is_plain && stream->length > 0 && !is_stalled(stream))
        pass_on(stream, true);
    return stream->pipe >= 0;
}

void launch_stream_read(struct launch_stream *stream)
{
    read_some(stream);
}

/* All but what nobody reads, and what somebody whom the rank has left behind goes on to write. */
static void drain(struct launch_stream *stream, int64_t until_ms)
{
    while (read_some(stream)) {
        int64_t left_ms = until_ms - clock_monotonic_ms();
        if (left_ms <= 0 || (is_stalled(stream) && !waits_for(stream->terminal, (int)left_ms)))
            return;
    }
}

/* Of a file that the rank has written itself. */
static void read_end(const struct launch_stream *stream)
{
    char text[OUTPUT_TAIL_BYTES];
    off_t end = lseek(stream->file, 0, SEEK_END);
    off_t at = end - OUTPUT_TAIL_BYTES > stream->file_begin ? end - OUTPUT_TAIL_BYTES
                                                            : (off_t)stream->file_begin;
    ssize_t n = end > at ? pread(stream->file, text, (size_t)(end - at), at) : 0;
    if (n > 0)
        output_tail_add(stream->tail, text, (size_t)n);
}

void launch_stream_close(struct launch_stream *stream, int64_t until_ms)
{
    bool has_pipe = stream->line != NULL;
    drain(stream, until_ms);
    if (stream->length > 0 && !stream->is_plain)
        write_line(stream, stream->line, stream->length);
    if (stream->pipe >= 0)
        close(stream->pipe);
    if (stream->file >= 0 && !has_pipe)
        read_end(stream);
    if (stream->file >= 0)
        close(stream->file);
    free(stream->line);
    *stream = (struct launch_stream){.pipe = -1, .file = -1};
}
