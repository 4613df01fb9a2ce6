// From a graph to an executable: passes, the prologue's small plans, the plan.
#include <string.h>

#include "backend/internal.h"
#include "base/log.h"
#include "graph/save.h"
#include "passes/passes.h"

/// For the oracle only what a graph needs to be planned: an error of any other pass then shows as a
/// difference. Nothing is fused, packed or made ahead.
static ToroidStatus run_reference_passes(TorGraph *g) {
    static const char *const needed[] = {"frozen", "widen", "programs", "layout"};
    return tor_passes_run(g, needed, TOR_COUNT_OF(needed));
}

static ToroidStatus run_passes(TorExecutable *exe) {
    static const char *const fusion[] = {"recognise_activation",
                                         "recognise_attention",
                                         "canonicalise",
                                         "group_heads",
                                         "fold_pad",
                                         "dce",
                                         "widen",
                                         "cse",
                                         "dce",
                                         "fold_conv",
                                         "prepack"};
    static const char *const finish[] = {"fuse_epilogue", "fuse_groups", "programs", "dce",
                                         "fuse_bands",    "inplace",     "layout"};
    int count;
    const char *const *simplify = tor_passes_simplify(&count);
    TOR_TRY(tor_passes_run(exe->g, simplify, count));
    TOR_TRY(tor_passes_run(exe->g, fusion, TOR_COUNT_OF(fusion)));
    if (!tor_pass_skipped("prologue")) TOR_TRY(tor_pass_prologue(exe->g, &exe->prologue));
    TOR_TRY(tor_passes_run(exe->g, finish, TOR_COUNT_OF(finish)));
    for (size_t i = 0; i < exe->prologue.count; i++)
        TOR_TRY(tor_passes_run(exe->prologue.results[i].graph, finish, TOR_COUNT_OF(finish)));
    return TOROID_OK;
}

/// The frozen inputs whose state decides which results a call uses.
static ToroidStatus list_frozen(TorExecutable *exe) {
    exe->frozen_inputs = tor_alloc((exe->n_inputs + 1) * sizeof *exe->frozen_inputs);
    if (!exe->frozen_inputs) return tor_no_memory();
    for (size_t r = 0; r < exe->prologue.count; r++) {
        const TorPrologueResult *result = &exe->prologue.results[r];
        for (uint32_t s = 0; s < result->n_sources; s++) {
            uint32_t k = 0;
            while (k < exe->n_frozen && exe->frozen_inputs[k] != result->sources[s]) k++;
            if (k == exe->n_frozen) exe->frozen_inputs[exe->n_frozen++] = result->sources[s];
        }
    }
    exe->frozen_bytes = tor_alloc((exe->n_frozen + 1) * sizeof *exe->frozen_bytes);
    exe->released = tor_alloc_zero((exe->n_frozen + 1) * sizeof *exe->released);
    if (!exe->frozen_bytes || !exe->released) return tor_no_memory();
    for (uint32_t k = 0; k < exe->n_frozen; k++) {
        const TorInput *input = &exe->g->inputs[exe->frozen_inputs[k]];
        int64_t numel;
        bool known = input->contiguous &&
                     tor_int_known(exe->g, tor_value_numel(exe->g, input->value), &numel);
        exe->frozen_bytes[k] =
            known ? (size_t)numel * tor_dtype_size(input->value->dtype) : SIZE_MAX;
        exe->released[k] = exe->options.release && !input->value->uses;
    }
    return TOROID_OK;
}

bool tor_exe_tracks(const TorExecutable *exe, uint32_t input) {
    for (uint32_t k = 0; k < exe->n_frozen; k++)
        if (exe->frozen_inputs[k] == input) return true;
    return false;
}

static ToroidStatus add_check(TorExecutable *exe, uint32_t input, int dim, TorDim expected,
                              bool constant) {
    int64_t value = 0;
    const TorInt *x = tor_int_get(exe->g, expected);
    if (tor_int_known(exe->g, expected, &value) != constant) return TOROID_OK;
    // A size that is nothing but this dim of this input.
    if (x->op == TOR_INT_size && x->a == input && (int)x->b == dim) return TOROID_OK;
    TOR_TRY(tor_grow((void **)&exe->checks, &exe->check_capacity, exe->n_checks + 1,
                     sizeof *exe->checks));
    exe->checks[exe->n_checks++] = (TorInputCheck){input, dim, expected, value};
    return TOROID_OK;
}

/// What the plan takes for granted about tensors that may change from call to call.
static ToroidStatus list_checks(TorExecutable *exe) {
    for (int constant = 1; constant >= 0; constant--) {
        for (uint32_t i = 0; i < exe->n_inputs; i++) {
            const TorInput *input = &exe->g->inputs[i];
            if (input->kind != TOR_INPUT_TENSOR) continue;
            for (int d = 0; d < input->value->rank; d++)
                TOR_TRY(add_check(exe, i, d, input->value->dim[d], constant));
            for (int d = 0; d < input->value->rank && !input->contiguous; d++)
                if (input->stride[d] != TOR_NO_DIM)
                    TOR_TRY(add_check(exe, i, -1 - d, input->stride[d], constant));
        }
        if (constant) exe->n_static_checks = exe->n_checks;
    }
    return TOROID_OK;
}

