package import Basics
import KeychainFormats
import SystemPackage

/// A directory with the backups of several devices, such as `MobileSync/Backup`.
package enum BackupDirectory {
  /// The properties of a backup that are known without opening it.
  package struct Entry: Sendable, Hashable {
    /// The name of its directory, which identifies it.
    package let name: String
    /// The device identifier, from the manifest or the directory's name.
    package let identifier: String?
    /// The device name that the owner chose, or `nil` if neither `Info.plist` nor the manifest contains it. Untrusted.
    package let deviceName: String?
    /// The date of the backup, or `nil` if it is unknown.
    package let date: KeychainDate?
    /// Whether the backup is encrypted, or `nil` if the manifest is unreadable.
    package let isEncrypted: Bool?
    /// Whether the backup was finished, or `nil` if it is unknown.
    package let state: State?
    /// Whether the backup is an archived copy, whose directory name ends with a date and a time.
    package let isArchivedCopy: Bool
    /// Whether the entry is a link to a backup elsewhere.
    package let isLink: Bool

    /// The completeness of a backup, according to its property lists.
    package enum State: String, Sendable, CaseIterable {
      /// The device completed the backup.
      case finished
      /// The device did not complete the backup.
      case unfinished
      /// The manifest or the status is unreadable, or the list of files is missing.
      case damaged
    }
  }

  /// Returns the name for the directory of a backup: the device identifier, if it is a valid name.
  package static func name(for identifier: String?) -> String {
    guard let identifier, (1...64).contains(identifier.utf8.count), identifier.utf8.allSatisfy(isLetterDigitOrHyphen)
    else {
      return "backup"
    }
    return identifier
  }

  /// Whether a byte is a letter, a digit, or a hyphen.
  private static func isLetterDigitOrHyphen(_ byte: UInt8) -> Bool {
    (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte) || byte == 45
  }

  /// Whether a folder's name is a device's identifier, as the name of a backup's folder is; a date may follow it.
  package static func isDeviceIdentifier(_ name: String) -> Bool { parts(of: name).identifier != nil }

  /// The maximum number of directories that are read.
  package static let maximumDirectoryCount = 10_000

  /// Returns the backups directly in a directory, sorted by name. Links to backups count, and directories without a
  /// manifest do not.
  ///
  /// - Throws: `.notFound`, `.unreadable`, or `.overLimit` if there are more than `maximumDirectoryCount` directories.
  package static func backups(
    in path: String, limits: BackupLimits = .standard
  ) throws(KeyhaulError) -> [Entry] {
    let system = FileSystem.real
    let source = DirectorySource(system: system, limits: limits, storage: .memory)
    var entries: [Entry] = []
    var count = 0
    do throws(Errno) {
      let directory = try system.openDirectory(path)
      for name in try system.names(in: directory) {
        guard let text = name.validText, let kind = try system.status(of: name, in: directory)?.kind, kind != .file
        else {
          continue
        }
        count += 1
        guard count <= maximumDirectoryCount else { break }
        let isLink = kind != .directory
        // Files and dangling links are skipped.
        let backup: OwnedFileDescriptor?
        if isLink {
          backup = try? system.openLinkedDirectory(name, in: directory)
        } else {
          backup = try system.openDirectory(name, in: directory)
        }
        guard let backup else { continue }
        if let entry = source.entry(named: text, isLink: isLink, in: backup) { entries.append(entry) }
      }
    } catch {
      throw KeyhaulError(
        error.isNotFound ? .notFound : .unreadable, "\(quoted(path)): \(error.reason)", errno: error)
    }
    guard count <= maximumDirectoryCount else {
      throw KeyhaulError(
        .overLimit, "\(quoted(path)) has more than \(HumanReadable.grouped(maximumDirectoryCount)) folders")
    }
    return entries.sorted { $0.name < $1.name }
  }

  /// Reads the property lists of a directory. Returns `nil` if it has no manifest or cannot be read.
  package static func entry(of path: String, limits: BackupLimits = .standard) -> Entry? {
    let system = FileSystem.real
    guard let directory = try? system.openDirectory(path) else { return nil }
    let name = path.split(separator: "/").last.map(String.init) ?? path
    return DirectorySource(system: system, limits: limits, storage: .memory).entry(
      named: name, isLink: false, in: directory)
  }

  /// Finds a backup by its directory name or device identifier. A link to another backup in the directory is not a
  /// second match.
  ///
  /// - Parameters:
  ///   - choice: A directory name, or a device identifier in any case.
  ///   - entries: The backups of the directory, from `backups(in:limits:)`.
  /// - Returns: The backup, or `nil` if there is none.
  /// - Throws: `.unsupported` if several backups have the device identifier, so that a directory name is required.
  package static func backup(
    _ choice: String, among entries: [Entry]
  ) throws(KeyhaulError) -> Entry? {
    if let exact = entries.first(where: { $0.name == choice }) { return exact }
    let ofDevice = entries.filter { $0.identifier?.lowercased() == choice.lowercased() }
    let matches = ofDevice.contains { !$0.isLink } ? ofDevice.filter { !$0.isLink } : ofDevice
    guard matches.count < 2 else {
      throw KeyhaulError(
        .unsupported, "\(matches.count) backups belong to \(quoted(choice)); the first is \(quoted(matches[0].name))")
    }
    return matches.first
  }

  /// Splits a directory name into a device identifier and an optional date. An identifier has 40 hexadecimal digits, or
  /// 8, a hyphen, and 16. An archived copy has a suffix such as `-20240101-101112`.
  static func parts(of name: String) -> (identifier: String?, isArchivedCopy: Bool) {
    let bytes = Array(name.utf8)
    func isHexadecimal(_ range: Range<Int>) -> Bool {
      range.upperBound <= bytes.count && bytes[range].allSatisfy { Unicode.Scalar($0).properties.isASCIIHexDigit }
    }
    let length =
      if isHexadecimal(0..<40) {
        40
      } else if isHexadecimal(0..<8), bytes.count > 8, bytes[8] == UInt8(ascii: "-"), isHexadecimal(9..<25) {
        25
      } else {
        0
      }
    guard length > 0 else { return (nil, false) }
    let suffix = bytes[length...]
    if suffix.isEmpty { return (name, false) }
    let pattern = Array("-00000000-000000".utf8)
    let isDate =
      suffix.count == pattern.count
      && zip(suffix, pattern).allSatisfy { $1 == UInt8(ascii: "0") ? (48...57).contains($0) : $0 == $1 }
    return isDate ? (String(decoding: bytes[..<length], as: UTF8.self), true) : (nil, false)
  }
}

