/// What has to be as it was for a result to be worth anything: rows "Validator,<key>,<value>" of
/// the file.
#ifndef TOR_TUNE_VALIDATORS_H
#define TOR_TUNE_VALIDATORS_H

#include "base/text.h"

enum { TOR_VALIDATORS = 24 };

typedef struct {
    char key[64], value[192];
} TorValidator;

/// The validators of this process, now: also one for each provider in use.
int tor_validators(TorValidator out[TOR_VALIDATORS]);
void tor_validators_print(TorText *text);
/// Compares with the rows of a file.
/// @param differs  what the first difference is, for people
bool tor_validators_match(const char *text, size_t bytes, char *differs, size_t differs_bytes);

#endif
