// Feature masks, and the CPU share in made-up control groups.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/cpu_quota.h"

static void test_mask_only_removes(void **state) {
    (void)state;
    uint32_t all = tor_cpu_features();
    for (int bit = 0; bit < 32; bit++) {
        tor_cpu_mask(1u << bit);
        uint32_t left = tor_cpu_features();
        assert_int_equal(left & ~all, 0);
        assert_int_equal(left & 1u << bit, 0);
    }
    tor_cpu_mask(UINT32_MAX);
    assert_int_equal(tor_cpu_features(), TOR_CPU_baseline);
    // Code for AVX-512 uses AVX2 too.
    tor_cpu_mask(TOR_CPU_avx2);
    assert_int_equal(tor_cpu_features() & (TOR_CPU_avx512 | TOR_CPU_amx_bf16), 0);
    tor_cpu_mask(0);
    assert_int_equal(tor_cpu_features(), all);
}

// The environment is read once, so each mask is tried in a child that starts anew.
static uint32_t features_under(const char *self, const char *mask) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        setenv("TOROID_CPU_MASK", mask, 1);
        execl(self, self, "--features", (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    char text[32] = "";
    assert_true(read(ends[0], text, sizeof text - 1) > 0);
    close(ends[0]);
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    return (uint32_t)strtoul(text, NULL, 16);
}

static void test_environment(void **state) {
    const char *self = *state;
    uint32_t all = features_under(self, "");
    assert_int_equal(features_under(self, "all"), 0);
    assert_int_equal(features_under(self, "fma, neon") & (TOR_CPU_fma | TOR_CPU_neon), 0);
    assert_int_equal(features_under(self, "sve,avx512"),
                     features_under(self, "avx512,sve,no_such_feature"));
    assert_int_equal(features_under(self, "avx512vnni") | TOR_CPU_avx512vnni,
                     all | TOR_CPU_avx512vnni);
}

static void test_names(void **state) {
    (void)state;
    char text[64];
    assert_string_equal(tor_cpu_feature_names(TOR_CPU_avx2 | TOR_CPU_f16c, text, sizeof text),
                        "avx2 f16c");
    assert_string_equal(tor_cpu_feature_names(0, text, sizeof text), "");
    assert_string_equal(tor_cpu_feature_names(UINT32_MAX, text, 9), "avx2 fma");
}

static void test_machine(void **state) {
    (void)state;
    assert_true(strlen(tor_cpu_model()) > 0);
    assert_in_range(tor_cpu_l1d(), 4 << 10, 4 << 20);
    assert_in_range(tor_cpu_l2(), 64 << 10, 512 << 20);
    assert_true(tor_cpu_l3() >= 256 << 10);
    assert_in_range(tor_cpu_count(), 1, sysconf(_SC_NPROCESSORS_CONF));
}

static char root[] = "/tmp/toroid_cpu_XXXXXX";

static void put(const char *path, const char *text) {
    char full[512];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *slash = full + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(full, 0700);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static double quota(const char *tree, const char *membership) {
    char file[512], mount[512];
    put("membership", membership);
    snprintf(file, sizeof file, "%s/membership", root);
    snprintf(mount, sizeof mount, "%s/%s", root, tree);
    return tor_cpu_quota(file, mount);
}

static void test_quota(void **state) {
    (void)state;
    assert_non_null(mkdtemp(root));
    put("two/cpu.max", "max 100000\n");
    put("two/a/cpu.max", "150000 100000\n");
    put("two/a/b/cpu.max", "400000 100000\n");
    put("two/c/d/cpu.max", "50000 100000\n");
    // A parent's limit holds for its children.
    assert_true(quota("two", "0::/a/b\n") == 1.5);
    assert_true(quota("two", "0::/a\n") == 1.5);
    assert_true(quota("two", "0::/c/d\n") == 0.5);
    assert_true(quota("two", "0::/\n") == HUGE_VAL);
    // A path that only the host sees, in a container whose own group is the mount.
    put("container/cpu.max", "300000 100000\n");
    assert_true(quota("container", "0::/docker/0123\n") == 3);
    assert_true(quota("container", "0::/../../x\n") == 3);
    put("one/cpu,cpuacct/s/cpu.cfs_quota_us", "250000\n");
    put("one/cpu,cpuacct/s/cpu.cfs_period_us", "100000\n");
    put("one/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    put("one/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    assert_true(quota("one", "7:cpuset:/\n4:cpu,cpuacct:/s\n1:name=systemd:/s\n") == 2.5);
    assert_true(quota("one", "4:cpu,cpuacct:/\n") == HUGE_VAL);
    put("alone/cpu/cpu.cfs_quota_us", "100000\n");
    put("alone/cpu/cpu.cfs_period_us", "50000\n");
    assert_true(quota("alone", "4:cpuacct,cpu:/t\n0::/t\n") == 2);
    put("hybrid/unified/u/cpu.max", "700000 100000\n");
    assert_true(quota("hybrid", "0::/u\n") == 7);
    assert_true(quota("two", "nonsense\n") == HUGE_VAL);
    assert_true(tor_cpu_quota("/no/such/file", "/no/such/folder") == HUGE_VAL);
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", root);
    assert_int_equal(system(command), 0);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--features") == 0) {
        printf("%x\n", tor_cpu_features());
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mask_only_removes),
        cmocka_unit_test_prestate(test_environment, argv[0]),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_machine),
        cmocka_unit_test(test_quota),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
