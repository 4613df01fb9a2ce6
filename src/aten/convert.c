/// Copies, aliases, and changes of type.
#include "aten/build.h"
#include "aten/tables.h"

#include <string.h>

/// Functions whose result may be the argument itself.
static ToroidStatus import_alias(TorCall *c) { return RETURN(tor_im_tensor(c, 0)); }

/// Functions whose result is a tensor of its own.
static ToroidStatus import_clone(TorCall *c) {
    return RETURN(tor_im_contiguous(c, tor_im_tensor(c, 0)));
}

static TorValue *copy_as(TorCall *c, TorValue *x, TorDtype dtype) {
    if (!x) return NULL;
    return x->dtype == dtype ? tor_im_contiguous(c, x) : tor_im_cast(c, x, dtype);
}

static ToroidStatus import_to_copy(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    TorDtype dtype = x ? tor_im_dtype(c, 1, x->dtype) : TOR_float32;
    const char *layout = tor_im_str(c, 2, "torch.strided");
    if (strstr(layout, "sparse") || strstr(layout, "mkldnn"))
        return tor_im_refuse_arg(c, 2, "expected a strided layout, got %s", layout);
    tor_im_cpu_only(c, 3);
    return RETURN(copy_as(c, x, dtype));
}

/// self.to(dtype): self itself if there is nothing to do.
static ToroidStatus import_to_dtype(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    TorDtype dtype = x ? tor_im_dtype(c, 1, x->dtype) : TOR_float32;
    return RETURN(tor_im_flag(c, 3) ? copy_as(c, x, dtype) : tor_im_cast(c, x, dtype));
}

static ToroidStatus import_to_layout(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    TorDtype dtype = x ? tor_im_dtype(c, 1, x->dtype) : TOR_float32;
    tor_im_cpu_only(c, 3);
    return RETURN(tor_im_flag(c, 6) ? copy_as(c, x, dtype) : tor_im_cast(c, x, dtype));
}

static ToroidStatus import_to_device(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    tor_im_cpu_only(c, 1);
    TorDtype dtype = x ? tor_im_dtype(c, 2, x->dtype) : TOR_float32;
    return RETURN(tor_im_flag(c, 4) ? copy_as(c, x, dtype) : tor_im_cast(c, x, dtype));
}

static ToroidStatus import_convert(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    TorDtype dtype = x ? tor_im_dtype(c, 1, x->dtype) : TOR_float32;
    return RETURN(copy_as(c, x, dtype));
}

static ToroidStatus import_type_as(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0), *other = tor_im_tensor(c, 1);
    return RETURN(other ? tor_im_cast(c, x, other->dtype) : NULL);
}

/// What `self` holds after `src` was copied into it.
static ToroidStatus import_copy(TorCall *c) {
    TorValue *dst = tor_im_tensor(c, 0), *src = tor_im_tensor(c, 1);
    if (c->status) return c->status;
    if (src->rank > dst->rank)
        return tor_im_refuse_arg(c, 1, "rank %d is over self's, %d", src->rank, dst->rank);
    src = tor_im_cast(c, src, dst->dtype);
    return RETURN(tor_im_expand(c, src, dst->rank, dst->dim));
}

#define ALIAS(name) \
    { "aten." #name ".default", "self", import_alias, 0 }
#define CLONE(name) \
    { "aten." #name ".default", "self, *, memory_format=None", import_clone, 0 }

static const TorAtenRow rows[] = {
    {"prims.view_of.default", "a", import_alias, 0},
    ALIAS(alias),
    ALIAS(detach),
    ALIAS(lift),
    ALIAS(lift_fresh),
    ALIAS(resolve_conj),
    ALIAS(resolve_neg),
    {"aten.alias_copy.default", "self", import_clone, 0},
    {"aten.detach_copy.default", "self", import_clone, 0},
    {"aten.lift_fresh_copy.default", "self", import_clone, 0},
    CLONE(clone),
    {"aten.contiguous.default", "self, *, memory_format=contiguous_format", import_clone, 0},
    {"aten._to_copy.default",
     "self, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, "
     "memory_format=None",
     import_to_copy, 0},
    {"aten.to.dtype", "self, dtype, non_blocking=False, copy=False, memory_format=None",
     import_to_dtype, 0},
    {"aten.to.dtype_layout",
     "self, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, "
     "copy=False, memory_format=None",
     import_to_layout, 0},
    {"aten.to.device", "self, device, dtype, non_blocking=False, copy=False, memory_format=None",
     import_to_device, 0},
    {"aten.type_as.default", "self, other", import_type_as, 0},
    {"prims.convert_element_type.default", "a, dtype", import_convert, 0},
    {"aten.copy.default", "self, src, non_blocking=False", import_copy, 0},
    {"aten.copy_.default", "self, src, non_blocking=False", import_copy, 0},
};
TOR_ATEN_TABLE(convert, rows);
