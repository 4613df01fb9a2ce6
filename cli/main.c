// toroid COMMAND [ARGUMENT...]: finds the command and hands over.
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "command.h"

/// Found by argp in the program's dynamic symbols.
__attribute__((visibility("default"))) const char *argp_program_version = "toroid " TOR_VERSION;

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"tune", cli_tune},
};

static int run(const char *name, int argc, char **argv) {
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(commands[i].name, name) != 0) continue;
        char title[64];
        snprintf(title, sizeof title, "toroid %s", name);
        argv[0] = title;
        return commands[i].run(argc, argv);
    }
    return -1;
}

/// The first word that is no option is a command; what follows it is the command's.
static error_t parse(int key, char *argument, struct argp_state *state) {
    int *code = state->input;
    switch (key) {
        case ARGP_KEY_ARG: {
            int first = state->next - 1;
            *code = run(argument, state->argc - first, state->argv + first);
            if (*code < 0) argp_error(state, "there is no command '%s'", argument);
            state->next = state->argc;
            return 0;
        }
        case ARGP_KEY_NO_ARGS: argp_usage(state); return 0;
        default: return ARGP_ERR_UNKNOWN;
    }
}

int main(int argc, char **argv) {
    int code = CLI_FAILED;
    static const struct argp argp = {
        .parser = parse,
        .args_doc = "COMMAND [ARGUMENT...]",
        .doc =
            "Toroid makes PyTorch models fast on CPUs.\v"
            "Commands:\n"
            "  tune    measure which kernels are the fastest for recorded operators\n\n"
            "'toroid COMMAND --help' tells more.",
    };
    argp_err_exit_status = EX_USAGE;
    if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &code) != 0) return CLI_FAILED;
    return code;
}
