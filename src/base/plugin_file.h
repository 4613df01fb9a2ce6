/// What plugin.c asks of files: may a folder or a shared object be trusted, and is it a plugin?
#ifndef TOR_BASE_PLUGIN_FILE_H
#define TOR_BASE_PLUGIN_FILE_H

#include "base/plugin.h"

/// @return TOROID_INVALID with the reason why nothing is taken from there
ToroidStatus tor_plugin_check_folder(const char *folder);
/// Also true for a link that leads nowhere.
bool tor_plugin_file_exists(const char *file);
/// Checks, loads and has it taken. What was refused is closed again.
ToroidStatus tor_plugin_open(const TorPluginKind *kind, const char *file, const char *name);

#endif
