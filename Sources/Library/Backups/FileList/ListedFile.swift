package import Basics
package import KeychainCrypto
package import KeychainFormats

/// A file, directory, or link in a backup's list of files.
///
/// All values come from the backup and are untrusted. In particular, a path may lead to any file.
public struct ListedFile: Sendable, Hashable {
  /// The type of an entry.
  package enum Kind: Sendable, Hashable, CaseIterable {
    /// A file, a directory, or a symbolic link, by the flags of the row or the mode of the record.
    case file, directory, link
    /// An entry that the device did not complete, or of an unknown type.
    case other
  }

  /// The stored name of the file's content: 40 hexadecimal digits.
  package let fileIdentifier: String
  /// The domain, such as `KeychainDomain`, or `nil` if the row remains from a transfer.
  package let domain: String?
  /// The bytes of the domain, if they are not UTF-8. `domain` then contains escapes such as `%F5`.
  package let undecodedDomain: [UInt8]?
  /// The path in the domain, or `nil` if the row remains from a transfer. Untrusted.
  public let relativePath: String?
  /// The bytes of the path, if they are not UTF-8. `relativePath` then contains escapes such as `%F5`.
  package let undecodedPath: [UInt8]?
  /// The type of the entry.
  package let kind: Kind
  private let content: Content

  /// The remaining content of the row.
  private enum Content: Sendable, Hashable {
    case none
    /// The keyed archive in a row of a newer list.
    case archive([UInt8])
    /// An encrypted row that cannot be decrypted.
    case undecryptable(reason: String)
    case record(FileRecord)
  }

  /// Returns the record with the size and the key, or `nil` if the entry was not completed.
  ///
  /// - Throws: `.damaged` if the record is damaged.
  package func record() throws(KeyhaulError) -> FileRecord? {
    switch content {
    case .none: return nil
    case .record(let record): return record
    case .undecryptable(let reason):
      throw KeyhaulError(.damaged, "the record of \(fileIdentifier): \(reason)")
    case .archive(let bytes):
      return try translatingErrors(in: "the record of \(fileIdentifier)") { () throws(FormatError) in
        try FileRecord(archive: bytes)
      }
    }
  }

  /// Returns whether the identifier is the hash of the domain and path, and the path stays in its domain. `true` if
  /// there is no domain.
  package func hasMatchingIdentifier() throws(KeyhaulError) -> Bool {
    guard let domain = domainBytes, let path = pathBytes else { return true }
    guard Self.isInsideItsDomain(domain: domain, path: path) else { return false }
    return try Self.identifier(domain: domain, path: path) == fileIdentifier
  }

  /// The bytes of the domain in the list.
  package var domainBytes: [UInt8]? { undecodedDomain ?? domain.map { Array($0.utf8) } }

  /// The bytes of the path in the list.
  package var pathBytes: [UInt8]? { undecodedPath ?? relativePath.map { Array($0.utf8) } }

  /// Returns the stored name of a file: the SHA-1 digest of its domain, a hyphen, and its path, in hexadecimal.
  package static func fileIdentifier(
    domain: String, relativePath: String
  ) throws(DataProtectionError) -> String {
    try fileIdentifier(domain: Array(domain.utf8), path: Array(relativePath.utf8))
  }

  private static func fileIdentifier(domain: [UInt8], path: [UInt8]) throws(DataProtectionError) -> String {
    String(hexadecimal: try Digest.sha1(domain + [UInt8(ascii: "-")] + path))
  }

  static func identifier(domain: String, relativePath: String) throws(KeyhaulError) -> String {
    try translatingErrors(in: "a file's identifier") { () throws(DataProtectionError) in
      try fileIdentifier(domain: domain, relativePath: relativePath)
    }
  }

  /// Returns the stored name of a file whose domain or path may not be UTF-8.
  package static func identifier(domain: [UInt8], path: [UInt8]) throws(KeyhaulError) -> String {
    try translatingErrors(in: "a file's identifier") { () throws(DataProtectionError) in
      try fileIdentifier(domain: domain, path: path)
    }
  }

