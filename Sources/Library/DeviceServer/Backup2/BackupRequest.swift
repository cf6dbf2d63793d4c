import Basics
package import KeyhaulKit

/// A request of a backup client.
package struct BackupRequest: Sendable {
  /// The kinds of requests (`MessageName`).
  package enum Kind: String, Sendable {
    case backup = "Backup"
    case restore = "Restore"
    case changePassword = "ChangePassword"
    case info = "Info"
    case list = "List"
    case unback = "Unback"
    case extract = "Extract"
    case enableCloudBackup = "EnableCloudBackup"
    case eraseDevice = "EraseDevice"
  }

  /// The kind of the request; `nil` if it is unknown.
  package let kind: Kind?
  /// The device that the request is for.
  package let target: String
  /// The identifier of the backup to read, which is also the name of its folder. It is valid, so it is safe in a path.
  package let source: String
  private let values: PropertyDictionary

  /// Reads a request.
  ///
  /// - Returns: `nil` if an identifier is missing or invalid.
  package init?(_ values: PropertyDictionary) {
    guard let target = values["TargetIdentifier"]?.stringValue, Self.isIdentifier(target) else { return nil }
    let source = values["SourceIdentifier"]?.stringValue ?? target
    guard Self.isIdentifier(source) else { return nil }
    kind = values["MessageName"]?.stringValue.flatMap(Kind.init(rawValue:))
    (self.target, self.source, self.values) = (target, source, values)
  }

  /// Returns whether a text is a device identifier: 24 to 40 hexadecimal digits and hyphens.
  package static func isIdentifier(_ text: String) -> Bool {
    (24...40).contains(text.utf8.count)
      && text.allSatisfy { $0 == "-" || ($0.isASCII && $0.isHexDigit) }
  }

  /// Returns the password of the backup to read, from the request's options or from the request itself; `nil` if there is
  /// none.
  package func password() throws(BackupServiceError) -> Secret? {
    try Self.secret(values["Options"]?.dictionaryValue?["Password"] ?? values["Password"])
  }

  /// Returns the password to change; `nil` if none is set.
  package func oldPassword() throws(BackupServiceError) -> Secret? { try Self.secret(values["OldPassword"]) }

  /// Returns the password to set; `nil` if the password is to be removed.
  package func newPassword() throws(BackupServiceError) -> Secret? { try Self.secret(values["NewPassword"]) }

  /// The file to extract; `nil` if the request names no file.
  package var file: (domain: String, path: String)? {
    guard let domain = values["DomainName"]?.stringValue, let path = values["RelativePath"]?.stringValue else {
      return nil
    }
    return (domain, path)
  }

  private static let maximumPasswordByteCount = 1024

  /// Returns a password of the request.
  ///
  /// - Returns: `nil` if there is no password or it is empty. Some clients send an empty password for none.
  /// - Throws: `.failed` if the password is not text or is longer than 1,024 bytes. An invalid password must not be
  ///   treated as missing, because the device would then stop encrypting its backups.
  private static func secret(_ value: PropertyValue?) throws(BackupServiceError) -> Secret? {
    guard let value else { return nil }
    guard let text = value.stringValue, text.utf8.count <= maximumPasswordByteCount else {
      throw .failed(.other, "The password is not text, or is longer than \(maximumPasswordByteCount) bytes")
    }
    return text.isEmpty ? nil : Secret(utf8: text)
  }
}
