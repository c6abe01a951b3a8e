/* The seed that a user names for a simulation: $SIMULATION_SEED, as a failing run prints it. For
 * main, before any test runs. */
#ifndef SHOAL_TESTS_OPERATOR_SEED_H
#define SHOAL_TESTS_OPERATOR_SEED_H

#include <stdint.h>

/* 0: none is named, or it is empty. What is no whole number from 1 on ends the program with exit
 * code 2 and says so. */
int64_t seed_asked(void);
#endif
