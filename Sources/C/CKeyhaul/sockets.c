#include "CSockets.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { backlog = 32 };

/// Closes a descriptor after a failed call, and keeps the reason in `errno`.
static int close_and_fail(int socket) {
  int reason = errno;
  close(socket);
  errno = reason;
  return -1;
}

/// Opens a stream socket that child processes do not inherit.
static int open_socket(int family) {
  int descriptor = socket(family, SOCK_STREAM, 0);
  if (descriptor < 0) return -1;
  if (fcntl(descriptor, F_SETFD, FD_CLOEXEC) < 0) return close_and_fail(descriptor);
#ifdef SO_NOSIGPIPE
  int on = 1;
  if (setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on) < 0) return close_and_fail(descriptor);
#endif
  return descriptor;
}

int keyhaul_listen_loopback(bool uses_ipv6, uint16_t *port) {
  int descriptor = open_socket(uses_ipv6 ? AF_INET6 : AF_INET);
  if (descriptor < 0) return -1;
  int on = 1;
  if (setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0) return close_and_fail(descriptor);
  struct sockaddr_storage address;
  memset(&address, 0, sizeof address);
  socklen_t length;
  if (uses_ipv6) {
    struct sockaddr_in6 *local = (struct sockaddr_in6 *)&address;
    local->sin6_family = AF_INET6;
    local->sin6_addr = in6addr_loopback;
    local->sin6_port = htons(*port);
    length = sizeof *local;
  } else {
    struct sockaddr_in *local = (struct sockaddr_in *)&address;
    local->sin_family = AF_INET;
    local->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    local->sin_port = htons(*port);
    length = sizeof *local;
  }
  if (bind(descriptor, (struct sockaddr *)&address, length) < 0 || listen(descriptor, backlog) < 0) {
    return close_and_fail(descriptor);
  }
  length = sizeof address;
  if (getsockname(descriptor, (struct sockaddr *)&address, &length) < 0) return close_and_fail(descriptor);
  *port = ntohs(
      uses_ipv6 ? ((struct sockaddr_in6 *)&address)->sin6_port : ((struct sockaddr_in *)&address)->sin_port);
  return descriptor;
}

static int address_of(const char *path, struct sockaddr_un *address) {
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  if (strlen(path) >= sizeof address->sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  strcpy(address->sun_path, path);
  return 0;
}

int keyhaul_listen_path(const char *path) {
  struct sockaddr_un address;
  if (address_of(path, &address) < 0) return -1;
  int descriptor = open_socket(AF_UNIX);
  if (descriptor < 0) return -1;
  mode_t mask = umask(0177);
  int status = bind(descriptor, (struct sockaddr *)&address, sizeof address);
  umask(mask);
  if (status < 0 || listen(descriptor, backlog) < 0) return close_and_fail(descriptor);
  return descriptor;
}

int keyhaul_connect_path(const char *path) {
  struct sockaddr_un address;
  if (address_of(path, &address) < 0) return -1;
  int descriptor = open_socket(AF_UNIX);
  if (descriptor < 0) return -1;
  if (connect(descriptor, (struct sockaddr *)&address, sizeof address) < 0) return close_and_fail(descriptor);
  return descriptor;
}

int keyhaul_connect_loopback(uint16_t port) {
  int descriptor = open_socket(AF_INET);
  if (descriptor < 0) return -1;
  struct sockaddr_in address;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (connect(descriptor, (struct sockaddr *)&address, sizeof address) < 0) return close_and_fail(descriptor);
  return descriptor;
}

int keyhaul_accept(int listener, int write_seconds) {
  struct sockaddr_storage peer;
  socklen_t length = sizeof peer;
  int descriptor = accept(listener, (struct sockaddr *)&peer, &length);
  if (descriptor < 0) return -1;
  int on = 1;
  struct timeval limit = {.tv_sec = write_seconds, .tv_usec = 0};
  if (fcntl(descriptor, F_SETFD, FD_CLOEXEC) < 0) return close_and_fail(descriptor);
#ifdef SO_NOSIGPIPE
  if (setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on) < 0) return close_and_fail(descriptor);
#endif
  if (setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) < 0) return close_and_fail(descriptor);
  if (peer.ss_family != AF_UNIX) setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return descriptor;
}

int keyhaul_wait_readable(int socket, int milliseconds) {
  struct pollfd wait = {.fd = socket, .events = POLLIN, .revents = 0};
  int count = poll(&wait, 1, milliseconds);
  return count > 0 ? 1 : count;
}

ssize_t keyhaul_send(int socket, const void *bytes, size_t count) {
#ifdef MSG_NOSIGNAL
  return send(socket, bytes, count, MSG_NOSIGNAL);
#else
  return send(socket, bytes, count, 0);
#endif
}

void keyhaul_shut_down(int socket) { shutdown(socket, SHUT_RDWR); }
