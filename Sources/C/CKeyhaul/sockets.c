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

/// Closes a descriptor and keeps the reason of the call before.
static int failed(int socket) {
  int reason = errno;
  close(socket);
  errno = reason;
  return -1;
}

static int opened(int family) {
  int made = socket(family, SOCK_STREAM, 0);
  if (made < 0) return -1;
  if (fcntl(made, F_SETFD, FD_CLOEXEC) < 0) return failed(made);
#ifdef SO_NOSIGPIPE
  int on = 1;
  if (setsockopt(made, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on) < 0) return failed(made);
#endif
  return made;
}

int keyhaul_listen_loopback(bool version6, uint16_t *port) {
  int made = opened(version6 ? AF_INET6 : AF_INET);
  if (made < 0) return -1;
  int on = 1;
  if (setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0) return failed(made);
  struct sockaddr_storage address;
  memset(&address, 0, sizeof address);
  socklen_t length;
  if (version6) {
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
  if (bind(made, (struct sockaddr *)&address, length) < 0 || listen(made, backlog) < 0) return failed(made);
  length = sizeof address;
  if (getsockname(made, (struct sockaddr *)&address, &length) < 0) return failed(made);
  *port = ntohs(
      version6 ? ((struct sockaddr_in6 *)&address)->sin6_port : ((struct sockaddr_in *)&address)->sin_port);
  return made;
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
  int made = opened(AF_UNIX);
  if (made < 0) return -1;
  mode_t mask = umask(0177);
  int status = bind(made, (struct sockaddr *)&address, sizeof address);
  umask(mask);
  if (status < 0 || listen(made, backlog) < 0) return failed(made);
  return made;
}

int keyhaul_connect_path(const char *path) {
  struct sockaddr_un address;
  if (address_of(path, &address) < 0) return -1;
  int made = opened(AF_UNIX);
  if (made < 0) return -1;
  if (connect(made, (struct sockaddr *)&address, sizeof address) < 0) return failed(made);
  return made;
}

int keyhaul_connect_loopback(uint16_t port) {
  int made = opened(AF_INET);
  if (made < 0) return -1;
  struct sockaddr_in address;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (connect(made, (struct sockaddr *)&address, sizeof address) < 0) return failed(made);
  return made;
}

int keyhaul_accept(int listener, int write_seconds) {
  struct sockaddr_storage peer;
  socklen_t length = sizeof peer;
  int made = accept(listener, (struct sockaddr *)&peer, &length);
  if (made < 0) return -1;
  int on = 1;
  struct timeval limit = {.tv_sec = write_seconds, .tv_usec = 0};
  if (fcntl(made, F_SETFD, FD_CLOEXEC) < 0) return failed(made);
#ifdef SO_NOSIGPIPE
  if (setsockopt(made, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on) < 0) return failed(made);
#endif
  if (setsockopt(made, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) < 0) return failed(made);
  if (peer.ss_family != AF_UNIX) setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return made;
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
