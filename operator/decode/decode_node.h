/* Reads a Node: what node.h looks at, and no more. */
#ifndef SHOAL_OPERATOR_DECODE_DECODE_NODE_H
#define SHOAL_OPERATOR_DECODE_DECODE_NODE_H

#include "operator/job/node.h"

struct arena;
struct json;
struct lines;

/* Into the arena. Adds what is malformed to `problems`; a node without a name has the name "". */
struct node decode_node(const struct json *object, struct arena *arena, struct lines *problems);
#endif
