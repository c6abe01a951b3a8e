/* The lines that a run prints on rank 0's standard output, in the words of the trainer that a
 * preset stands in for. A style is a function from what happened to text; nothing here prints or
 * asks for the time. */
#ifndef SHOAL_AGENT_TELEMETRY_LOG_LINES_H
#define SHOAL_AGENT_TELEMETRY_LOG_LINES_H

#include "agent/telemetry/run_state.h"
#include "base/str.h"

enum log_style {
    STYLE_NONE,   /* says nothing: the caller has lines of its own */
    STYLE_PLAIN,  /* ours */
    STYLE_ADT,    /* AWS's FSDP sample, train.py; consumers match ".*Loss:.*" */
    STYLE_FABRIC, /* the Fabric scripts */
    STYLE_T5,     /* t5-fsdp.py */
};

/* Of style T5; all others are English. */
enum log_language { LANG_EN, LANG_KO };

/* What is printed how. */
struct log_setting {
    enum log_style style;
    enum log_language lang;
    int64_t every; /* steps between two step lines; 0: none */
};

enum run_event {
    RUN_MODEL_BEGIN, /* is about to be built */
    RUN_MODEL_DONE,  /* seconds */
    RUN_WRAPPED,     /* into units */
    RUN_OPTIMIZER_DONE,
    RUN_NO_CHECKPOINT,       /* to go on from */
    RUN_INCOMPLETE,          /* path: a checkpoint that was passed over */
    RUN_LOAD_BEGIN,          /* path; NULL: from memory, of which no style has a line */
    RUN_LOAD_MODEL_DONE,     /* likewise */
    RUN_LOAD_OPTIMIZER_DONE, /* likewise */
    RUN_LOAD_DONE,           /* likewise */
    RUN_VALUE_TAKEN,         /* path: from the checkpoint, "0.0001 for learning rate" */
    RUN_STEP,
    RUN_EVAL,
    RUN_SAVE_BEGIN, /* path */
    RUN_SAVE_DONE,  /* path */
    RUN_END,
};

/* What happened, when. */
struct run_moment {
    enum run_event event;
    int64_t wall_us;
    double seconds;    /* see enum run_event */
    const char *path;  /* see enum run_event */
    bool at_epoch_end; /* RUN_SAVE_*: why it is saved */
    int64_t epoch;     /* RUN_SAVE_*, RUN_LOAD_DONE: whole epochs done */
};

/* Adds the style's lines for the moment, each with its newline; nothing if it has none. state: as
 * of the moment. */
void log_lines(const struct log_setting *setting, const struct run_moment *moment,
               const struct run_state *state, struct str *out);

/* The styles, each in its file. Step lines are only asked for when they are due; T5's counts for
 * itself. */
void log_lines_plain(const struct run_moment *moment, const struct run_state *state,
                     struct str *out);
void log_lines_adt(const struct run_moment *moment, const struct run_state *state, struct str *out);
/* As Python prints a float32 that became a float and was divided: the shortest text that reads back
 * to it. */
void log_lines_float32(double value, double divisor, struct str *out);
void log_lines_fabric(const struct run_moment *moment, const struct run_state *state,
                      struct str *out);
void log_lines_t5(const struct run_moment *moment, const struct run_state *state,
                  const struct log_setting *setting, struct str *out);
#endif
