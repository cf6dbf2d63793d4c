import ArchivedKeychain
package import BackupArchive
package import DataProtection
package import KeychainFormats
package import Migration
package import TextLayout
package import VirtualDevice

/// What is to be moved, as reports speak of it: an archive, or a device as a backup made of it now would hold it.
package struct MoveSource {
  /// As the person named it.
  package let name: String
  package let document: PlanDocument.Source
  /// Name of the device that made it, as it claims; the device itself where there is no archive yet.
  let deviceName: String?
  package let made: KeychainDate?
  package let apps: AppDirectory
  /// The device of the home directory whose key gave the names of what another one cannot open.
  package var namesFrom: String?
  /// What that device has besides what is in the backup, where it was asked.
  package var maker: MakerItems?

  package var isDevice: Bool { document.kind == .device }
  package var isEncrypted: Bool { document.encrypted }
  /// The device that made it, for sentences.
  package var sourceDevice: String { deviceName ?? "the device that made it" }

  /// An archive.
  package init(_ archive: BackupArchive, name: String, apps: AppDirectory) {
    self.name = name
    self.apps = apps
    deviceName = archive.device.name
    made = archive.date
    document = PlanDocument.Source(
      kind: .archive, name: name, device: archive.device.identifier, made: archive.date.map(Timestamp.text),
      deviceName: archive.device.name, encrypted: archive.isEncrypted, digest: archive.digest)
  }

  /// A device.
  ///
  /// - Parameter hasPassword: Whether the backup that is thought of has one.
  package init(of session: DeviceSession, hasPassword: Bool) throws(DataProtectionError) {
    name = session.name
    deviceName = session.name
    made = nil
    apps = AppDirectory(session.record.apps)
    let digest = try Digest.sha256(Array("\(session.record.udid)\0\(session.record.revision)".utf8))
    document = PlanDocument.Source(
      kind: .device, name: session.name, device: session.record.udid, made: nil, deviceName: session.name,
      encrypted: hasPassword, digest: "sha256:" + String(hexadecimal: digest))
  }

  /// The source to show to others.
  private init(redacting source: MoveSource) {
    name = source.document.kind.rawValue
    document = source.document
    deviceName = "the old device"
    made = source.made
    apps = AppDirectory([])
    maker = source.maker?.redacted
  }

  package var redacted: MoveSource { MoveSource(redacting: self) }

  /// What a report of a backup says of what is not in it; empty of a device, whose plan names every item.
  package func unseenLines(style: TextStyle, showsAll: Bool = false) -> [String] {
    (maker?.lines(style: style, showsAll: showsAll) ?? [])
      + (isDevice ? [] : UnseenItems.lines(style: style, isAdvised: true))
  }

  /// The same as the last members of a document.
  package var unseenFields: [(String, JSONValue)] {
    document.unseenFields + (maker.map { [("not_in_backup", PlanDocument.NotInBackup($0).json)] } ?? [])
  }
}
