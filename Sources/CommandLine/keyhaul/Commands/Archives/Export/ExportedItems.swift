import ArgumentParser
import KeyhaulKit
import Reports

/// What an export is made of, or was: the items of an archive, a device or a dump.
struct ExportedItems {
  private let origin: ExportOrigin
  private let format: ExportFormat
  private var tally: ExportTally
  /// What is written; of a document, which holds every item, `nil`.
  private var made: ItemExportCounts?
  /// What is written of items, without accounts in files; of a document, `nil`.
  private var ofItems: ItemExportCounts?
  private var authenticators = AuthenticatorAccounts()

  /// - Parameter origin: Where the items are from, none of which has gone by yet.
  init(of origin: ExportOrigin, as format: ExportFormat) {
    self.origin = origin
    self.format = format
    tally = ExportTally(keepingGuarded: origin.omitsProtectedSecrets)
  }

  /// Makes what is written while the items go by, and holds none of them. Where there is nothing to write, nothing is.
  ///
  /// - Parameter portion: Takes what is written, some kilobytes at a time; lent, for there may be secrets in it.
  mutating func write(
    from source: ExportSource, revealingSecrets revealsSecrets: Bool, in session: Session,
    to portion: (UnsafeRawBufferPointer) throws(CommandFailure) -> Void
  ) throws(CommandFailure) {
    guard !format.isDocument else {
      let document = origin.document(revealsSecrets: revealsSecrets)
      var stream = document.stream()
      try source.forEachEntry(in: session) { (entry) throws(CommandFailure) in
        tally.take(entry)
        try stream.append(document.object(entry, includesSecret: origin.kind == .dump), to: portion)
      }
      try requireSomething()
      return try stream.end(origin.blindSpotFields, to: portion)
    }
    var writer = ItemExportWriter(format, made: DeviceEnvironment.interruptible.clock.now())
    try source.forEachEntry(in: session) { (entry) throws(CommandFailure) in
      tally.take(entry)
      guard let item = entry.attributes, format.kinds.contains(item.kind), !tally.isGuarded(item) else { return }
      try writer.append(item, to: portion)
    }
    ofItems = writer.counts
    authenticators = source.authenticators
    for account in source.accounts { try writer.append(account, to: portion) }
    made = writer.counts
    try requireSomething()
    try Self.check(writer.counts, format)
    try Self.check(try writer.end(to: portion), format)
  }

  /// - Throws: Exit code 1 if the export cannot be made.
  private static func check(_ counts: ItemExportCounts, _ format: ExportFormat) throws(CommandFailure) {
    guard let failure = counts.failure else { return }
    switch failure {
    case .noCodeLibrary:
      throw CommandFailure(
        .failed, "no QR code can be made", why: "libqrencode, which makes them, cannot be used",
        try: "install libqrencode 4 (libqrencode4 on Debian and Ubuntu), or use --format otpauth")
    case .noMemory:
      throw CommandFailure(
        .failed, "no QR code can be made", why: "there is not enough memory", try: "end other programs")
    case .page(let reason):
      throw CommandFailure(.failed, "the page cannot be made", why: reason, try: "--format otpauth")
    }
  }

  /// What the user called the source.
  var name: String { origin.name }
  var isFromArchive: Bool { origin.kind == .archive }
  var blindSpotFields: [(String, JSONValue)] { origin.blindSpotFields }

  var count: Int { made?.count ?? tally.count }
  /// Secrets in plain text; a document has as many as it is let have.
  var secretCount: Int { made?.secretCount ?? 0 }
  /// Secrets that `--reveal` shows: in a document those of its items that can be read and ask for nobody.
  var revealedCount: Int { made?.secretCount ?? tally.revealableCount }

  /// Of how many of a document's items the secret is in it.
  var revealedNote: String {
    switch revealedCount {
    case 0: " (no secret could be read)"
    case count: " (with secrets in plain text)"
    case let some: " (with the \(some == 1 ? "secret" : "secrets") of \(HumanReadable.grouped(some)) in plain text)"
    }
  }

  /// Items whose one-time password an item before has.
  private var repeatedCount: Int { ofItems?.repeatedCount ?? 0 }

  /// What became of the items: each is in one of the counts.
  private var counts: (formless: Int, asking: Int, others: Int) {
    let asking = tally.guardedCount(of: format.kinds)
    let (written, formless) = (ofItems?.count ?? 0, ofItems?.leftOutCount ?? 0)
    let others = tally.count - tally.unreadableCount - asking - formless - repeatedCount - written
    return (formless, asking, others)
  }

