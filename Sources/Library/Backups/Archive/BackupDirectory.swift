package import Basics
import KeychainFormats
import SystemPackage

/// A directory with the backups of several devices, such as `MobileSync/Backup`.
package enum BackupDirectory {
  /// One backup in it, as far as can be told without opening it.
  package struct Entry: Sendable, Hashable {
    /// Of the directory, which is what chooses it.
    package let name: String
    /// The identifier of the device, from its own manifest or else from the directory's name.
    package let identifier: String?
    /// The name that its owner gave the device; hostile. `nil` if `Info.plist` and the manifest don't say.
    package let deviceName: String?
    /// When the backup was made; `nil` if nothing says it.
    package let date: KeychainDate?
    /// `nil` if the manifest cannot be read.
    package let isEncrypted: Bool?
    /// `nil` if nothing says whether it was finished.
    package let state: State?
    /// Whether it is a copy that was put aside; the directory's name then ends in a date and a time.
    package let isArchivedCopy: Bool
    /// Whether it is a link to a backup that stands elsewhere.
    package let isLink: Bool

    /// How far it was written, as its own property lists say.
    package enum State: String, Sendable, CaseIterable {
      /// The device came to its end.
      case finished
      /// Its device never came to the end.
      case unfinished
      /// Its manifest or its status cannot be read, or there is no list of files.
      case damaged
    }
  }

  /// The name of the directory around a backup's files: the device's identifier, as backups are named, where that can be
  /// one.
  package static func name(for identifier: String?) -> String {
    guard let identifier, (1...64).contains(identifier.utf8.count), identifier.utf8.allSatisfy(isPlain) else {
      return "backup"
    }
    return identifier
  }

  /// Letters, digits and hyphens.
  private static func isPlain(_ byte: UInt8) -> Bool {
    (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte) || byte == 45
  }

  /// Whether a folder's name is a device's identifier, as the name of a backup's folder is; a date may follow it.
  package static func isDeviceIdentifier(_ name: String) -> Bool { parts(of: name).identifier != nil }

  /// Directories that are looked into, at most.
  package static let maximumDirectoryCount = 10_000

  /// The backups right inside of a directory, by name. A link to a backup is one too; what has no manifest is none.
  ///
  /// - Throws: `.notFound` and `.unreadable`; `.overLimit` for more directories than `maximumDirectoryCount`.
  package static func backups(
    in path: String, limits: ArchiveLimits = .standard
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
        // What is not a directory, or leads nowhere, is passed over.
        let inner: OwnedFileDescriptor?
        if isLink {
          inner = try? system.openLinkedDirectory(name, in: directory)
        } else {
          inner = try system.openDirectory(name, in: directory)
        }
        guard let inner else { continue }
        if let entry = source.entry(named: text, isLink: isLink, in: inner) { entries.append(entry) }
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

  /// What the property lists of one directory say; `nil` if it has no manifest or cannot be read.
  package static func entry(of path: String, limits: ArchiveLimits = .standard) -> Entry? {
    let system = FileSystem.real
    guard let directory = try? system.openDirectory(path) else { return nil }
    let name = path.split(separator: "/").last.map(String.init) ?? path
    return DirectorySource(system: system, limits: limits, storage: .memory).entry(
      named: name, isLink: false, in: directory)
  }

  /// The one backup of a device or a directory's name, compared as a whole.
  ///
  /// - Parameters:
  ///   - choice: A directory's name, or a device's identifier in any case.
  ///   - entries: The backups of the directory, as `entries` lists them.
  /// A link to a backup that is beside it is no second one.
  ///
  /// - Returns: `nil` if none has it.
  /// - Throws: `.unsupported` where several backups are of that device: then only a directory's name chooses.
  package static func backup(
    _ choice: String, among entries: [Entry]
  ) throws(KeyhaulError) -> Entry? {
    if let exact = entries.first(where: { $0.name == choice }) { return exact }
    let named = entries.filter { $0.identifier?.lowercased() == choice.lowercased() }
    let own = named.contains { !$0.isLink } ? named.filter { !$0.isLink } : named
    guard own.count < 2 else {
      throw KeyhaulError(
        .unsupported, "\(own.count) backups belong to \(quoted(choice)); the first is \(quoted(own[0].name))")
    }
    return own.first
  }

  /// Splits a directory's name into a device's identifier and whether a date follows: forty hexadecimal digits or
  /// eight, a hyphen and sixteen, then in a copy that was put aside `-20240101-101112`.
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
    let rest = bytes[length...]
    if rest.isEmpty { return (name, false) }
    let pattern = Array("-00000000-000000".utf8)
    let isDate =
      rest.count == pattern.count
      && zip(rest, pattern).allSatisfy { $1 == UInt8(ascii: "0") ? (48...57).contains($0) : $0 == $1 }
    return isDate ? (String(decoding: bytes[..<length], as: UTF8.self), true) : (nil, false)
  }
}

extension DirectorySource {
  /// What a directory's own property lists say; `nil` if it has no manifest.
  fileprivate func entry(
    named name: String, isLink: Bool, in directory: borrowing OwnedFileDescriptor
  ) -> BackupDirectory.Entry? {
    guard let propertyLists = try? readPropertyLists(directory), let manifest = propertyLists[.manifest] else {
      return nil
    }
    var parsed: BackupManifest?
    var isOfUnknownLayout = false
    do throws(KeyhaulError) {
      parsed = try BackupManifest(parsing: manifest)
    } catch {
      isOfUnknownLayout = error.category == .refused
    }
    let info = propertyLists[.info].flatMap { try? ComputerProperties(parsing: $0) }?.device
    let device = (parsed?.device ?? BackupDevice()).completed(by: info)
    let parts = BackupDirectory.parts(of: name)
    return BackupDirectory.Entry(
      name: name, identifier: device.identifier ?? parts.identifier, deviceName: device.name, date: parsed?.date,
      isEncrypted: parsed.map { $0.isEncrypted ?? ($0.manifestKey != nil) },
      state: isOfUnknownLayout ? nil : state(of: propertyLists, hasManifest: parsed != nil, in: directory),
      isArchivedCopy: parts.isArchivedCopy, isLink: isLink)
  }

  private func state(
    of propertyLists: StoredParts, hasManifest: Bool, in directory: borrowing OwnedFileDescriptor
  ) -> BackupDirectory.Entry.State? {
    guard hasManifest, hasList(directory) else { return .damaged }
    guard !propertyLists.unreadable.contains(where: { $0.name == StoredPart.status.path }) else { return .damaged }
    guard let bytes = propertyLists[.status] else { return nil }
    guard let status = try? BackupStatus(parsing: bytes) else { return .damaged }
    return status.snapshotState == nil ? nil : status.isFinished ? .finished : .unfinished
  }

  private func hasList(_ directory: borrowing OwnedFileDescriptor) -> Bool {
    for part in [StoredPart.database, .oldDatabase] {
      if (try? system.status(of: part.path.systemName, in: directory))?.kind == .file { return true }
    }
    return false
  }
}
