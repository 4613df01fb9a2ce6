// One step for convolutions that are computed by bands of lines. fuse_bands.c says which may be;
// whether they are is decided here where all sizes are known, else at each bind. Then what lies
// between has memory, for sizes at which bands do not pay and the step runs one after the other.
#include <string.h>

#include "plan/lower_conv.h"
#include "plan/spatial.h"

typedef struct {
    int count;
    bool by_sizes;  ///< bands or not is decided at a bind
    TorConvData conv[TOR_CONV_BANDS];
} BandsData;

typedef struct {
    TorConvBandsArgs bands;
    TorEpilogue epilogue[TOR_CONV_BANDS];
} BandsStep;

static bool joins_reader(const TorNode *node) {
    return node->op == TOR_OP_conv && tor_attr_int(node, TOR_ATTR_bands, 0);
}

/// Sizes into out[3]; false where one is not known.
static bool known_sizes(TorGraph *g, const TorValue *v, int64_t *out) {
    TorDim dims[3];
    tor_spatial_dims(g, v->rank - 2, v->dim + 2, dims);
    for (int i = 0; i < 3; i++)
        if (!tor_int_known(g, dims[i], &out[i])) return false;
    return true;
}

static bool is_one(TorGraph *g, TorDim dim) {
    int64_t value;
    return tor_int_known(g, dim, &value) && value == 1;
}

typedef enum { APART, BY_SIZES, BY_BANDS } Decision;

static ToroidStatus decide(TorPlan *plan, const TorNode *const *chain, int count, Decision *out) {
    TorConvBandsArgs bands = {.count = count};
    // Channels last wherever the depthwise kernel reads or writes, and between the convolutions.
    bool known = true, channels_last = true;
    for (int i = 0; i < count; i++) {
        TorConvData d = {0};
        TorConvArgs *a = &bands.conv[i];
        const TorValue *x = tor_in(chain[i], 0);
        TOR_TRY(tor_conv_note(plan, chain[i], &d));
        *a = d.fixed;
        channels_last &= (i == 0 && a->groups == 1) || is_one(plan->g, d.x_stride[1]);
        channels_last &= (i + 1 == count && a->groups == 1) || is_one(plan->g, d.y_stride[1]);
        known &= tor_int_known(plan->g, x->dim[0], &a->batch) &&
                 known_sizes(plan->g, x, a->in_size) &&
                 known_sizes(plan->g, chain[i]->outputs[0], a->out_size);
    }
    bool possible = channels_last && tor_conv_bands_supported(&bands);
    *out = possible && !known                       ? BY_SIZES
           : possible && tor_conv_bands_pay(&bands) ? BY_BANDS
                                                    : APART;
    return TOROID_OK;
}

ToroidStatus tor_bands_find(TorPlan *plan, const TorNode *node, const TorNode **chain, int *count) {
    *count = 0;
    while (joins_reader(node)) node = node->outputs[0]->uses->user;
    int n = 1;
    for (const TorNode *at = node; joins_reader(tor_in(at, 0)->node); n++) at = tor_in(at, 0)->node;
    if (n == 1 || n > TOR_CONV_BANDS) return TOROID_OK;
    for (int i = n; i > 0; node = tor_in(node, 0)->node) chain[--i] = node;
    Decision decision;
    TOR_TRY(decide(plan, chain, n, &decision));
    if (decision != APART) *count = n;
    return TOROID_OK;
}

static void bind_bands(const void *data, TorBinder *b) {
    const BandsData *d = data;
    BandsStep *step = b->args;
    TorConvBandsArgs *bands = &step->bands;
    bands->count = d->count;
    for (int i = 0; i < d->count; i++)
        tor_conv_fill(&d->conv[i], b->ints, &bands->conv[i], &step->epilogue[i]);
    if (!d->by_sizes || tor_conv_bands_pay(bands)) {
        tor_conv_bands_bind(bands);
        b->scratch_bytes = bands->scratch_bytes;
        tor_bind_region(b, tor_conv_bands_run, bands, bands->items);
        return;
    }
    for (int i = 0; i < d->count; i++) {
        TorConvArgs *conv = &bands->conv[i];
        tor_conv_bind(conv);
        b->scratch_bytes = TOR_MAX(b->scratch_bytes, conv->scratch_bytes);
        tor_bind_region(b, tor_conv_run, conv, conv->items);
    }
}

/// The row of the depthwise one, which makes the step what it is.
static const char *bands_kernel(const void *args) {
    const BandsStep *step = args;
    for (int i = 0; i < step->bands.count; i++) {
        const TorConvArgs *conv = &step->bands.conv[i];
        const TorConvRow *row = conv->row ? conv->row : step->bands.plan.part[i].row;
        if (conv->groups > 1 && row) return row->name;
    }
    return NULL;
}

static const TorStepKind bands_kind = {.name = "bands", .bind = bind_bands, .kernel = bands_kernel};

static ToroidStatus point(TorPlan *plan, const TorValue *v, size_t field) {
    TorView view;
    TOR_TRY(tor_plan_view(plan, v, &view));
    return tor_step_pointer(plan, &view, field);
}

#define FIELD(i, name)                                                      \
    (offsetof(TorConvBandsArgs, conv) + (size_t)(i) * sizeof(TorConvArgs) + \
     offsetof(TorConvArgs, name))

ToroidStatus tor_lower_bands(TorPlan *plan, const TorNode *const *chain, int count) {
    BandsData *d;
    const TorNode *last = chain[count - 1];
    TOR_TRY(tor_step_add(plan, &bands_kind, last, sizeof *d, sizeof(BandsStep), &d));
    tor_step_joins(plan, count - 1);
    d->count = count;
    Decision decision;
    TOR_TRY(decide(plan, chain, count, &decision));
    d->by_sizes = decision == BY_SIZES;
    for (int i = 0; i < count; i++) {
        const TorNode *node = chain[i];
        TorConvData *conv = &d->conv[i];
        TOR_TRY(tor_conv_note(plan, node, conv));
        const bool reads = i == 0 || d->by_sizes, writes = i + 1 == count || d->by_sizes;
        if (reads) TOR_TRY(point(plan, tor_in(node, 0), FIELD(i, x)));
        TOR_TRY(point(plan, tor_in(node, 1), FIELD(i, packed)));
        if (conv->has_bias) TOR_TRY(point(plan, tor_in(node, 2), FIELD(i, bias)));
        if (writes && !tor_attr(node, TOR_ATTR_epilogue))
            TOR_TRY(point(plan, node->outputs[0], FIELD(i, y)));
        conv->epilogue.inside = !writes;
        TOR_TRY(tor_lower_epilogue(plan, node, 2 + conv->has_bias, 1, 0,
                                   offsetof(BandsStep, epilogue) + (size_t)i * sizeof(TorEpilogue),
                                   &conv->epilogue));
    }
    return TOROID_OK;
}
