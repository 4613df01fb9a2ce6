"""Plugins in C for tests, made when a test runs."""

from __future__ import annotations

import ctypes

from c_library import CC, ROOT, run

SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include "toroid/backend.h"
static int hooks;
static ToroidStatus init(const ToroidHost *host, void *user) {
    char text[20];
    (void)user;
    if (getenv("NAME_FAILS")) return host->set_error(TOROID_FAILED, "NAME has no device");
    snprintf(text, sizeof text, "%d", ++hooks);
    setenv("NAME_HOOKS", text, 1);
    return TOROID_OK;
}
static ToroidStatus compile(const ToroidHost *host, void *user, ToroidExecutable **out,
                            ToroidGraph **graph, const ToroidOptions *options) {
    char text[20];
    (void)user;
    snprintf(text, sizeof text, "%d", options->threads);
    setenv("NAME_THREADS", text, 1);
    BODY
}
static const char *const tags[] = {"TAG", NULL};
TOROID_API const ToroidBackend toroid_backend = {
    sizeof(ToroidBackend), TOROID_BACKEND_ABI, "NAME", compile, tags, init, NULL};
"""
TAKE = "return host->compile(out, graph, options);"
REFUSE = 'return host->set_error(TOROID_UNSUPPORTED, "NAME takes nothing");'
FAIL = 'return host->set_error(TOROID_FAILED, "NAME is broken");'


def shared(target, source, *flags):
    """Compile C into a shared object that nobody else can write."""
    file = target.with_suffix(".c")
    file.write_text(source)
    run(CC, "-std=gnu99", f"-I{ROOT / 'include'}", "-fPIC", "-shared", *flags, file, "-o", target)
    target.chmod(0o755)
    return target


def build(folder, name, body, tag):
    """A plugin of that name whose compile function is `body`."""
    text = SOURCE.replace("BODY", body).replace("NAME", name).replace("TAG", tag)
    shared(folder / f"toroid_backend_{name}.so", text)


def environment(name):
    """What a plugin left in C's environment, which Python's os.environ does not follow."""
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_char_p
    value = getenv(name.encode())
    return value and value.decode()
