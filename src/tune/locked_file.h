/// A text file that any number of processes append to, under a lock (flock) that ends with the
/// process.
///
/// What a process was killed in the middle of appending does not end in a newline; the next one to
/// append cuts it off. A last line that a user wrote without a newline is kept: of a write of a few
/// hundred bytes, a kill can cut no part but whole pages, so what it leaves ends where a page does.
#ifndef TOR_TUNE_LOCKED_FILE_H
#define TOR_TUNE_LOCKED_FILE_H

#include "tune/settings.h"

typedef struct {
    int file;
    char path[TOR_TUNE_PATH];
    bool exists;   ///< false: tor_locked_open() was to read, and there is none
    char *text;    ///< what is in it, less a part that was left by a kill; ends in 0
    size_t bytes;  ///< of `text`
} TorLockedFile;

typedef enum { TOR_LOCKED_READ, TOR_LOCKED_APPEND } TorLockedUse;

/// Waits for the lock and reads the file; to append, makes it where there is none.
/// @return TOROID_FAILED with the path and the reason; nothing is to be closed then
ToroidStatus tor_locked_open(TorLockedFile *f, const char *path, TorLockedUse use);
/// Whole or not at all: what a full disk cut is taken back. `text` ends in a newline.
ToroidStatus tor_locked_append(TorLockedFile *f, const char *text, size_t bytes);
/// Gives the file a name that is free, "<stem>.stale-<n><extension>", which is put into `name`. The
/// lock stays with the file; who waits for it notices.
ToroidStatus tor_locked_set_aside(TorLockedFile *f, char name[TOR_TUNE_PATH]);
/// Accepts what tor_locked_open() failed to open.
void tor_locked_close(TorLockedFile *f);

#endif
