import ArchivedKeychain
import BackupArchive
import KeychainFormats
import KeychainStore
import VirtualDevice

/// The items of an archive or a device that an export is about.
struct ExportedItems {
  /// What the user called the source.
  var name: String
  private let sourceKind: String
  private let entries: [ItemDocument.Entry]
  /// Those whose secrets may be shown, in the same order.
  private let items: [KeychainItem]
  private let guardedCount: Int

  init(of opened: OpenedArchive, _ selection: ItemSelection) {
    name = ""
    sourceKind = "archive"
    let isSameDevice = opened.items.provesSameDevice
    entries = opened.items.compactMap { archived in
      let content: ItemDocument.Entry.Content
      if let item = archived.item {
        guard selection.admits(item) else { return nil }
        content = .readable(item)
      } else {
        guard selection.admits(sealed: archived.kind, archived.protection) else { return nil }
        let reason = archived.reason(isSameDevice: isSameDevice, backupHasPassword: opened.archive.isEncrypted)
        content = .unreadable(reason, detail: nil)
      }
      return .init(index: archived.index, kind: archived.kind, protection: archived.protection, content: content)
    }
    (items, guardedCount) = Self.split(entries)
  }

  init(
    of held: DeviceSession, named name: String, _ selection: ItemSelection, wantsSecrets: Bool
  ) throws {
    self.name = name
    sourceKind = "device"
    var query = selection.query
    query.wantsSecret = wantsSecrets
    let indexes = try held.keychain.itemIndexes()
    do throws(VirtualDeviceError) {
      try selection.check(on: held)
      let rows = ItemRow.all(of: try held.find(query, as: selection.app))
      entries = rows.map { ItemDocument.Entry($0, index: indexes[$0.summary.reference]) }
    } catch {
      throw ItemFailure.finding(error, on: held)
    }
    (items, guardedCount) = Self.split(entries)
  }

  private static func split(_ entries: [ItemDocument.Entry]) -> (items: [KeychainItem], guardedCount: Int) {
    let readable = entries.compactMap { entry in
      if case .readable(let item) = entry.content { item } else { nil }
    }
    let items = readable.filter { !$0.asksForOwner }
    return (items, readable.count - items.count)
  }

  // MARK: The result

  func document(revealsSecrets: Bool) -> JSONValue {
    ItemDocument(source: (sourceKind, name), indexes: [:], revealsSecrets: revealsSecrets).document(ofEntries: entries)
  }

  func export(_ form: ExportForm) -> ItemExport {
    switch form.format {
    case .otpauth: .oneTimeSecrets(items)
    case .pem: .certificatesAndKeys(items)
    case .wifi: .wirelessNetworks(items)
    default: .passwords(items)
    }
  }

  func count(_ form: ExportForm) -> Int { form.format == .json ? entries.count : export(form).count }

  /// Secrets that would stand in it in plain text; a document has as many as it is let have.
  func secretCount(_ form: ExportForm) -> Int {
    form.format == .json ? 0 : export(form).secretCount
  }

  // MARK: What cannot be exported

  private var reasons: [Reason] {
    entries.compactMap { entry in
      if case .unreadable(let reason, _) = entry.content { reason ?? .malformed } else { nil }
    }
  }

  /// Items that are lost in this copy.
  var damagedCount: Int { reasons.count { $0.isDamage } }

  /// - Throws: `.noMatch` where there is nothing to write.
  func requireSomething(_ selection: ItemSelection, _ form: ExportForm) throws(CommandFailure) {
    guard count(form) == 0, form.format != .json || selection.isRestricted else { return }
    let shown = HostileText.shown(name)
    if let reason = reasons.first {
      throw CommandFailure(
        .noMatch, "nothing of \(shown) can be exported as \(form.format.rawValue)",
        why: "\(Amounts.count(reasons.count, "item")) cannot be read here: \(reason.rawValue), "
          + reason.explanation.headline,
        try: "keyhaul explain \(reason.rawValue)")
    }
    throw CommandFailure(
      .noMatch, "\(shown) has no \(form.noun) to export", why: selection.isRestricted ? "nothing matches" : nil,
      try: selection.isRestricted ? "fewer attributes" : "--format json for all items")
  }

  func warn(_ form: ExportForm, in session: Session) {
    for damaged in [false, true] {
      let found = reasons.filter { $0.isDamage == damaged }
      guard let first = found.first else { continue }
      session.warn(
        "\(Amounts.count(found.count, "item")) of \(name) cannot be read" + (damaged ? ": damaged" : " here"),
        why: Set(found).count == 1
          ? "\(first.rawValue): \(first.explanation.headline)"
          : Reason.allCases.filter(found.contains).map { reason in
            "\(Amounts.grouped(found.count { $0 == reason })) \(reason.rawValue)"
          }.joined(separator: ", "),
        try: damaged
          ? "another copy may still hold \(found.count == 1 ? "it" : "them")" : "keyhaul explain \(first.rawValue)")
    }
    if guardedCount > 0, form.format != .json {
      session.warn(
        "\(Amounts.count(guardedCount, "item")) left out",
        why: "an access control guards the secret, and a virtual device has neither face nor finger")
    }
    guard form.format != .json else { return }
    let export = export(form)
    if let first = export.leftOut.first {
      let others = export.leftOut.count == 1 ? "" : "the first: "
      session.warn(
        "\(Amounts.count(export.leftOut.count, "item")) left out, with no form as \(form.format.rawValue)",
        why: "\(others)\(ItemText.noun(first.identity.kind)) \"\(ItemText.name(first.identity))\": \(first.reason)",
        try: "--format json holds every item")
    }
    if export.formulaSecretCount > 0 {
      session.warn(
        "\(Amounts.count(export.formulaSecretCount, "password")) would be computed by a spreadsheet",
        why: "it begins with =, +, - or @, and has to arrive unchanged",
        try: "import the file, don't open it as a table")
    }
    if export.inertNameCount > 0 {
      session.warn(
        "\(Amounts.count(export.inertNameCount, "name")) got an apostrophe",
        why: "a spreadsheet would compute a name that begins with =, +, - or @")
    }
  }

  /// Secrets leave the keychain only where that was said.
  static func unsaid(_ output: String, _ form: ExportForm, count: Int?) -> CommandFailure {
    let secrets = count.map { Amounts.count($0, form.secretNoun) } ?? form.secretNoun + "s"
    return .usage(
      "exporting secrets needs to be said out loud", why: "\(output) would hold \(secrets) in plain text",
      try: "add --reveal (the file is made readable by you alone), or --format json for names only")
  }
}
