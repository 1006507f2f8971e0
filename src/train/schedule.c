/* Schedules: what share of the rate is left after a share of the steps. */
#include "train/schedule.h"

#include <math.h>
#include <string.h>

static double cosine(double done)
{
    return .5 * (1 + cos(3.14159265358979323846 * done));
}

static double step(double done)
{
    return done < .5 ? 1 : done < .75 ? .1 : .01;
}

static double constant(double done)
{
    (void)done;
    return 1;
}

static const struct {
    const char *name;
    double (*share)(double done);
} schedules[] = {{"cosine", cosine}, {"step", step}, {"constant", constant}};

const char *qn_schedule_name(size_t i)
{
    return i < QN_COUNT_OF(schedules) ? schedules[i].name : NULL;
}

double qn_rate_at(const qn_rate_schedule *s, int64_t at)
{
    if (at < s->warm_up)
        return s->rate * (double)(at + 1) / (double)s->warm_up;
    const double rest = (double)QN_MAX(s->steps - s->warm_up, 1);
    for (size_t i = 0; i < QN_COUNT_OF(schedules); i++) {
        if (strcmp(schedules[i].name, s->name) == 0)
            return s->rate * schedules[i].share((double)(at - s->warm_up) / rest);
    }
    return s->rate;
}
