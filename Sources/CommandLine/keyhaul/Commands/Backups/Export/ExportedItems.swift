import ArgumentParser
import KeyhaulKit
import Reports

/// The items of an export, while and after they are written.
struct ExportedItems {
  private let origin: ExportOrigin
  private let format: ExportFormat
  private var processed: ExportCounts
  /// The counts of everything written; `nil` if this is a document, which contains all items.
  private var written: ItemExportCounts?
  /// The counts of written items without accounts in files; `nil` if this is a document.
  private var writtenItems: ItemExportCounts?
  private var authenticators = AuthenticatorAccounts()

  /// Prepares an export.
  ///
  /// - Parameter origin: The source of the items.
  init(of origin: ExportOrigin, as format: ExportFormat) {
    self.origin = origin
    self.format = format
    processed = ExportCounts(omittingProtected: origin.omitsProtectedSecrets)
  }

  /// Writes the items one by one, without keeping them in memory. Writes nothing if there is nothing to export.
  ///
  /// - Parameters:
  ///   - source: The items.
  ///   - revealsSecrets: Whether to write secrets.
  ///   - portion: Receives some kilobytes at a time. The bytes are borrowed, because they may contain secrets.
  mutating func write(
    from source: ExportSource, revealingSecrets revealsSecrets: Bool, in session: Session,
    to portion: (UnsafeRawBufferPointer) throws(CommandError) -> Void
  ) throws(CommandError) {
    guard !format.isDocument else {
      let document = origin.document(revealsSecrets: revealsSecrets)
      var stream = document.stream()
      try source.forEachEntry(in: session) { (entry) throws(CommandError) in
        processed.record(entry)
        try stream.append(document.object(entry, statesSecret: origin.kind == .dump), to: portion)
      }
      try requireItems()
      return try stream.end(origin.blindSpotFields, to: portion)
    }
    var writer = ItemExportWriter(format, date: DeviceEnvironment.interruptible.clock.now())
    try source.forEachEntry(in: session) { (entry) throws(CommandError) in
      processed.record(entry)
      guard let item = entry.attributes, format.kinds.contains(item.kind), !processed.isProtected(item) else { return }
      try writer.append(item, to: portion)
    }
    writtenItems = writer.counts
    authenticators = source.authenticators
    for account in source.accounts { try writer.append(account, to: portion) }
    written = writer.counts
    try requireItems()
    try Self.check(writer.counts, format)
    try Self.check(try writer.end(to: portion), format)
  }

  /// Checks that the writer did not fail.
  ///
  /// - Throws: `.failed` if the export cannot be made.
  private static func check(_ counts: ItemExportCounts, _ format: ExportFormat) throws(CommandError) {
    guard let failure = counts.failure else { return }
    switch failure {
    case .noCodeLibrary:
      throw CommandError(
        .failed, "no QR code can be made", why: "libqrencode, which makes them, cannot be used",
        try: "install libqrencode 4 (libqrencode4 on Debian and Ubuntu), or use --format otpauth")
    case .noMemory:
      throw CommandError(
        .failed, "no QR code can be made", why: "there is not enough memory", try: "end other programs")
    case .page(let reason):
      throw CommandError(.failed, "the page cannot be made", why: reason, try: "--format otpauth")
    }
  }

  /// The source's name, as the user typed it.
  var name: String { origin.name }
  var isFromBackup: Bool { origin.kind == .archive }
  var blindSpotFields: [(String, JSONValue)] { origin.blindSpotFields }

  var count: Int { written?.count ?? processed.count }
  /// The number of secrets in plain text; 0 for a document.
  var secretCount: Int { written?.secretCount ?? 0 }
  /// The number of secrets that `--reveal` shows. In a document, these are the secrets of readable items that require
  /// no authentication.
  var revealedCount: Int { written?.secretCount ?? processed.revealableCount }

  /// A note about how many secrets a document contains.
  var revealedNote: String {
    switch revealedCount {
    case 0: " (no secret could be read)"
    case count: " (with secrets in plain text)"
    case let part: " (with the \(part == 1 ? "secret" : "secrets") of \(HumanReadable.grouped(part)) in plain text)"
    }
  }

