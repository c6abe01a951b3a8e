/* Prometheus' text format 0.0.4: the lines that a page of metrics is made of. Knows no metrics. */
#ifndef SHOAL_BASE_EXPOSITION_H
#define SHOAL_BASE_EXPOSITION_H

#include "base/str.h"

#define EXPOSITION_CONTENT_TYPE "text/plain; version=0.0.4"

/* The two comment lines before a metric's samples. help: one line. type: "gauge", "counter" or
 * "histogram". */
void exposition_head(const char *name, const char *help, const char *type, struct str *out);

/* name="value", escaped; a comma before it if the text so far does not end in '{'. */
void exposition_label(const char *name, const char *value, struct str *out);

/* A sample's value and the end of its line: " 2.5\n"; NaN and infinities are legal. */
void exposition_value(double value, struct str *out);
#endif