static ToroidStatus build_plans(TorExecutable *exe) {
    size_t count = exe->prologue.count;
    exe->prologue_plans = tor_alloc_zero((count + 1) * sizeof *exe->prologue_plans);
    exe->prologue_bytes = tor_alloc_zero((count + 1) * sizeof *exe->prologue_bytes);
    if (!exe->prologue_plans || !exe->prologue_bytes) return tor_no_memory();
    for (size_t i = 0; i < count; i++) {
        TOR_TRY(tor_plan_create(&exe->prologue_plans[i], exe->prologue.results[i].graph, false));
        TOR_TRY(tor_plan_result_bytes(exe->prologue_plans[i], &exe->prologue_bytes[i]));
    }
    TOR_TRY(tor_plan_create(&exe->plan, exe->g, exe->options.reference));
    tor_plan_set_tune(exe->plan, exe->options.tune);
    // The host's hook has the same shape; only the name of the tensor type differs between layers.
    _Static_assert(sizeof(TorExternalTensor) == sizeof(TorHostTensor), "one tensor, two layers");
    tor_plan_set_external(exe->plan, (TorExternalFn)(void (*)(void))exe->options.host.external,
                          exe->options.host.user);
    tor_plan_set_ranges(exe->plan, exe->options.host.range, exe->options.host.user);
    return TOROID_OK;
}

/// The graph in place of which a later process would have its bytes.
static ToroidStatus save_and_load(TorGraph **graph) {
    char *bytes;
    size_t count;
    TorGraph *loaded;
    TOR_TRY(tor_graph_save(*graph, &bytes, &count));
    ToroidStatus status = tor_graph_load(&loaded, bytes, count);
    tor_free(bytes);
    TOR_TRY(status);
    tor_graph_destroy(graph);
    *graph = loaded;
    return TOROID_OK;
}

static ToroidStatus compile(TorExecutable *exe) {
    if (!exe->g->output) return tor_invalid("compile: the graph has no outputs");
    if (tor_passes_verify()) TOR_TRY(save_and_load(&exe->g));
    TorGraph *g = exe->g;
    exe->n_inputs = g->n_inputs;
    TOR_TRY(tor_table_create(&exe->before, g));
    for (uint32_t i = 0; i < g->n_inputs; i++)
        if (!exe->options.freeze || exe->options.reference) g->inputs[i].frozen = false;
    double start = tor_now();
    TOR_TRY(exe->options.reference ? run_reference_passes(exe->g) : run_passes(exe));
    double passed = tor_now();
    for (const TorNode *node = g->first; node; node = node->next) {
        if (node->op == TOR_OP_external)
            exe->external_nodes++;
        else if (tor_op_kind(node->op) != TOR_KIND_SINK && node->op != TOR_OP_input)
            exe->native_nodes++;
    }
    TOR_TRY(tor_table_create(&exe->after, g));
    TOR_TRY(list_frozen(exe));
    TOR_TRY(list_checks(exe));
    TOR_TRY(build_plans(exe));
    tor_log(1,
            "compiled %" PRIu64 " native and %" PRIu64
            " external nodes to %zu steps, %zu frozen results; passes %.1f ms, plan %.1f ms",
            exe->native_nodes, exe->external_nodes, tor_plan_step_count(exe->plan),
            exe->prologue.count, (passed - start) * 1e3, (tor_now() - passed) * 1e3);
    return TOROID_OK;
}

ToroidStatus tor_exe_compile(TorExecutable **out, TorGraph **graph, const TorOptions *options) {
    *out = NULL;
    TorExecutable *exe = tor_alloc_zero(sizeof *exe);
    if (!exe) {
        tor_graph_destroy(graph);
        return tor_no_memory();
    }
    exe->g = *graph;
    *graph = NULL;
    exe->options = *options;
    pthread_mutex_init(&exe->lock, NULL);
    tor_frozen_watch(exe);
    ToroidStatus status = TOROID_OK;
    if (options->precision && strcmp(options->precision, "f32") != 0)
        status =
            tor_refuse("precision \"%s\": no kernel has it yet; \"f32\" does", options->precision);
    if (status == TOROID_OK) status = compile(exe);
    exe->options.precision = NULL;  // the caller's text
    if (status != TOROID_OK) tor_exe_destroy(&exe);
    *out = exe;
    return status;
}

void tor_exe_destroy(TorExecutable **executable) {
    if (!executable || !*executable) return;
    TorExecutable *exe = *executable;
    while (exe->idle) {
        TorCall *call = exe->idle;
        exe->idle = call->next;
        tor_call_destroy(&call);
    }
    tor_frozen_unwatch(exe);
    for (size_t i = 0; exe->prologue_plans && i < exe->prologue.count; i++)
        tor_plan_destroy(&exe->prologue_plans[i]);
    tor_plan_destroy(&exe->plan);
    tor_prologue_destroy(&exe->prologue);
    tor_table_destroy(&exe->before);
    tor_table_destroy(&exe->after);
    tor_graph_destroy(&exe->g);
    tor_free(exe->prologue_plans);
    tor_free(exe->prologue_bytes);
    tor_free(exe->frozen_inputs);
    tor_free(exe->frozen_bytes);
    tor_free(exe->released);
    tor_free(exe->checks);
    pthread_mutex_destroy(&exe->lock);
    tor_free(exe);
    *executable = NULL;
}
