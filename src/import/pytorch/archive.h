/* Archives that PyTorch writes: zip files whose entries all lie in one folder, which has any name;
 * and the form that torch.save had before, a row of pickles with the numbers behind them. */
#ifndef QN_TORCH_ARCHIVE_H
#define QN_TORCH_ARCHIVE_H

#include "base/zip.h"
#include "import/pytorch/pickle.h"

typedef struct qn_torch_archive {
    qn_context *ctx;
    /* It is the model's: what is read for the model lies in it. */
    qn_model *model;
    qn_zip zip;
    /* Names without the folder -> qn_zip_entry */
    qn_names entries;
    /* Unpacked entries, freed with the archive */
    void **blocks;
    size_t n_blocks, blocks_capacity;
    /* Keys -> qn_torch_storage */
    qn_names storages;
} qn_torch_archive;

/* Closed in any case. The data live as long as the model. PyTorch packs nothing, so that what
 * unpacks to much more than the file, or than `budget` bytes, is a bomb. */
QN_MUST_CHECK qn_status qn_torch_archive_open(qn_torch_archive *out, qn_model *model,
                                              qn_string data, uint64_t budget);
void qn_torch_archive_init(qn_torch_archive *out, qn_model *model);
void qn_torch_archive_close(qn_torch_archive *archive);
bool qn_torch_archive_has(const qn_torch_archive *archive, const char *name);
/* The contents of an entry, which must be there, as long as the archive is open. */
QN_MUST_CHECK qn_status qn_torch_archive_read(qn_string *out, qn_torch_archive *archive,
                                              const char *name);
/* The pickle of that name; storages have keys that begin with `folder`. */
QN_MUST_CHECK qn_status qn_torch_archive_pickle(qn_torch_value *out, qn_torch_archive *archive,
                                                const char *name, const char *folder);
/* The bytes of a storage as long as the model lives. */
QN_MUST_CHECK qn_status qn_torch_archive_storage(qn_string *out, qn_torch_archive *archive,
                                                 qn_torch_storage *storage);
/* Opens what torch.save wrote, an archive with data.pkl or the form before it, and reads it. */
QN_MUST_CHECK qn_status qn_torch_archive_saved(qn_torch_value *out, qn_torch_archive *archive,
                                               qn_model *model, qn_string data, const char *name,
                                               uint64_t budget);

#endif
