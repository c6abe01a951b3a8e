#include "tests/operator/decode/manifest_text.h"

#include <string.h>

struct manifest *decode_text(const char *text, int *ret_result, struct error *err)
{
    struct manifest *manifest = NULL;
    *ret_result = decode_manifest(text, strlen(text), "t.yaml", 6, &manifest, err);
    return manifest;
}
