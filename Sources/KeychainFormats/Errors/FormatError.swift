/// Bytes that do not follow their format.
public struct FormatError: ExplainedError, Equatable {
  /// Which format was being read or written.
  public enum Format: String, Sendable {
    case binaryPlist = "binary property list"
    case der = "DER property list"
    case keybag = "keybag"
    case itemBlob = "item blob"
    case item = "keychain item"
    case fileRecord = "MBFile record"
    case persistentReference = "persistent reference"
    case keychainFile = "keychain file"
    case wrappedKey = "wrapped key field"
    case xmlPlist = "XML property list"
    case oldManifest = "list of files"
  }

  public enum Code: String, Sendable {
    /// The bytes end before the value does.
    case truncated
    /// A value that the format does not allow at this place.
    case malformed
    /// More, deeper or larger than a named limit accepts.
    case overLimit
    /// A version that this project knows of but does not read, or knows nothing of.
    case unsupportedVersion
    /// What no device writes and what reaches beyond the file itself, such as an entity of its own.
    case forbidden
    /// Bytes follow where the value has ended.
    case trailingBytes
    /// A value that has no form in the format it should be written in.
    case unencodable
  }

  public let format: Format
  public let code: Code
  public let reason: String
  /// In bytes from the start of the value that was being read.
  public let offset: Int?

  public init(_ format: Format, _ code: Code, _ reason: String, offset: Int? = nil) {
    self.format = format
    self.code = code
    self.reason = offset.map { "\(reason), at byte \(Amounts.grouped($0))" } ?? reason
    self.offset = offset
  }

  public var explanation: ErrorExplanation {
    let name = format.rawValue
    return switch code {
    case .truncated: .init(.damaged, "the \(name) is cut short", advice: "use another copy")
    case .malformed: .init(.damaged, "the \(name) is damaged", advice: "use another copy")
    case .overLimit: .init(.refused, "the \(name) is over a limit", advice: "don't trust this file")
    case .unsupportedVersion:
      .init(.refused, "the \(name) has an unsupported version", advice: "a newer version of this program may read it")
    case .forbidden: .init(.refused, "the \(name) holds what no device writes", advice: "don't trust this file")
    case .trailingBytes: .init(.damaged, "the \(name) has bytes after its end", advice: "use another copy")
    case .unencodable:
      .init(.failed, "the \(name) cannot hold this value", advice: "store a string, a whole number, data or a date")
    }
  }
}
