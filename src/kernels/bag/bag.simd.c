/// Bags of rows, made for each float type by template. Loops are plain; each level's compiler
/// makes vectors of them.
#include <math.h>

#include "base/simd.h"
#include "kernels/bag/contract.h"

#define FAMILY tor_bag
#define TEMPLATE "kernels/bag/bag_tmpl.h"
#include "base/each_float.h"
