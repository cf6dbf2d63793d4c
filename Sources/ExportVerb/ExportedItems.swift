import ArchivedKeychain
import BackupArchive
import CommandArguments
import CommandSession
import KeychainDumps
import KeychainFormats
import KeychainRules
import KeychainStore
import Reports
import VirtualDevice

/// The items of an archive or a device that an export is about.
struct ExportedItems {
  /// What the user called the source.
  let name: String
  private let sourceKind: String
  private let entries: [ItemDocument.Entry]
  /// Those that ask for their owner.
  private let guarded: [KeychainItem]
  private let form: ExportForm
  /// What is written; a document is made when it is.
  private let made: ItemExport?
  /// Of a dump: what is said of it. Its secrets are in clear, also those that an access control guarded.
  private let statement: DumpStatement?

  init(of opened: OpenedArchive, named name: String, _ selection: ItemSelection, as form: ExportForm) {
    self.name = name
    self.form = form
    sourceKind = "archive"
    entries = opened.items.compactMap { archived in
      let content: ItemDocument.Entry.Content
      if let item = archived.item {
        guard selection.admits(item) else { return nil }
        content = .readable(item)
      } else {
        guard selection.admits(sealed: archived.kind, archived.protection) else { return nil }
        content = .unreadable(opened.reason(of: archived), detail: nil)
      }
      return .init(index: archived.index, kind: archived.kind, protection: archived.protection, content: content)
    }
    guarded = Self.readable(entries).filter(\.asksForOwner)
    made = Self.export(entries, form, keepingGuarded: true)
    statement = nil
  }

  init(of found: FoundDump, _ selection: ItemSelection, as form: ExportForm) {
    name = found.typed
    self.form = form
    sourceKind = "dump"
    entries = found.dump.items.filter { dumped in
      dumped.item.map(selection.admits) ?? selection.admits(sealed: dumped.kind, dumped.protection)
    }.map(ItemDocument.Entry.init)
    guarded = []
    made = Self.export(entries, form, keepingGuarded: false)
    statement = found.statement
  }

  init(
    of openDevice: DeviceSession, named name: String, _ selection: ItemSelection, as form: ExportForm,
    wantsSecrets: Bool
  ) throws {
    self.name = name
    self.form = form
    sourceKind = "device"
    let rows = try selection.found(on: openDevice, wantsSecret: wantsSecrets)
    let indexes = try openDevice.keychain.places(of: Set(rows.map(\.reference)))
    entries = rows.map { ItemDocument.Entry($0, index: indexes[$0.reference]) }
    guarded = Self.readable(entries).filter(\.asksForOwner)
    made = Self.export(entries, form, keepingGuarded: true)
    statement = nil
  }

  private static func readable(_ entries: [ItemDocument.Entry]) -> [KeychainItem] {
    entries.compactMap { entry in if case .readable(let item) = entry.content { item } else { nil } }
  }

  private static func export(
    _ entries: [ItemDocument.Entry], _ form: ExportForm, keepingGuarded keepsGuarded: Bool
  ) -> ItemExport? {
    // Of a document, which is made when it is written, there is no second list of a hundred thousand.
    var items: [KeychainItem] { readable(entries).filter { !(keepsGuarded && $0.asksForOwner) } }
    switch form.format {
    case .csv: return .passwords(items)
    case .genpPlist: return .genericPasswordPlist(items)
    case .cxf: return .credentialExchange(items, made: DeviceEnvironment.interruptible.clock.now())
    case .otpauth: return .oneTimeSecrets(items)
    case .pem: return .certificatesAndKeys(items)
    case .wifi: return .wirelessNetworks(items)
    default: return nil
    }
  }

  // MARK: The result

  func writeDocument(
    revealsSecrets: Bool, to portion: (UnsafeRawBufferPointer) throws(CommandFailure) -> Void
  ) throws(CommandFailure) {
    try ItemDocument(
      source: (sourceKind, name), indexes: [:], revealsSecrets: revealsSecrets, keepsGuarded: statement == nil
    )
    .write(entries, unseenFields, to: portion)
  }

