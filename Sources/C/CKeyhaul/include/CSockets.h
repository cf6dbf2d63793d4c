#ifndef KEYHAUL_CSOCKETS_H
#define KEYHAUL_CSOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// Opens a listening TCP socket on 127.0.0.1, or on ::1 if `uses_ipv6` is true. `*port` is the requested port, or 0 for a
/// free one; it receives the actual port.
///
/// Returns the descriptor, or -1 with the reason in `errno`.
int keyhaul_listen_loopback(bool uses_ipv6, uint16_t *_Nonnull port);

/// Opens a listening socket at a path that only its owner can access. Changes the process's umask temporarily.
///
/// Returns the descriptor, or -1 with the reason in `errno`: EADDRINUSE if the path exists.
int keyhaul_listen_path(const char *_Nonnull path);

/// Connects to a socket at a path, to find out whether a server listens there.
///
/// Returns the descriptor, or -1 with the reason in `errno`.
int keyhaul_connect_path(const char *_Nonnull path);

/// Connects to a port of 127.0.0.1.
///
/// Returns the descriptor, or -1 with the reason in `errno`.
int keyhaul_connect_loopback(uint16_t port);

/// Accepts a connection. Child processes do not inherit it, small packets are not delayed, writes raise no SIGPIPE, and a
/// blocked write fails after `write_seconds`.
///
/// Returns the descriptor, or -1 with the reason in `errno`.
int keyhaul_accept(int listener, int write_seconds);

/// Waits until bytes can be read or the peer has closed.
///
/// Returns 1 if so, 0 after `milliseconds`, or -1 with the reason in `errno`.
int keyhaul_wait_readable(int socket, int milliseconds);

/// Sends bytes without raising SIGPIPE.
///
/// Returns the number of bytes sent, or -1 with the reason in `errno`: EAGAIN after the time that `keyhaul_accept` set.
ssize_t keyhaul_send(int socket, const void *_Nonnull bytes, size_t count);

/// Ends both directions of a connection, so that a thread that waits for its bytes returns.
void keyhaul_shut_down(int socket);

#endif
