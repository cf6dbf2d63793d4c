package import Basics
package import KeychainCrypto
package import KeychainFormats

/// A file, directory or link as a backup's list names it.
///
/// Every word of it comes from the backup: a path may name any place, and is never to be written to unchecked.
public struct ListedFile: Sendable, Hashable {
  /// What the list says that it is.
  package enum Kind: Sendable, Hashable, CaseIterable {
    /// A file, a directory or a symbolic link, by the flags of the row or the mode of the record.
    case file, directory, link
    /// What a device had not finished, and what no bit or mode tells.
    case other
  }

  /// The name under which its content is stored: forty hexadecimal digits.
  package let fileIdentifier: String
  /// Such as `KeychainDomain`; `nil` in rows that a transfer has left over.
  package let domain: String?
  /// The bytes of the domain if they are not UTF-8; `domain` then spells those that do not fit `%F5`.
  package let undecodedDomain: [UInt8]?
  /// The path inside the domain; hostile. `nil` in rows that a transfer has left over.
  public let relativePath: String?
  /// The bytes of the path if they are not UTF-8; `relativePath` then spells those that do not fit `%F5`.
  package let undecodedPath: [UInt8]?
  /// What it is.
  package let kind: Kind
  private let description: Description

  /// What more the list says of it.
  private enum Description: Sendable, Hashable {
    case none
    /// The keyed archive of a current list's row.
    case archive([UInt8])
    /// A sealed row that does not open.
    case closed(reason: String)
    case record(FileRecord)
  }

  /// The size, the key and the rest of what the list records; `nil` for what was never finished.
  ///
  /// - Throws: `.damaged` for a record whose bytes are not what was written.
  package func record() throws(KeyhaulError) -> FileRecord? {
    switch description {
    case .none: return nil
    case .record(let record): return record
    case .closed(let reason):
      throw KeyhaulError(.damaged, "the record of \(fileIdentifier): \(reason)")
    case .archive(let bytes):
      return try explained("the record of \(fileIdentifier)") { () throws(FormatError) in
        try FileRecord(archive: bytes)
      }
    }
  }

  /// Whether the identifier is the hash of domain and path, and the path stays inside of its domain. True where there is
  /// no domain to hold it against.
  package func hasFittingIdentifier() throws(KeyhaulError) -> Bool {
    guard let domain = domainBytes, let path = pathBytes else { return true }
    guard Self.isInsideItsDomain(domain: domain, path: path) else { return false }
    return try Self.identifier(domain: domain, path: path) == fileIdentifier
  }

  /// The domain as the list has it, byte for byte.
  package var domainBytes: [UInt8]? { undecodedDomain ?? domain.map { Array($0.utf8) } }

  /// The path as the list has it, byte for byte.
  package var pathBytes: [UInt8]? { undecodedPath ?? relativePath.map { Array($0.utf8) } }

  /// The name under which a backup stores a file: SHA-1 of its domain, a hyphen and its path, in hexadecimal.
  package static func fileIdentifier(
    domain: String, relativePath: String
  ) throws(DataProtectionError) -> String {
    try fileIdentifier(domain: Array(domain.utf8), path: Array(relativePath.utf8))
  }

  private static func fileIdentifier(domain: [UInt8], path: [UInt8]) throws(DataProtectionError) -> String {
    String(hexadecimal: try Digest.sha1(domain + [UInt8(ascii: "-")] + path))
  }

  static func identifier(domain: String, relativePath: String) throws(KeyhaulError) -> String {
    try explained("a file's identifier") { () throws(DataProtectionError) in
      try fileIdentifier(domain: domain, relativePath: relativePath)
    }
  }

  /// The same of names that need not be UTF-8.
  package static func identifier(domain: [UInt8], path: [UInt8]) throws(KeyhaulError) -> String {
    try explained("a file's identifier") { () throws(DataProtectionError) in
      try fileIdentifier(domain: domain, path: path)
    }
  }

  /// Whether a path stays where its domain is, by bytes.
  static func isInsideItsDomain(
    domain: some Collection<UInt8>, path: some Collection<UInt8>
  ) -> Bool {
    let slash = UInt8(ascii: "/")
    guard !domain.contains(where: { $0 == slash || $0 == 0 }) else { return false }
    // The directory of the domain itself.
    guard !path.isEmpty else { return true }
    var (length, dots) = (0, 0)
    for byte in path {
      switch byte {
      case 0: return false
      case slash:
        if isDotName(length: length, dots: dots) { return false }
        (length, dots) = (0, 0)
      default:
        length += 1
        if byte == UInt8(ascii: ".") { dots += 1 }
      }
    }
    return !isDotName(length: length, dots: dots)
  }

  /// Whether a part of a path is empty, `.` or `..`.
  private static func isDotName(length: Int, dots: Int) -> Bool { length == dots && length <= 2 }
}

extension ListedFile {
  /// A row `fileID, domain, relativePath, flags, file`; `nil` if it has no identifier.
  init?(_ row: borrowing UntrustedRow, _ reader: RecordReader) {
    guard let identifier = row.text(0), isFileIdentifier(identifier) else { return nil }
    fileIdentifier = identifier
    let (domain, path) = (row.name(1), row.name(2))
    (self.domain, undecodedDomain) = (domain?.text, domain?.undecoded)
    (relativePath, undecodedPath) = (path?.text, path?.undecoded)
    description =
      switch reader.record(in: row, 4) {
      case .none: .none
      case .archive(let bytes): .archive(bytes)
      case .closed(let reason): .closed(reason: reason)
      }
    kind = Kind(row, reader)
  }

  /// A record of an old list.
  init(_ entry: MBDBManifest.Entry) throws(KeyhaulError) {
    domain = entry.domain
    undecodedDomain = entry.undecodedDomain
    relativePath = entry.record.relativePath
    undecodedPath = entry.record.undecodedPath
    fileIdentifier = try Self.identifier(
      domain: undecodedDomain ?? Array((entry.domain ?? "").utf8),
      path: undecodedPath ?? Array(entry.record.relativePath.utf8))
    description = .record(entry.record)
    kind = Kind(entry.record)
  }
}

extension ListedFile.Kind {
  /// A row's flags say it; hand-made lists have none and leave it to the mode.
  init(_ row: borrowing UntrustedRow, _ reader: RecordReader) {
    let flags = FileFlags(rawValue: row.number(3) ?? 0)
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

/// The `flags` of a row. Bits that are not named here are left over from the transfer: 8 and 128 uploaded, 16 changed
/// meanwhile, 32 verified.
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

/// The rows of a list with a name that is not UTF-8: how many there are, and the first of them.
struct UndecodedNames: Sendable {
  private var count = 0
  private var first = ""

  /// Enters a row by its names as they are shown.
  mutating func add(domain: String?, path: String?) {
    if count == 0 { first = "\(domain ?? "")/\(path ?? "")" }
    count += 1
  }

  /// `nil` if every name is UTF-8.
  func finding(in list: String) -> ArchiveFinding? {
    count == 0 ? nil : .listNamesNotUTF8(name: list, count: count, first: first)
  }
}
