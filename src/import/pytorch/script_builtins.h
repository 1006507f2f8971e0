/* Functions of Python that the code of TorchScript calls: a row of the table in script_builtins.c
 * each. */
#ifndef QN_SCRIPT_BUILTINS_H
#define QN_SCRIPT_BUILTINS_H

#include "import/pytorch/script_run.h"

/* Leaves *done false where the arguments are not of its kind: then the name is an operator's. */
typedef qn_status qn_script_builtin_fn(qn_torch_value *out, bool *done, qn_script_run *run,
                                       qn_torch_value *const *a, size_t n);

qn_script_builtin_fn qn_script_add;
qn_script_builtin_fn qn_script_all;
qn_script_builtin_fn qn_script_any;
qn_script_builtin_fn qn_script_sum;
qn_script_builtin_fn qn_script_append;
qn_script_builtin_fn qn_script_contains;
qn_script_builtin_fn qn_script_derive;
qn_script_builtin_fn qn_script_dict;
qn_script_builtin_fn qn_script_getitem;
qn_script_builtin_fn qn_script_keys;
qn_script_builtin_fn qn_script_len;
qn_script_builtin_fn qn_script_list;
qn_script_builtin_fn qn_script_mul;
qn_script_builtin_fn qn_script_range;
qn_script_builtin_fn qn_script_range_length;
qn_script_builtin_fn qn_script_setitem;
qn_script_builtin_fn qn_script_slice;
qn_script_builtin_fn qn_script_values;

#endif
