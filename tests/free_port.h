/* Where a test's server may listen. */
#ifndef SHOAL_TESTS_FREE_PORT_H
#define SHOAL_TESTS_FREE_PORT_H

/* A port of 127.0.0.1 nobody listens on, another one each time. Below the range that the kernel
 * gives to connections and to who takes any: one of those would have it between this
 * and its use. */
int free_port(void);
#endif