  /// Returns whether a path stays in its domain.
  static func isInsideItsDomain(
    domain: some Collection<UInt8>, path: some Collection<UInt8>
  ) -> Bool {
    let slash = UInt8(ascii: "/")
    guard !domain.contains(where: { $0 == slash || $0 == 0 }) else { return false }
    // The empty path is that of the domain's directory.
    guard !path.isEmpty else { return true }
    var (length, dotCount) = (0, 0)
    for byte in path {
      switch byte {
      case 0: return false
      case slash:
        if isDotName(length: length, dotCount: dotCount) { return false }
        (length, dotCount) = (0, 0)
      default:
        length += 1
        if byte == UInt8(ascii: ".") { dotCount += 1 }
      }
    }
    return !isDotName(length: length, dotCount: dotCount)
  }

  /// Returns whether a path component is empty, `.`, or `..`.
  private static func isDotName(length: Int, dotCount: Int) -> Bool { length == dotCount && length <= 2 }
}

extension ListedFile {
  /// Creates a file from a row `fileID, domain, relativePath, flags, file`, or returns `nil` if it has no identifier.
  init?(_ row: borrowing UntrustedRow, _ reader: RecordReader) {
    guard let identifier = row.text(0), isFileIdentifier(identifier) else { return nil }
    fileIdentifier = identifier
    let (domain, path) = (row.name(1), row.name(2))
    (self.domain, undecodedDomain) = (domain?.text, domain?.undecodedBytes)
    (relativePath, undecodedPath) = (path?.text, path?.undecodedBytes)
    content =
      switch reader.record(in: row, 4) {
      case .none: .none
      case .archive(let bytes): .archive(bytes)
      case .undecryptable(let reason): .undecryptable(reason: reason)
      }
    kind = Kind(row, reader)
  }

  /// Creates a file from an entry of a `Manifest.mbdb`.
  init(_ entry: MBDBManifest.Entry) throws(KeyhaulError) {
    domain = entry.domain
    undecodedDomain = entry.undecodedDomain
    relativePath = entry.record.relativePath
    undecodedPath = entry.record.undecodedPath
    fileIdentifier = try Self.identifier(
      domain: undecodedDomain ?? Array((entry.domain ?? "").utf8),
      path: undecodedPath ?? Array(entry.record.relativePath.utf8))
    content = .record(entry.record)
    kind = Kind(entry.record)
  }
}

extension ListedFile.Kind {
  /// Determines the type from the row's flags, or from the mode if the flags contain none.
  init(_ row: borrowing UntrustedRow, _ reader: RecordReader) {
    let flags = FileFlags(rawValue: row.integer(3) ?? 0)
    self = flags.statesNoType ? Self(reader.file(in: row, 4)) : flags.kind
  }

  fileprivate init(_ record: FileRecord?) {
    self =
      switch record?.fileType {
      case .regular: .file
      case .directory: .directory
      case .symbolicLink: .link
      case .other, nil: .other
      }
  }
}

/// The `flags` of a row. Other bits remain from the transfer: 8 and 128 uploaded, 16 changed during the transfer, 32
/// verified.
private struct FileFlags: OptionSet {
  let rawValue: Int64

  static let file = FileFlags(rawValue: 1)
  static let directory = FileFlags(rawValue: 2)
  static let link = FileFlags(rawValue: 4)

  var statesNoType: Bool { isDisjoint(with: [.file, .directory, .link]) }

  var kind: ListedFile.Kind {
    if contains(.file) { return .file }
    if contains(.directory) { return .directory }
    return contains(.link) ? .link : .other
  }
}

/// The number of rows with a non-UTF-8 name, and the first of these names.
struct UndecodedNames: Sendable {
  private var count = 0
  private var first = ""

  /// Adds a row with its displayed names.
  mutating func add(domain: String?, path: String?) {
    if count == 0 { first = "\(domain ?? "")/\(path ?? "")" }
    count += 1
  }

  /// Returns the finding, or `nil` if all names are UTF-8.
  func finding(in list: String) -> BackupFinding? {
    count == 0 ? nil : .listNamesNotUTF8(name: list, count: count, first: first)
  }
}