  /// The number of items with the same one-time password as an earlier item.
  private var repeatedCount: Int { writtenItems?.repeatedCount ?? 0 }

  /// The numbers of items that were not written, by reason.
  private var omittedCounts: (unsupported: Int, protected: Int, others: Int) {
    let protected = processed.protectedCount(of: format.kinds)
    let (writtenCount, unsupported) = (writtenItems?.count ?? 0, writtenItems?.leftOutCount ?? 0)
    let others = processed.count - processed.unreadableCount - protected - unsupported - repeatedCount - writtenCount
    return (unsupported, protected, others)
  }

  /// A sentence such as "Of 18 items, 11 are in it, 3 are of other kinds and 4 cannot be written as csv."; `nil` if all
  /// items were written, and for a document. The numbers add up to the first.
  var balance: String? {
    guard let writtenItems, writtenItems.count < processed.count else { return nil }
    let omitted = omittedCounts
    let kinds = format.containsWholeKinds ? " (\(otherKindsText))" : ""
    let parts = [
      (writtenItems.count, "is in it", "are in it"), (repeatedCount, "repeats another", "repeat others"),
      (omitted.others, "is \(format.otherNoun)\(kinds)", "are \(format.otherNouns)\(kinds)"),
      (omitted.unsupported, "cannot be written as \(format.name)", "cannot be written as \(format.name)"),
      (omitted.protected, "requires authentication", "require authentication"),
      (processed.unreadableCount, "cannot be read", "cannot be read"),
    ]
    let clauses = parts.enumerated().filter { $0.offset == 0 || $0.element.0 > 0 }.map(\.element).map {
      (count, singular, plural) in "\(HumanReadable.grouped(count)) \(count == 1 ? singular : plural)"
    }
    return "Of \(HumanReadable.count(processed.count, "item")), \(HumanReadable.list(clauses))."
  }

  /// These numbers as JSON; empty for a document. `total` is the sum of the others.
  var balanceFields: [(String, JSONValue)] {
    guard let writtenItems else { return [] }
    let omitted = omittedCounts
    let repeated: [(String, JSONValue)] = repeatedCount > 0 ? [("repeated", .count(repeatedCount))] : []
    let kinds = format.containsWholeKinds ? otherKinds.map { ($0.rawValue, JSONValue.count($1)) } : []
    let others = omitted.others - kinds.reduce(0) { $0 + Int($1.1.integerValue ?? 0) }
    let balance: JSONValue = [
      "total": .count(processed.count), "written": .count(writtenItems.count), "other_kinds": .object(kinds),
      "other": .count(others), "without_form": .count(omitted.unsupported), "asking": .count(omitted.protected),
      "unreadable": .count(processed.unreadableCount),
    ]
    return [("balance", balance.adding(repeated))]
  }

  /// A sentence such as "3 one-time passwords are from files of FreeOTP and Proton Authenticator."; `nil` if there are
  /// none.
  var filesSentence: String? {
    let count = (written?.count ?? 0) - (writtenItems?.count ?? 0)
    guard count > 0 else { return nil }
    let apps = AuthenticatorApp.allCases.filter { app in authenticators.accounts.contains { $0.app == app } }
    return "\(HumanReadable.count(count, "one-time password")) \(count == 1 ? "is" : "are") from files of "
      + "\(HumanReadable.list(apps.map(\.name)))."
  }

  /// Advice to delete the file afterwards; `nil` if it may stay.
  var deletionSentence: String? {
    format.containsOnlyOneTimePasswords && secretCount > 0
      ? "Delete the file as soon as the codes are on the new phone." : nil
  }

  /// The authenticator apps of the backup as JSON; empty for a format without their codes.
  var authenticatorFields: [(String, JSONValue)] {
    let value = authenticators.value
    return value.arrayValue?.isEmpty == false ? [("authenticators", value)] : []
  }

