/* The local ranks' output, as torchrun's --redirects and --tee have it: to files of their own, to
 * the launcher's output with "[default0]:" before each line, or to both. Without either the
 * launcher passes stderr on as it is, so that it has the last lines of a rank that was killed.
 * stdout is the launcher's own: a rank may print much there. Private to the launcher. */
#ifndef SHOAL_AGENT_LAUNCH_LAUNCH_OUTPUT_H
#define SHOAL_AGENT_LAUNCH_LAUNCH_OUTPUT_H

#include "agent/launch/output_tail.h"
#include "base/error.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

/* "" or NULL: nothing. Which streams: "0" none, "1" stdout, "2" stderr, "3" both, for all ranks or
 * as "LOCAL_RANK:WHICH,..." for some. */
struct launch_output_spec {
    const char *log_dir; /* files are LOG_DIR/RUN/attempt_N/LOCAL_RANK/stdout.log and stderr.log */
    const char *run;     /* "none" if it is "" */
    const char *redirects, *tee; /* tee wins where both name a stream */
};

enum {
    LAUNCH_LINE_BYTES = 64 * 1024, /* longer lines are printed in parts */
    LAUNCH_DRAIN_MS = 5000,        /* at the end all streams have so long; what is left is lost */
};

/* One stream of one rank, read by the launcher. */
struct launch_stream {
    int pipe;           /* -1: closed, or there is none */
    int file;           /* -1: none */
    int64_t file_begin; /* of a file that the rank writes itself, without a pipe: its size before */
    int terminal;       /* 1 or 2 */
    int local_rank;
    bool is_plain; /* passed on as it is, without "[default0]:" */
    char *line;    /* [LAUNCH_LINE_BYTES], the beginning of the current one */
    size_t length;
    struct output_tail *tail;      /* the rank's, which outlives the stream */
    bool lost_file, lost_terminal; /* something could not be written, which was logged */
};

/* Parses the texts and checks that log_dir is there if they need it. Errors: ERR_CONFIG. */
int launch_output_check(const struct launch_output_spec *spec, struct error *err);

/* Opens files and pipes of one rank. ret_fds: its stdout and stderr; -1: the launcher's own. The
 * caller closes them after the fork. tail: gets what the rank writes, but for a stdout that is not
 * told. Errors: ERR_IO naming the file. */
int launch_output_open(const struct launch_output_spec *spec, int attempt, int local_rank,
                       struct output_tail *tail, struct launch_stream ret_streams[2],
                       int ret_fds[2], struct error *err);

/* What to wait for until launch_stream_read() has something to do; false: it never has. */
bool launch_stream_poll(const struct launch_stream *stream, struct pollfd *ret_poll);
/* Forwards what is in the pipe, a part of it if that is much; closes the stream at its end. Never
 * blocks on the pipe, nor where a plain stream's reader is slow: then the rank waits in its
 * write(), as without us. */
void launch_stream_read(struct launch_stream *stream);
/* Forwards all that is left first, an unfinished line too, until then on the monotonic clock. */
void launch_stream_close(struct launch_stream *stream, int64_t until_ms);
#endif
