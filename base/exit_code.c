#include "base/exit_code.h"

#include "base/contract.h"

#include <stdio.h>

int exit_code_of(enum error_code code)
{
    switch (code) {
    case ERR_NONE:
        return EXIT_DONE;
    case ERR_CONFIG:
    case ERR_INPUT:
    case ERR_NOT_FOUND:
    case ERR_UNSUPPORTED:
    case ERR_SHAPE:
    case ERR_EXISTS:
    case ERR_FORBIDDEN:
    case ERR_LIMIT:
        return EXIT_CONFIG;
    case ERR_PEER:
    case ERR_DEVICE:
    case ERR_TIMEOUT:
        return EXIT_RETRYABLE;
    case ERR_HARDWARE:
        return EXIT_HARDWARE;
    case ERR_CANCELLED:
        return EXIT_TERMINATED;
    default:
        return EXIT_FAILED;
    }
}

int exit_failed(const char *program, const struct error *err)
{
    fprintf(stderr, "%s: %s\n", program, err->msg);
    return exit_code_of(err->code);
}
