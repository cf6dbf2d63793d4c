package import KeyhaulKit

/// The source of a move in reports: a backup, or a device with a simulated backup.
package struct ReportSource {
  /// As the person named it.
  package let name: String
  package let document: PlanDocument.Source
  /// Name of the device that made it, as it claims; the device itself where there is no archive yet.
  let deviceName: String?
  package let made: KeychainDate?
  package let apps: AppDirectory
  /// The device of the home directory whose key gave the names of what another one cannot open.
  package var namesFrom: String?
  /// The other items of the source device, if it was available.
  package var sourceDeviceItems: SourceDeviceItems?
  /// Of a dump: what is said of it.
  package private(set) var statement: DumpDisclaimer?
  /// The anomalies of the backup that did not prevent the plan.
  package var findings: [BackupFinding] = []

  /// Whether names were taken out of it.
  private var isRedacted = false

  /// Of an archive: the kinds of the items that cannot be read in it, each as often as there are some.
  package var lostKinds: [ItemKind] = []
  /// Of an archive: whether items may be missing in it that nothing names.
  package var mayLackItems = false

  /// Returns the number of removed items that may be the only good copies of items that the backup has lost.
  package func onlyCopies(removedBy plan: MigrationPlan) -> Int {
    mayLackItems ? plan.removed.count : plan.removedOnlyCopies(of: lostKinds)
  }

  /// The protection of the backup, according to its contents.
  package var protection: String { ownProtection ?? (isEncrypted ? "encrypted" : "no password") }

  /// The same where neither of these is true.
  package var ownProtection: String? {
    if findings.contains(where: { $0.kind == .passwordDenied }) {
      return "no password according to Manifest.plist, but made with one"
    }
    if findings.contains(.decryptedCopy) { return "unencrypted files, password-protected items" }
    return isFalselyEncrypted ? "unencrypted files, although Manifest.plist says that the backup is encrypted" : nil
  }

  /// The anomaly that prevents every restore of a backup, as a clause; `nil` if there is none.
  package var obstacle: String? { shownFindings.obstacle }

  /// Its findings as documents have them, without names where the source is shown to others.
  package var shownFindings: [PlanDocument.Finding] {
    let shown = findings.map(PlanDocument.Finding.init)
    return isRedacted ? shown.map(\.redacted) : shown
  }

  /// Whether its manifest says that there is a password, and what is stored is in clear.
  package var isFalselyEncrypted: Bool { findings.contains { $0.kind == .falseClaim } }
  package var isDevice: Bool { document.kind == .device }
  /// Whether a plan of it can be saved to be carried out.
  package var isArchive: Bool { document.kind == .archive }
  package var isEncrypted: Bool { document.encrypted }
  /// The device that made it, for sentences.
  package var sourceDevice: String {
    deviceName ?? statement.map { "the device that the \($0.noun) comes from" } ?? "the source device"
  }

  /// An archive.
  package init(_ archive: BackupArchive, name: String, apps: AppDirectory) {
    self.name = name
    self.apps = apps
    deviceName = archive.device.name
    made = archive.date
    findings = archive.findings
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

  /// A dump.
  ///
  /// - Parameters:
  ///   - digest: SHA-256 of its bytes.
  ///   - hasPassword: Whether the backup that is thought of has one.
  package init(of dump: KeychainDump, name: String, digest: [UInt8], hasPassword: Bool) {
    self.name = name
    deviceName = nil
    made = nil
    apps = AppDirectory([])
    document = PlanDocument.Source(
      kind: .dump, name: name, device: nil, made: nil, deviceName: nil, encrypted: hasPassword,
      digest: "sha256:" + String(hexadecimal: digest))
    statement = DumpDisclaimer(dump, named: name)
  }

  /// The source to show to others.
  private init(redacting source: ReportSource) {
    isRedacted = true
    statement = source.statement?.redacted
    name = source.document.kind.rawValue
    document = source.document
    deviceName = source.statement == nil ? "the old device" : nil
    made = source.made
    apps = AppDirectory([])
    sourceDeviceItems = source.sourceDeviceItems?.redacted
    findings = source.findings
    lostKinds = source.lostKinds
    mayLackItems = source.mayLackItems
  }

  package var redacted: ReportSource { ReportSource(redacting: self) }

  /// Returns the lines about items that are not in a backup; empty if the source is a device, because its plan names
  /// every item.
  package func blindSpotLines(style: TextStyle, showsAll: Bool = false) -> [String] {
    if let statement { return statement.moveLines(style: style) }
    return (sourceDeviceItems?.lines(style: style, showsAll: showsAll) ?? [])
      + (isDevice ? [] : BackupBlindSpots.lines(style: style))
  }

  /// The same as the last members of a document but a plan's own.
  package var blindSpotFields: [(String, JSONValue)] {
    document.blindSpotFields + (sourceDeviceItems.map { [("not_in_backup", PlanDocument.NotInBackup($0).json)] } ?? [])
  }
}

extension [PlanDocument.Finding] {
  /// That no restore takes the backup, and what forbids it; `nil` if nothing does.
  var obstacle: String? {
    first { !$0.isRestorable }.map { finding in
      let fact = finding.detail.contains(finding.place) ? finding.detail : "\(finding.place): \(finding.detail)"
      return "it cannot be restored as it is: \(fact)"
    }
  }
}
