/* An infer function in C: feeds the rows of a .npy file, and says how sure the model is of its
 * answers.
 *
 *     cc -shared -fPIC infer_rows.c -o infer_rows.so -lquench
 *     quench quant -m model.onnx -d rows.npy -uds ./infer_rows.so -if infer_rows -i 10 -bs 4 */
#include <math.h>
#include <stdio.h>

#include <quench.h>

/* The largest score of every row, summed; rows of `classes` floats. */
static double best_scores(const qn_tensor *output)
{
    const int64_t rows = output->dims[0], classes = qn_tensor_count(output) / rows;
    const float *scores = output->data;
    double sum = 0;
    for (int64_t r = 0; r < rows; r++) {
        float best = scores[r * classes];
        for (int64_t c = 1; c < classes; c++)
            best = fmaxf(best, scores[r * classes + c]);
        sum += (double)best;
    }
    return sum;
}

static qn_status feed(qn_executor *executor, const qn_tensor *data, double *metric)
{
    const qn_executor_facts *facts = qn_executor_get(executor);
    const int64_t row = qn_tensor_count(data) / data->dims[0] * (int64_t)qn_dtype_size(data->dtype);
    double sum = 0;
    int64_t seen = 0;
    for (int64_t i = 0; i < facts->iteration && !qn_executor_early_stop(executor); i++) {
        qn_tensor batch = *data;
        batch.dims[0] = facts->batch_size;
        batch.data = (char *)data->data + i * facts->batch_size * row;
        if ((i + 1) * facts->batch_size > data->dims[0])
            break;
        const qn_status status = qn_executor_forward(executor, &batch, 1);
        if (status != QN_OK)
            return status;
        sum += best_scores(qn_executor_output(executor, 0));
        seen += facts->batch_size;
    }
    *metric = seen ? sum / (double)seen : NAN;
    printf("infer_rows: %lld rows\n", (long long)seen); /* hidden where many models are tried */
    return QN_OK;
}

QN_API qn_infer_fn infer_rows;
qn_status infer_rows(void *user, qn_executor *executor, double *metric)
{
    const qn_executor_facts *facts = qn_executor_get(executor);
    qn_context *ctx = NULL;
    qn_tensor *data = NULL;
    (void)user;
    if (!facts->dataset)
        return qn_executor_fail(executor, QN_E_INVALID, "infer_rows: -d names the file of rows");
    qn_status status = qn_context_create(&ctx, NULL);
    if (status == QN_OK)
        status = qn_tensor_load(&data, ctx, facts->dataset, NULL);
    if (status != QN_OK)
        status = qn_executor_fail(executor, status, qn_context_error(ctx));
    else
        status = feed(executor, data, metric);
    qn_tensor_free(data);
    qn_context_free(ctx);
    return status;
}
