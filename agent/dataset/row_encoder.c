#include "agent/dataset/row_encoder.h"

#include "agent/dataset/json_line.h"
#include "agent/dataset/text_file.h"

int row_encoder_init(struct row_encoder *encoder, enum token_format format,
                     const struct token_options *options, const char *name, struct error *err)
{
    const struct token_dataset *d = &options->source;
    const struct token_encoder *t = &options->encoder;
    if (!t->encode)
        return error_set(err, ERR_CONFIG, "%s is %s: set data.tokenizer", name,
                         token_format_name(format));
    /* In a stream of concatenated texts the end of each must show. Elsewhere the tokenizer decides,
     * as with transformers. */
    bool wants_eos = d->packing == TOKENS_CONCAT ? t->eos >= 0 : t->adds_eos;
    bool bos = d->add_bos == TOKENS_AFFIX_AUTO ? t->adds_bos : d->add_bos == TOKENS_AFFIX_TRUE;
    bool eos = d->add_eos == TOKENS_AFFIX_AUTO ? wants_eos : d->add_eos == TOKENS_AFFIX_TRUE;
    if ((bos && t->bos < 0) || (eos && t->eos < 0))
        return error_set(err, ERR_CONFIG, "%s is set, but the tokenizer has no such token",
                         bos && t->bos < 0 ? "data.add_bos" : "data.add_eos");
    *encoder = (struct row_encoder){.tokenizer = *t,
                                    .is_json = format == TOKENS_JSONL,
                                    .text_column = d->text_column,
                                    .add_bos = bos,
                                    .add_eos = eos,
                                    .vocab_size = options->vocab_size};
    return 0;
}

static void check_vocabulary(const struct row_encoder *e, struct encode_job *job)
{
    for (size_t i = 0; i < job->ids.count; i++) {
        int32_t id = job->ids.ids[i];
        if (id >= 0 && (e->vocab_size == 0 || id < e->vocab_size))
            continue;
        job->failed = true;
        error_set(&job->err, ERR_INPUT,
                  "%s:%lld: the tokenizer gives id %d, the model's vocabulary has %lld: take the "
                  "model's own tokenizer",
                  job->path, (long long)job->line, id, (long long)e->vocab_size);
        return;
    }
}

static void encode_text(const struct row_encoder *e, struct encode_job *job, const char *text,
                        size_t bytes)
{
    const struct token_encoder *t = &e->tokenizer;
    if (e->add_bos)
        tokens_add(&job->ids, t->bos);
    if (t->encode(t->ctx, text, bytes, &job->ids, &job->err) < 0) {
        job->failed = true;
        error_wrap(&job->err, "%s:%lld", job->path, (long long)job->line);
        return;
    }
    if (e->add_eos)
        tokens_add(&job->ids, t->eos);
    check_vocabulary(e, job);
}

void row_encode(void *ctx, struct encode_job *job)
{
    const struct row_encoder *e = ctx;
    if (job->too_long) {
        job->bad = true;
        error_set(&job->err, ERR_INPUT, "%s:%lld: longer than %d bytes", job->path,
                  (long long)job->line, TEXT_FILE_MAX_LINE_BYTES);
        return;
    }
    if (!e->is_json) {
        encode_text(e, job, job->text, job->bytes);
        return;
    }
    const char *text;
    size_t bytes;
    struct json *line =
        json_line_text(job->text, job->bytes, e->text_column, &text, &bytes, &job->err);
    if (!line) {
        job->bad = true;
        error_wrap(&job->err, "%s:%lld", job->path, (long long)job->line);
        return;
    }
    encode_text(e, job, text, bytes);
    json_line_free(line);
}