  var isFromArchive: Bool { sourceKind == "archive" }
  var unseenFields: [(String, JSONValue)] {
    isFromArchive ? [UnseenItems.field] : statement.map { [$0.field] } ?? []
  }

  /// The bytes of everything but a document.
  var contents: SensitiveBytes? { made?.contents }
  var count: Int { made?.count ?? entries.count }
  /// Secrets in plain text; a document has as many as it is let have.
  var secretCount: Int { made?.secretCount ?? 0 }
  /// Secrets that `--reveal` shows: in a document those of its items that can be read and ask for nobody.
  var revealedCount: Int {
    made?.secretCount
      ?? Self.readable(entries).count { !(statement == nil && $0.asksForOwner) && $0.secret != nil }
  }

  /// Of how many of a document's items the secret is in it.
  var revealedNote: String {
    switch revealedCount {
    case 0: " (no secret could be read)"
    case count: " (with secrets in plain text)"
    case let some: " (with the \(some == 1 ? "secret" : "secrets") of \(Amounts.grouped(some)) in plain text)"
    }
  }

  /// What became of the items: each is in one of the counts.
  private var counts: (formless: Int, asking: Int, others: Int) {
    let (written, formless) = (made?.count ?? 0, made?.leftOut.count ?? 0)
    let asking = guarded.count { form.kinds.contains($0.kind) }
    return (formless, asking, entries.count - reasons.count - asking - formless - written)
  }

  /// "Of 18 items 11 are in it, 3 are of other kinds and 4 have no form as csv."; `nil` where all are, and of a document,
  /// which holds all. The numbers add up to the first.
  var balance: String? {
    guard let made, made.count < entries.count else { return nil }
    let counts = counts
    let kinds = form.isOfWholeKinds ? " (\(otherKindWords))" : ""
    let format = form.format.rawValue
    let parts = [
      (made.count, "is in it", "are in it"),
      (counts.others, "is \(form.otherNoun)\(kinds)", "are \(form.otherNouns)\(kinds)"),
      (counts.formless, "has no form as \(format)", "have no form as \(format)"),
      (counts.asking, "asks for its owner", "ask for their owner"), (reasons.count, "cannot be read", "cannot be read"),
    ]
    let words = parts.enumerated().filter { $0.offset == 0 || $0.element.0 > 0 }.map(\.element).map {
      "\(Amounts.grouped($0.0)) \($0.0 == 1 ? $0.1 : $0.2)"
    }
    return "Of \(Amounts.count(entries.count, "item")) \(Amounts.list(words))."
  }

  /// The same for programs; none of a document, which holds all. `total` is the sum of the others.
  var balanceFields: [(String, JSONValue)] {
    guard let made else { return [] }
    let counts = counts
    let kinds = form.isOfWholeKinds ? otherKinds.map { ($0.rawValue, JSONValue.count($1)) } : []
    let others = counts.others - kinds.reduce(0) { $0 + Int($1.1.integerValue ?? 0) }
    return [
      (
        "balance",
        [
          "total": .count(entries.count), "written": .count(made.count), "other_kinds": .object(kinds),
          "other": .count(others), "without_form": .count(counts.formless), "asking": .count(counts.asking),
          "unreadable": .count(reasons.count),
        ]
      )
    ]
  }

  /// The items that can be read and are of a kind that the form has not, counted.
  private var otherKinds: [(ItemKind, Int)] {
    let others = Dictionary(grouping: Self.readable(entries).map(\.kind)) { $0 }
    return ItemKind.allCases.filter { !form.kinds.contains($0) }.compactMap { kind in
      others[kind].map { (kind, $0.count) }
    }
  }

  /// "2 certificates and 1 key"
  private var otherKindWords: String { Amounts.list(otherKinds.map { Amounts.count($1, $0.noun) }) }

  // MARK: What cannot be exported

  /// Why items cannot be read here, one for each of them.
  var reasons: [Reason] {
    entries.compactMap { entry in
      if case .unreadable(let reason, _) = entry.content { reason ?? .malformed } else { nil }
    }
  }

  /// Items that are lost in this copy.
  var damagedCount: Int { reasons.count { $0.isDamage } }

