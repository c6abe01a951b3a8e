#include "agent/models/language.h"

#include "agent/nn/nn_loss.h"

enum { HOST_BYTES = 64 << 20, GPU_BYTES = 1 << 30, MIN_CHUNK_ROWS = 1024 };

/* Logits of a whole batch would be the largest tensor by far (rows x V). So the loss is computed in
 * chunks of rows, which are forgotten. */
int64_t language_chunk_rows(int64_t asked, int64_t V, enum dtype t, bool is_host)
{
    if (asked > 0)
        return asked;
    int64_t rows = is_host ? HOST_BYTES / (V * (int64_t)sizeof(float))
                           : GPU_BYTES / (nn_logit_stride(V, false) * (int64_t)dtype_bytes(t)) /
                                 MIN_CHUNK_ROWS * MIN_CHUNK_ROWS;
    return rows > MIN_CHUNK_ROWS ? rows : MIN_CHUNK_ROWS;
}

int language_sample_tokens(const struct model *model, int64_t asked, int64_t *ret_tokens,
                           struct error *err)
{
    int64_t most = model->language.max_tokens;
    if (asked > most)
        return error_set(err, ERR_CONFIG,
                         "data.max_seq_length: %lld tokens, but the model has only %lld positions",
                         (long long)asked, (long long)most);
    *ret_tokens = asked > 0 ? asked : most;
    return 0;
}

void language_check_batch(const struct model *model, struct tape *tape, const struct batch *batch)
{
    struct error err;
    int64_t T = batch->T > batch->T_source ? batch->T : batch->T_source;
    if (T <= model->language.max_tokens)
        return;
    error_set(&err, ERR_CONFIG, "sequences of %lld tokens: the model takes at most %lld",
              (long long)T, (long long)model->language.max_tokens);
    tape_fail(tape, &err);
}

void language_head(struct tape *tape, struct module *head, struct param *weight, struct param *bias,
                   struct tensor *x, const struct batch *batch, int64_t chunk_rows,
                   float loss_scale, double *sums)
{
    if (batch->logits) {
        nn_language_logits(tape, head, weight, bias, x, batch->logits);
        return;
    }
    bool is_host = device_is_host(stream_device(tape_stream(tape)));
    int64_t rows = language_chunk_rows(chunk_rows, weight->shape[0], tape_dtype(tape), is_host);
    nn_language_loss(tape, head, weight, bias, x, batch->target, rows, loss_scale, sums);
}

int language_check_field(const char *family, const char *name, int64_t value, int64_t low,
                         int64_t high, struct error *err)
{
    if (value >= low && value <= high)
        return 0;
    return error_set(err, ERR_CONFIG, "%s model: %s is %lld, not within %lld .. %lld", family, name,
                     (long long)value, (long long)low, (long long)high);
}
