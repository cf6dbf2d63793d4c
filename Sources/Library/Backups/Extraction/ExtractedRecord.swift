import Basics
import KeychainCrypto
import KeychainFormats

/// A line of the extraction's own manifest: the result for a selected entry.
struct ExtractedRecord {
  /// The result for an entry.
  enum Outcome {
    /// Written in this run or an earlier one.
    case written(ExtractedContent)
    case linked(target: String)
    /// Deliberately not written.
    case omitted(ExtractedFiles.Omission)
    /// Unreadable.
    case failed(KeyhaulError)
  }

  let file: ListedFile
  let record: FileRecord?
  /// The path of the written file or link, relative to the folder, or `nil` if nothing was written.
  let path: String?
  let outcome: Outcome

  /// Whether the written file or link has a different name than in the backup.
  var isRenamed: Bool {
    guard let path else { return false }
    return file.undecodedDomain != nil || file.undecodedPath != nil || !path.utf8.elementsEqual(originalPath.utf8)
  }

  /// The domain and path in the backup.
  var originalPath: String { "\(domain ?? "")/\(relativePath ?? "")" }

  private var domain: String? { file.domain.map(Self.truncated) }
  private var relativePath: String? { file.relativePath.map(Self.truncated) }

  /// Truncates a name that is longer than any valid one.
  private static func truncated(_ name: String) -> String {
    let limit = ExtractionPaths.maximumPathByteCount
    return name.utf8.count <= limit ? name : String(decoding: name.utf8.prefix(limit), as: UTF8.self) + "..."
  }

  /// The line as JSON.
  var line: JSONValue {
    var fields: [(String, JSONValue)] = [
      ("path", .text(path)), ("domain", .text(domain)), ("relative_path", .text(relativePath)),
      ("kind", .string(file.kind.identifier)), ("file_id", .string(file.fileIdentifier)),
    ]
    switch outcome {
    case .written(let content): fields += content.fields
    case .linked(let target): fields.append(("target", .string(target)))
    case .omitted(let reason): fields.append(("left_out", .string(reason.rawValue)))
    case .failed(let error):
      fields += [("fault", .string(error.code.rawValue)), ("reason", .string(error.reason))]
    }
    fields += undecodedNameFields
    if let record {
      let modified = KeychainDate(secondsSince1970: Double(record.lastModified))
      let permissions = String(record.mode & 0o7777, radix: 8)
      fields += [
        ("protection_class", .integer(Int64(record.protectionClass.rawValue))), ("mode", .string(permissions)),
        ("modified", .string(Timestamp.text(of: modified))),
      ]
    }
    if isRenamed { fields.append(("renamed", true)) }
    return .object(fields)
  }

  /// The bytes of names that are not UTF-8. Names that are longer than any valid one are truncated.
  private var undecodedNameFields: [(String, JSONValue)] {
    let names = [
      ("domain_bytes", file.undecodedDomain), ("relative_path_bytes", file.undecodedPath),
      ("target_bytes", record?.undecodedTarget),
    ]
    return names.compactMap { member, bytes in
      bytes.map { (member, .string(String(hexadecimal: Array($0.prefix(ExtractionPaths.maximumPathByteCount))))) }
    }
  }
}

/// The content of a written file.
struct ExtractedContent: Equatable, Sendable {
  /// The plaintext size in bytes.
  let byteCount: Int64
  /// The SHA-256 digest of the plaintext.
  let sha256: [UInt8]
  let digestStatus: ExtractedFiles.DigestStatus

  init(byteCount: Int64, sha256: [UInt8], digestStatus: ExtractedFiles.DigestStatus) {
    self.byteCount = byteCount
    self.sha256 = sha256
    self.digestStatus = digestStatus
  }

  var fields: [(String, JSONValue)] {
    [
      ("size", .integer(byteCount)), ("sha256", .string(String(hexadecimal: sha256))),
      ("digest", .string(digestStatus.rawValue)),
    ]
  }

  /// Creates the content from a line, or returns `nil` if the entry was not written.
  init?(_ line: JSONValue) {
    guard let size = line["size"]?.integerValue, let digits = line["sha256"]?.stringValue,
      let sha256 = Self.bytes(digits),
      let digestStatus = (line["digest"]?.stringValue).flatMap(ExtractedFiles.DigestStatus.init(rawValue:))
    else { return nil }
    self.init(byteCount: size, sha256: sha256, digestStatus: digestStatus)
  }

  /// Decodes 64 hexadecimal digits.
  private static func bytes(_ digits: String) -> [UInt8]? {
    let digits = Array(digits.utf8)
    guard digits.count == 64 else { return nil }
    var bytes: [UInt8] = []
    for index in stride(from: 0, to: 64, by: 2) {
      guard let byte = UInt8(String(decoding: digits[index...(index + 1)], as: UTF8.self), radix: 16) else {
        return nil
      }
      bytes.append(byte)
    }
    return bytes
  }
}

extension ListedFile.Kind {
  /// The identifier in the manifest.
  fileprivate var identifier: String {
    switch self {
    case .file: "file"
    case .directory: "directory"
    case .link: "link"
    case .other: "other"
    }
  }
}
