package import SystemPackage

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

extension Errno {
  /// The reason of the call that has just failed on this thread.
  package static var last: Errno { Errno(rawValue: errno) }

  /// The number of the signal that a closed pipe stands for.
  package static let closedPipeSignal = SIGPIPE

  package var isClosedPipe: Bool { self == .brokenPipe }
}
