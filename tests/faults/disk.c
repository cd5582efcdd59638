/* A disk that fills up, or a machine that dies, at a chosen write: preloaded into a process and all that it starts.

   FAULT_FOLDER   writes to files in here count: all that need space or change names (see below)
   FAULT_COUNT    a file of 8 bytes that processes share: how many writes there were
   FAULT_AT       from this write on the disk is full, or at it the process is killed; 0: they are only counted
   FAULT_HOW      full: the call fails with ENOSPC, and so do all after it (deleting works, as on a full disk);
                  once: only this call fails; kill: half of what is written gets there, then SIGKILL

   Polars and others write from native code: they too call these functions of libc. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static char folder[PATH_MAX];
static size_t length;
static _Atomic long *count;
static long at;
static char how;

#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) void fault_arm(void) {
    const char *where = getenv("FAULT_FOLDER"), *shared = getenv("FAULT_COUNT");
    const char *when = getenv("FAULT_AT"), *what = getenv("FAULT_HOW");
    length = 0;
    if (!where || !shared || !when || !what) return;
    int file = open(shared, O_RDWR | O_CLOEXEC);
    if (file < 0) return;
    count = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (count == MAP_FAILED) return;
    at = atol(when);
    how = what[0];
    snprintf(folder, sizeof folder, "%s", where);
    length = strlen(folder);
}

static int within(const char *path) { return !strncmp(path, folder, length) && (path[length] == '/' || !path[length]); }

static int path_counts(int base, const char *path) {
    char whole[2 * PATH_MAX], from[64];
    if (!length || !path) return 0;
    if (path[0] == '/') return within(path);
    if (base == AT_FDCWD) {
        if (!getcwd(whole, PATH_MAX)) return 0;
    } else {
        snprintf(from, sizeof from, "/proc/self/fd/%d", base);
        ssize_t n = readlink(from, whole, PATH_MAX - 1);
        if (n < 0) return 0;
        whole[n] = 0;
    }
    size_t n = strlen(whole);
    snprintf(whole + n, sizeof whole - n, "/%s", path);
    return within(whole);
}

static int file_counts(int file) {
    char from[64], path[PATH_MAX];
    if (!length) return 0;
    snprintf(from, sizeof from, "/proc/self/fd/%d", file);
    int before = errno;
    ssize_t n = readlink(from, path, sizeof path - 1);
    errno = before;
    if (n < 0) return 0;
    path[n] = 0;
    return within(path);
}

/* One more write: 0 if it is to be done, 1 if the disk is full, 2 if the process is to die at it. */
static int fate(void) {
    long now = atomic_fetch_add(count, 1) + 1;
    if (!at || now < at || (how != 'f' && now > at)) return 0;
    return how == 'k' ? 2 : 1;
}

static void die(void) { kill(getpid(), SIGKILL); pause(); }

#define AFTER(counts, failed) do { if (counts) switch (fate()) { \
    case 1: errno = ENOSPC; return failed; \
    case 2: die(); } } while (0)

ssize_t write(int file, const void *data, size_t n) {
    REAL(write);
    if (file_counts(file)) switch (fate()) {
        case 1: errno = ENOSPC; return -1;
        case 2: real(file, data, n / 2); die();
    }
    return real(file, data, n);
}

ssize_t pwrite(int file, const void *data, size_t n, off_t offset) {
    REAL(pwrite);
    if (file_counts(file)) switch (fate()) {
        case 1: errno = ENOSPC; return -1;
        case 2: real(file, data, n / 2, offset); die();
    }
    return real(file, data, n, offset);
}
ssize_t pwrite64(int file, const void *data, size_t n, off64_t offset) { return pwrite(file, data, n, offset); }

ssize_t writev(int file, const struct iovec *parts, int n) {
    REAL(writev);
    if (file_counts(file)) switch (fate()) {
        case 1: errno = ENOSPC; return -1;
        case 2: real(file, parts, n / 2); die();
    }
    return real(file, parts, n);
}

ssize_t pwritev(int file, const struct iovec *parts, int n, off_t offset) {
    REAL(pwritev);
    AFTER(file_counts(file), -1);
    return real(file, parts, n, offset);
}
ssize_t pwritev64(int file, const struct iovec *parts, int n, off64_t offset) { return pwritev(file, parts, n, offset); }

int ftruncate(int file, off_t n) { REAL(ftruncate); AFTER(file_counts(file), -1); return real(file, n); }
int ftruncate64(int file, off64_t n) { return ftruncate(file, n); }
int posix_fallocate(int file, off_t from, off_t n) {
    REAL(posix_fallocate);
    AFTER(file_counts(file), ENOSPC);
    return real(file, from, n);
}
int posix_fallocate64(int file, off64_t from, off64_t n) { return posix_fallocate(file, from, n); }
ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *to, size_t n, unsigned flags) {
    REAL(copy_file_range);
    AFTER(file_counts(out), -1);
    return real(in, from, out, to, n, flags);
}
ssize_t sendfile(int out, int in, off_t *from, size_t n) { REAL(sendfile); AFTER(file_counts(out), -1); return real(out, in, from, n); }
ssize_t sendfile64(int out, int in, off64_t *from, size_t n) { return sendfile(out, in, from, n); }

int fsync(int file) { REAL(fsync); AFTER(file_counts(file), -1); return real(file); }
int fdatasync(int file) { REAL(fdatasync); AFTER(file_counts(file), -1); return real(file); }

int openat(int base, const char *path, int flags, ...) {
    REAL(openat);
    va_list more;
    va_start(more, flags);
    mode_t mode = va_arg(more, mode_t);
    va_end(more);
    AFTER((flags & O_CREAT) && path_counts(base, path), -1);
    return real(base, path, flags, mode);
}
int openat64(int base, const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = va_arg(more, mode_t);
    va_end(more);
    return openat(base, path, flags, mode);
}
int open(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = va_arg(more, mode_t);
    va_end(more);
    return openat(AT_FDCWD, path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = va_arg(more, mode_t);
    va_end(more);
    return openat(AT_FDCWD, path, flags, mode);
}
int creat(const char *path, mode_t mode) { return openat(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

int mkdirat(int base, const char *path, mode_t mode) {
    REAL(mkdirat);
    AFTER(path_counts(base, path), -1);
    return real(base, path, mode);
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
    REAL(renameat2);
    AFTER(path_counts(to, new), -1);
    return real(from, old, to, new, flags);
}
int renameat(int from, const char *old, int to, const char *new) { return renameat2(from, old, to, new, 0); }
int rename(const char *old, const char *new) { return renameat2(AT_FDCWD, old, AT_FDCWD, new, 0); }

int linkat(int from, const char *old, int to, const char *new, int flags) {
    REAL(linkat);
    AFTER(path_counts(to, new), -1);
    return real(from, old, to, new, flags);
}
int link(const char *old, const char *new) { return linkat(AT_FDCWD, old, AT_FDCWD, new, 0); }
int symlinkat(const char *what, int base, const char *path) {
    REAL(symlinkat);
    AFTER(path_counts(base, path), -1);
    return real(what, base, path);
}
int symlink(const char *what, const char *path) { return symlinkat(what, AT_FDCWD, path); }
