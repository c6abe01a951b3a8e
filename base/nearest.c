#include "base/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static int folded(char c)
{
    return c == '-' ? '_' : tolower((unsigned char)c);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Whether the last two letters up to here are those of the other, swapped. */
static bool is_swapped(const char *a, int i, const char *b, int j)
{
    return i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) &&
           folded(a[i - 2]) == folded(b[j - 1]);
}

/* Damerau's and Levenshtein's distance (optimal string alignment), three rows of the table. */
int nearest_distance(const char *a, const char *b)
{
    enum { MAX = 64 };
    int rows[3][MAX + 1];
    int columns = (int)strnlen(b, MAX), i = 0;
    for (int j = 0; j <= columns; j++)
        rows[0][j] = j;
    while (a[i++]) {
        const int *before = rows[(i + 1) % 3], *above = rows[(i + 2) % 3];
        int *row = rows[i % 3];
        row[0] = i;
        for (int j = 1; j <= columns; j++) {
            row[j] = least(above[j], row[j - 1]) + 1;
            row[j] = least(row[j], above[j - 1] + (folded(a[i - 1]) != folded(b[j - 1])));
            if (is_swapped(a, i, b, j))
                row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    return rows[(i - 1) % 3][columns];
}

int nearest_limit(const char *name)
{
    size_t third = strlen(name) / 3;
    return third < 3 ? (int)third : 3;
}
