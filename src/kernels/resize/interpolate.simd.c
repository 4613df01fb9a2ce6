/// Linear and cubic interpolation of one line at a time: made for each float type by template.
/// Loops are plain; each level's compiler makes vectors of them.
#include "base/dtype.h"
#include "base/simd.h"
#include "kernels/resize/line.h"

#define T float
#define WIDE float
#define LOAD(x) (x)
#define STORE(x) (x)
#define NAME f32
#define SYMBOL tor_resize_f32
#include "kernels/resize/interpolate_tmpl.h"

#define T double
#define WIDE double
#define LOAD(x) (x)
#define STORE(x) (x)
#define NAME f64
#define SYMBOL tor_resize_f64
#include "kernels/resize/interpolate_tmpl.h"

#define T uint16_t
#define WIDE float
#define LOAD(x) tor_f16_to_f32(x)
#define STORE(x) tor_f32_to_f16(x)
#define NAME f16
#define SYMBOL tor_resize_f16
#include "kernels/resize/interpolate_tmpl.h"

#define T uint16_t
#define WIDE float
#define LOAD(x) tor_bf16_to_f32(x)
#define STORE(x) tor_f32_to_bf16(x)
#define NAME bf16
#define SYMBOL tor_resize_bf16
#include "kernels/resize/interpolate_tmpl.h"
