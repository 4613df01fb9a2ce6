/// Plugins: shared objects with one symbol, found in the folders of TOROID_BACKEND_PATH.
#ifndef TOR_BASE_PLUGIN_H
#define TOR_BASE_PLUGIN_H

#include "base/names.h"

/// What all plugins of one kind are like: files <prefix><name>.so, whose symbol is a struct that
/// begins with its own size.
typedef struct {
    const char *prefix;  ///< "toroid_backend_"
    const char *symbol;  ///< "toroid_backend"
    const char *type;    ///< of the symbol, for messages: "ToroidBackend"
    /// Takes a plugin that has as many bytes as it says.
    /// @return TOROID_INVALID with the reason where it is refused; the object is closed then
    ToroidStatus (*take)(const void *plugin, const char *name);
} TorPluginKind;

/// Adds the names of all plugins of a kind; loads nothing. Folders that are refused are passed
/// over.
ToroidStatus tor_plugin_list(const TorPluginKind *kind, TorNames *names);

/// Loads the plugin of that name and has it taken. A plugin of that name in a later folder is not
/// looked at.
/// @param found    false with TOROID_OK: no folder has it
/// @param refused  why folders were passed over: "; <folder>: <reason>" for each
/// @return TOROID_INVALID with the file and the reason where it is refused
ToroidStatus tor_plugin_load(const TorPluginKind *kind, const char *name, bool *found,
                             TorText *refused);

#endif
