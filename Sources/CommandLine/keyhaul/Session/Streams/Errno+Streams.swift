import SystemPackage

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

extension Errno {
  /// The reason of the call that has just failed on this thread.
  static var last: Errno { Errno(rawValue: errno) }

  /// The number of the signal that a closed pipe stands for.
  static let closedPipeSignal = SIGPIPE

  var isClosedPipe: Bool { self == .brokenPipe }
}
