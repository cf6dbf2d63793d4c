import Basics
import KeyhaulKit

/// Sends a backup to the client's computer in the same steps as a real device.
///
/// Until the files are moved from the snapshot's folder, the previous backup stays unchanged, except for Status.plist,
/// which contains the state of the new backup. The progress of each message is a percentage of the complete backup.
struct BackupUpload {
  private static let snapshot = "Snapshot"
  /// The maximum number of files in one message.
  private static let batchCount = 128
  /// The free space that a device requires in addition to the backup itself.
  private static let reservedByteCount: Int64 = 128 << 20
  private let device: ServedDevice
  private let link: DeviceLink
  private let actions: BackupAndRestore

  init(_ device: ServedDevice, _ link: DeviceLink, _ actions: BackupAndRestore) {
    (self.device, self.link, self.actions) = (device, link, actions)
  }

  /// A file of the backup and its path below the backup's folder.
  private struct Part {
    let path: String
    let file: StagedFile
  }

  /// The files of a backup that are sent. Info.plist is missing because the computer writes it, and the seal because a
  /// device has no seal.
  private struct OutgoingBackup {
    let payloads: [Part]
    /// Manifest.plist and Manifest.db.
    let manifests: [Part]
    /// The bytes of Status.plist.
    let status: [UInt8]

    var byteCount: Int64 { (payloads + manifests).reduce(0) { $0 + $1.file.byteCount } }
    /// The directories of the payloads, named with the first two digits of the file identifiers.
    var directories: [String] { Set(payloads.map { String($0.path.prefix(2)) }).sorted() }
  }

  func run() throws(BackupServiceError) {
    try logExistingBackup()
    let folder = try StagingFolder(of: device)
    let name = "backup"
    let date = try actions.writeBackup(into: folder, name)
    let backup = try outgoingBackup(in: folder, name)
    var status: BackupStatus
    do throws(KeyhaulError) {
      status = try BackupStatus(parsing: backup.status)
    } catch {
      throw .failed(BackupFailure(error))
    }

    let byteCount = backup.byteCount
    guard try link.freeByteCount() > byteCount + Self.reservedByteCount else {
      throw .failed(.noSpace, "Insufficient free disk space on drive to back up")
    }
    try createDirectories(for: backup)
    try send(&status, "uploading", progress: 2)
    try upload(backup)
    try send(&status, "moving", progress: 91)
    for batch in backup.payloads.batches(of: Self.batchCount) { try move(batch, progress: 93) }
    try move(backup.manifests, progress: 96)
    try send(&status, "removing", progress: 97)
    try link.remove(["\(device.udid)/\(Self.snapshot)"], progress: 98)
    try send(&status, "finished", progress: 100)
    actions.recordBackup(at: date)
    device.log("backup finished, \(HumanReadable.bytes(byteCount))")
  }

  /// Logs whether the computer has a finished backup of the device.
  private func logExistingBackup() throws(BackupServiceError) {
    let bytes = try link.downloadBytes(
      "\(device.udid)/Status.plist", atMost: ClientBackup.maximumPropertyListByteCount)
    let isFinished = bytes.flatMap { try? BackupStatus(parsing: $0) }?.isFinished == true
    device.log(
      isFinished ? "the computer has a finished backup; it is replaced" : "the computer has no finished backup")
  }

  /// Finds the files of a backup that was written into a directory of the folder.
  private func outgoingBackup(in folder: StagingFolder, _ name: String) throws(BackupServiceError) -> OutgoingBackup {
    let top = try folder.files(in: name)
    var payloads: [Part] = []
    for directory in top.directories where BackupPath.isPayloadDirectory(directory) {
      for file in try folder.files(in: "\(name)/\(directory)").files where isFileIdentifier(file.name) {
        payloads.append(Part(path: "\(directory)/\(file.name)", file: file))
      }
    }
    let manifests = [MetadataFile.manifest.path, MetadataFile.database.path].compactMap { path in
      top.files.first { $0.name == path }.map { Part(path: path, file: $0) }
    }
    guard manifests.count == 2, let status = top.files.first(where: { $0.name == MetadataFile.status.path }) else {
      throw .failed(.cannotRead, "the backup that was made has no manifest")
    }
    return OutgoingBackup(payloads: payloads, manifests: manifests, status: try status.bytes())
  }

  private func createDirectories(for backup: OutgoingBackup) throws(BackupServiceError) {
    let root = device.udid
    let directories = backup.directories
    try link.createDirectory(root, progress: 0.5)
    for directory in directories { try link.createDirectory("\(root)/\(directory)", progress: 1) }
    try link.createDirectory("\(root)/\(Self.snapshot)", progress: 1)
    for directory in directories {
      try link.createDirectory("\(root)/\(Self.snapshot)/\(directory)", progress: 1)
    }
  }

  /// Sends the payloads and then the manifests to the snapshot's folder.
  private func upload(_ backup: OutgoingBackup) throws(BackupServiceError) {
    let (startProgress, endProgress) = (2.0, 88.0)
    var sentByteCount: Int64 = 0
    for batch in backup.payloads.batches(of: Self.batchCount) {
      sentByteCount += batch.reduce(0) { $0 + $1.file.byteCount }
      let sentFraction = Double(sentByteCount) / Double(max(1, backup.byteCount))
      try upload(batch, progress: startProgress + (endProgress - startProgress) * sentFraction)
    }
    try upload(backup.manifests, progress: 90)
  }

  private func upload(_ parts: [Part], progress: Double) throws(BackupServiceError) {
    try link.upload(
      parts.map { part in
        .init(part.file, displayName: "/.ba/\(part.path)", to: "\(device.udid)/\(Self.snapshot)/\(part.path)")
      }, progress: progress)
  }

  private func move(_ parts: [Part], progress: Double) throws(BackupServiceError) {
    try link.move(
      parts.map { (from: "\(device.udid)/\(Self.snapshot)/\($0.path)", to: "\(device.udid)/\($0.path)") },
      progress: progress)
  }

  private func send(_ status: inout BackupStatus, _ state: String, progress: Double) throws(BackupServiceError) {
    status.snapshotState = state
    status.isFullBackup = true
    let bytes: [UInt8]
    do throws(KeyhaulError) { bytes = try status.serialized() } catch { throw .failed(BackupFailure(error)) }
    try link.upload(
      [.init(bytes, displayName: "/.ba/Status.plist", to: "\(device.udid)/Status.plist")], progress: progress)
  }
}

extension Array {
  /// Returns the elements in groups of limited size.
  fileprivate func batches(of count: Int) -> [[Element]] {
    stride(from: 0, to: self.count, by: count).map { Array(self[$0..<Swift.min($0 + count, self.count)]) }
  }
}
