/* Asks what an agent serves at a port of this machine. */
#ifndef SHOAL_TESTS_AGENT_SERVED_H
#define SHOAL_TESTS_AGENT_SERVED_H

#include "base/str.h"

struct json;

/* A connection that has sent the request. */
int served_dial(int port, const char *request);
/* The whole answer to a GET of HTTP/1.0. */
void served_exchange(int port, const char *path, struct str *all);
/* The body of a page whose status is 200. The caller frees. */
char *served_get(int port, const char *path);
/* A WebSocket there, behind the answer's head. */
int served_listen(int port, const char *path);
/* The next text frame of RFC 6455, whole and not masked, as JSON. */
struct json *served_frame(int fd);
#endif
