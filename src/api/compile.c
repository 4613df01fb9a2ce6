// Compiled graphs, for C.
#include "api/internal.h"
#include "backend/frozen.h"
#include "base/cpu.h"
#include "toroid/compile.h"

/// Whether the caller's ToroidOptions, which may be of an earlier version, end behind `field`.
#define HAS(options, field) \
    ((options)->struct_bytes >= offsetof(ToroidOptions, field) + sizeof(options)->field)

static ToroidStatus read_options(TorOptions *out, const ToroidOptions *options) {
    if (!options) return TOROID_OK;
    if (!HAS(options, threads))
        return tor_invalid("ToroidOptions.struct_bytes is %zu, expected sizeof(ToroidOptions)",
                           options->struct_bytes);
    if (options->threads < 0)
        return tor_invalid("ToroidOptions.threads is %d, expected at least 0", options->threads);
    if (options->threads) out->threads = options->threads;
    if (HAS(options, reference)) out->reference |= options->reference != 0;
    if (HAS(options, tune)) out->tune |= options->tune != 0;
    return TOROID_OK;
}

static ToroidStatus compile(ToroidExecutable *e, ToroidGraph *graph, const ToroidOptions *given) {
    TorOptions options = graph->options;
    TOR_TRY(read_options(&options, given));
    TOR_TRY(tor_signature_read(&e->signature, graph));
    return tor_exe_compile(&e->exe, &graph->g, &options);
}

ToroidStatus toroid_compile(ToroidExecutable **out, ToroidGraph **graph,
                            const ToroidOptions *options) {
    if (out) *out = NULL;
    if (!out || !graph || !*graph) {
        if (graph) toroid_graph_destroy(graph);
        return tor_invalid("toroid_compile: an argument is NULL");
    }
    ToroidExecutable *e = tor_alloc_zero(sizeof *e);
    ToroidStatus status = e ? compile(e, *graph, options) : tor_no_memory();
    toroid_graph_destroy(graph);
    if (status != TOROID_OK) toroid_executable_destroy(&e);
    *out = e;
    return status;
}

void toroid_executable_destroy(ToroidExecutable **executable) {
    if (!executable || !*executable) return;
    ToroidExecutable *e = *executable;
    tor_exe_destroy(&e->exe);
    tor_signature_free(&e->signature);
    tor_free(e);
    *executable = NULL;
}

int toroid_input_count(const ToroidExecutable *e) { return e ? e->signature.n_inputs : 0; }
int toroid_output_count(const ToroidExecutable *e) { return e ? tor_exe_output_count(e->exe) : 0; }

uint64_t toroid_weight_id(void) { return tor_frozen_new_uid(); }
void toroid_weight_forget(uint64_t id) {
    if (id) tor_frozen_forget(id);
}

// ---------------------------------------------------------------- runs

/// Elements of a tensor, or an error where a size is wrong or memory cannot be so large.
static ToroidStatus count_elements(const ToroidTensor *t, size_t element, int64_t *out) {
    int64_t bytes = (int64_t)element;
    bool empty = false;
    for (int d = 0; d < t->rank; d++) {
        if (t->size[d] < 0) return tor_invalid("dim %d has size %" PRId64, d, t->size[d]);
        empty |= t->size[d] == 0;
    }
    for (int d = 0; d < t->rank && !empty; d++)
        if (__builtin_mul_overflow(bytes, t->size[d], &bytes))
            return tor_invalid("the tensor is larger than memory can be");
    *out = empty ? 0 : bytes / (int64_t)element;
    return TOROID_OK;
}

static ToroidStatus check_input(const TorSignatureTensor *expected, const ToroidTensor *t,
                                bool read, int64_t *elements) {
    TorDtype dtype;
    TOR_TRY(tor_api_dtype(&dtype, t->dtype));
    if (dtype != expected->dtype || t->rank != expected->rank)
        return tor_invalid("expected %s of rank %d, got %s of rank %d",
                           tor_dtype_name(expected->dtype), expected->rank, tor_dtype_name(dtype),
                           t->rank);
    TOR_TRY(count_elements(t, tor_dtype_size(dtype), elements));
    if (read && *elements && !t->data) return tor_invalid("data is NULL");
    return TOROID_OK;
}