  /// "Of 18 items, 11 are in it, 3 are of other kinds and 4 have no format as csv."; `nil` if all are, and of a document,
  /// which holds all. The numbers add up to the first.
  var balance: String? {
    guard let ofItems, ofItems.count < tally.count else { return nil }
    let counts = counts
    let kinds = format.containsWholeKinds ? " (\(otherKindWords))" : ""
    let parts = [
      (ofItems.count, "is in it", "are in it"), (repeatedCount, "repeats another", "repeat others"),
      (counts.others, "is \(format.otherNoun)\(kinds)", "are \(format.otherNouns)\(kinds)"),
      (counts.formless, "cannot be written as \(format.name)", "cannot be written as \(format.name)"),
      (counts.asking, "requires authentication", "require authentication"),
      (tally.unreadableCount, "cannot be read", "cannot be read"),
    ]
    let words = parts.enumerated().filter { $0.offset == 0 || $0.element.0 > 0 }.map(\.element).map {
      "\(HumanReadable.grouped($0.0)) \($0.0 == 1 ? $0.1 : $0.2)"
    }
    return "Of \(HumanReadable.count(tally.count, "item")), \(HumanReadable.list(words))."
  }

  /// The same for programs; none of a document, which holds all. `total` is the sum of the others.
  var balanceFields: [(String, JSONValue)] {
    guard let ofItems else { return [] }
    let counts = counts
    let repeated: [(String, JSONValue)] = repeatedCount > 0 ? [("repeated", .count(repeatedCount))] : []
    let kinds = format.containsWholeKinds ? otherKinds.map { ($0.rawValue, JSONValue.count($1)) } : []
    let others = counts.others - kinds.reduce(0) { $0 + Int($1.1.integerValue ?? 0) }
    let balance: JSONValue = [
      "total": .count(tally.count), "written": .count(ofItems.count), "other_kinds": .object(kinds),
      "other": .count(others), "without_form": .count(counts.formless), "asking": .count(counts.asking),
      "unreadable": .count(tally.unreadableCount),
    ]
    return [("balance", balance.adding(repeated))]
  }

  /// "3 one-time passwords are from files of FreeOTP and Proton Authenticator."; `nil` if there is none.
  var filesSentence: String? {
    let count = (made?.count ?? 0) - (ofItems?.count ?? 0)
    guard count > 0 else { return nil }
    let apps = AuthenticatorApp.allCases.filter { app in authenticators.accounts.contains { $0.app == app } }
    return "\(HumanReadable.count(count, "one-time password")) \(count == 1 ? "is" : "are") from files of "
      + "\(HumanReadable.list(apps.map(\.name)))."
  }

  /// What to do with the file afterwards; `nil` if it may stay.
  var deletionSentence: String? {
    format.containsOnlyOneTimePasswords && secretCount > 0
      ? "Delete the file as soon as the codes are on the new phone." : nil
  }

  /// The authenticator apps of the backup, for programs; none for a format that does not contain their codes.
  var authenticatorFields: [(String, JSONValue)] {
    let value = authenticators.value
    return value.arrayValue?.isEmpty == false ? [("authenticators", value)] : []
  }

  /// The items that can be read and are of a kind that the format has not, counted.
  private var otherKinds: [(ItemKind, Int)] {
    ItemKind.allCases.filter { !format.kinds.contains($0) }.compactMap { kind in
      tally.readable[kind].map { (kind, $0) }
    }
  }

  /// "2 certificates and 1 key"
  private var otherKindWords: String { HumanReadable.list(otherKinds.map { HumanReadable.count($1, $0.noun) }) }

  // MARK: What cannot be exported

  /// How many cannot be read here, for each reason.
  var unreadable: [(Reason, Int)] {
    Reason.allCases.compactMap { reason in tally.unreadable[reason].map { (reason, $0) } }
  }

  /// Items that are lost in this copy.
  var damagedCount: Int { unreadable.reduce(0) { $0 + ($1.0.isDamage ? $1.1 : 0) } }

  /// - Throws: `.noMatch` where there is nothing to write.
  func requireSomething() throws(CommandFailure) {
    guard count == 0, !format.isDocument || origin.isRestricted else { return }
    if let reason = tally.reasons.first {
      throw CommandFailure(
        .noMatch, "no item of \(name) can be exported as \(format.name)",
        why: "\(HumanReadable.count(tally.unreadableCount, "item")) cannot be read here: \(reason.rawValue), "
          + reason.explanation.headline,
        try: "keyhaul explain \(reason.rawValue)")
    }
    if let first = made?.firstLeftOut {
      throw CommandFailure(
        .noMatch, "no item of \(name) can be exported as \(format.name)",
        why: leftOutText(first), try: "--format json contains every item")
    }
    if tally.guardedCount(of: format.kinds) > 0 {
      throw CommandFailure(
        .noMatch, "no item of \(name) can be exported as \(format.name)", why: Self.guardedText,
        try: "--format json, which leaves the secrets out")
    }
    throw CommandFailure(
      .noMatch, "\(name) contains nothing to export: no \(format.noun)",
      why: origin.isRestricted ? "nothing matches" : nil,
      try: origin.isRestricted ? "fewer attributes" : "--format json for all items")
  }

