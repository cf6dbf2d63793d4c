import Basics
import KeyhaulKit

/// Sends a backup to the client's computer in the same steps as a real device.
///
/// Until the files are moved to their places, the previous backup stays unchanged, and Status.plist contains the
/// progress of the new one.
struct BackupUpload {
  private static let snapshot = "Snapshot"
  private static let batchCount = 128
  /// The free space that a device requires in addition to the backup itself.
  private static let reservedByteCount: Int64 = 128 << 20
  private let device: ServedDevice
  private let link: DeviceLink
  private let content: DeviceContent

  init(_ device: ServedDevice, _ link: DeviceLink, _ content: DeviceContent) {
    (self.device, self.link, self.content) = (device, link, content)
  }

  /// A file of the backup and its path below the backup's folder.
  private struct Part {
    let path: String
    let file: StagedFile
  }

  func run() throws(BackupServiceError) {
    let root = device.udid
    let old = try link.downloadBytes("\(root)/Status.plist", atMost: ClientBackup.propertyListByteCount)
    let isOver = old.flatMap { try? BackupStatus(parsing: $0) }?.isFinished == true
    device.note(isOver ? "the computer has a finished backup; it is replaced" : "the computer has no finished backup")

    let folder = try StagingFolder(of: device)
    let name = "backup"
    let date = try content.writeBackup(into: folder, name)
    let (parts, manifests, statusFile) = try parts(of: folder, name)
    var status: BackupStatus
    do throws(KeyhaulError) {
      status = try BackupStatus(parsing: try statusFile())
    } catch {
      throw .failed(BackupFailure(error))
    }

    let byteCount = (parts + manifests).reduce(Int64(0)) { $0 + $1.file.byteCount }
    guard try link.freeByteCount() > byteCount + Self.reservedByteCount else {
      throw .failed(.noSpace, "Insufficient free disk space on drive to back up")
    }
    try link.createDirectory(root, progress: 0.5)
    let directories = Set(parts.map { String($0.path.prefix(2)) }).sorted()
    for directory in directories { try link.createDirectory("\(root)/\(directory)", progress: 1) }
    try link.createDirectory("\(root)/\(Self.snapshot)", progress: 1)
    for directory in directories {
      try link.createDirectory("\(root)/\(Self.snapshot)/\(directory)", progress: 1)
    }

    try send(&status, "uploading", progress: 2)
    var sent: Int64 = 0
    for batch in parts.batches(of: Self.batchCount) {
      sent += batch.reduce(0) { $0 + $1.file.byteCount }
      try upload(batch, progress: 2 + 86 * Double(sent) / Double(max(1, byteCount)))
    }
    try upload(manifests, progress: 90)
    try send(&status, "moving", progress: 91)
    for batch in parts.batches(of: Self.batchCount) { try move(batch, progress: 93) }
    try move(manifests, progress: 96)
    try send(&status, "removing", progress: 97)
    try link.remove(["\(root)/\(Self.snapshot)"], progress: 98)
    try send(&status, "finished", progress: 100)
    content.recordBackup(at: date)
    device.note("backup finished, \(HumanReadable.bytes(byteCount))")
  }

  /// Returns the files of the backup: its payloads, its two manifests, and the bytes of its status. Info.plist, which
  /// the computer writes, and the seal, which no device writes, are not sent.
  private func parts(
    of folder: StagingFolder, _ name: String
  ) throws(BackupServiceError) -> ([Part], [Part], () throws(KeyhaulError) -> [UInt8]) {
    let top = try folder.files(in: name)
    var parts: [Part] = []
    for directory in top.directories where BackupPath.isPayloadDirectory(directory) {
      for file in try folder.files(in: "\(name)/\(directory)").files where isFileIdentifier(file.name) {
        parts.append(Part(path: "\(directory)/\(file.name)", file: file))
      }
    }
    let manifests = [MetadataFile.manifest.path, MetadataFile.database.path].compactMap { wanted in
      top.files.first { $0.name == wanted }.map { Part(path: wanted, file: $0) }
    }
    guard manifests.count == 2, let status = top.files.first(where: { $0.name == MetadataFile.status.path }) else {
      throw .failed(.cannotRead, "the backup that was made has no manifest")
    }
    let bytes = try status.bytes()
    return (parts, manifests, { () throws(KeyhaulError) in bytes })
  }

  private func upload(_ parts: [Part], progress: Double) throws(BackupServiceError) {
    try link.upload(
      parts.map { part in
        .init(part.file, shownAs: "/.ba/\(part.path)", to: "\(device.udid)/\(Self.snapshot)/\(part.path)")
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
    try link.upload([.init(bytes, shownAs: "/.ba/Status.plist", to: "\(device.udid)/Status.plist")], progress: progress)
  }
}

extension Array {
  /// Returns the elements in groups of limited size.
  fileprivate func batches(of count: Int) -> [[Element]] {
    stride(from: 0, to: self.count, by: count).map { Array(self[$0..<Swift.min($0 + count, self.count)]) }
  }
}
