// Loaded before libc (LD_PRELOAD) by runs of the storm: system calls that fail, and a clock that jumps.
//
//   STORM_CALLS_IN=TEXT     calls that concern a path with TEXT in it are counted, in each process
//   STORM_CALL=N            at the Nth of them …
//   STORM_CALL_DOES=WHAT    eio, enospc: this one and all later ones fail; short: a write takes half of its bytes;
//                           kill: the process kills itself before it; stop: it stops itself
//   STORM_CALL_TELLS=FILE   is then made, with the call's name in it
//   STORM_CLOCK_AFTER=S     so many seconds after the start the clock of the calendar jumps …
//   STORM_CLOCK_JUMP=S      … by so many seconds
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
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

// The function of this name that would have been called without this library.
#define REAL(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

static atomic_int calls;

// Leaves no file descriptor, and calls nothing that is wrapped here.
static void tell(const char* name) {
  const char* const path = getenv("STORM_CALL_TELLS");
  if (path == NULL) return;
  const int file = REAL(open)(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return;
  if (REAL(write)(file, name, strlen(name)) < 0) abort();
  close(file);
}

enum { GO_ON, FAIL, SHORT };

// What is to become of a call that concerns this path; sets errno for FAIL.
static int fate(const char* name, const char* path) {
  const char* const wanted = getenv("STORM_CALLS_IN");
  const char* const number = getenv("STORM_CALL");
  const char* const does = getenv("STORM_CALL_DOES");
  if (wanted == NULL || number == NULL || does == NULL || path == NULL || strstr(path, wanted) == NULL) return GO_ON;
  const int count = atomic_fetch_add(&calls, 1) + 1, at = atoi(number);
  if (count < at) return GO_ON;
  if (count == at) tell(name);
  if (strcmp(does, "eio") == 0 || strcmp(does, "enospc") == 0) {
    errno = strcmp(does, "eio") == 0 ? EIO : ENOSPC;
    return FAIL;
  }
  if (strcmp(does, "short") == 0) return SHORT;
  if (count == at) kill(getpid(), strcmp(does, "stop") == 0 ? SIGSTOP : SIGKILL);
  return GO_ON;
}

static int fate_of_file(const char* name, int file) {
  if (getenv("STORM_CALL") == NULL) return GO_ON;
  char link[40], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return GO_ON;
  path[length] = 0;
  return fate(name, path);
}

static size_t half(size_t bytes, int what) { return what == SHORT && bytes > 1 ? bytes / 2 : bytes; }

ssize_t write(int file, const void* data, size_t bytes) {
  const int what = fate_of_file("write", file);
  return what == FAIL ? -1 : REAL(write)(file, data, half(bytes, what));
}

ssize_t pwrite(int file, const void* data, size_t bytes, off_t at) {
  const int what = fate_of_file("pwrite", file);
  return what == FAIL ? -1 : REAL(pwrite)(file, data, half(bytes, what), at);
}

ssize_t writev(int file, const struct iovec* parts, int count) {
  const int what = fate_of_file("writev", file);
  return what == FAIL ? -1 : REAL(writev)(file, parts, what == SHORT && count > 1 ? count / 2 : count);
}

int fsync(int file) { return fate_of_file("fsync", file) == FAIL ? -1 : REAL(fsync)(file); }

int fdatasync(int file) { return fate_of_file("fdatasync", file) == FAIL ? -1 : REAL(fdatasync)(file); }

int ftruncate(int file, off_t length) {
  return fate_of_file("ftruncate", file) == FAIL ? -1 : REAL(ftruncate)(file, length);
}

int fallocate(int file, int mode, off_t from, off_t length) {
  return fate_of_file("fallocate", file) == FAIL ? -1 : REAL(fallocate)(file, mode, from, length);
}

// Files that are only read are left alone.
int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(list, mode_t) : 0;
  va_end(list);
  if ((flags & O_ACCMODE) != O_RDONLY && fate("open", path) == FAIL) return -1;
  return REAL(open)(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(list, mode_t) : 0;
  va_end(list);
  if ((flags & O_ACCMODE) != O_RDONLY && fate("open", path) == FAIL) return -1;
  return REAL(open64)(path, flags, mode);
}

int mkdir(const char* path, mode_t mode) { return fate("mkdir", path) == FAIL ? -1 : REAL(mkdir)(path, mode); }

int rename(const char* from, const char* to) { return fate("rename", to) == FAIL ? -1 : REAL(rename)(from, to); }

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  return fate("renameat2", to) == FAIL ? -1 : REAL(renameat2)(from_folder, from, to_folder, to, flags);
}

// ---- the clock ----

// What is to be added now; 0 before the jump.
static long jump(void) {
  static atomic_long start;  // of this process, in seconds that no jump changes; 0: not known yet
  const char* const after = getenv("STORM_CLOCK_AFTER");
  const char* const by = getenv("STORM_CLOCK_JUMP");
  if (after == NULL || by == NULL) return 0;
  struct timespec now;
  REAL(clock_gettime)(CLOCK_MONOTONIC, &now);
  const long milliseconds = now.tv_sec * 1000 + now.tv_nsec / 1000000;
  long unknown = 0;
  atomic_compare_exchange_strong(&start, &unknown, milliseconds);
  return milliseconds - atomic_load(&start) < (long)(atof(after) * 1000) ? 0 : atol(by);
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  const int code = REAL(clock_gettime)(clock, time);
  if (code == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += jump();
  return code;
}

int gettimeofday(struct timeval* restrict time, void* restrict zone) {
  const int code = REAL(gettimeofday)(time, zone);
  if (code == 0) time->tv_sec += jump();
  return code;
}

time_t time(time_t* result) {
  const time_t now = REAL(time)(NULL) + jump();
  if (result != NULL) *result = now;
  return now;
}