  /// The numbers of readable items of kinds that the format does not contain.
  private var otherKinds: [(ItemKind, Int)] {
    ItemKind.allCases.filter { !format.kinds.contains($0) }.compactMap { kind in
      processed.readable[kind].map { (kind, $0) }
    }
  }

  /// The kinds as text: "2 certificates and 1 key".
  private var otherKindsText: String { HumanReadable.list(otherKinds.map { HumanReadable.count($1, $0.noun) }) }

  // MARK: Omitted items

  /// The number of items that cannot be read here, for each reason.
  var unreadable: [(Reason, Int)] {
    Reason.allCases.compactMap { reason in processed.unreadable[reason].map { (reason, $0) } }
  }

  /// The number of items that are damaged, or whose secret is.
  var damagedCount: Int { unreadable.reduce(processed.damagedSecretCount) { $0 + ($1.0.isDamage ? $1.1 : 0) } }

  /// Makes sure that there is an item to write.
  ///
  /// - Throws: `.noMatch` if there is none.
  func requireItems() throws(CommandError) {
    guard count == 0, !format.isDocument || origin.isRestricted else { return }
    if let reason = processed.reasons.first {
      throw CommandError(
        .noMatch, "no item of \(name) can be exported as \(format.name)",
        why: "\(HumanReadable.count(processed.unreadableCount, "item")) cannot be read here: \(reason.rawValue), "
          + reason.explanation.headline,
        try: "keyhaul explain \(reason.rawValue)")
    }
    if let first = written?.firstLeftOut {
      throw CommandError(
        .noMatch, "no item of \(name) can be exported as \(format.name)",
        why: leftOutText(first), try: "--format json contains every item")
    }
    if processed.protectedCount(of: format.kinds) > 0 {
      throw CommandError(
        .noMatch, "no item of \(name) can be exported as \(format.name)", why: Self.protectionText,
        try: "--format json, which leaves the secrets out")
    }
    throw CommandError(
      .noMatch, "\(name) contains nothing to export: no \(format.noun)",
      why: origin.isRestricted ? "nothing matches" : nil,
      try: origin.isRestricted ? "fewer attributes" : "--format json for all items")
  }

  func warn(in session: Session) {
    warnAboutUnreadable(isLost: false, in: session)
    warnAboutUnreadable(isLost: true, in: session)
    let protectedCount = processed.protectedCount(of: format.kinds)
    if protectedCount > 0 {
      session.warn("\(HumanReadable.count(protectedCount, "item")) left out", why: Self.protectionText)
    }
    guard let written else { return }
    if let first = written.firstLeftOut {
      session.warn(
        "\(HumanReadable.count(written.leftOutCount, "item")) left out, because the \(format.name) format cannot contain "
          + "them",
        why: leftOutText(first), try: "--format json contains every item")
    }
    if written.namelessCount > 0 {
      session.warn(
        "\(HumanReadable.count(written.namelessCount, "password")) without a name",
        why: "only the secret is stored, without a service, server or account, as in backups from iOS 4",
        try: "--format json --reveal lists them by number, with their access groups if they have any")
    }
    if written.formulaSecretCount > 0 {
      session.warn(
        "a spreadsheet would evaluate \(HumanReadable.count(written.formulaSecretCount, "password")) like a formula",
        why: "passwords are exported unchanged, even if they begin with =, +, - or @",
        try: "import the file; do not open it as a spreadsheet")
    }
    if written.inertNameCount > 0 {
      session.warn(
        "\(HumanReadable.count(written.inertNameCount, "name")) got an apostrophe",
        why: "a spreadsheet would treat a name that begins with =, +, - or @ as a formula")
    }
  }

  private static let protectionText =
    "an access control protects the secret, and a virtual device has no biometry"

  private func leftOutText(_ first: ItemExportCounts.LeftOut) -> String {
    let others = written?.leftOutCount == 1 ? "" : "the first: "
    return "\(others)\(first.identity.kind.noun) \"\(ItemText.name(first.identity))\": \(first.reason)"
  }

