/// Commands of the program `toroid`: each is a file with the command's name.
#ifndef TOROID_CLI_COMMAND_H
#define TOROID_CLI_COMMAND_H

/// Exit codes; a wrong use of options ends with 64 (EX_USAGE).
enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_SIGNALLED = 128 };

/// @param argv  argv[0] is "toroid <command>"
/// @return the exit code
int cli_tune(int argc, char **argv);

#endif
