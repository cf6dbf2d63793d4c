package import Basics
package import KeychainCrypto
import KeychainFormats

/// The seal of a backup, compared with the metadata files and the keychain that were read when it was opened.
///
/// `SealFile` is the format of the seal, and `SealBuilder` below creates one.
package struct BackupSeal: Sendable {
  /// The violations that are visible without a password and other files.
  package let violations: [SealViolation]
  /// The list, or `nil` if the seal is unreadable.
  package let list: SealFile?

  /// The number of files in the list, 0 if it is unreadable.
  package var fileCount: Int { list?.count ?? 0 }
  /// Whether the seal requires the password to create, so that every change is detected. An unkeyed seal only detects
  /// accidents.
  package var isKeyed: Bool { list?.form == .keyed }

  /// Reads the seal of a backup.
  ///
  /// - Parameter shouldBeKeyed: Whether the seal should be keyed, or `nil` if it is unknown whether the backup has a
  ///   password.
  /// - Returns: The seal, or `nil` if the backup has none.
  init?(of parts: MetadataFiles, layout: BackupLayout, shouldBeKeyed: Bool?) throws(KeyhaulError) {
    let name = MetadataFile.seal.path
    if let fault = parts.sealFault {
      self.init(violations: [SealViolation(name, .unreadable(fault.reason))])
      return
    }
    guard let bytes = parts[.seal] else { return nil }
    let list: SealFile
    do throws(KeyhaulError) {
      list = try SealFile(parsing: bytes)
    } catch {
      self.init(violations: [SealViolation(name, .unreadable(error.reason))])
      return
    }
    var violations: [SealViolation] = []
    switch (list.form, shouldBeKeyed) {
    case (.keyed, true?), (.keyed, nil): break
    case (.keyed, false?): violations.append(SealViolation(name, .needlesslyKeyed))
    case (.digests, true?): violations.append(SealViolation(name, .notKeyed))
    case (.digests, false?), (.digests, nil):
      let digest = try explained(name) { () throws(DataProtectionError) in try Digest.sha256(Array(list.listed)) }
      if digest != list.code { violations.append(SealViolation(name, .listChanged)) }
    }
    for part in MetadataFile.sealed(in: layout) {
      if let reason = list.violation(of: try parts.sealEntry(of: part), at: part.path) {
        violations.append(SealViolation(part.path, reason))
      }
    }
    self.init(violations: violations, list: list)
  }

  private init(violations: [SealViolation], list: SealFile? = nil) {
    self.violations = violations
    self.list = list
  }
}

extension SealFile {
  /// Returns the reason why a file violates the seal, or `nil` if it matches, or is neither stored nor listed.
  ///
  /// - Parameter entry: The file, or `nil` if it is missing.
  func violation(of entry: Entry?, at path: String) -> SealViolation.Reason? {
    let lines = lines(of: path)
    guard let entry else { return lines.isEmpty ? nil : .missing }
    guard !lines.isEmpty else { return .added }
    return lines.contains { self[$0] == entry } ? nil : .changed
  }
}

extension MetadataFile {
  /// The sealed files that are read when a backup of this layout is opened.
  static func sealed(in layout: BackupLayout) -> [MetadataFile] {
    [.manifest, .status, .info, layout.listPart, layout.keychainPart] + layout.journals
  }
}

extension MetadataFiles {
  /// Returns the seal entry of a metadata file, or `nil` if the file is missing.
  func sealEntry(of part: MetadataFile) throws(KeyhaulError) -> SealFile.Entry? {
    if let stored = self[large: part] {
      return .init(path: part.path, byteCount: Int64(stored.byteCount), sha256: stored.sha256)
    }
    return try self[part].map { (bytes) throws(KeyhaulError) in try SealFile.Entry(part.path, bytes) }
  }
}

/// Builds seals, keyed with the backup's password if it has one.
package final class SealBuilder {
  private let key: SealKey?

  /// Creates a seal builder.
  ///
  /// - Parameter manifestKey: The key of a rewritten list of files, or `nil` if the list is not encrypted.
  package init(manifestKey: borrowing Secret?) throws(KeyhaulError) {
    switch manifestKey {
    case .none: key = nil
    case .some(let manifestKey):
      key = try explained(MetadataFile.seal.path) { () throws(DataProtectionError) in
        try SealKey(manifestKey: manifestKey)
      }
    }
  }

  /// Returns whether the code of a list is correct.
  func authenticates(_ list: SealFile) throws(KeyhaulError) -> Bool {
    switch key {
    case .none: return list.form == .digests
    case .some(let key):
      guard list.form == .keyed else { return false }
      return try explained(MetadataFile.seal.path) { () throws(DataProtectionError) in
        try key.matches(list.code, over: Array(list.listed))
      }
    }
  }

  /// Returns the seal of the given files.
  package func seal(of entries: [SealFile.Entry]) throws(KeyhaulError) -> SealFile {
    try SealFile(entries, form: key == nil ? .digests : .keyed) { (listed) throws(KeyhaulError) in
      try explained(MetadataFile.seal.path) { () throws(DataProtectionError) in
        switch key {
        case .none: try Digest.sha256(listed)
        case .some(let key): try key.code(over: listed)
        }
      }
    }
  }
}
