#include "cli/curve.h"

#include <math.h>

enum { HEIGHTS = 8 };

static const char *const blocks[HEIGHTS] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const ascii[HEIGHTS] = {"_", ".", ",", "-", "=", "+", "*", "#"};

/* The mean loss of points[from..to); NaN: none is known. */
static double mean(const struct series *series, int from, int to)
{
    double sum = 0;
    int count = 0;
    for (int i = from; i < to; i++)
        if (isfinite(series->points[i].loss)) {
            sum += (double)series->points[i].loss;
            count++;
        }
    return count ? sum / count : (double)NAN;
}

void curve_draw(const struct series *series, int width, bool unicode, struct str *out)
{
    double least = INFINITY, most = -INFINITY, values[CURVE_COLUMNS_MAX];
    int columns = width < CURVE_COLUMNS_MAX ? width : CURVE_COLUMNS_MAX, known = 0;
    columns = columns < series->count ? columns : series->count;
    for (int i = 0; i < columns; i++) {
        values[i] = mean(series, i * series->count / columns, (i + 1) * series->count / columns);
        known += !isnan(values[i]);
        least = fmin(least, values[i]); /* of a number and NaN it is the number */
        most = fmax(most, values[i]);
    }
    for (int i = 0; i < columns && known > 1; i++) {
        double part = most > least ? (values[i] - least) / (most - least) : 0;
        int height = isnan(part) ? 0 : (int)lround(part * (HEIGHTS - 1));
        str_add(out, isnan(values[i]) ? " " : unicode ? blocks[height] : ascii[height]);
    }
}
