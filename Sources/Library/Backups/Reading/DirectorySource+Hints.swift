import Basics
import SystemPackage

extension DirectorySource {
  /// The maximum number of names that are examined in a directory and in each of its subdirectories.
  private static let maximumNameCount = 200
  /// The maximum number of names in a hint.
  private static let maximumCandidateCount = 3

  /// Returns the error for a directory without a manifest, with hints about where a backup may be.
  func notABackup(_ directory: borrowing OwnedFileDescriptor) -> KeyhaulError {
    let nearby = nearbyEntries(in: directory)
    var clauses = ["it has no \(MetadataFile.manifest.path)"]
    if !nearby.backups.isEmpty { clauses.append("\(Self.listed(nearby.backups)) in it may be a backup") }
    if !nearby.backupFolders.isEmpty { clauses.append("backups are in \(Self.listed(nearby.backupFolders))") }
    if let link = nearby.firstDanglingLink {
      clauses.append("the link \(quoted(link.name)) points to \(link.target), which does not exist")
    }
    return KeyhaulError(.notABackup, clauses.joined(separator: "; "))
  }

  private static func listed(_ names: [String]) -> String {
    let shown = names.prefix(maximumCandidateCount).map(quoted)
    return names.count > shown.count
      ? shown.joined(separator: ", ") + ", ..." : HumanReadable.list(shown, conjunction: "or")
  }

  /// The entries of a directory that may lead to a backup.
  private struct NearbyEntries {
    /// The names of backups and container files, or of links to them.
    var backups: [String] = []
    /// The names of directories with backups, such as `Backup` in `MobileSync`, or of links to them.
    var backupFolders: [String] = []
    var firstDanglingLink: (name: String, target: String)?
  }

  /// Finds entries that may lead to a backup. Unreadable entries are skipped.
  private func nearbyEntries(in directory: borrowing OwnedFileDescriptor) -> NearbyEntries {
    var nearby = NearbyEntries()
    for name in names(in: directory) {
      switch kind(of: name, in: directory) {
      case .file: if isContainer(name, in: directory) { nearby.backups.append(name) }
      case .directory, .link:
        if hasManifest(name, in: directory) {
          nearby.backups.append(name)
        } else if containsBackups(name, in: directory) {
          nearby.backupFolders.append(name)
        } else if nearby.firstDanglingLink == nil, let target = missingTarget(of: name, in: directory) {
          nearby.firstDanglingLink = (name, target)
        }
      case .pipe, .other, nil: continue
      }
    }
    return nearby
  }

  /// Returns the quoted target of a dangling link, otherwise `nil`.
  private func missingTarget(of name: String, in directory: borrowing OwnedFileDescriptor) -> String? {
    guard let target = try? system.linkTarget(of: name, in: directory) else { return nil }
    do throws(Errno) {
      _ = try system.openLinkedDirectory(name.systemName, in: directory)
      return nil
    } catch {
      return error.isNotFound ? quoted(target) : nil
    }
  }

  private func names(in directory: borrowing OwnedFileDescriptor) -> [String] {
    let all = (try? system.names(in: directory)) ?? []
    return all.prefix(Self.maximumNameCount).compactMap(\.validText).sorted()
  }

  private func kind(of name: String, in directory: borrowing OwnedFileDescriptor) -> FileStatus.Kind? {
    (try? system.status(of: name.systemName, in: directory))?.kind
  }

  /// Returns whether a file begins like a container file.
  private func isContainer(_ name: String, in directory: borrowing OwnedFileDescriptor) -> Bool {
    do {
      try checkContainerFormat(try system.openForReading(name, in: directory))
      return true
    } catch {
      return false
    }
  }

  private func checkContainerFormat(_ file: borrowing OwnedFileDescriptor) throws(KeyhaulError) {
    _ = try ContainerFormat(try FileDescriptorSource(descriptor: file.raw, system: system))
  }

  private func hasManifest(_ name: String, in directory: borrowing OwnedFileDescriptor) -> Bool {
    do {
      return try hasManifest(try system.openLinkedDirectory(name.systemName, in: directory))
    } catch {
      return false
    }
  }

  private func hasManifest(_ directory: borrowing OwnedFileDescriptor) throws(Errno) -> Bool {
    try system.status(of: MetadataFile.manifest.path.systemName, in: directory)?.kind == .file
  }

  private func containsBackups(_ name: String, in directory: borrowing OwnedFileDescriptor) -> Bool {
    do {
      return containsBackup(try system.openLinkedDirectory(name.systemName, in: directory))
    } catch {
      return false
    }
  }

