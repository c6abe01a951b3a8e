/* A SentencePiece model: whatever the bytes, there is a message, or a model that encodes to its ids
 * and decodes them. */
#include "tests/fuzz/fuzz.h"

#include "agent/text/bpe.h"
#include "agent/text/spm.h"
#include "agent/text/unigram.h"
#include "agent/text/utf8.h"

#include <assert.h>

enum { MAX_TEXT_BYTES = 1 << 24 };

static void use(const struct spm *model, const char *text, size_t bytes)
{
    auto_tokens struct tokens ids = {0};
    auto_str struct str normalized, back;
    struct error err = {0};
    str_init(&normalized, MAX_TEXT_BYTES);
    str_init(&back, MAX_TEXT_BYTES);
    struct spm_workspace work = {unigram_workspace_open(), bpe_workspace_open(), &normalized};
    if (spm_encode(model, &work, text, bytes, &ids, &err) < 0)
        assert(err.code == ERR_LIMIT && err.msg[0]);
    for (size_t i = 0; i < ids.count; i++)
        assert(ids.ids[i] >= 0 && ids.ids[i] < spm_size(model));
    spm_decode(model, ids.ids, ids.count, &back);
    unigram_workspace_close(work.unigram);
    bpe_workspace_close(work.bpe);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char sample[] =
        "It's  1234 caf\xc3\xa9 \xe2\x96\x81<s> \xf0\x9f\x99\x82\r\n 00000 ";
    struct spm *model = NULL;
    struct error err = {0};
    if (spm_open(data, size, &model, &err) < 0) {
        assert(!model && err.msg[0]);
        assert(err.code == ERR_INPUT || err.code == ERR_UNSUPPORTED || err.code == ERR_LIMIT);
        return 0;
    }
    use(model, sample, sizeof sample - 1);
    int32_t most = spm_size(model) < 64 ? spm_size(model) : 64;
    for (int32_t id = 0; id < most; id++) {
        size_t bytes;
        const char *piece = spm_piece(model, id, &bytes);
        if (piece)
            assert(utf8_well_formed(piece, bytes) == bytes);
        if (piece)
            use(model, piece, bytes);
    }
    struct spm_special special = spm_get_special(model);
    assert(special.unk >= 0 && special.bos < spm_size(model) && special.eos < spm_size(model));
    spm_close(model);
    return 0;
}
