package import Basics

/// An error in bytes that do not follow their format.
package struct FormatError: ExplainedError, Equatable {
  /// The formats that are read or written.
  package enum Format: String, Sendable {
    /// Apple's binary property list (`bplist00`).
    case binaryPlist = "binary property list"
    /// The DER encoding of items (blob version 3).
    case der = "DER property list"
    /// A keybag's records.
    case keybag = "keybag"
    /// An encrypted item: `ItemBlob`, `DatabaseItemBlob`, `AccessControlledItemBlob` or `LegacyItemBlob`.
    case itemBlob = "item blob"
    /// The dictionary of a decrypted item.
    case item = "keychain item"
    /// A keyed archive in the manifest database.
    case fileRecord = "MBFile record"
    /// The bytes of a `PersistentReference`.
    case persistentReference = "persistent reference"
    /// A backup's `keychain-backup.plist`.
    case keychainFile = "keychain file"
    /// A class and a wrapped key: `ClassWrappedKey`.
    case wrappedKey = "wrapped key field"
    /// An XML property list.
    case xmlPlist = "XML property list"
    /// The manifest of a backup of iOS 4 to 9 (`Manifest.mbdb`).
    case oldManifest = "manifest"
    /// The archive of an encrypted box: `ArchivedBox`.
    case keyedArchive = "keyed archive"
    /// The DER of an item's access control: `ItemAccessControl`.
    case accessControl = "access control"
  }

  /// The kinds of errors.
  package enum Code: String, Sendable {
    /// The bytes end before the value does.
    case truncated
    /// A value is not allowed at this location.
    case malformed
    /// A size, depth or count exceeds a limit.
    case overLimit
    /// The version is unknown or not supported.
    case unsupportedVersion
    /// The file refers to content outside itself, such as an external entity, which no device writes.
    case forbidden
    /// Bytes follow the end of the value.
    case trailingBytes
    /// The format cannot represent a value.
    case unencodable
  }

  /// The format that was being read or written.
  package let format: Format
  /// The kind of error.
  package let code: Code
  /// The reason, with its location if it has one. It contains no value of an item.
  package let reason: String
  /// The offset in bytes from the start of the value, or `nil` if it is unknown.
  package let offset: Int?

  /// Creates an error. The offset is added to the reason.
  ///
  /// - Parameters:
  ///   - format: The format that was being read or written.
  ///   - code: The kind of error.
  ///   - reason: The reason, without its location.
  ///   - offset: The offset in bytes from the start of the value, or `nil` if it is unknown.
  package init(_ format: Format, _ code: Code, _ reason: String, offset: Int? = nil) {
    self.format = format
    self.code = code
    self.reason = offset.map { "\(reason), at byte \(HumanReadable.grouped($0))" } ?? reason
    self.offset = offset
  }

  /// A description and a suggestion for each code, with the name of the format.
  package var meaning: ErrorMeaning {
    let name = format.rawValue
    return switch code {
    case .truncated: .init(.damaged, "the \(name) is cut short", advice: .anotherCopy)
    case .malformed: .init(.damaged, "the \(name) is damaged", advice: .anotherCopy)
    case .overLimit: .init(.refused, "the \(name) is over a limit", advice: "don't trust this file")
    case .unsupportedVersion:
      .init(.refused, "the \(name) has an unsupported version", advice: "a newer version of Keyhaul, which may read it")
    case .forbidden:
      .init(
        .refused, "the \(name) contains something that no device writes",
        advice: "don't trust this file")
    case .trailingBytes: .init(.damaged, "the \(name) has bytes after its end", advice: .anotherCopy)
    case .unencodable:
      .init(.failed, "the \(name) cannot hold this value", advice: "store a string, a whole number, data or a date")
    }
  }
}
