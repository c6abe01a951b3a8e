#include "base/nearest.h"

#include <ctype.h>
#include <string.h>

static int folded(char c)
{
    return c == '-' ? '_' : tolower((unsigned char)c);
}

/* Levenshtein's distance, one row of the table at a time. */
int nearest_distance(const char *a, const char *b)
{
    enum { MAX = 64 };
    int row[MAX + 1];
    int columns = (int)strnlen(b, MAX);
    for (int j = 0; j <= columns; j++)
        row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= columns; j++) {
            int change = diagonal + (folded(a[i - 1]) != folded(b[j - 1]));
            diagonal = row[j];
            int best = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            row[j] = change < best ? change : best;
        }
    }
    return row[columns];
}

int nearest_limit(const char *name)
{
    size_t third = strlen(name) / 3;
    return third < 3 ? (int)third : 3;
}
