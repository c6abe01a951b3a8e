#include "agent/encoder.h"

static int encode(void *ctx, const char *text, size_t bytes, struct tokens *ids, struct error *err)
{
    return tokenizer_encode(ctx, text, bytes, false, ids, err);
}

int encoder_of(struct tokenizer *tokenizer, struct token_encoder *ret_encoder, struct error *err)
{
    struct tokenizer_special special = tokenizer_special(tokenizer);
    auto_tokens struct tokens around = {0};
    if (tokenizer_encode(tokenizer, "", 0, true, &around, err))
        return -1;
    *ret_encoder = (struct token_encoder){
        .ctx = tokenizer, .encode = encode, .bos = special.bos, .eos = special.eos};
    for (size_t i = 0; i < around.count; i++) {
        ret_encoder->adds_bos |= around.ids[i] == special.bos;
        ret_encoder->adds_eos |= around.ids[i] == special.eos;
    }
    return 0;
}
