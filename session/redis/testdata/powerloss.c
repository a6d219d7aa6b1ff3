// powerloss makes the death of a process as bad as a power cut. What is written
// to an append-only file stays in this process until the file is synced; so
// whatever was not synced dies with it.
//
// cc -shared -fPIC -o powerloss.so powerloss.c; LD_PRELOAD=…/powerloss.so redis-server …
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *held;
static size_t size, room;
static int owner = -1; // the file that is held back

static int is_log(int fd) {
  char link[64], path[512];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  if (n < 0) return 0;
  path[n] = 0;
  return strstr(path, ".incr.aof") != NULL;
}

// pour writes what is held; the lock is held.
static void pour(void) {
  for (size_t done = 0; done < size;) {
    ssize_t n = syscall(SYS_write, owner, held + done, size - done);
    if (n <= 0) abort();
    done += n;
  }
  size = 0;
}

ssize_t write(int fd, const void *data, size_t n) {
  if (!is_log(fd)) return syscall(SYS_write, fd, data, n);
  pthread_mutex_lock(&lock);
  if (owner != fd) pour();
  owner = fd;
  if (size + n > room) {
    room = 2 * (size + n);
    held = realloc(held, room);
    if (!held) abort();
  }
  memcpy(held + size, data, n);
  size += n;
  pthread_mutex_unlock(&lock);
  return n;
}

static int sync_with(long call, int fd) {
  pthread_mutex_lock(&lock);
  if (fd == owner) pour();
  pthread_mutex_unlock(&lock);
  return syscall(call, fd);
}

int fdatasync(int fd) { return sync_with(SYS_fdatasync, fd); }
int fsync(int fd) { return sync_with(SYS_fsync, fd); }

int close(int fd) {
  pthread_mutex_lock(&lock);
  if (fd == owner) pour(), owner = -1;
  pthread_mutex_unlock(&lock);
  return syscall(SYS_close, fd);
}
