/* What the searches of a quantization share, and the searches.
 *
 * A search is a function of settings: it makes models of variations of them, looks how far their
 * outputs are from the float model's, and leaves the best model with its settings in the result.
 * All searches share one input, one float baseline and one cache of samples. Which run, and in
 * which order, says qn_quantize_decide. */
#ifndef QN_SEARCH_H
#define QN_SEARCH_H

#include "quantize/output_check.h"

/* A refinement: error of the outputs without and with it, where that was asked for and there are
 * data. */
typedef struct qn_proof_row {
    /* The worth as statistics say it. */
    qn_refined estimated;
    bool measured;
    double before, after;
    /* Left out, since the network is better without. */
    bool left;
} qn_proof_row;

/* A model, and what is to be said of the way that it came. */
typedef struct qn_quantize_result {
    qn_quantized_model made;
    /* Layers have more bits, or stay float, that nobody asked for. */
    bool mixed;
    /* Whether some should is not known: there are no samples to run. */
    bool unchecked;
    /* The noise of the worst group of an output, once it was compared. */
    double noise;
    qn_proof_row proof[QN_REFINEMENTS];
} qn_quantize_result;

/* *to, freed before, becomes *from, which is empty then. */
void qn_quantize_result_move(qn_quantize_result *to, qn_quantize_result *from);
/* Takes one that was never made (all zero) too. */
void qn_quantize_result_free(qn_quantize_result *result);

/* The first samples of the data: more no search looks at. */
enum { QN_SEARCHED_SAMPLES = 64 };

typedef struct qn_search {
    const qn_quantize_input *input;
    /* The settings as asked for; searches vary copies. */
    qn_quantize_settings asked;
    /* A model with the rules of these settings: the first model that is made takes it. */
    qn_quantized_model ruled;
    /* Never opened where there are no samples. */
    qn_output_check check;
    /* It has the strings of settings that are found, and lives as long as the results. */
    qn_arena *arena;
    /* Root of the report: searches that are asked for write their steps into it. */
    qn_item *report;
} qn_search;

/* `ruled` (may be NULL) has the rules of the settings, and is taken; else they are applied.
 * qn_search_close in any case. */
QN_MUST_CHECK qn_status qn_search_open(qn_search *out, const qn_quantize_input *input,
                                       const qn_quantize_settings *settings,
                                       qn_quantized_model *ruled, qn_baseline *baseline);
/* The model of the settings as asked for. Once. */
QN_MUST_CHECK qn_status qn_search_make_first(qn_quantized_model *out, qn_search *s);
void qn_search_close(qn_search *s);

/* The model that the options ask for, with all refinements: from here the searches below are
 * called. QN_E_GOAL as of qn_accuracy_budget_search. */
QN_MUST_CHECK qn_status qn_quantize_decide(qn_quantize_result *out, qn_search *s);

/* prove_refinements.c: measures what each refinement of the model at hand is worth on the first
 * samples, and leaves out factors of channels that do harm: then the model is made anew. */
QN_MUST_CHECK qn_status qn_refinements_prove(qn_quantize_result *result, qn_search *s);
void qn_refinements_report(qn_item *root, const qn_quantize_result *result,
                           const qn_quantize_input *input);

#endif
