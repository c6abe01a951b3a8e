/* An asker on real sockets that follows one job, whose pod is a fake server here. */
#ifndef SHOAL_TESTS_OPERATOR_PROGRESS_ASKER_FIXTURE_H
#define SHOAL_TESTS_OPERATOR_PROGRESS_ASKER_FIXTURE_H

#include "operator/progress/asker.h"
#include "tests/fake_server.h"

enum { ASKER_EVERY_MS = 15000 };

#define NUMBERS(step)                                                                              \
    "{\"worldSize\":2,\"lastProgressTime\":\"2026-01-01T00:00:00Z\",\"step\":" step "}"
#define HTTP(status, body)                                                                         \
    {                                                                                              \
        .bytes = "HTTP/1.1 " status "\r\nConnection: close\r\n\r\n" body, .then = FAKE_CLOSE       \
    }

extern int64_t asker_now_ms; /* on both clocks, which stand still but for asker_pass() */
extern const struct clocks asker_clocks;
extern const struct http_options asker_http;

struct asker_fixture {
    struct http *http;
    struct fake_server *server;
    struct asker *asker;
    int news, details;
    struct job job;
    struct job_status status;
    struct pod pod;
    struct snapshot snapshot;
};

/* Job "ns/j", whose pod gives these answers; without any, nobody listens there. */
void asker_open_patient(struct asker_fixture *f, const struct fake_answer *answers, size_t count,
                        int timeout_ms);
/* However slow the machine: whoever answers is heard. */
void asker_open_fixture(struct asker_fixture *f, const struct fake_answer *answers, size_t count);
void asker_close_fixture(struct asker_fixture *f);

/* How many the server got. */
int asker_requests(const struct asker_fixture *f);

/* So much time passes, in steps; what is asked then is answered. */
void asker_pass(struct asker_fixture *f, int64_t ms);
#endif
