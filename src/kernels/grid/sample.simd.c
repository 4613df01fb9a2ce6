/// Sampling at the places of a grid, made for each float type by template.
#include "base/simd.h"
#include "kernels/grid/contract.h"

#define FAMILY tor_grid
#define TEMPLATE "kernels/grid/sample_tmpl.h"
#include "base/each_float.h"
