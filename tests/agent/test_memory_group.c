/* Which pods keep each other's snapshots: on another node wherever there is one. */
#include "agent/trainer/memory_group.h"
#include "base/mem.h"
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

enum { PODS = 24 };

/* Nodes as letters, a pod each. */
static int read_nodes(const char *text, int nodes[PODS])
{
    int pods = (int)strlen(text);
    assert_in_range(pods, 1, PODS);
    for (int p = 0; p < pods; p++)
        nodes[p] = text[p];
    return pods;
}

/* The groups as the pods' numbers, "0 1|2 3". */
static void print_groups(const int *groups, int pods, char *out, size_t size)
{
    out[0] = '\0';
    for (int first = 0; first < pods; first++) {
        bool is_first = true;
        for (int p = 0; p < first; p++)
            is_first = is_first && groups[p] != groups[first];
        for (int p = first; p < pods && is_first; p++)
            if (groups[p] == groups[first])
                snprintf(out + strlen(out), size - strlen(out), "%s%d",
                         p > first ? " "
                         : out[0]  ? "|"
                                   : "",
                         p);
    }
}

static void pairs_span_nodes(void **state)
{
    (void)state;
    static const struct {
        const char *nodes, *groups;
        int exposed; /* pods that have nobody elsewhere */
    } rows[] = {
        {"a", "0", 1},
        {"ab", "0 1", 0},
        {"aa", "0 1", 2},
        /* one node: as ever */
        {"aaaaa", "0 1|2 3 4", 5},
        /* plain layouts keep their pairs */
        {"abcd", "0 1|2 3", 0},
        {"abab", "0 1|2 3", 0},
        {"abcdefg", "0 1|2 3|4 5 6", 0},
        {"aab", "0 1 2", 0},
        /* two pairs change a member */
        {"aabb", "0 2|1 3", 0},
        {"aabbccdd", "0 2|1 3|4 6|5 7", 0},
        {"aaaabbbb", "0 4|1 5|2 6|3 7", 0},
        /* pairs that need not change do not, where others can */
        {"aacdbb", "0 4|1 5|2 3", 0},
        {"aacd", "0 2|1 3", 0},
        /* three of the last */
        {"aabbb", "0 2|1 3 4", 0},
        {"bcaaa", "0 2 3|1 4", 0},
        {"aabcaaabbcc", "0 2|1 3|4 8|5 9 10|6 7", 0},
        /* most are on one node: whoever is elsewhere keeps more */
        {"aaab", "0 1 2 3", 0},
        {"aaaaabb", "0 2 3 5|1 4 6", 0},
        {"aaaaaaaab", "0 1 2 3 4 5 6 7 8", 0},
        {"baaaaaacaaaa", "0 1 3 5 9 11|2 4 6 7 8 10", 0},
        /* more than one can keep */
        {"aaaaaaaaaaab", "0 1 2 3 4 5 10 11|6 7|8 9", 4},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        int nodes[PODS], groups[PODS], pods = read_nodes(rows[i].nodes, nodes);
        char text[256];
        memory_groups_assign(nodes, pods, groups);
        print_groups(groups, pods, text, sizeof text);
        int exposed = memory_groups_count_exposed(nodes, groups, pods);
        if (strcmp(text, rows[i].groups) != 0 || exposed != rows[i].exposed)
            fail_msg("%s: %s, %d exposed; not %s, %d", rows[i].nodes, text, exposed, rows[i].groups,
                     rows[i].exposed);
    }
}

/* As few others as any assignment can do with, of pods of which `most` share a node. */
static int least_kept(int pods, int most)
{
    int elsewhere = pods - most;
    if (elsewhere == 0)
        return pods % 2 ? 2 : 1;
    if (most > elsewhere)
        return (most + elsewhere - 1) / elsewhere;
    return pods % 2 ? 2 : 1;
}

/* All ways to put up to nine pods on up to three nodes. */
static void nobody_keeps_more_than_needed(void **state)
{
    (void)state;
    enum { MOST_PODS = 9, NODES = 3 };
    for (int pods = 2, ways = NODES * NODES; pods <= MOST_PODS; pods++, ways *= NODES)
        for (int way = 0; way < ways; way++) {
            int nodes[PODS], groups[PODS], on[NODES] = {0}, most = 0;
            for (int p = 0, left = way; p < pods; p++, left /= NODES) {
                nodes[p] = left % NODES;
                on[nodes[p]]++;
                most = on[nodes[p]] > most ? on[nodes[p]] : most;
            }
            memory_groups_assign(nodes, pods, groups);
            assert_int_equal(memory_groups_count_exposed(nodes, groups, pods),
                             most == pods ? pods : 0);
            for (int p = 0; p < pods; p++) {
                const struct memory_group g = memory_group_of(p, 1, nodes, groups, pods);
                const int kept = memory_group_neighbours(&g, pods).count;
                if (kept < 1 || kept > least_kept(pods, most))
                    fail_msg("%d pods, way %d: pod %d keeps %d others'", pods, way, p, kept);
            }
        }
}

