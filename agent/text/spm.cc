/* The only C++ here: the library has no other interface. An exception would mean that memory is
 * out; it finds no handler and ends the program, as that does everywhere. */
#include "agent/text/spm.h"

#include <sentencepiece_processor.h>

#include <string>
#include <string_view>
#include <vector>

struct spm {
    sentencepiece::SentencePieceProcessor processor;
};

static int fail(const sentencepiece::util::Status &status, const char *what, struct error *err)
{
    return error_set(err, ERR_INPUT, "%s: %s", what, status.ToString().c_str());
}

int spm_open(const void *content, size_t bytes, struct spm **ret_model, struct error *err)
{
    auto *model = new struct spm;
    const auto status = model->processor.LoadFromSerializedProto(
        std::string_view(static_cast<const char *>(content), bytes));
    if (!status.ok()) {
        delete model;
        return error_set(err, ERR_INPUT, /* the library tells its own source's lines */
                         "not a SentencePiece model: another file, or a part of one");
    }
    *ret_model = model;
    return 0;
}

void spm_close(struct spm *model)
{
    delete model;
}

int32_t spm_size(const struct spm *model)
{
    return model->processor.GetPieceSize();
}

const char *spm_piece(const struct spm *model, int32_t id, size_t *ret_bytes)
{
    const std::string &piece = model->processor.IdToPiece(id);
    *ret_bytes = piece.size();
    return piece.c_str();
}

struct spm_special spm_get_special(const struct spm *model)
{
    const auto &p = model->processor;
    return {p.bos_id(), p.eos_id(), p.pad_id(), p.unk_id()};
}

int spm_encode(const struct spm *model, const char *text, size_t bytes, struct tokens *out,
               struct error *err)
{
    std::vector<int> ids;
    const auto status = model->processor.Encode(std::string_view(text, bytes), &ids);
    if (!status.ok())
        return fail(status, "encode", err);
    tokens_add_many(out, ids.data(), ids.size());
    return 0;
}

int spm_decode(const struct spm *model, const int32_t *ids, size_t count, struct str *out,
               struct error *err)
{
    std::string text;
    const auto status = model->processor.Decode(std::vector<int>(ids, ids + count), &text);
    if (!status.ok())
        return fail(status, "decode", err);
    str_add_bytes(out, text.data(), text.size());
    return 0;
}
