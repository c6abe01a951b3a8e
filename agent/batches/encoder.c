#include "agent/batches/encoder.h"

static int encode(void *ctx, const char *text, size_t bytes, struct tokens *ids, struct error *err)
{
    return tokenizer_encode(ctx, text, bytes, false, ids, err);
}

int token_encoder_init(struct tokenizer *tokenizer, struct token_encoder *ret_encoder,
                       struct error *err)
{
    struct tokenizer_special special = tokenizer_special(tokenizer);
    auto_tokens struct tokens around = {0};
    if (tokenizer_encode(tokenizer, "", 0, true, &around, err))
        return -1;
    /* Where both are one id, as GPT-2's, a single one stands in front. */
    bool bos = around.count > 0 && around.ids[0] == special.bos;
    *ret_encoder = (struct token_encoder){
        .ctx = tokenizer,
        .encode = encode,
        .bos = special.bos,
        .eos = special.eos,
        .pad = special.pad,
        .unk = special.unk,
        .mask = special.mask,
        .vocabulary = tokenizer_vocabulary(tokenizer),
        .adds_bos = bos,
        .adds_eos = around.count > (bos ? 1 : 0) && around.ids[around.count - 1] == special.eos,
    };
    return 0;
}