/* Whoever is in a group says the same of all in it, and keeps the snapshots of those elsewhere. */
static void groups_are_the_same_for_all(void **state)
{
    (void)state;
    static const char *const layouts[] = {"a", "ab", "aaa", "abc", "aabb", "aab", "aaabb", "aaaab"};
    for (size_t i = 0; i < array_length(layouts); i++)
        for (int local = 1; local <= 3; local++) {
            int nodes[PODS], groups[PODS], pods = read_nodes(layouts[i], nodes);
            bool has_one_node = strspn(layouts[i], "a") == (size_t)pods;
            memory_groups_assign(nodes, pods, groups);
            for (int rank = 0; rank < pods * local; rank++) {
                struct memory_group g = memory_group_of(rank, local, nodes, groups, pods);
                assert_int_equal(g.ranks[g.me], rank);
                for (int m = 0; m < g.count; m++) {
                    struct memory_group its =
                        memory_group_of(g.ranks[m], local, nodes, groups, pods);
                    assert_int_equal(g.ranks[m] % local, rank % local);
                    assert_true(m == 0 || g.ranks[m] > g.ranks[m - 1]);
                    assert_int_equal(its.me, m);
                    its.me = g.me;
                    assert_memory_equal(&its, &g, sizeof g);
                    assert_int_equal(memory_group_keeps(&g, g.me, m),
                                     m == g.me || has_one_node ||
                                         nodes[rank / local] != nodes[g.ranks[m] / local]);
                }
            }
        }
}

/* What memory was laid out for is told by those whose memory is still there. */
static void the_groups_of_before_are_found_again(void **state)
{
    (void)state;
    static const struct {
        const char *nodes;
        bool is_new[PODS];
        const char *groups; /* of each rank's; "": those of before */
    } rows[] = {
        {"aabb", {0}, ""},
        {"aabb", {0, 0, 1, 1}, ""},
        {"aabb", {1, 0, 1, 0}, "0|1 3|2"}, /* of both of a pair nobody knows */
        {"abc", {1, 1, 0}, ""},
        {"aaaab", {1, 1, 1, 1, 0}, ""},
        {"aaaab", {0, 0, 0, 1, 1}, "0 1 2 4|3"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct memory_neighbours before[PODS] = {0};
        int nodes[PODS], groups[PODS], found[PODS], pods = read_nodes(rows[i].nodes, nodes);
        char text[256], expected[256];
        memory_groups_assign(nodes, pods, groups);
        for (int r = 0; r < pods; r++) {
            const struct memory_group g = memory_group_of(r, 1, nodes, groups, pods);
            if (!rows[i].is_new[r])
                before[r] = memory_group_neighbours(&g, pods);
        }
        for (int r = 0; r < pods; r++) {
            const struct memory_group was = memory_group_of(r, 1, nodes, groups, pods);
            const struct memory_group g = memory_group_before(r, before, pods);
            assert_int_equal(g.ranks[g.me], r);
            found[r] = g.ranks[0];
            const struct memory_neighbours its = memory_group_neighbours(&g, pods);
            const struct memory_neighbours were = memory_group_neighbours(&was, pods);
            if (!rows[i].is_new[r])
                assert_memory_equal(&its, &were, sizeof its);
        }
        print_groups(found, pods, text, sizeof text);
        print_groups(groups, pods, expected, sizeof expected);
        assert_string_equal(text, rows[i].groups[0] ? rows[i].groups : expected);
    }
}

/* What cannot be is not believed. */
static void damage_leaves_each_alone(void **state)
{
    (void)state;
    enum { SIZE = 12 };
    static const struct {
        const char *name;
        struct memory_neighbours first;
    } rows[] = {
        {"another number of ranks", {SIZE + 1, 0, 1, {1}}},
        {"another rank's", {SIZE, 1, 1, {2}}},
        {"too many", {SIZE, 0, MEMORY_NEIGHBOURS_MOST + 1, {1}}},
        {"less than none", {SIZE, 0, -1, {1}}},
        {"no rank", {SIZE, 0, 2, {1, SIZE}}},
        {"below all ranks", {SIZE, 0, 1, {-1}}},
        {"itself", {SIZE, 0, 1, {0}}},
    };
    struct memory_neighbours before[SIZE] = {0};
    for (size_t i = 0; i < array_length(rows); i++) {
        before[0] = rows[i].first;
        for (int r = 0; r < SIZE; r++)
            if (memory_group_before(r, before, SIZE).count != 1)
                fail_msg("%s: rank %d is not alone", rows[i].name, r);
    }
    for (int r = 0; r + 1 < SIZE; r++) /* a chain of more than a group has */
        before[r] = (struct memory_neighbours){SIZE, r, 1, {r + 1}};
    for (int r = 0; r < SIZE; r++)
        assert_int_equal(memory_group_before(r, before, SIZE).count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_span_nodes),
        cmocka_unit_test(nobody_keeps_more_than_needed),
        cmocka_unit_test(groups_are_the_same_for_all),
        cmocka_unit_test(the_groups_of_before_are_found_again),
        cmocka_unit_test(damage_leaves_each_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
