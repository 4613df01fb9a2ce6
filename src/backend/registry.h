/// The table of backends of this process, and the plugins that may join it.
#ifndef TOR_BACKEND_REGISTRY_H
#define TOR_BACKEND_REGISTRY_H

#include "base/plugin.h"
#include "toroid/backend.h"

/// The struct as this version has it: checked, and cleared where it is shorter than ours.
ToroidStatus tor_backend_read(ToroidBackend *out, const ToroidBackend *backend);

/// Adds a copy.
/// @return TOROID_INVALID where the name is taken
ToroidStatus tor_registry_add(const ToroidBackend *backend);
/// The entry of that name, never freed; NULL if there is none.
const ToroidBackend *tor_registry_find(const char *name);
/// Adds the names of all entries that have none of these tags.
ToroidStatus tor_registry_list(TorNames *names, const char *const *exclude_tags);

/// Backends in shared objects, which join the table when they are loaded.
extern const TorPluginKind tor_backend_plugins;

#endif
