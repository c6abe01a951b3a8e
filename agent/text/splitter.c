#include "agent/text/splitter.h"

#include "agent/text/pattern.h"
#include "agent/text/spec.h"

#include <string.h>

/* GPT-2's, which ByteLevel brings along. */
#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

static const char *const behaviors[] = {
    [SPLITTER_ISOLATED] = "Isolated",
    [SPLITTER_REMOVED] = "Removed",
    [SPLITTER_MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
    [SPLITTER_MERGED_WITH_NEXT] = "MergedWithNext",
    [SPLITTER_CONTIGUOUS] = "Contiguous",
};
enum { BEHAVIORS = sizeof behaviors / sizeof behaviors[0] };

/* ---- building ---- */

static int too_many(const struct spec_component *component, struct error *err)
{
    return error_set(err, ERR_INPUT, "%s: more than %d pre-tokenizers", component->where,
                     SPLITTER_MAX_STEPS);
}

static int open_split(const struct spec_component *component, struct splitter_step *step,
                      struct error *err)
{
    int behavior = 0;
    while (behavior < BEHAVIORS && component->behavior &&
           strcmp(component->behavior, behaviors[behavior]) != 0)
        behavior++;
    if (!component->behavior || behavior == BEHAVIORS)
        return error_set(err, ERR_INPUT,
                         "%s.behavior: must be Isolated, Removed, MergedWithPrevious, "
                         "MergedWithNext or Contiguous, not %.40s",
                         component->where, component->behavior ? component->behavior : "absent");
    *step = (struct splitter_step){.behavior = (enum splitter_behavior)behavior,
                                   .invert = component->invert};
    return pattern_open_component(component, &step->pattern, err);
}

static int open_byte_level(const struct spec_component *component, struct splitter *splitter,
                           struct splitter_step *step, struct error *err)
{
    splitter->byte_level = true;
    step->prefix = component->add_prefix_space ? " " : NULL;
    return component->use_regex ? pattern_open(GPT2, &step->pattern, err) : 0;
}

static int open_metaspace(const struct spec_component *component, struct splitter_step *step,
                          struct error *err)
{
    const char *scheme = component->prepend_scheme ? component->prepend_scheme : "always";
    if (!component->replacement || !*component->replacement)
        return error_set(err, ERR_INPUT, "%s.replacement: must be there", component->where);
    bool first = strcmp(scheme, "first") == 0, never = strcmp(scheme, "never") == 0;
    if (!first && !never && strcmp(scheme, "always") != 0)
        return error_set(err, ERR_INPUT,
                         "%s.prepend_scheme: must be always, first or never, not %.40s",
                         component->where, scheme);
    *step = (struct splitter_step){.space = component->replacement,
                                   .prefix = never ? NULL : component->replacement,
                                   .prefix_first_only = first,
                                   .behavior = SPLITTER_MERGED_WITH_NEXT};
    if (component->split)
        step->pattern = pattern_open_text(component->replacement);
    return 0;
}

static int open_white_space(struct splitter_step *step, struct error *err)
{
    step->behavior = SPLITTER_REMOVED;
    return pattern_open("\\s+", &step->pattern, err);
}

/* Words between white space, and each mark of punctuation alone. */
static int open_bert(const struct spec_component *component, struct splitter *splitter,
                     struct splitter_step *step, struct error *err)
{
    if (splitter->count == SPLITTER_MAX_STEPS)
        return too_many(component, err);
    /* BERT counts ASCII's symbols as punctuation, too; Unicode has them in S, not in P. */
    struct splitter_step *punctuation = &splitter->steps[splitter->count++];
    punctuation->behavior = SPLITTER_ISOLATED;
    return open_white_space(step, err) < 0
               ? -1
               : pattern_open("\\p{P}|[$+<=>^`|~]", &punctuation->pattern, err);
}

static int open_step(const struct spec_component *component, struct splitter *splitter,
                     struct error *err)
{
    struct splitter_step *step = &splitter->steps[splitter->count++];
    if (strcmp(component->type, "Split") == 0)
        return open_split(component, step, err);
    if (strcmp(component->type, "ByteLevel") == 0)
        return open_byte_level(component, splitter, step, err);
    if (strcmp(component->type, "Metaspace") == 0)
        return open_metaspace(component, step, err);
    if (strcmp(component->type, "Digits") == 0) {
        step->behavior = component->individual_digits ? SPLITTER_ISOLATED : SPLITTER_CONTIGUOUS;
        return pattern_open("\\p{N}", &step->pattern, err);
    }
    if (strcmp(component->type, "WhitespaceSplit") == 0)
        return open_white_space(step, err);
    if (strcmp(component->type, "BertPreTokenizer") == 0)
        return open_bert(component, splitter, step, err);
    return error_set(err, ERR_UNSUPPORTED,
                     "%s.type: %.40s is not supported; there are Split, ByteLevel, Metaspace, "
                     "Digits, WhitespaceSplit, BertPreTokenizer, Sequence",
                     component->where, component->type);
}

int splitter_open(const struct spec_component *component, struct splitter *splitter,
                  struct error *err)
{
    if (!component->type)
        return 0;
    if (strcmp(component->type, "Sequence") == 0) {
        for (size_t i = 0; i < component->components.count; i++)
            if (splitter_open(&component->components.items[i], splitter, err) < 0)
                return -1;
        return 0;
    }
    if (splitter->byte_level)
        return error_set(err, ERR_UNSUPPORTED, "%s: nothing may come after ByteLevel",
                         component->where);
    if (splitter->count == SPLITTER_MAX_STEPS)
        return too_many(component, err);
    return open_step(component, splitter, err);
}

void splitter_close(struct splitter *splitter)
{
    for (int i = 0; i < splitter->count; i++)
        pattern_close(splitter->steps[i].pattern);
    *splitter = (struct splitter){0};
}

void splitter_workspace_init(struct splitter_workspace *work, struct pattern_workspace *pattern,
                             size_t cap)
{
    *work = (struct splitter_workspace){.pattern = pattern};
    for (int i = 0; i < SPLITTER_MAX_STEPS; i++)
        str_init(&work->rewritten[i], cap);
}

void splitter_workspace_free(struct splitter_workspace *work)
{
    for (int i = 0; i < SPLITTER_MAX_STEPS; i++)
        str_free(&work->rewritten[i]);
}

/* ---- cutting ---- */

struct run {
    const struct splitter *splitter;
    struct splitter_workspace *work;
    splitter_take take;
    void *ctx;
    struct error *err;
};

/* One step at work on one text: the word that is not yet handed on, and whether it is a match. */
struct cut {
    struct run *run;
    int step;
    const char *text;
    bool first; /* the text is the beginning of the input */
    size_t begin, end;
    bool pending, match;
};

static int run_from(struct run *run, int step, const char *text, size_t bytes, bool first);

static int hand_on(struct cut *cut)
{
    if (!cut->pending || cut->begin == cut->end)
        return 0;
    cut->pending = false;
    return run_from(cut->run, cut->step + 1, cut->text + cut->begin, cut->end - cut->begin,
                    cut->first && cut->begin == 0);
}

/* Whether the piece belongs to the word that is pending. */
static bool joins(const struct cut *cut, enum splitter_behavior behavior, bool match)
{
    if (!cut->pending)
        return false;
    switch (behavior) {
    case SPLITTER_MERGED_WITH_PREVIOUS:
        return match && !cut->match;
    case SPLITTER_MERGED_WITH_NEXT:
        return !match && cut->match;
    case SPLITTER_CONTIGUOUS:
        return match == cut->match;
    default:
        return false;
    }
}

/* The next piece of the text: a match, or what lies between two. An empty match is a cut, which
 * only Contiguous would join over. */
static int add(struct cut *cut, size_t begin, size_t end, bool match)
{
    const struct splitter_step *step = &cut->run->splitter->steps[cut->step];
    bool cuts = begin == end && match && step->behavior == SPLITTER_CONTIGUOUS;
    match ^= step->invert;
    if (cuts)
        cut->match = match;
    if (begin == end)
        return 0;
    if (joins(cut, step->behavior, match)) {
        cut->end = end;
        cut->match = match;
        return 0;
    }
    if (hand_on(cut) < 0)
        return -1;
    cut->begin = begin;
    cut->end = end;
    cut->match = match;
    cut->pending = !(match && step->behavior == SPLITTER_REMOVED);
    return 0;
}

static int run_pattern(struct run *run, int step, const char *text, size_t bytes, bool first)
{
    struct cut cut = {.run = run, .step = step, .text = text, .first = first};
    struct pattern_walk walk = {0};
    size_t at = 0, begin = 0, end = 0;
    int found;
    while ((found = pattern_next(run->splitter->steps[step].pattern, run->work->pattern, text,
                                 bytes, &walk, &begin, &end, run->err)) > 0) {
        if (add(&cut, at, begin, false) < 0 || add(&cut, begin, end, true) < 0)
            return -1;
        at = end;
    }
    if (found < 0 || add(&cut, at, bytes, false) < 0)
        return -1;
    return hand_on(&cut);
}

/* Replaces spaces and adds the prefix; *text stays where it is if nothing changes. */
static int rewrite(struct run *run, int number, const char **text, size_t *bytes, bool first)
{
    const struct splitter_step *step = &run->splitter->steps[number];
    struct str *out = &run->work->rewritten[number];
    const char *begin = *text, *end = *text + *bytes;
    size_t prefix_bytes = step->prefix ? strlen(step->prefix) : 0;
    bool prefix = step->prefix && (first || !step->prefix_first_only) &&
                  !(*bytes >= prefix_bytes && memcmp(begin, step->prefix, prefix_bytes) == 0) &&
                  !(step->space && *begin == ' ');
    if (!prefix && !(step->space && memchr(begin, ' ', *bytes)))
        return 0;
    str_clear(out);
    if (prefix)
        str_add(out, step->prefix);
    for (const char *at = begin, *space; at < end; at = space + 1) {
        space = step->space ? memchr(at, ' ', (size_t)(end - at)) : NULL;
        str_add_bytes(out, at, (size_t)((space ? space : end) - at));
        if (!space)
            break;
        str_add(out, step->space);
    }
    if (out->truncated)
        return error_set(run->err, ERR_LIMIT, "a text of %zu bytes becomes longer than %zu", *bytes,
                         out->cap);
    *text = out->text;
    *bytes = out->length;
    return 0;
}

static int run_from(struct run *run, int step, const char *text, size_t bytes, bool first)
{
    if (bytes == 0)
        return 0;
    if (step == run->splitter->count)
        return run->take(run->ctx, text, bytes, run->err);
    if (rewrite(run, step, &text, &bytes, first) < 0)
        return -1;
    if (!run->splitter->steps[step].pattern)
        return run_from(run, step + 1, text, bytes, first);
    return run_pattern(run, step, text, bytes, first);
}

int splitter_run(const struct splitter *splitter, struct splitter_workspace *work, const char *text,
                 size_t bytes, bool first, splitter_take take, void *ctx, struct error *err)
{
    struct run run = {splitter, work, take, ctx, err};
    return run_from(&run, 0, text, bytes, first);
}