/// Starts a call; `inputs` has room for all.
static ToroidStatus begin(ToroidExecutable *e, const ToroidTensor *given, int n_inputs,
                          int n_outputs, bool runs, TorCallInput *inputs, TorCall **call) {
    if (n_inputs != e->signature.n_inputs)
        return tor_invalid("expected %d inputs, got %d", e->signature.n_inputs, n_inputs);
    if (n_outputs != tor_exe_output_count(e->exe))
        return tor_invalid("expected room for %d outputs, got %d", tor_exe_output_count(e->exe),
                           n_outputs);
    for (int i = 0; i < n_inputs; i++) {
        const ToroidTensor *t = &given[i];
        bool tracked = tor_exe_tracks(e->exe, (uint32_t)i);
        int64_t elements = 0;
        ToroidStatus status = check_input(&e->signature.tensors[i], t, runs || tracked, &elements);
        if (status != TOROID_OK)
            return tor_error_prefix(status, "input %s", e->signature.tensors[i].name);
        // A weight without a number is a new tensor at each run.
        uint64_t uid = tracked && !t->id ? tor_frozen_new_uid() : t->id;
        inputs[i] = (TorCallInput){
            .data = t->data, .size = t->size, .uid = uid, .version = (int64_t)t->version};
    }
    return tor_exe_begin(e->exe, inputs, tor_cpu_count(), call);
}

/// Forgets the numbers that begin() gave out.
static void forget_unnamed(const ToroidExecutable *e, const ToroidTensor *given,
                           const TorCallInput *inputs) {
    for (int i = 0; i < e->signature.n_inputs; i++)
        if (inputs[i].uid && !given[i].id) tor_frozen_forget(inputs[i].uid);
}

static void describe(const TorCallOutput *from, ToroidTensor *to) {
    to->dtype = tor_api_public_dtype(from->dtype);
    to->rank = from->rank;
    for (int d = 0; d < from->rank; d++) to->size[d] = from->size[d];
}

static ToroidStatus take_output(const TorCallOutput *o, const ToroidTensor *t) {
    bool same = t->dtype == tor_api_public_dtype(o->dtype) && t->rank == o->rank;
    int64_t elements = 1;
    for (int d = 0; same && d < o->rank; d++) {
        same = t->size[d] == o->size[d];
        elements *= o->size[d];
    }
    if (!same) return tor_invalid("its type or size is not what toroid_describe_outputs() tells");
    if (elements && !t->data) return tor_invalid("data is NULL");
    return TOROID_OK;
}

static ToroidStatus run(TorCall *call, ToroidTensor *outputs, int n_outputs) {
    TorCallOutput *o = tor_exe_outputs(call);
    for (int k = 0; k < n_outputs; k++) {
        ToroidStatus status = take_output(&o[k], &outputs[k]);
        if (status != TOROID_OK) return tor_error_prefix(status, "output %d", k);
        o[k].data = outputs[k].data;
    }
    return tor_exe_run(call, NULL, false);
}

/// Both public functions: what they do with the call is all that differs.
static ToroidStatus with_call(ToroidExecutable *e, const ToroidTensor *inputs, int n_inputs,
                              ToroidTensor *outputs, int n_outputs, bool runs) {
    if (!e || (n_inputs && !inputs) || (n_outputs && !outputs))
        return tor_invalid("an argument is NULL");
    TorCallInput *taken = tor_alloc_zero(((size_t)e->signature.n_inputs + 1) * sizeof *taken);
    if (!taken) return tor_no_memory();
    TorCall *call = NULL;
    ToroidStatus status = begin(e, inputs, n_inputs, n_outputs, runs, taken, &call);
    if (status == TOROID_OK && runs) status = run(call, outputs, n_outputs);
    for (int k = 0; status == TOROID_OK && !runs && k < n_outputs; k++)
        describe(&tor_exe_outputs(call)[k], &outputs[k]);
    tor_exe_end(&call);
    if (n_inputs == e->signature.n_inputs) forget_unnamed(e, inputs, taken);
    tor_free(taken);
    return status;
}

ToroidStatus toroid_describe_outputs(ToroidExecutable *e, const ToroidTensor *inputs, int n_inputs,
                                     ToroidTensor *outputs, int n_outputs) {
    return with_call(e, inputs, n_inputs, outputs, n_outputs, false);
}

ToroidStatus toroid_run(ToroidExecutable *e, const ToroidTensor *inputs, int n_inputs,
                        ToroidTensor *outputs, int n_outputs) {
    return with_call(e, inputs, n_inputs, outputs, n_outputs, true);
}
