#include "base/nearest.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
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
    return i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
}

static void fold(char *out, const char *name, int length)
{
    for (int i = 0; i < length; i++)
        out[i] = (char)folded(name[i]);
}

/* Damerau's and Levenshtein's distance (optimal string alignment), three rows of the table. A flag
 * is compared with every name there is, and nearly all are far from it. */
int nearest_distance(const char *name_a, const char *name_b, int most)
{
    enum { MAX = 64 };
    int rows[3][MAX + 1], far = least(most, NEAREST_MOST) + 1;
    int count = (int)strnlen(name_a, 2 * MAX), columns = (int)strnlen(name_b, MAX);
    if (abs(count - columns) >= far)
        return far;
    char a[MAX + NEAREST_MOST], b[MAX];
    fold(a, name_a, count);
    fold(b, name_b, columns);
    for (int j = 0; j <= columns; j++)
        rows[0][j] = j;
    for (int i = 1; i <= count; i++) {
        const int *before = rows[(i + 1) % 3], *above = rows[(i + 2) % 3];
        int *row = rows[i % 3], least_here = i;
        row[0] = i;
        for (int j = 1; j <= columns; j++) {
            row[j] = least(above[j], row[j - 1]) + 1;
            row[j] = least(row[j], above[j - 1] + (a[i - 1] != b[j - 1]));
            if (is_swapped(a, i, b, j))
                row[j] = least(row[j], before[j - 2] + 1);
            least_here = least(least_here, row[j]);
        }
        if (least_here >= far) /* no row below has less: a swap, too, costs what a change does */
            return far;
    }
    return least(rows[count % 3][columns], far);
}

int nearest_limit(const char *name)
{
    size_t third = strlen(name) / 3;
    return third < 3 ? (int)third : 3;
}

static char next_without_digits(const char **text)
{
    while (isdigit((unsigned char)**text))
        ++*text;
    return **text ? *(*text)++ : '\0';
}

static bool differs_in_digits(const char *a, const char *b)
{
    char x, y;
    do {
        x = next_without_digits(&a);
        y = next_without_digits(&b);
    } while (x && folded(x) == folded(y));
    return x == y;
}

bool nearest_is_slip(const char *name, const char *known)
{
    int distance = nearest_distance(name, known, 1);
    if (distance > 0 && differs_in_digits(name, known))
        return false;
    return distance == 0 || (distance == 1 && strlen(name) >= 5);
}

struct nearest_word nearest_word(const char *name, const char *words, const char *separators)
{
    struct nearest_word best = {.text = ""};
    int least = (int)(strlen(name) / 4) + 1;
    if (least > nearest_limit(name) + 1)
        least = nearest_limit(name) + 1;
    while (*(words += strspn(words, separators))) {
        struct nearest_word one = {.text = ""};
        size_t length = strcspn(words, separators);
        if (length < sizeof one.text) {
            memcpy(one.text, words, length);
            int distance = nearest_distance(name, one.text, least - 1);
            if (distance < least) {
                least = distance;
                best = one;
            }
        }
        words += length;
    }
    best.is_slip = best.text[0] && nearest_is_slip(name, best.text);
    return best;
}

struct nearest_note nearest_note(const char *name, const char *words, const char *separators)
{
    struct nearest_note note = {.text = ""};
    struct nearest_word word = nearest_word(name, words, separators);
    if (word.text[0])
        snprintf(note.text, sizeof note.text, " (the nearest is %s)", word.text);
    return note;
}
