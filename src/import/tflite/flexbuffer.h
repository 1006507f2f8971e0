/* Flexbuffers, which hold the options of operators that are not built in: a map of numbers. */
#ifndef QN_FLEXBUFFER_H
#define QN_FLEXBUFFER_H

#include "base/base.h"

/* The number under that key of the map that the bytes are, or `otherwise` where it is absent. */
double qn_flex_number(qn_string bytes, const char *key, double otherwise);

#endif
