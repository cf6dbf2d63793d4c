import DataProtection
import KeychainFormats

extension PlanDocument {
  /// The document with its checksum, as it is saved.
  ///
  /// - Throws: What the cryptographic library reports.
  public func checksummed() throws(MigrationError) -> PlanDocument {
    var document = self
    document.checksum = try reporting { () throws(DataProtectionError) in try fingerprint() }
    return document
  }

  /// Why a saved plan cannot be carried out whatever there is now, as one sentence; `nil` where it may be.
  ///
  /// - Throws: What the cryptographic library reports.
  public func obstacle() throws(MigrationError) -> String? {
    if redacted == true { return "it was made with --redact, to be shown and not to be carried out" }
    guard let checksum else { return "it has no checksum" }
    let now = try reporting { () throws(DataProtectionError) in try fingerprint() }
    if checksum != now { return "it was edited after it was saved" }
    if source.kind == .device { return "it was made of \(source.name) itself, of which there was no backup yet" }
    return nil
  }

  /// What the document says, as one number: over every value in its order with its length, so that no edit leaves it
  /// the same, while the document may be laid out anew.
  ///
  /// No seal: whoever edits a plan can compute it anew, and has then written another plan, which is checked like any.
  func fingerprint() throws(DataProtectionError) -> String {
    var bytes: [UInt8] = []
    func add(_ text: String?) {
      guard let text else { return bytes.append(0) }
      bytes.append(1)
      withUnsafeBytes(of: UInt64(text.utf8.count).bigEndian) { bytes.append(contentsOf: $0) }
      bytes.append(contentsOf: text.utf8)
    }
    func add(_ number: Int) { add(String(number)) }
    func add(_ flag: Bool?) { add(flag.map { $0 ? "true" : "false" }) }
    func add(_ identity: Identity) {
      let names = [identity.label, identity.account, identity.service, identity.server, identity.accessGroup]
      add(identity.kind)
      for name in names { add(name) }
    }
    add(format)
    add(made)
    add(redacted)
    for text in [source.kind.rawValue, source.name, source.device, source.made, source.deviceName, source.digest] {
      add(text)
    }
    add(source.encrypted)
    for text in [target.name, target.state, target.revision] { add(text) }
    for flag in [target.sameDevice, target.claimsSameDevice, target.passcodeSet] { add(flag) }
    add(target.items)
    add(policy.rawValue)
    for count in [summary.total, summary.migrates, summary.staysBehind, summary.unreadable, summary.removed] {
      add(count)
    }
    for (reason, count) in summary.byReason.sorted(by: { $0.key < $1.key }) {
      add(reason)
      add(count)
    }
    add(items.count)
    for item in items {
      add(item.index)
      add(item.identity)
      for text in [item.protection, item.outcome, item.change, item.reason, item.detail] { add(text) }
    }
    add(removed.count)
    for identity in removed { add(identity) }
    return "sha256:" + String(hexadecimal: try Digest.sha256(bytes))
  }
}
