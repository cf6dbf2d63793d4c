#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The reason that the operating system gave for refusing a call.
package struct SystemError: Error, Equatable {
  package let code: Int32

  package init(_ code: Int32) { self.code = code }

  /// The reason of the call that has just failed on this thread.
  package static var last: SystemError { SystemError(errno) }

  /// The number of the signal that a closed pipe stands for.
  package static let closedPipeSignal = SIGPIPE

  package var isClosedPipe: Bool { code == EPIPE }
  /// Nothing has that name.
  package var isAbsence: Bool { code == ENOENT || code == ENOTDIR }
  package var isDiskFull: Bool { code == ENOSPC || code == EDQUOT }

  /// "no such file or directory"
  package var reason: String {
    var buffer = [CChar](repeating: 0, count: 256)
    _ = strerror_r(code, &buffer, buffer.count)
    let text = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return text.isEmpty ? "system error \(code)" : text.prefix(1).lowercased() + text.dropFirst()
  }
}
