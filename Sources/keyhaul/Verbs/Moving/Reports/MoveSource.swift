import ArchivedKeychain
import BackupArchive
import CommandSession
import DataProtection
import KeychainFormats
import Migration
import Reports
import VirtualDevice

/// What is to be moved, as reports speak of it: an archive, or a device as a backup made of it now would hold it.
struct MoveSource {
  /// As the person named it.
  let name: String
  let document: PlanDocument.Source
  /// Name of the device that made it, as it claims; the device itself where there is no archive yet.
  let deviceName: String?
  let made: KeychainDate?
  let apps: AppDirectory
  /// The device of the home directory whose key gave the names of what another one cannot open.
  var namesFrom: String?

  var isDevice: Bool { document.kind == .device }
  var isEncrypted: Bool { document.encrypted }
  /// The device that made it, for sentences.
  var sourceDevice: String { deviceName ?? "the device that made it" }

  init(_ named: NamedArchive) {
    let backup = named.archive
    name = named.name
    deviceName = backup.device.name
    made = backup.date
    apps = AppDirectory(installed: InstalledApps.names(in: backup))
    document = PlanDocument.Source(
      kind: .archive, name: named.name, device: backup.device.identifier, made: backup.date.map(Timestamp.text),
      deviceName: backup.device.name, encrypted: backup.isEncrypted, digest: backup.digest)
  }

  init(_ named: NamedArchive, namesFrom opened: ArchiveUnlocker.OpenedForDevice) {
    self.init(named)
    namesFrom = opened.archive.sealedNames.isEmpty ? nil : opened.maker
  }

  /// - Parameter hasPassword: Whether the backup that is thought of has one.
  init(_ session: DeviceSession, hasPassword: Bool) throws(CommandFailure) {
    name = session.name
    deviceName = session.name
    made = nil
    apps = AppDirectory(session.record.apps)
    let digest: String
    do throws(DataProtectionError) {
      digest = String(
        hexadecimal: try Digest.sha256(Array("\(session.record.udid)\0\(session.record.revision)".utf8)))
    } catch {
      throw CommandFailure(error, doing: "cannot plan for \(session.name)")
    }
    document = PlanDocument.Source(
      kind: .device, name: session.name, device: session.record.udid, made: nil, deviceName: session.name,
      encrypted: hasPassword, digest: "sha256:" + digest)
  }

  /// The source to show to others.
  private init(redacting source: MoveSource) {
    name = source.document.kind.rawValue
    document = source.document
    deviceName = "the old device"
    made = source.made
    apps = AppDirectory([])
  }

  var redacted: MoveSource { MoveSource(redacting: self) }
}

extension MoveSource {
  /// Empty of a device, whose plan names every item.
  func unseenLines(style: TextStyle) -> [String] { isDevice ? [] : UnseenNote.lines(style: style) }

  var unseenFields: [(String, JSONValue)] { document.unseenFields }
}
