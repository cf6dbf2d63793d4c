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

  public var category: ErrorCategory {
    switch code {
    case .truncated, .malformed, .trailingBytes: .damaged
    case .overLimit, .unsupportedVersion, .forbidden: .refused
    case .unencodable: .failed
    }
  }

  public var summary: String {
    switch code {
    case .truncated: "the \(format.rawValue) is cut short"
    case .malformed: "the \(format.rawValue) is damaged"
    case .overLimit: "the \(format.rawValue) is over a limit"
    case .unsupportedVersion: "the \(format.rawValue) has an unsupported version"
    case .forbidden: "the \(format.rawValue) holds what no device writes"
    case .trailingBytes: "the \(format.rawValue) has bytes after its end"
    case .unencodable: "the \(format.rawValue) cannot hold this value"
    }
  }

  public var advice: String {
    switch code {
    case .truncated, .malformed, .trailingBytes: "use another copy"
    case .overLimit, .forbidden: "don't trust this file"
    case .unsupportedVersion: "a newer version of this program may read it"
    case .unencodable: "store a string, a whole number, data or a date"
    }
  }
}
