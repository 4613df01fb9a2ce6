/// Linear and cubic interpolation of one line at a time: made for each float type by template.
/// Loops are plain; each level's compiler makes vectors of them.
#include "base/dtype.h"
#include "base/simd.h"
#include "kernels/resize/line.h"

#define FAMILY tor_resize
#define TEMPLATE "kernels/resize/interpolate_tmpl.h"
#include "base/each_float.h"
