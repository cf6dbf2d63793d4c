import KeyhaulKit
import SystemPackage

/// Reads a secret from a descriptor, up to the end.
enum SecretReader {
  enum Failure: Error {
    case system(Errno)
    /// The secret is longer than `SecretLimits.maximumByteCount`.
    case overLimit
    /// The program was asked to stop.
    case interrupted(CommandError)
  }

  static func readToEnd(_ descriptor: Int32) throws(Failure) -> SecureInputBuffer {
    let buffer = SecureInputBuffer(limit: SecretLimits.maximumByteCount)
    while true {
      if let signal = Interruption.pending {
        throw .interrupted(Interruption.failure(signal, state: "nothing was changed"))
      }
      let step: SecureInputBuffer.ReadStep
      do {
        step = try buffer.readOnce(from: descriptor)
      } catch {
        throw .system(error)
      }
      switch step {
      case .more, .noDataYet: continue
      case .end: return buffer
      case .full: throw .overLimit
      }
    }
  }

  static func overLimitError(_ name: String, kind: SecretKind) -> CommandError {
    CommandError(
      .refused, "refused to read the \(kind.noun) from \(name)",
      why: "it is longer than the limit of \(HumanReadable.bytes(SecretLimits.maximumByteCount))", try: "the right file"
    )
  }
}
