#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The three descriptors that a program is started with, where a parent has closed one (`>&-`).
enum StandardStreams {
  /// Puts something in the place of those that are closed, so that no file which is opened later gets the number and what
  /// is printed ends in it. Reading there finds nothing; writing fails, as it would on a closed stream.
  static func occupy() {
    for descriptor in Int32(0)...2 where fcntl(descriptor, F_GETFD) == -1 && errno == EBADF {
      // The lowest free number is taken, and those below are not free.
      _ = open("/dev/null", O_RDONLY)
    }
  }
}
