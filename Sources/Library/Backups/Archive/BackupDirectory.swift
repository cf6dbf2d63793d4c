package import Basics
import KeychainFormats
import SystemPackage

/// A directory with the backups of several devices, such as `MobileSync/Backup`.
package enum BackupDirectory {
  /// The properties of a backup that are known without opening it.
  package struct Entry: Sendable, Hashable {
    /// The name of the backup's directory, which identifies the backup.
    package let name: String
    /// The device identifier, from the manifest or the directory's name.
    package let identifier: String?
    /// The device name that the owner chose, or `nil` if neither `Info.plist` nor the manifest contains it. Untrusted.
    package let deviceName: String?
    /// The date of the backup, or `nil` if it is unknown.
    package let date: KeychainDate?
    /// Whether the backup is encrypted, or `nil` if the manifest is unreadable.
    package let isEncrypted: Bool?
    /// The completeness of the backup, or `nil` if it is unknown.
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

  /// Returns the name for the directory of a backup: the device identifier if it is a valid name, otherwise "backup".
  package static func name(for identifier: String?) -> String {
    guard let identifier, isValidName(identifier) else { return "backup" }
    return identifier
  }

  /// Returns whether a device identifier is a valid name for a directory: at most 64 ASCII letters, digits, and
  /// hyphens.
  static func isValidName(_ identifier: String) -> Bool {
    (1...64).contains(identifier.utf8.count)
      && identifier.unicodeScalars.allSatisfy {
        switch $0 {
        case "0"..."9", "A"..."Z", "a"..."z", "-": true
        default: false
        }
      }
  }

  /// Returns whether a folder has the name of a device's backup: the device identifier, with or without a date.
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
    var directoryCount = 0
    do throws(Errno) {
      let parent = try system.openDirectory(path)
      for name in try system.names(in: parent) {
        guard let validName = name.validText, let kind = try system.status(of: name, in: parent)?.kind, kind != .file
        else {
          continue
        }
        directoryCount += 1
        guard directoryCount <= maximumDirectoryCount else { break }
        let isLink = kind != .directory
        guard let directory = try open(name, isLink: isLink, in: parent, system) else { continue }
        if let entry = source.entry(named: validName, isLink: isLink, in: directory) { entries.append(entry) }
      }
    } catch {
      throw KeyhaulError(
        error.isNotFound ? .notFound : .unreadable, "\(quoted(path)): \(error.reason)", errno: error)
    }
    guard directoryCount <= maximumDirectoryCount else {
      throw KeyhaulError(
        .overLimit, "\(quoted(path)) has more than \(HumanReadable.grouped(maximumDirectoryCount)) folders")
    }
    return entries.sorted { $0.name < $1.name }
  }

  /// Opens a directory or a link to one. Returns `nil` if it is a link to a file or a dangling link.
  private static func open(
    _ name: FileSystem.Name, isLink: Bool, in parent: borrowing OwnedFileDescriptor, _ system: FileSystem
  ) throws(Errno) -> OwnedFileDescriptor? {
    if isLink { return try? system.openLinkedDirectory(name, in: parent) }
    return try system.openDirectory(name, in: parent)
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
    let backupsOfDevice = entries.filter { $0.identifier?.lowercased() == choice.lowercased() }
    let directories = backupsOfDevice.filter { !$0.isLink }
    let matches = directories.isEmpty ? backupsOfDevice : directories
    guard matches.count < 2 else {
      throw KeyhaulError(
        .unsupported, "\(matches.count) backups belong to \(quoted(choice)); the first is \(quoted(matches[0].name))")
    }
    return matches.first
  }

  /// Splits a directory name into a device identifier and an optional date.
  ///
  ///     <40 hexadecimal digits>                                 an older device
  ///     <8 hexadecimal digits>-<16 hexadecimal digits>          a newer device
  ///     <identifier>-20240101-101112                            an archived copy
  static func parts(of name: String) -> (identifier: String?, isArchivedCopy: Bool) {
    let bytes = Array(name.utf8)
    guard let length = identifierLength(bytes) else { return (nil, false) }
    let suffix = bytes[length...]
    if suffix.isEmpty { return (name, false) }
    let datePattern = Array("-00000000-000000".utf8)
    let isDate =
      suffix.count == datePattern.count
      && zip(suffix, datePattern).allSatisfy { byte, pattern in
        pattern == UInt8(ascii: "0") ? isDigit(byte) : byte == pattern
      }
    return isDate ? (String(decoding: bytes[..<length], as: UTF8.self), true) : (nil, false)
  }

  /// Returns the length of the device identifier at the start of a name, or `nil` if there is none.
  private static func identifierLength(_ bytes: [UInt8]) -> Int? {
    func isHexadecimal(_ range: Range<Int>) -> Bool {
      range.upperBound <= bytes.count && bytes[range].allSatisfy { Unicode.Scalar($0).properties.isASCIIHexDigit }
    }
    if isHexadecimal(0..<40) { return 40 }
    if isHexadecimal(0..<8), bytes.count > 8, bytes[8] == UInt8(ascii: "-"), isHexadecimal(9..<25) { return 25 }
    return nil
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
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
    // A manifest of an unknown version is not damaged.
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

  /// Returns the completeness of a backup, or `nil` if `Status.plist` is missing or does not state it.
  private func state(
    of propertyLists: MetadataFiles, hasManifest: Bool, in directory: borrowing OwnedFileDescriptor
  ) -> BackupDirectory.Entry.State? {
    guard hasManifest, hasList(directory) else { return .damaged }
    guard !propertyLists.unreadable.contains(where: { $0.name == MetadataFile.status.path }) else { return .damaged }
    guard let bytes = propertyLists[.status] else { return nil }
    guard let status = try? BackupStatus(parsing: bytes) else { return .damaged }
    guard status.snapshotState != nil else { return nil }
    return status.isFinished ? .finished : .unfinished
  }

  private func hasList(_ directory: borrowing OwnedFileDescriptor) -> Bool {
    for part in [MetadataFile.database, .oldDatabase] {
      if (try? system.status(of: part.path.systemName, in: directory))?.kind == .file { return true }
    }
    return false
  }
}