  /// - Throws: `.noMatch` where there is nothing to write.
  func requireSomething(_ selection: ItemSelection) throws(CommandFailure) {
    guard count == 0, form.format != .json || selection.isRestricted else { return }
    if let reason = reasons.first {
      throw CommandFailure(
        .noMatch, "nothing of \(name) can be exported as \(form.format.rawValue)",
        why: "\(Amounts.count(reasons.count, "item")) cannot be read here: \(reason.rawValue), "
          + reason.explanation.headline,
        try: "keyhaul explain \(reason.rawValue)")
    }
    if let first = made?.leftOut.first {
      throw CommandFailure(
        .noMatch, "nothing of \(name) can be exported as \(form.format.rawValue)",
        why: leftOutText(first), try: "--format json holds every item")
    }
    if guarded.contains(where: { form.kinds.contains($0.kind) }) {
      throw CommandFailure(
        .noMatch, "nothing of \(name) can be exported as \(form.format.rawValue)", why: Self.guardedText,
        try: "--format json for names only")
    }
    throw CommandFailure(
      .noMatch, "\(name) holds nothing to export: no \(form.noun)",
      why: selection.isRestricted ? "nothing matches" : nil,
      try: selection.isRestricted ? "fewer attributes" : "--format json for all items")
  }

  func warn(in session: Session) {
    warnOfUnreadable(isLost: false, in: session)
    warnOfUnreadable(isLost: true, in: session)
    let asking = guarded.count { form.kinds.contains($0.kind) }
    if asking > 0 { session.warn("\(Amounts.count(asking, "item")) left out", why: Self.guardedText) }
    guard let made else { return }
    if let first = made.leftOut.first {
      session.warn(
        "\(Amounts.count(made.leftOut.count, "item")) left out, with no form as \(form.format.rawValue)",
        why: leftOutText(first), try: "--format json holds every item")
    }
    if made.namelessCount > 0 {
      session.warn(
        "\(Amounts.count(made.namelessCount, "password")) without a name",
        why: "nothing is stored with them but the secret, as in backups of iOS 4: no service, no server, no account",
        try: "--format json --reveal has them by their numbers, with their access groups where there are any")
    }
    if made.formulaSecretCount > 0 {
      session.warn(
        "\(Amounts.count(made.formulaSecretCount, "password")) would be computed by a spreadsheet",
        why: "a password has to arrive unchanged, also where it begins with =, +, - or @",
        try: "import the file, don't open it as a table")
    }
    if made.inertNameCount > 0 {
      session.warn(
        "\(Amounts.count(made.inertNameCount, "name")) got an apostrophe",
        why: "a spreadsheet would compute a name that begins with =, +, - or @")
    }
  }

  private static let guardedText =
    "an access control guards the secret, and a virtual device has neither face nor finger"

  private func leftOutText(_ first: ItemExport.LeftOut) -> String {
    let others = made?.leftOut.count == 1 ? "" : "the first: "
    return "\(others)\(first.identity.kind.noun) \"\(ItemText.name(first.identity))\": \(first.reason)"
  }

  private func warnOfUnreadable(isLost: Bool, in session: Session) {
    let found = reasons.filter { $0.isLostInThisCopy == isLost }
    guard let first = found.first else { return }
    let counts = Reason.allCases.filter(found.contains).map { reason in
      "\(Amounts.grouped(found.count { $0 == reason })) \(reason.rawValue)"
    }
    session.warn(
      "\(Amounts.count(found.count, "item")) of \(name) cannot be read here",
      why: counts.count == 1 ? "\(first.rawValue): \(first.explanation.headline)" : counts.joined(separator: ", "),
      try: isLost ? "another copy may still hold what is lost in this one" : "keyhaul explain \(first.rawValue)")
  }

  /// Secrets leave the keychain only where that was said.
  static func missingRevealFlag(_ output: String, _ form: ExportForm, count: Int?) -> CommandFailure {
    let secrets = count.map { Amounts.count($0, form.secretNoun) } ?? form.secretNoun + "s"
    return .usage(
      "exporting secrets needs to be said out loud", why: "\(output) would hold \(secrets) in plain text",
      try: "add --reveal (the file is made readable by you alone), or --format json for names only")
  }
}