  private func containsBackup(_ directory: borrowing OwnedFileDescriptor) -> Bool {
    for name in names(in: directory) where hasManifest(name, in: directory) { return true }
    return false
  }
}

// MARK: Backups without a manifest
extension DirectorySource {
  /// The name of the directory that a device uses until the backup is finished.
  ///
  /// Source: libimobiledevice, `idevicebackup2.c`.
  private static let snapshotName = "Snapshot"

  /// Returns the error for a partial backup without a manifest, or `nil` if the directory does not look like
  /// one.
  ///
  /// - Parameter propertyLists: The property lists that could be read.
  func missingManifestError(_ directory: borrowing OwnedFileDescriptor, _ propertyLists: MetadataFiles) -> KeyhaulError?
  {
    let (hasInfo, hasStatus) = (propertyLists.contains(.info), propertyLists.contains(.status))
    let payloadCount = payloadCount(in: directory)
    let snapshotPayloadCount = snapshotPayloadCount(in: directory)
    let hasPayloads = payloadCount > 0 || snapshotPayloadCount != nil
    // One property list is not enough, because apps also contain an Info.plist.
    guard hasInfo && hasStatus || (hasInfo || hasStatus) && hasPayloads else { return nil }
    let status = propertyLists[.status].flatMap { bytes in try? BackupStatus(parsing: bytes) }
    var clauses = ["it has no \(MetadataFile.manifest.path), which is needed to get its keys"]
    if let count = snapshotPayloadCount {
      clauses.append("its \(Self.snapshotName) folder remains, with \(HumanReadable.count(count, "payload"))")
    }
    if let bytes = propertyLists[.info] { clauses.append(Self.describe(info: bytes)) }
    clauses.append(Self.describe(status: propertyLists[.status]))
    clauses.append("\(HumanReadable.count(payloadCount, "payload")) \(payloadCount == 1 ? "is" : "are") in it")
    // A finished backup had a manifest, so the manifest was lost.
    let isFinished = status?.isFinished == true
    return KeyhaulError(isFinished ? .damaged : .manifestMissing, clauses.joined(separator: "; "))
  }

  /// Returns the number of payloads in the snapshot directory, or `nil` if there is no such directory.
  private func snapshotPayloadCount(in directory: borrowing OwnedFileDescriptor) -> Int? {
    guard let snapshot = try? system.openDirectory(Self.snapshotName.systemName, in: directory) else { return nil }
    return payloadCount(in: snapshot)
  }

  /// Returns whether `Manifest.db` begins like an unencrypted database.
  func hasPlaintextDatabase(_ directory: borrowing OwnedFileDescriptor) -> Bool {
    do {
      let file = try system.openForReading(MetadataFile.database.path, in: directory)
      guard try system.status(of: file.raw).kind == .file else { return false }
      let magic = DatabaseBytes.magic
      let start = try [UInt8](unsafeUninitializedCapacity: magic.count) { buffer, count in
        count = try system.read(file.raw, at: 0, into: UnsafeMutableRawBufferPointer(buffer))
      }
      return start == magic
    } catch {
      return false
    }
  }

  /// Returns the number of payloads, or 0 if they cannot be counted.
  private func payloadCount(in directory: borrowing OwnedFileDescriptor) -> Int {
    var identifiers: Set<String> = []
    for layout in BackupLayout.allCases {
      identifiers.formUnion((try? payloads(of: directory, layout: layout))?.fileIdentifiers() ?? [])
    }
    return identifiers.count
  }

  /// Describes the device in an `Info.plist`.
  private static func describe(info bytes: [UInt8]) -> String {
    let name = MetadataFile.info.path
    guard let device = (try? InfoPlist(parsing: bytes))?.device else { return "\(name) cannot be read" }
    let values = [
      device.name.map(quoted), device.productType.map(quoted), device.productVersion.map { "iOS \(quoted($0))" },
      device.identifier.map(quoted),
    ].compactMap(\.self)
    return "\(name) says \(values.isEmpty ? "nothing about its device" : values.joined(separator: ", "))"
  }

  /// Describes the state in a `Status.plist`.
  ///
  /// - Parameter bytes: The content of the file, or `nil` if it is missing.
  private static func describe(status bytes: [UInt8]?) -> String {
    let name = MetadataFile.status.path
    guard let bytes else { return "it has no \(name)" }
    guard let status = try? BackupStatus(parsing: bytes) else { return "\(name) cannot be read" }
    return "\(name) says \(status.snapshotState.map(quoted) ?? "nothing about its progress")"
  }
}