extension DirectorySource {
  /// Reads the property lists of a directory, or returns `nil` if it has no manifest.
  fileprivate func entry(
    named name: String, isLink: Bool, in directory: borrowing OwnedFileDescriptor
  ) -> BackupDirectory.Entry? {
    guard let propertyLists = try? readPropertyLists(directory), let manifest = propertyLists[.manifest] else {
      return nil
    }
    var parsedManifest: BackupManifest?
    var hasUnknownLayout = false
    do throws(KeyhaulError) {
      parsedManifest = try BackupManifest(parsing: manifest)
    } catch {
      hasUnknownLayout = error.category == .refused
    }
    let info = propertyLists[.info].flatMap { try? InfoPlist(parsing: $0) }?.device
    let device = (parsedManifest?.device ?? BackupDevice()).completed(by: info)
    let parts = BackupDirectory.parts(of: name)
    return BackupDirectory.Entry(
      name: name, identifier: device.identifier ?? parts.identifier, deviceName: device.name,
      date: parsedManifest?.date,
      isEncrypted: parsedManifest.map { $0.isEncrypted ?? ($0.manifestKey != nil) },
      state: hasUnknownLayout ? nil : state(of: propertyLists, hasManifest: parsedManifest != nil, in: directory),
      isArchivedCopy: parts.isArchivedCopy, isLink: isLink)
  }

  private func state(
    of propertyLists: MetadataFiles, hasManifest: Bool, in directory: borrowing OwnedFileDescriptor
  ) -> BackupDirectory.Entry.State? {
    guard hasManifest, hasList(directory) else { return .damaged }
    guard !propertyLists.unreadable.contains(where: { $0.name == MetadataFile.status.path }) else { return .damaged }
    guard let bytes = propertyLists[.status] else { return nil }
    guard let status = try? BackupStatus(parsing: bytes) else { return .damaged }
    return status.snapshotState == nil ? nil : status.isFinished ? .finished : .unfinished
  }

  private func hasList(_ directory: borrowing OwnedFileDescriptor) -> Bool {
    for part in [MetadataFile.database, .oldDatabase] {
      if (try? system.status(of: part.path.systemName, in: directory))?.kind == .file { return true }
    }
    return false
  }
}
