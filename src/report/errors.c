/* Measures of error between two lists of numbers. */
#include "report/errors.h"

#include <math.h>

static void add_pair(qn_errors *e, double left, double right, int64_t place)
{
    const double d = right - left;
    const bool first = e->count++ == 0;
    const double both[2] = {left, right};
    for (int i = 0; i < 2; i++) {
        e->least[i] = first ? both[i] : fmin(e->least[i], both[i]);
        e->most[i] = first ? both[i] : fmax(e->most[i], both[i]);
    }
    e->greater += d > 0;
    e->less += d < 0;
    e->difference += fabs(d);
    e->size += fabs(left);
    e->noise += d * d;
    e->left2 += left * left;
    e->right2 += right * right;
    e->product += left * right;
    e->largest_left = fmax(e->largest_left, fabs(left));
    if (first || fabs(d) > e->largest) {
        e->largest = fabs(d);
        e->worst = place;
        e->worst_left = left;
        e->worst_right = right;
    }
}

void qn_errors_add(qn_errors *e, const double *left, const double *right, int64_t count)
{
    const int64_t before = e->count + e->bad;
    for (int64_t i = 0; i < count; i++) {
        if (isfinite(left[i]) && isfinite(right[i]))
            add_pair(e, left[i], right[i], before + i);
        else
            e->bad++;
    }
}

static double quotient(double part, double whole)
{
    return part > 0 ? part / whole : 0;
}

double qn_errors_mre(const qn_errors *e)
{
    return quotient(e->difference, e->size);
}

double qn_errors_cos(const qn_errors *e)
{
    if (e->noise == 0)
        return 1;
    const double lengths = sqrt(e->left2) * sqrt(e->right2);
    return 0.5 + (lengths > 0 ? 0.5 * fmin(fmax(e->product / lengths, -1), 1) : 0);
}

double qn_errors_rmse(const qn_errors *e)
{
    return sqrt(quotient(e->noise, e->left2));
}

double qn_errors_maxdiff(const qn_errors *e)
{
    return quotient(e->largest, e->largest_left);
}

double qn_errors_above(const qn_errors *e)
{
    return quotient((double)e->greater, (double)e->count);
}

double qn_errors_below(const qn_errors *e)
{
    return quotient((double)e->less, (double)e->count);
}