  private func warnAboutUnreadable(isLost: Bool, in session: Session) {
    let groups = unreadable.filter { $0.0.isLostInThisCopy == isLost }
    guard let first = processed.reasons.first(where: { $0.isLostInThisCopy == isLost }) else { return }
    let counts = groups.map { "\(HumanReadable.grouped($1)) \($0.rawValue)" }
    let count = groups.reduce(0) { $0 + $1.1 }
    session.warn(
      "\(HumanReadable.count(count, "item")) of \(name) cannot be read here",
      why: counts.count == 1 ? "\(first.rawValue): \(first.explanation.headline)" : counts.joined(separator: ", "),
      try: isLost
        ? "another copy may still contain the items that are lost in this copy" : "keyhaul explain \(first.rawValue)")
  }

  /// Returns the error if `--reveal` is missing. Without it, no secrets are written.
  static func missingRevealFlag(_ output: String, _ format: ExportFormat, count: Int?) -> CommandError {
    let secrets = count.map { HumanReadable.count($0, format.secretNoun) } ?? format.secretNoun + "s"
    return .usage(
      "exporting secrets requires --reveal", why: "\(output) would contain \(secrets) in plain text",
      try: "add --reveal (only you can read the file), or use --format json, which leaves the secrets out")
  }
}

/// The document of all items with their secrets, which is written next to a decrypted copy of a backup.
enum DecryptedItemsDocument {
  /// Writes the items one by one, and warns about items that cannot be read.
  static func write(
    _ reader: BackupItemReader, of loaded: LoadedBackup, to path: String, _ common: CommonOptions,
    in session: Session
  ) throws {
    let format = try ExportFormat.chosen(common, output: path, reveals: true)
    let everything = try ItemSelection(.init(kind: nil, attributes: try ItemAttributeOptions.parse([])))
    let source = ExportSource(reader, of: loaded, everything)
    var items = ExportedItems(of: source.origin, as: format)
    try session.write(to: path) { (write) throws(CommandError) in
      try items.write(from: source, revealingSecrets: true, in: session, to: write)
    }
    items.warn(in: session)
  }
}

/// The counts of the items that an export has processed.
struct ExportCounts {
  /// The number of items, readable or not.
  private(set) var count = 0
  /// The number of readable items of each kind.
  private(set) var readable: [ItemKind: Int] = [:]
  /// The number of unreadable items for each reason.
  private(set) var unreadable: [Reason: Int] = [:]
  /// The number of readable items whose secret is damaged.
  private(set) var damagedSecretCount = 0
  /// The reasons why items cannot be read, in the order of first occurrence.
  private(set) var reasons: [Reason] = []
  /// The number of secrets that a document would show.
  private(set) var revealableCount = 0
  /// The number of items of each kind that require authentication.
  private var protected: [ItemKind: Int] = [:]
  /// Whether secrets are omitted that an access control protects. A dump contains them in any case.
  private let omitsProtectedSecrets: Bool

  init(omittingProtected omitsProtectedSecrets: Bool) { self.omitsProtectedSecrets = omitsProtectedSecrets }

  mutating func record(_ entry: KeychainEntry) {
    count += 1
    guard let item = entry.attributes else {
      let reason = entry.reason ?? .malformed
      if unreadable[reason] == nil { reasons.append(reason) }
      unreadable[reason, default: 0] += 1
      return
    }
    readable[item.kind, default: 0] += 1
    if entry.reason?.isDamage == true { damagedSecretCount += 1 }
    if isProtected(item) {
      protected[item.kind, default: 0] += 1
    } else if item.secret != nil {
      revealableCount += 1
    }
  }

  /// Returns whether an item's secret is omitted.
  func isProtected(_ item: KeychainItem) -> Bool { omitsProtectedSecrets && item.requiresAuthentication }

  func protectedCount(of kinds: [ItemKind]) -> Int { kinds.reduce(0) { $0 + (protected[$1] ?? 0) } }

  var unreadableCount: Int { unreadable.values.reduce(0, +) }
}
