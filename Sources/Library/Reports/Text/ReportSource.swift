package import KeyhaulKit

/// The source of a move in reports: a backup, or a device with a simulated backup.
package struct ReportSource {
  /// The name that the user typed.
  package let name: String
  /// The source in the documents of reports.
  package let document: PlanDocument.Source
  /// The name of the source device according to the backup, or of the device itself; `nil` if it is unknown.
  let deviceName: String?
  /// The date of the backup; `nil` if it has none, or if the source is not a backup.
  package let backupDate: KeychainDate?
  package let apps: AppDirectory
  /// The available device whose key decrypted the names of items that the target cannot decrypt.
  package var nameDecryptingDevice: String?
  /// The items of the source device that are not in the backup; `nil` if the device was not available.
  package var sourceDeviceItems: SourceDeviceItems?
  /// The disclaimer about a dump; `nil` if the source is not a dump.
  package private(set) var disclaimer: DumpDisclaimer?
  /// The findings about the backup that did not prevent the plan.
  package var findings: [BackupFinding] = []

  /// The condition of a backup, which decides whether it can be restored as it is.
  package var condition = BackupCondition.usable

  /// Whether the names were removed.
  private var isRedacted = false

  /// The kinds of the backup's unreadable items, one for each item.
  package var lostKinds: [ItemKind] = []
  /// Whether the backup may have lost items without a trace.
  package var mayLackItems = false

  /// Returns the number of removed items that may be the only intact copies of items that the backup has lost.
  package func onlyCopies(removedBy plan: MigrationPlan) -> Int {
    mayLackItems ? plan.removed.count : plan.removedOnlyCopyCount(ofKinds: lostKinds)
  }

  /// The protection of the backup, according to its contents.
  package var protection: String { nonstandardProtection ?? (isEncrypted ? "encrypted" : "no password") }

  /// The unusual protection of the backup, such as unencrypted files with password-protected items. `nil` if "encrypted" or
  /// "no password" describes it.
  package var nonstandardProtection: String? { reportedFindings.nonstandardProtection }

  /// Whether the backup has no password, and nothing in it contradicts this.
  var lacksPassword: Bool { nonstandardProtection == nil && !isEncrypted }

  /// The finding that prevents every restore of a backup, as a clause; `nil` if there is none.
  package var obstacle: String? { reportedFindings.obstacle }

  /// The findings as in documents, without details if the source is redacted.
  package var reportedFindings: [PlanDocument.Finding] {
    let reported = findings.map(PlanDocument.Finding.init)
    return isRedacted ? reported.map(\.redacted) : reported
  }

  /// Whether the manifest states that there is a password, but the files are unencrypted.
  package var isFalselyEncrypted: Bool { findings.contains { $0.kind == .falseClaim } }
  package var isDevice: Bool { document.kind == .device }
  /// Whether the source is a backup. A plan of a backup can be saved and carried out.
  package var isArchive: Bool { document.kind == .archive }
  package var isEncrypted: Bool { document.encrypted }
  /// The name of the source device in sentences.
  package var sourceDevice: String {
    deviceName ?? disclaimer.map { "the device that the \($0.noun) comes from" } ?? "the source device"
  }

  /// Creates the source of a backup.
  package init(_ archive: BackupArchive, name: String, apps: AppDirectory) {
    self.name = name
    self.apps = apps
    deviceName = archive.device.name
    backupDate = archive.date
    findings = archive.findings
    document = PlanDocument.Source(
      kind: .archive, name: name, device: archive.device.identifier, backupDate: archive.date.map(Timestamp.text),
      deviceName: archive.device.name, encrypted: archive.isEncrypted, digest: archive.digest)
  }

  /// Creates the source of a simulated backup of a device.
  ///
  /// - Parameter hasPassword: Whether the simulated backup has a password.
  package init(of session: DeviceSession, hasPassword: Bool) throws(DataProtectionError) {
    name = session.name
    deviceName = session.name
    backupDate = nil
    apps = AppDirectory(session.record.apps)
    let digest = try Digest.sha256(Array("\(session.record.udid)\0\(session.record.revision)".utf8))
    document = PlanDocument.Source(
      kind: .device, name: session.name, device: session.record.udid, backupDate: nil, deviceName: session.name,
      encrypted: hasPassword, digest: "sha256:" + String(hexadecimal: digest))
  }

  /// Creates the source of a simulated backup of a dump's device.
  ///
  /// - Parameters:
  ///   - digest: The SHA-256 digest of the dump's bytes.
  ///   - hasPassword: Whether the simulated backup has a password.
  package init(of dump: KeychainDump, name: String, digest: [UInt8], hasPassword: Bool) {
    self.name = name
    deviceName = nil
    backupDate = nil
    apps = AppDirectory([])
    document = PlanDocument.Source(
      kind: .dump, name: name, device: nil, backupDate: nil, deviceName: nil, encrypted: hasPassword,
      digest: "sha256:" + String(hexadecimal: digest))
    disclaimer = DumpDisclaimer(dump, named: name)
  }

  /// Creates a source without names.
  private init(redacting source: ReportSource) {
    isRedacted = true
    disclaimer = source.disclaimer?.redacted
    name = source.document.kind.rawValue
    document = source.document
    deviceName = source.disclaimer == nil ? "the source device" : nil
    backupDate = source.backupDate
    apps = AppDirectory([])
    sourceDeviceItems = source.sourceDeviceItems?.redacted
    findings = source.findings
    lostKinds = source.lostKinds
    mayLackItems = source.mayLackItems
    condition = source.condition
  }

  /// The source without names.
  package var redacted: ReportSource { ReportSource(redacting: self) }

  /// Returns the lines about items that are not in a backup, or the disclaimer about a dump. Empty if the source is a
  /// device, because its plan names every item.
  package func blindSpotLines(style: TextStyle, showsAll: Bool = false) -> [String] {
    if let disclaimer { return disclaimer.moveLines(style: style) }
    return (sourceDeviceItems?.lines(style: style, showsAll: showsAll) ?? [])
      + (isDevice ? [] : BackupBlindSpots.lines(style: style))
  }

  /// The fields about items that are not in a backup, for documents other than a plan.
  package var blindSpotFields: [(String, JSONValue)] {
    document.blindSpotFields + (sourceDeviceItems.map { [("not_in_backup", PlanDocument.NotInBackup($0).json)] } ?? [])
  }
}

extension [PlanDocument.Finding] {
  /// Returns whether one of the findings is of a kind.
  func contains(_ kind: BackupFinding.Kind) -> Bool { contains { $0.id == kind.rawValue } }

  /// The unusual protection of a backup, according to its findings. `nil` if "encrypted" or "no password" describes it.
  var nonstandardProtection: String? {
    if contains(.passwordDenied) { return "no password according to Manifest.plist, but made with one" }
    if contains(.decryptedCopy) { return "unencrypted files, password-protected items" }
    return contains(.falseClaim) ? "unencrypted files, although Manifest.plist says that the backup is encrypted" : nil
  }

  /// A clause that states that the backup cannot be restored, and why; `nil` if the backup can be restored.
  var obstacle: String? {
    first { !$0.isRestorable }.map { finding in
      let fact = finding.detail.contains(finding.file) ? finding.detail : "\(finding.file): \(finding.detail)"
      return "it cannot be restored as it is (\(fact))"
    }
  }
}

extension BackupBlindSpots {
  /// Returns the line about items that no backup contains, wrapped.
  package static func lines(style: TextStyle) -> [String] { WordWrap.lines(of: line, columns: style.width) }
}
