public import Basics

/// Bytes that do not follow their format.
public struct FormatError: ExplainedError, Equatable {
  /// Which format was being read or written.
  public enum Format: String, Sendable {
    /// Apple's binary property list (`bplist00`).
    case binaryPlist = "binary property list"
    /// The DER that Apple encodes items in (blob version 3).
    case der = "DER property list"
    /// A keybag's records.
    case keybag = "keybag"
    /// A sealed item: `ItemBlob`, `DatabaseItemBlob`, `AccessControlBlob` or `LegacyItemBlob`.
    case itemBlob = "item blob"
    /// An item's dictionary after it was opened.
    case item = "keychain item"
    /// A keyed archive in the manifest database.
    case fileRecord = "MBFile record"
    /// The bytes of a `PersistentReference`.
    case persistentReference = "persistent reference"
    /// A backup's `keychain-backup.plist`.
    case keychainFile = "keychain file"
    /// A class and a wrapped key: `ClassWrappedKey`.
    case wrappedKey = "wrapped key field"
    /// A property list in XML.
    case xmlPlist = "XML property list"
    /// The list of files of a backup of iOS 4 to 9 (`Manifest.mbdb`).
    case oldManifest = "manifest"
    /// The archive of a sealed box: `ArchivedBox`.
    case keyedArchive = "keyed archive"
    /// The DER of an item's access control: `ItemAccessControl`.
    case accessControl = "access control"
  }

  /// What is wrong with the bytes.
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

  /// The format that was being read or written.
  public let format: Format
  /// What is wrong, for a program to switch on.
  public let code: Code
  /// The fact found, with its place where it has one. It quotes no value of an item.
  public let reason: String
  /// In bytes from the start of the value that was being read.
  public let offset: Int?

  /// Creates an error; `reason` then ends with the offset.
  ///
  /// - Parameters:
  ///   - format: The format that was being read or written.
  ///   - code: What is wrong, for a program to switch on.
  ///   - reason: The fact found, without its place.
  ///   - offset: In bytes from the start of the value that was being read.
  public init(_ format: Format, _ code: Code, _ reason: String, offset: Int? = nil) {
    self.format = format
    self.code = code
    self.reason = offset.map { "\(reason), at byte \(Amounts.grouped($0))" } ?? reason
    self.offset = offset
  }

  /// One sentence and one advice for each code, with the format's name in it.
  public var meaning: ErrorMeaning {
    let name = format.rawValue
    return switch code {
    case .truncated: .init(.damaged, "the \(name) is cut short", advice: "use another copy")
    case .malformed: .init(.damaged, "the \(name) is damaged", advice: "use another copy")
    case .overLimit: .init(.refused, "the \(name) is over a limit", advice: "don't trust this file")
    case .unsupportedVersion:
      .init(.refused, "the \(name) has an unsupported version", advice: "a newer version of Keyhaul, which may read it")
    case .forbidden:
      .init(
        .refused, "the \(name) contains something that no device writes",
        advice: "don't trust this file")
    case .trailingBytes: .init(.damaged, "the \(name) has bytes after its end", advice: "use another copy")
    case .unencodable:
      .init(.failed, "the \(name) cannot hold this value", advice: "store a string, a whole number, data or a date")
    }
  }
}
