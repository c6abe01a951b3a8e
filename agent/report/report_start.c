#include "agent/report/report_internal.h"

#include "base/log.h"

void report_print(const struct report *r, struct str *text)
{
    if (r->setting.rank == 0)
        log_print(stdout, str_text(text));
    str_free(text);
}

void report_print_line(const struct report *r, struct str *text)
{
    if (r->own_lines)
        report_print(r, text);
    else
        str_free(text);
}

void report_print_data(const struct report *r, const struct trainer_facts *f)
{
    struct str line;
    if (!f->files)
        return;
    str_init(&line, LINE_BYTES);
    str_printf(&line, "Training data: %s, read as %s\n", f->files, f->format);
    report_print(r, &line);
}

/* Lines of other styles, which are other programs', have no word for a restart within the run. */
void report_on_resumed(void *ctx, const char *path, int64_t step, int64_t lost)
{
    struct report *r = ctx;
    struct str line;
    r->done_before = lost > 0 ? lost : 0;
    r->account.resumed_step = step;
    str_init(&line, LINE_BYTES);
    str_printf(&line, "Resumed at step %lld from %s", (long long)step, path);
    if (lost >= 0)
        str_printf(&line, " (%lld step%s lost)", (long long)lost, lost == 1 ? "" : "s");
    str_add(&line, "\n");
    if (lost >= 0)
        report_print(r, &line);
    else
        report_print_line(r, &line);
}

void report_on_began_anew(void *ctx, const char *dir)
{
    const struct report *r = ctx;
    int64_t style = r->setting.config->value.logging.style;
    struct str line;
    if (style == STYLE_ADT || style == STYLE_T5) /* have their own */
        return;
    str_init(&line, LINE_BYTES);
    str_printf(&line, "No checkpoint in %s yet: training starts from the beginning\n", dir);
    report_print(r, &line);
}

void report_on_weights(void *ctx, const char *path, const char *warnings)
{
    struct str line;
    str_init(&line, LINE_BYTES);
    if (path)
        str_printf(&line, "Initial weights from %s\n", path);
    else
        str_printf(&line, "Initial weights: random\n");
    report_print(ctx, &line);
    if (warnings[0])
        log_warning("%s", warnings);
}

void report_on_skipped(void *ctx, const char *why)
{
    (void)ctx;
    log_warning("passed over: %s", why);
}

void report_on_differs(void *ctx, const char *what)
{
    const struct report *r = ctx;
    if (r->setting.rank == 0)
        log_warning("the checkpoint's run was another than this one: %s", what);
}

void report_on_info(void *ctx, const char *what)
{
    const struct report *r = ctx;
    if (r->setting.rank == 0)
        log_info("%s", what);
}

void report_on_notice(void *ctx, const char *what)
{
    const struct report *r = ctx;
    if (r->setting.rank == 0)
        log_warning("%s", what);
}
