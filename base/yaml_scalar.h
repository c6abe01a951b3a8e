/* What a YAML scalar is: text, number, boolean or null. The rules are those of the YAML 1.1 reader
 * inside Kubernetes' tools (sigs.k8s.io/yaml). */
#ifndef SHOAL_BASE_YAML_SCALAR_H
#define SHOAL_BASE_YAML_SCALAR_H

#include <stdbool.h>
#include <stddef.h>

struct json;

/* The value of a scalar of `length` bytes (terminated). `plain`: written without quotes and tag, so
 * that its form decides; otherwise it is text, or what `tag` (NULL: none) says. The caller owns the
 * result; NULL if it holds a NUL byte, is not UTF-8 or does not fit its tag. */
struct json *yaml_scalar(const char *text, size_t length, bool plain, const char *tag);

/* The same for the key of a mapping: JSON has text keys only, so 8080 is "8080" and yes is "true",
 * as kubectl reads them. The caller frees; NULL if it cannot be a key (null, a fraction, a NUL
 * byte). */
char *yaml_scalar_key(const char *text, size_t length, bool plain);
#endif
