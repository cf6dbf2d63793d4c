package import Basics
package import KeychainCrypto
import KeychainFormats

/// The seal of a backup, compared with the metadata files and the keychain that were read when it was opened.
///
/// `SealFile` is the format of the seal, and `SealBuilder` below creates one.
package struct BackupSeal: Sendable {
  /// The violations that are visible without a password and without reading other files.
  package let violations: [SealViolation]
  /// The content, or `nil` if the seal is unreadable.
  package let contents: SealFile?

  /// The number of sealed files, 0 if the seal is unreadable.
  package var fileCount: Int { contents?.count ?? 0 }
  /// Whether the seal is keyed, which requires the password. A keyed seal detects every change. An unkeyed seal only
  /// detects accidents.
  package var isKeyed: Bool { contents?.form == .keyed }

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
    let contents: SealFile
    do throws(KeyhaulError) {
      contents = try SealFile(parsing: bytes)
    } catch {
      self.init(violations: [SealViolation(name, .unreadable(error.reason))])
      return
    }
    var violations: [SealViolation] = []
    switch (contents.form, shouldBeKeyed) {
    case (.keyed, true?), (.keyed, nil): break
    case (.keyed, false?): violations.append(SealViolation(name, .needlesslyKeyed))
    case (.unkeyed, true?): violations.append(SealViolation(name, .notKeyed))
    case (.unkeyed, false?), (.unkeyed, nil):
      // The code of an unkeyed seal is a plain SHA-256 digest.
      let digest = try translatingErrors(in: name) { () throws(DataProtectionError) in
        try Digest.sha256(Array(contents.coveredBytes))
      }
      if digest != contents.code { violations.append(SealViolation(name, .listChanged)) }
    }
    for part in MetadataFile.sealed(in: layout) {
      if let reason = contents.violation(of: try parts.sealEntry(of: part), at: part.path) {
        violations.append(SealViolation(part.path, reason))
      }
    }
    self.init(violations: violations, contents: contents)
  }

  private init(violations: [SealViolation], contents: SealFile? = nil) {
    self.violations = violations
    self.contents = contents
  }
}

extension SealFile {
  /// Returns the reason why a file violates the seal, or `nil` if the file matches, or is neither stored nor
  /// sealed.
  ///
  /// - Parameter entry: The file, or `nil` if it is missing.
  func violation(of entry: Entry?, at path: String) -> SealViolation.Reason? {
    let sealedEntries = entries(at: path)
    guard let entry else { return sealedEntries.isEmpty ? nil : .missing }
    guard !sealedEntries.isEmpty else { return .added }
    return sealedEntries.contains(entry) ? nil : .changed
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
  /// - Parameter manifestKey: The key of the backup's file list, or `nil` if the list is not encrypted.
  package init(manifestKey: borrowing Secret?) throws(KeyhaulError) {
    switch manifestKey {
    case .none: key = nil
    case .some(let manifestKey):
      key = try translatingErrors(in: MetadataFile.seal.path) { () throws(DataProtectionError) in
        try SealKey(manifestKey: manifestKey)
      }
    }
  }

  /// Returns whether the code of a keyed seal is correct. Without a key, returns whether the seal is unkeyed.
  func authenticates(_ sealFile: SealFile) throws(KeyhaulError) -> Bool {
    switch key {
    case .none: return sealFile.form == .unkeyed
    case .some(let key):
      guard sealFile.form == .keyed else { return false }
      return try translatingErrors(in: MetadataFile.seal.path) { () throws(DataProtectionError) in
        try key.matches(sealFile.code, over: Array(sealFile.coveredBytes))
      }
    }
  }

  /// Returns the seal of the given files.
  package func seal(of entries: [SealFile.Entry]) throws(KeyhaulError) -> SealFile {
    try SealFile(entries, form: key == nil ? .unkeyed : .keyed) { (coveredBytes) throws(KeyhaulError) in
      try translatingErrors(in: MetadataFile.seal.path) { () throws(DataProtectionError) in
        switch key {
        case .none: try Digest.sha256(coveredBytes)
        case .some(let key): try key.code(over: coveredBytes)
        }
      }
    }
  }
}
