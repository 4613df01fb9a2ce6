/// Other libraries that offer products (toroid/provider.h): which are there, and which are in use.
///
/// PROVIDERS of the settings names those that are asked for. They are loaded when the tuner is
/// first asked anything; one that cannot be had costs a warning. Entries are never removed.
#ifndef TOR_TUNE_PROVIDERS_H
#define TOR_TUNE_PROVIDERS_H

#include "toroid/provider.h"
#include "tune/settings.h"

enum { TOR_PROVIDERS = 8 };

typedef struct TorProvider TorProvider;

/// Loads what the settings ask for, and notes what no longer is. What the program asks for anew is
/// tried anew. Any thread.
void tor_providers_update(const TorTuneSettings *settings);
/// Changes when a provider comes into use or goes: what was chosen before may be out of date.
uint64_t tor_providers_generation(void);

/// All that this process has seen, in the order in which they came; NULL past the last.
const TorProvider *tor_provider_at(int number);
/// Asked for, loaded, and no call of a run has failed since.
bool tor_provider_is_usable(const TorProvider *provider);
/// What a row of the file calls it: "provider:cblas".
const char *tor_provider_solution(const TorProvider *provider);

/// The validator of a provider that is asked for and was loaded.
/// @return false where it is not
bool tor_provider_validator(const TorProvider *provider, char *key, size_t key_bytes,
                            const char **version);

ToroidStatus tor_provider_gemm(const TorProvider *provider, const ToroidProduct *product);
/// A call failed in a run, with this thread's message: one warning, and it is not usable any more.
void tor_provider_broke(const TorProvider *provider);

/// Adds a copy.
/// @return TOROID_INVALID where the name is taken
ToroidStatus tor_provider_add(const ToroidProvider *provider);

#endif
