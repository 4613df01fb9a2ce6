/// Resizing and sampling of [b, c, spatial...].
#include "aten/build.h"
#include "aten/tables.h"

typedef enum { NEAREST = 0, EXACT = 8, LINEAR = 16, CUBIC = 24 } Mode;

/// The row's number: spatial dims plus the mode. Arguments: self, output_size, align_corners unless
/// nearest, then one scale a spatial dim.
static ToroidStatus import_resize(TorCall *c) {
    static const char *const modes[] = {"nearest", "nearest_exact", "linear", "cubic"};
    int spatial = c->row->op & 7, mode = c->row->op & ~7;
    TorDim sizes[TOR_MAX_RANK];
    double scales[3] = {0};
    TorValue *x = tor_im_tensor(c, 0);
    bool flagged = mode >= LINEAR, align = flagged && tor_im_flag(c, 2);
    int n = tor_im_dims(c, 1, sizes);
    for (int i = 0; i < spatial; i++)
        if (tor_im_has(c, 2 + flagged + i)) scales[i] = tor_im_float(c, 2 + flagged + i);
    if (c->status) return c->status;
    if (n != spatial || x->rank != spatial + 2)
        return tor_im_refuse_arg(c, 0, "expected %d dims and %d sizes", spatial + 2, spatial);
    if (!tor_dtype_is_float(x->dtype) && (flagged || x->dtype != TOR_uint8))
        return tor_im_refuse_arg(c, 0, "%s has no kernel", tor_dtype_name(x->dtype));
    for (int i = 0; i < x->rank; i++)
        if (i != 0 && tor_int_is(c->g, x->dim[i], 0))
            return tor_im_refuse_arg(c, 0, "dim %d is empty", i);
    TorAttr a[] = {TOR_A_STR(mode, modes[mode / 8]), TOR_A_DIMS(dims, sizes, spatial),
                   TOR_A_INT(align_corners, align),
                   TOR_A_BLOB(scales, scales, spatial * (int)sizeof(double))};
    return RETURN(tor_im_add(c, TOR_OP_resize, &x, 1, a, 4));
}

/// The row's number: spatial dims.
static ToroidStatus import_grid(TorCall *c) {
    static const char *const modes[] = {"linear", "nearest", "cubic"}, *const paddings[] = {
                                                                           "zeros", "border",
                                                                           "reflection"};
    TorValue *inputs[] = {tor_im_tensor(c, 0), tor_im_tensor(c, 1)};
    int64_t mode = tor_im_int(c, 2), padding = tor_im_int(c, 3), spatial = c->row->op;
    bool align = tor_im_flag(c, 4);
    if (c->status) return c->status;
    if (inputs[0]->rank != spatial + 2) return tor_im_refuse_arg(c, 0, "unexpected rank");
    if (mode < 0 || mode > 2 || padding < 0 || padding > 2 || (mode == 2 && spatial == 3))
        return tor_im_refuse(c, "unknown mode");
    for (int i = 1; i < inputs[0]->rank; i++)
        if (tor_int_is(c->g, inputs[0]->dim[i], 0))
            return tor_im_refuse_arg(c, 0, "dim %d is empty", i);
    TorAttr a[] = {TOR_A_STR(mode, modes[mode]), TOR_A_STR(reduce, paddings[padding]),
                   TOR_A_INT(align_corners, align)};
    return RETURN(tor_im_add(c, TOR_OP_grid_sample, inputs, 2, a, 3));
}

#define SCALES_1 "scales=None"
#define SCALES_2 "scales_h=None, scales_w=None"
#define SCALES_3 "scales_d=None, scales_h=None, scales_w=None"
#define NEAREST_ROW(name, n, mode) \
    { "aten." name #n "d.default", "self, output_size, " SCALES_##n, import_resize, mode | n }
#define SMOOTH_ROW(name, n, mode)                                                     \
    {                                                                                 \
        "aten." name #n "d.default", "self, output_size, align_corners, " SCALES_##n, \
            import_resize, mode | n                                                   \
    }
#define GRID "input, grid, interpolation_mode, padding_mode, align_corners"

static const TorAtenRow rows[] = {
    NEAREST_ROW("upsample_nearest", 1, NEAREST),
    NEAREST_ROW("upsample_nearest", 2, NEAREST),
    NEAREST_ROW("upsample_nearest", 3, NEAREST),
    NEAREST_ROW("_upsample_nearest_exact", 1, EXACT),
    NEAREST_ROW("_upsample_nearest_exact", 2, EXACT),
    NEAREST_ROW("_upsample_nearest_exact", 3, EXACT),
    SMOOTH_ROW("upsample_linear", 1, LINEAR),
    SMOOTH_ROW("upsample_bilinear", 2, LINEAR),
    SMOOTH_ROW("upsample_trilinear", 3, LINEAR),
    SMOOTH_ROW("upsample_bicubic", 2, CUBIC),
    {"aten.grid_sampler_2d.default", GRID, import_grid, 2},
    {"aten.grid_sampler_3d.default", GRID, import_grid, 3},
};
TOR_ATEN_TABLE(resize, rows);