  func warn(in session: Session) {
    warnOfUnreadable(isLost: false, in: session)
    warnOfUnreadable(isLost: true, in: session)
    let asking = tally.guardedCount(of: format.kinds)
    if asking > 0 { session.warn("\(HumanReadable.count(asking, "item")) left out", why: Self.guardedText) }
    guard let made else { return }
    if let first = made.firstLeftOut {
      session.warn(
        "\(HumanReadable.count(made.leftOutCount, "item")) left out, because the \(format.name) format cannot contain "
          + "them",
        why: leftOutText(first), try: "--format json contains every item")
    }
    if made.namelessCount > 0 {
      session.warn(
        "\(HumanReadable.count(made.namelessCount, "password")) without a name",
        why: "only the secret is stored, without a service, server or account, as in backups from iOS 4",
        try: "--format json --reveal lists them by number, with their access groups if they have any")
    }
    if made.formulaSecretCount > 0 {
      session.warn(
        "a spreadsheet would evaluate \(HumanReadable.count(made.formulaSecretCount, "password")) like a formula",
        why: "passwords are exported unchanged, even if they begin with =, +, - or @",
        try: "import the file; do not open it as a spreadsheet")
    }
    if made.inertNameCount > 0 {
      session.warn(
        "\(HumanReadable.count(made.inertNameCount, "name")) got an apostrophe",
        why: "a spreadsheet would treat a name that begins with =, +, - or @ as a formula")
    }
  }

  private static let guardedText =
    "an access control protects the secret, and a virtual device has no biometry"

  private func leftOutText(_ first: ItemExportCounts.LeftOut) -> String {
    let others = made?.leftOutCount == 1 ? "" : "the first: "
    return "\(others)\(first.identity.kind.noun) \"\(ItemText.name(first.identity))\": \(first.reason)"
  }

  private func warnOfUnreadable(isLost: Bool, in session: Session) {
    let found = unreadable.filter { $0.0.isLostInThisCopy == isLost }
    guard let first = tally.reasons.first(where: { $0.isLostInThisCopy == isLost }) else { return }
    let counts = found.map { "\(HumanReadable.grouped($1)) \($0.rawValue)" }
    let count = found.reduce(0) { $0 + $1.1 }
    session.warn(
      "\(HumanReadable.count(count, "item")) of \(name) cannot be read here",
      why: counts.count == 1 ? "\(first.rawValue): \(first.explanation.headline)" : counts.joined(separator: ", "),
      try: isLost
        ? "another copy may still contain the items that are lost in this copy" : "keyhaul explain \(first.rawValue)")
  }

  /// Secrets leave the keychain only where that was said.
  static func missingRevealFlag(_ output: String, _ format: ExportFormat, count: Int?) -> CommandFailure {
    let secrets = count.map { HumanReadable.count($0, format.secretNoun) } ?? format.secretNoun + "s"
    return .usage(
      "exporting secrets requires --reveal", why: "\(output) would contain \(secrets) in plain text",
      try: "add --reveal (only you can read the file), or use --format json, which leaves the secrets out")
  }
}

/// The document of all items of an archive with their secrets, as it lies beside a copy of the archive in clear.
enum ItemsInClear {
  /// Writes it while the items go by, and says which of them cannot be read.
  static func write(
    _ reader: BackupItemReader, of named: NamedArchive, to path: String, _ common: CommonOptions,
    in session: Session
  ) throws {
    let format = try ExportFormat.chosen(common, output: path, reveals: true)
    let everything = try ItemSelection(.init(kind: nil, attributes: try ItemAttributeOptions.parse([])))
    let source = ExportSource(reader, of: named, everything)
    var items = ExportedItems(of: source.origin, as: format)
    try session.write(to: path) { (portion) throws(CommandFailure) in
      try items.write(from: source, revealingSecrets: true, in: session, to: portion)
    }
    items.warn(in: session)
  }
}

/// The items that an export went through, counted as they went by.
struct ExportTally {
  /// How many there were, readable or not.
  private(set) var count = 0
  /// Those that can be read, by their kind.
  private(set) var readable: [ItemKind: Int] = [:]
  /// Those that cannot, for each reason.
  private(set) var unreadable: [Reason: Int] = [:]
  /// Why items cannot be read, in the order in which each reason was met first.
  private(set) var reasons: [Reason] = []
  /// How many have a secret that a document would show.
  private(set) var revealableCount = 0
  /// Those that ask for their owner, by their kind.
  private var guarded: [ItemKind: Int] = [:]
  /// Whether an access control keeps a secret back: a dump has it in clear all the same.
  private let omitsProtectedSecrets: Bool

  init(keepingGuarded omitsProtectedSecrets: Bool) { self.omitsProtectedSecrets = omitsProtectedSecrets }

  mutating func take(_ entry: KeychainEntry) {
    count += 1
    guard let item = entry.attributes else {
      let reason = entry.reason ?? .malformed
      if unreadable[reason] == nil { reasons.append(reason) }
      unreadable[reason, default: 0] += 1
      return
    }
    readable[item.kind, default: 0] += 1
    if isGuarded(item) {
      guarded[item.kind, default: 0] += 1
    } else if item.secret != nil {
      revealableCount += 1
    }
  }

  /// Whether an item's secret stays where it is.
  func isGuarded(_ item: KeychainItem) -> Bool { omitsProtectedSecrets && item.requiresAuthentication }

  func guardedCount(of kinds: [ItemKind]) -> Int { kinds.reduce(0) { $0 + (guarded[$1] ?? 0) } }

  var unreadableCount: Int { unreadable.values.reduce(0, +) }
}
