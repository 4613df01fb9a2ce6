/// Backends in shared objects, found in the folders of TOROID_BACKEND_PATH.
#ifndef TOR_BACKEND_PLUGIN_H
#define TOR_BACKEND_PLUGIN_H

#include "backend/names.h"

/// Adds the names of all plugins; loads nothing. Folders that are refused are passed over.
ToroidStatus tor_plugin_list(TorNames *names);

/// Loads the plugin of that name into the table of backends. A plugin of that name in a later
/// folder is not looked at.
/// @param found    false with TOROID_OK: no folder has it
/// @param refused  why folders were passed over: "; <folder>: <reason>" for each
/// @return TOROID_INVALID with the file and the reason where it is refused
ToroidStatus tor_plugin_load(const char *name, bool *found, TorText *refused);

#endif
