import KeyhaulKit
import SystemPackage

/// Reads secrets from file descriptors into memory that is wiped.
enum SecretReader {
  /// The largest password, passcode or item secret, in bytes.
  static let maximumByteCount = 1_048_576

  enum Failure: Error {
    case system(Errno)
    /// The secret is longer than `maximumByteCount`.
    case overLimit
    /// The program was asked to stop.
    case interrupted(CommandError)
  }

  /// Reads a secret up to the end of the input.
  static func readToEnd(_ descriptor: Int32) throws(Failure) -> SecureInputBuffer {
    let buffer = SecureInputBuffer(limit: maximumByteCount)
    while true {
      if let signal = Interruption.pending {
        throw .interrupted(Interruption.failure(signal, state: "nothing was changed"))
      }
      switch try readStep(into: buffer, from: descriptor) {
      case .more, .noDataYet: continue
      case .end: return buffer
      case .full: throw .overLimit
      }
    }
  }

  /// Reads the available bytes once.
  static func readStep(
    into buffer: SecureInputBuffer, from descriptor: Int32
  ) throws(Failure) -> SecureInputBuffer.ReadStep {
    do throws(Errno) {
      return try buffer.readOnce(from: descriptor)
    } catch {
      throw .system(error)
    }
  }

  static func overLimitError(_ name: String, kind: SecretKind) -> CommandError {
    CommandError(
      .refused, "refused to read the \(kind.noun) from \(name)",
      why: "it is longer than the limit of \(HumanReadable.bytes(maximumByteCount))",
      try: "a source with only the \(kind.noun)"
    )
  }
}
