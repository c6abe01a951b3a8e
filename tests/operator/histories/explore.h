/* Tries everything that may happen in a small world, in every order, from its beginning on: each
 * state once. Where a check fails the whole history up to there is told. */
#ifndef SHOAL_TESTS_OPERATOR_HISTORIES_EXPLORE_H
#define SHOAL_TESTS_OPERATOR_HISTORIES_EXPLORE_H

#include "tests/operator/histories/world.h"

struct explored {
    size_t states, edges, rests; /* rests: states in which only people and kubelets go on */
    int depth, longest_calm;     /* most steps from the beginning; until a rest */
};

struct explored explore(const struct world_setting *setting);
#endif
