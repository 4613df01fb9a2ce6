// Steps of the resize and grid families.
#include <string.h>

#include "kernels/grid/contract.h"
#include "kernels/resize/contract.h"
#include "plan/spatial.h"
#include "plan/step.h"

/// x and y, [b, c, spatial...], as the kernels want them.
typedef struct {
    TorDim batch, channels, in_size[3], out_size[3], x_stride[5], y_stride[5];
} Planes;

static Planes planes_of(TorGraph *g, const TorView *x, const TorView *y) {
    Planes p = {.batch = x->dim[0], .channels = x->dim[1]};
    int spatial = x->rank - 2;
    tor_spatial_dims(g, spatial, x->dim + 2, p.in_size);
    tor_spatial_dims(g, spatial, y->dim + 2, p.out_size);
    tor_spatial_strides(g, spatial, x->stride, p.x_stride);
    tor_spatial_strides(g, spatial, y->stride, p.y_stride);
    return p;
}

// The arguments of both families name these fields alike.
#define BIND_PLANES(ints, planes, args)                               \
    do {                                                              \
        (args)->batch = (ints)[(planes)->batch];                      \
        (args)->channels = (ints)[(planes)->channels];                \
        tor_bind_dims(ints, (planes)->in_size, 3, (args)->in_size);   \
        tor_bind_dims(ints, (planes)->out_size, 3, (args)->out_size); \
        tor_bind_dims(ints, (planes)->x_stride, 5, (args)->x_stride); \
        tor_bind_dims(ints, (planes)->y_stride, 5, (args)->y_stride); \
    } while (0)

static int index_of(const char *name, const char *const *names, int count) {
    for (int i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0) return i;
    return -1;
}

// ---------------------------------------------------------------- resize

typedef struct {
    TorResizeArgs fixed;
    Planes planes;
} ResizeData;

TOR_REFERENCE_RUN(tor_resize_run_ref)

static void bind_resize(const void *data, TorBinder *b) {
    const ResizeData *d = data;
    TorResizeArgs *args = b->args;
    *args = d->fixed;
    BIND_PLANES(b->ints, &d->planes, args);
    if (tor_bind_reference(b, tor_resize_run_ref_range, 0)) return;
    tor_resize_bind(args);
    b->scratch_bytes = args->scratch_bytes;
    tor_bind_region(b, tor_resize_run, args, args->items);
}

static const char *resize_kernel(const void *args) {
    const TorResizeRow *row = ((const TorResizeArgs *)args)->row;
    return row ? row->name : NULL;
}

static const TorStepKind resize_kind = {.name = "resize",
                                        .bind = bind_resize,
                                        .kernel = resize_kernel,
                                        .reference = "tor_resize_run_ref"};

ToroidStatus tor_lower_resize(TorPlan *plan, const TorNode *node) {
    static const char *const modes[] = {"nearest", "nearest_exact", "linear", "cubic"};
    TorView x, y;
    TOR_TRY(tor_plan_view(plan, tor_in(node, 0), &x));
    TOR_TRY(tor_plan_view(plan, node->outputs[0], &y));
    ResizeData *d;
    TOR_TRY(tor_step_add(plan, &resize_kind, node, sizeof *d, sizeof(TorResizeArgs), &d));
    TOR_TRY(tor_step_pointer(plan, &x, offsetof(TorResizeArgs, x)));
    TOR_TRY(tor_step_pointer(plan, &y, offsetof(TorResizeArgs, y)));
    int mode = index_of(tor_attr_str(node, TOR_ATTR_mode, ""), modes, 4), spatial = x.rank - 2;
    if (mode < 0 || (mode == TOR_RESIZE_cubic && spatial != 2))
        return tor_refuse("no kernel for this mode over %d dims", spatial);
    d->fixed.mode = (TorResizeMode)mode;
    d->fixed.dtype = x.dtype;
    d->fixed.align_corners = tor_attr_int(node, TOR_ATTR_align_corners, 0);
    memcpy(d->fixed.scale + (3 - spatial), tor_attr(node, TOR_ATTR_scales)->blob,
           (size_t)spatial * sizeof(double));
    d->planes = planes_of(plan->g, &x, &y);
    const char *reason;
    return tor_resize_supported(&d->fixed, &reason) ? TOROID_OK : tor_refuse("%s", reason);
}

// ---------------------------------------------------------------- grid_sample

typedef struct {
    TorGridArgs fixed;
    Planes planes;
    TorDim grid[5];
} GridData;

TOR_REFERENCE_RUN(tor_grid_run_ref)

static void bind_grid(const void *data, TorBinder *b) {
    const GridData *d = data;
    TorGridArgs *args = b->args;
    *args = d->fixed;
    BIND_PLANES(b->ints, &d->planes, args);
    tor_bind_dims(b->ints, d->grid, 5, args->grid_stride);
    if (tor_bind_reference(b, tor_grid_run_ref_range, 0)) return;
    tor_grid_bind(args);
    b->scratch_bytes = args->scratch_bytes;
    tor_bind_region(b, tor_grid_run, args, args->items);
}

static const char *grid_kernel(const void *args) {
    const TorGridRow *row = ((const TorGridArgs *)args)->row;
    return row ? row->name : NULL;
}

static const TorStepKind grid_kind = {
    .name = "grid", .bind = bind_grid, .kernel = grid_kernel, .reference = "tor_grid_run_ref"};

ToroidStatus tor_lower_grid(TorPlan *plan, const TorNode *node) {
    static const char *const modes[] = {"linear", "nearest", "cubic"}, *const paddings[] = {
                                                                           "zeros", "border",
                                                                           "reflection"};
    TorView x, y, grid;
    TOR_TRY(tor_plan_view(plan, tor_in(node, 0), &x));
    TOR_TRY(tor_plan_view(plan, tor_in(node, 1), &grid));
    TOR_TRY(tor_plan_view(plan, node->outputs[0], &y));
    GridData *d;
    TOR_TRY(tor_step_add(plan, &grid_kind, node, sizeof *d, sizeof(TorGridArgs), &d));
    TOR_TRY(tor_step_pointer(plan, &x, offsetof(TorGridArgs, x)));
    TOR_TRY(tor_step_pointer(plan, &grid, offsetof(TorGridArgs, grid)));
    TOR_TRY(tor_step_pointer(plan, &y, offsetof(TorGridArgs, y)));
    int mode = index_of(tor_attr_str(node, TOR_ATTR_mode, ""), modes, 3),
        padding = index_of(tor_attr_str(node, TOR_ATTR_reduce, ""), paddings, 3);
    d->fixed.dims = x.rank - 2;
    if (mode < 0 || padding < 0 || (mode == TOR_GRID_cubic && d->fixed.dims == 3))
        return tor_refuse("no kernel for this mode and padding");
    d->fixed.mode = (TorGridMode)mode;
    d->fixed.padding = (TorGridPadding)padding;
    d->fixed.dtype = x.dtype;
    d->fixed.align_corners = tor_attr_int(node, TOR_ATTR_align_corners, 0);
    d->planes = planes_of(plan->g, &x, &y);
    d->grid[0] = grid.stride[0];
    d->grid[1] = d->fixed.dims == 3 ? grid.stride[1] : tor_int_const(plan->g, 0);
    for (int i = 0; i < 3; i++) d->grid[2 + i] = grid.stride[grid.rank - 3 + i];
    return TOROID_OK;
}
