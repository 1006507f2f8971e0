/* HDF5 files in a build without libhdf5: none can be opened. */
#include "base/hdf5.h"

qn_status qn_hdf5_open(qn_hdf5 **out, qn_context *ctx, const char *path, const qn_map *map)
{
    (void)path;
    (void)map;
    *out = NULL;
    return qn_fail(ctx, QN_E_UNSUPPORTED,
                   "this build of quench reads no HDF5 files: it was made without libhdf5");
}

qn_status qn_hdf5_open_memory(qn_hdf5 **out, qn_context *ctx, const qn_map *map)
{
    return qn_hdf5_open(out, ctx, NULL, map);
}

void qn_hdf5_close(qn_hdf5 *file)
{
    (void)file;
}

qn_hdf5_kind qn_hdf5_kind_of(const qn_hdf5 *file, const char *path)
{
    (void)file;
    (void)path;
    return QN_HDF5_NOTHING;
}

qn_status qn_hdf5_members(qn_hdf5_texts *out, qn_hdf5 *file, qn_arena *arena, const char *group)
{
    (void)file;
    (void)arena;
    (void)group;
    *out = (qn_hdf5_texts){NULL, 0};
    return QN_OK;
}

qn_status qn_hdf5_read(qn_hdf5_array *out, qn_hdf5 *file, qn_arena *arena, const char *path)
{
    (void)file;
    (void)arena;
    (void)path;
    *out = (qn_hdf5_array){.data = NULL};
    return QN_OK;
}

qn_status qn_hdf5_attribute(qn_hdf5_texts *out, qn_hdf5 *file, qn_arena *arena, const char *object,
                            const char *name)
{
    (void)file;
    (void)arena;
    (void)object;
    (void)name;
    *out = (qn_hdf5_texts){NULL, 0};
    return QN_OK;
}
