// Shifts what a process reads as the wall clock by the seconds that stand in the file WALL_CLOCK_SHIFT; to be preloaded.
//
// faketime will not do: it shifts gettimeofday too, by which librdkafka computes until when it waits on a condition, but
// not the wait itself, which then spins, or lasts an hour. The service reads its clock by clock_gettime alone.
// Allocates nothing, since an allocator may ask for the time.

#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
  long status = syscall(SYS_clock_gettime, clock, now);
  const char *path = getenv("WALL_CLOCK_SHIFT");
  if (status != 0 || clock != CLOCK_REALTIME || path == NULL) {
    return (int)status;
  }
  char seconds[32] = {0};
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file >= 0) {
    if (read(file, seconds, sizeof seconds - 1) > 0) {
      now->tv_sec += strtol(seconds, NULL, 10);
    }
    close(file);
  }
  return 0;
}
