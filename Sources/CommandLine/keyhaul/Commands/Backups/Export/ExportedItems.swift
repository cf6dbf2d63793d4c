import KeyhaulKit
import Reports

/// The items of an export, while and after they are written.
struct ExportedItems {
  private let origin: ExportOrigin
  private let format: ExportFormat
  /// The counts of the source's items that were read, whether or not they were written.
  private var readCounts: ExportCounts
  /// The counts of written items and accounts; `nil` if the format is a document, which contains all items.
  private var writtenCounts: ItemExportCounts?
  /// The counts of written items, without the accounts from authenticator apps' files; `nil` if the format is a document.
  private var writtenItemCounts: ItemExportCounts?
  private var authenticators = AuthenticatorAccounts()

  /// Prepares an export.
  ///
  /// - Parameter origin: The source of the items.
  init(of origin: ExportOrigin, as format: ExportFormat) {
    self.origin = origin
    self.format = format
    readCounts = ExportCounts(omittingProtected: origin.omitsProtectedSecrets)
  }

  /// Writes the items one by one, without keeping them in memory. Writes nothing if there is nothing to export.
  ///
  /// - Parameters:
  ///   - source: The items.
  ///   - revealsSecrets: Whether to write secrets.
  ///   - write: Receives some kilobytes at a time. The bytes are borrowed, because they may contain secrets.
  mutating func write(
    from source: ExportSource, revealingSecrets revealsSecrets: Bool, in session: Session,
    to write: (UnsafeRawBufferPointer) throws(CommandError) -> Void
  ) throws(CommandError) {
    guard !format.isDocument else {
      let document = origin.document(revealsSecrets: revealsSecrets)
      var stream = document.stream()
      try source.forEachEntry(in: session) { (entry) throws(CommandError) in
        readCounts.record(entry)
        try stream.append(document.object(entry, statesSecret: origin.kind == .dump), to: write)
      }
      try requireItems()
      return try stream.end(origin.blindSpotFields, to: write)
    }
    var writer = ItemExportWriter(format, date: DeviceEnvironment.interruptible.clock.now())
    try source.forEachEntry(in: session) { (entry) throws(CommandError) in
      readCounts.record(entry)
      guard let item = entry.readablePart, format.kinds.contains(item.kind), !readCounts.isProtected(item) else {
        return
      }
      try writer.append(item, to: write)
    }
    writtenItemCounts = writer.counts
    authenticators = source.authenticators
    for account in source.accounts { try writer.append(account, to: write) }
    writtenCounts = writer.counts
    try requireItems()
    try Self.check(writer.counts, format)
    try Self.check(try writer.end(to: write), format)
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

  /// The number of exported items and accounts. A document also counts items that cannot be read.
  var count: Int { writtenCounts?.count ?? readCounts.count }
  /// The number of secrets in plain text; 0 for a document.
  var secretCount: Int { writtenCounts?.secretCount ?? 0 }
  /// The number of secrets that `--reveal` shows. In a document, these are the secrets of readable items that require
  /// no authentication.
  var revealedCount: Int { writtenCounts?.secretCount ?? readCounts.revealableCount }

  /// A note about how many secrets a document contains.
  var revealedNote: String {
    switch revealedCount {
    case 0: " (no secret could be read)"
    case count: " (with secrets in plain text)"
    case let number:
      " (with the \(number == 1 ? "secret" : "secrets") of \(HumanReadable.grouped(number)) in plain text)"
    }
  }

  /// The number of items with the same one-time password as an earlier item.
  private var repeatedCount: Int { writtenItemCounts?.repeatedCount ?? 0 }

  /// The numbers of readable items that were not written, without repeated items:
  ///
  /// - `unsupported`: items of the format's kinds that the format cannot represent
  /// - `protected`: items that require authentication
  /// - `others`: items of other kinds, or without the contents that the format exports
  private var omittedCounts: (unsupported: Int, protected: Int, others: Int) {
    let protected = readCounts.protectedCount(of: format.kinds)
    let (writtenCount, unsupported) = (writtenItemCounts?.count ?? 0, writtenItemCounts?.omittedCount ?? 0)
    let others = readCounts.count - readCounts.unreadableCount - protected - unsupported - repeatedCount - writtenCount
    return (unsupported, protected, others)
  }

  /// A sentence such as "Of 18 items, 11 are in it, 3 are of other kinds and 4 cannot be written as csv."; `nil` if all
  /// items were written or the format is a document. The first number is the sum of the other numbers.
  var balanceSentence: String? {
    guard let writtenItemCounts, writtenItemCounts.count < readCounts.count else { return nil }
    let omitted = omittedCounts
    let kinds = format.containsWholeKinds ? " (\(otherKindsText))" : ""
    let unsupported = "cannot be written as \(format.name)"
    let omissions = [
      Self.clause(repeatedCount, "repeats another", "repeat others"),
      Self.clause(omitted.others, "is \(format.otherItemText)\(kinds)", "are \(format.otherItemsText)\(kinds)"),
      Self.clause(omitted.unsupported, unsupported, unsupported),
      Self.clause(omitted.protected, "requires authentication", "require authentication"),
      Self.clause(readCounts.unreadableCount, "cannot be read", "cannot be read"),
    ].compactMap(\.self)
    let writtenCount = writtenItemCounts.count
    let writtenClause = "\(HumanReadable.grouped(writtenCount)) \(writtenCount == 1 ? "is" : "are") in it"
    return "Of \(HumanReadable.count(readCounts.count, "item")), \(HumanReadable.list([writtenClause] + omissions))."
  }

  /// Returns "1 repeats another" or "2 repeat others"; `nil` if the count is 0.
  private static func clause(_ count: Int, _ singular: String, _ plural: String) -> String? {
    count == 0 ? nil : "\(HumanReadable.grouped(count)) \(count == 1 ? singular : plural)"
  }

  /// The numbers of `balanceSentence` as JSON; empty for a document. `total` is the sum of the other numbers.
  var balanceFields: [(String, JSONValue)] {
    guard let writtenItemCounts else { return [] }
    let omitted = omittedCounts
    let repeated: [(String, JSONValue)] = repeatedCount > 0 ? [("repeated", .count(repeatedCount))] : []
    let kinds = format.containsWholeKinds ? otherKinds : []
    let otherCount = omitted.others - kinds.reduce(0) { $0 + $1.count }
    let balance: JSONValue = [
      "total": .count(readCounts.count), "written": .count(writtenItemCounts.count),
      "other_kinds": .object(kinds.map { ($0.kind.rawValue, JSONValue.count($0.count)) }),
      "other": .count(otherCount), "without_form": .count(omitted.unsupported), "asking": .count(omitted.protected),
      "unreadable": .count(readCounts.unreadableCount),
    ]
    return [("balance", balance.adding(repeated))]
  }

  /// A sentence such as "3 one-time passwords are from files of FreeOTP and Proton Authenticator."; `nil` if no
  /// one-time password is from a file.
  var filesSentence: String? {
    let count = (writtenCounts?.count ?? 0) - (writtenItemCounts?.count ?? 0)
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
    let apps = authenticators.json
    return apps.arrayValue?.isEmpty == false ? [("authenticators", apps)] : []
  }

  /// The numbers of readable items of kinds that the format does not contain.
  private var otherKinds: [(kind: ItemKind, count: Int)] {
    ItemKind.allCases.filter { !format.kinds.contains($0) }.compactMap { kind in
      readCounts.readableByKind[kind].map { (kind, $0) }
    }
  }

  /// The kinds as text: "2 certificates and 1 key".
  private var otherKindsText: String {
    HumanReadable.list(otherKinds.map { HumanReadable.count($0.count, $0.kind.noun) })
  }

  // MARK: Omitted items

  /// The number of items that cannot be read here, for each reason.
  var unreadableByReason: [(reason: Reason, count: Int)] {
    Reason.allCases.compactMap { reason in readCounts.unreadableByReason[reason].map { (reason, $0) } }
  }

  /// The number of items that are damaged, or whose secret is damaged.
  var damagedCount: Int {
    unreadableByReason.filter(\.reason.isDamage).reduce(readCounts.damagedSecretCount) { $0 + $1.count }
  }

  /// Makes sure that something was exported. A document of all items may be empty.
  ///
  /// - Throws: `.noMatch` if nothing was exported.
  func requireItems() throws(CommandError) {
    guard count == 0, !format.isDocument || origin.isRestricted else { return }
    if let reason = readCounts.unreadableReasons.first {
      throw CommandError(
        .noMatch, "no item of \(name) can be exported as \(format.name)",
        why: "\(HumanReadable.count(readCounts.unreadableCount, "item")) cannot be read here: \(reason.rawValue), "
          + reason.explanation.headline,
        try: "keyhaul explain \(reason.rawValue)")
    }
    if let first = writtenCounts?.firstOmittedItem {
      throw CommandError(
        .noMatch, "no item of \(name) can be exported as \(format.name)",
        why: omissionText(first), try: "--format json contains every item")
    }
    if readCounts.protectedCount(of: format.kinds) > 0 {
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
    let protectedCount = readCounts.protectedCount(of: format.kinds)
    if protectedCount > 0 {
      session.warn("\(HumanReadable.count(protectedCount, "item")) left out", why: Self.protectionText)
    }
    guard let writtenCounts else { return }
    if let first = writtenCounts.firstOmittedItem {
      session.warn(
        "\(HumanReadable.count(writtenCounts.omittedCount, "item")) left out, because the \(format.name) format cannot contain "
          + "them",
        why: omissionText(first), try: "--format json contains every item")
    }
    if writtenCounts.namelessCount > 0 {
      session.warn(
        "\(HumanReadable.count(writtenCounts.namelessCount, "password")) without a name",
        why: "only the secret is stored, without a service, server or account, as in backups from iOS 4",
        try: "--format json --reveal lists them by number, with their access groups if they have any")
    }
    if writtenCounts.formulaSecretCount > 0 {
      session.warn(
        "a spreadsheet would evaluate \(HumanReadable.count(writtenCounts.formulaSecretCount, "password")) like a formula",
        why: "passwords are exported unchanged, even if they begin with =, +, - or @",
        try: "import the file; do not open it as a spreadsheet")
    }
    if writtenCounts.inertNameCount > 0 {
      session.warn(
        "\(HumanReadable.count(writtenCounts.inertNameCount, "name")) got an apostrophe",
        why: "a spreadsheet would treat a name that begins with =, +, - or @ as a formula")
    }
  }

  private static let protectionText =
    "an access control protects the secret, and a virtual device has no biometry"

  private func omissionText(_ first: ItemExportCounts.OmittedItem) -> String {
    let label = writtenCounts?.omittedCount == 1 ? "" : "the first: "
    return "\(label)\(first.identity.kind.noun) \"\(ItemText.name(first.identity))\": \(first.reason)"
  }

  /// Warns about unreadable items.
  ///
  /// - Parameter isLost: Whether to report the items that are lost in this copy; if `false`, reports the other unreadable
  ///   items.
  private func warnAboutUnreadable(isLost: Bool, in session: Session) {
    let groups = unreadableByReason.filter { $0.reason.isLostInThisCopy == isLost }
    guard let first = readCounts.unreadableReasons.first(where: { $0.isLostInThisCopy == isLost }) else { return }
    let counts = groups.map { "\(HumanReadable.grouped($0.count)) \($0.reason.rawValue)" }
    let count = groups.reduce(0) { $0 + $1.count }
    session.warn(
      "\(HumanReadable.count(count, "item")) of \(name) cannot be read here",
      why: counts.count == 1 ? "\(first.rawValue): \(first.explanation.headline)" : counts.joined(separator: ", "),
      try: isLost
        ? "another copy may still contain the items that are lost in this copy" : "keyhaul explain \(first.rawValue)")
  }

  /// Returns the error for an export of secrets without `--reveal`.
  ///
  /// - Parameter count: The number of secrets; `nil` if the items were not read.
  static func missingRevealFlag(_ output: String, _ format: ExportFormat, count: Int?) -> CommandError {
    let secrets = count.map { HumanReadable.count($0, format.secretNoun) } ?? format.secretNoun + "s"
    return .usage(
      "exporting secrets requires --reveal", why: "\(output) would contain \(secrets) in plain text",
      try: "add --reveal (only you can read the file), or use --format json, which leaves the secrets out")
  }
}
