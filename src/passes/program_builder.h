/// Turns nodes of the graph into a pointwise program, one node at a time.
#ifndef TOR_PASSES_PROGRAM_BUILDER_H
#define TOR_PASSES_PROGRAM_BUILDER_H

#include "base/program.h"
#include "graph/graph.h"

enum { TOR_BUILDER_VALUES = 96 };

typedef struct {
    TorGraph *g;
    TorProgram program;
    TorValue *input[TOR_PROGRAM_INPUTS];  ///< what each program input reads
    int n_values;
    struct {
        const TorValue *value;
        TorOperand operand;
        int stage;  ///< first stage that may use it
    } values[TOR_BUILDER_VALUES];
} TorProgramBuilder;

void tor_builder_begin(TorProgramBuilder *b, TorGraph *g);
/// Declares that `value` arrives as program input 0 (the accumulator of an epilogue, float32).
void tor_builder_accumulator(TorProgramBuilder *b, TorValue *value);
/// Adds one MAP, REDUCE or ROW node; operands that no earlier node made become inputs.
/// @return TOROID_UNSUPPORTED if the program is full: the builder is then of no more use
ToroidStatus tor_builder_node(TorProgramBuilder *b, const TorNode *node);
/// Makes `value`, which an added node computed, a program output. `row`: it has one element a row.
ToroidStatus tor_builder_output(TorProgramBuilder *b, const TorValue *value, bool row);
/// Instructions and reductions that adding the node will take at most.
int tor_builder_cost(const TorNode *node);

#endif
