package import KeyhaulKit

/// The disclaimer in every report about another tool's dump: nothing protected its items, and some entries may have been
/// skipped.
package struct DumpDisclaimer {
  private let name: String
  private let dump: KeychainDump

  /// Creates the disclaimer about a dump.
  ///
  /// - Parameters:
  ///   - dump: The dump.
  ///   - name: The name that the user typed. Untrusted.
  package init(_ dump: KeychainDump, named name: String) {
    self.name = name
    self.dump = dump
  }

  /// The kind of source in sentences: "dump" or "database".
  package var noun: String { dump.format.noun }

  /// The disclaimer without the name of the dump.
  var redacted: DumpDisclaimer { DumpDisclaimer(dump, named: "the source") }

  /// Returns the lines for a report about a move, including the assumptions about the items.
  func moveLines(style: TextStyle) -> [String] {
    Self.wrapped([sentence] + moveAssumptions + skippedSentences + remarks, style: style)
  }

  /// Returns the lines for other reports: the disclaimer, the skipped entries and the remarks.
  package func lines(style: TextStyle) -> [String] {
    Self.wrapped([sentence] + skippedSentences + remarks, style: style)
  }

  private static func wrapped(_ sentences: [String], style: TextStyle) -> [String] {
    sentences.flatMap { sentence in
      WordWrap.lines(of: style.adapted(UntrustedText.escaped(sentence, keepingEscapes: true)), columns: style.width)
    }
  }

  /// The sentence that states that the source was not protected.
  package var sentence: String {
    if let details = dump.database { return databaseSentence(details) }
    return
      "\(name) is \(dump.nature), read as \(dump.format.phrase): nothing enforced the protection classes of its items. "
      + "Nothing shows who wrote it or whether it is complete."
  }

  /// Returns a sentence about the protection of a database's items.
  private func databaseSentence(_ details: DatabaseDetails) -> String {
    let trust =
      switch details.keys {
      case .inDatabase:
        "nothing enforces the protection classes of its items, and nothing shows who wrote it or whether it is complete"
      case .given, .absent: "it does not show who wrote it or whether it is complete"
      }
    return "\(name) is \(dump.nature): \(trust)."
  }

  /// Returns remarks about a database apart from its items, one sentence each.
  private static func databaseRemarks(_ details: DatabaseDetails) -> [String] {
    [
      schemaRemark(details), journalRemark(details.journalStatus), missingTablesRemark(details.missingTables),
    ].compactMap(\.self)
  }

  /// Returns a remark about the schema, with the numbers of rows of each item version.
  private static func schemaRemark(_ details: DatabaseDetails) -> String {
    let versions = details.versionCounts.sorted { $0.key < $1.key }.map { version, count in
      "\(HumanReadable.count(count, "row")) of version \(version)"
    }
    let schema = details.schema.map { "Its schema is \($0)" } ?? "It does not state its schema version"
    return schema + (versions.isEmpty ? "" : ", with \(HumanReadable.list(versions))") + "."
  }

  /// Returns a remark about the log or journal next to a database; `nil` if there is none.
  private static func journalRemark(_ status: DatabaseDetails.JournalStatus) -> String? {
    switch status {
    case .none: nil
    case .applied: "The committed changes in its log (-wal) were read too."
    case .partiallyApplied:
      "Keyhaul read the committed changes in its log (-wal) up to a point. The rest is damaged, cut off or "
        + "unfinished, and may have contained items."
    case .rolledBack:
      "One of its changes was not finished. Keyhaul read the state before this change, from the journal (-journal). "
        + "SQLite restores the same state when it next opens the database."
    case .unreadable: "Its log (-wal) has no committed change that can be read, so nothing from the log is shown."
    case .journalUnreadable:
      "The journal (-journal) next to it does not begin like one, so SQLite ignores it. If it belongs to an unfinished "
        + "change, that change is shown."
    case .unrelated:
      "Its log (-wal) or journal (-journal) belongs to another database, or to another state of this one, so nothing "
        + "from it is shown."
    }
  }

  private static func missingTablesRemark(_ tables: [ItemKind]) -> String? {
    guard !tables.isEmpty else { return nil }
    return "It has no readable \(HumanReadable.list(tables.map(\.rawValue), conjunction: "or")) table: "
      + "any items stored there are not shown."
  }

  /// The sentence about skipped entries: "Of 12 entries, 9 are items; the rest were skipped: 1 identity and 2 entries of
  /// unknown tables (a, b)."; `nil` if every entry is an item.
  package var skippedSentence: String? {
    guard dump.skippedCount > 0 else { return nil }
    let parts = KeychainDump.SkippedEntry.allCases.compactMap { reason -> String? in
      guard let count = dump.skipped[reason] else { return nil }
      let names = reason == .unknownTable && !dump.unknownTables.isEmpty ? " (\(tableNames))" : ""
      return HumanReadable.count(count, reason.noun, plural: reason.plural) + names
    }
    let predicate = dump.items.count == 1 ? "is an item" : "are items"
    let verb = dump.skippedCount == 1 ? "was" : "were"
    return
      "Of \(HumanReadable.count(dump.entryCount, "entry", plural: "entries")), \(HumanReadable.grouped(dump.items.count)) \(predicate); "
      + "the rest \(verb) skipped: \(HumanReadable.list(parts))."
  }

  private var skippedSentences: [String] { [skippedSentence].compactMap(\.self) }

  private var tableNames: String {
    dump.unknownTables.map { UntrustedText.quoted($0) }.joined(separator: ", ")
  }

  /// Remarks about other differences from a keychain, one sentence each.
  package var remarks: [String] {
    (dump.database.map(Self.databaseRemarks) ?? []) + itemRemarks + formatRemarks
  }

  /// Remarks that begin with a number of items: "2 items have no secret in the dump."
  private var itemRemarks: [String] {
    func remark(_ count: Int, singular: String, plural: String) -> String? {
      count == 0 ? nil : "\(HumanReadable.count(count, "item")) \(count == 1 ? singular : plural)."
    }
    let items = dump.items
    let participle = dump.format.hasEncryptedItems ? "decrypted" : "read"
    let undecryptable = "cannot be \(participle) completely: \(undecryptedList)"
    return [
      remark(
        items.count { $0.tableSource == .inferred },
        singular: "names no table; Keyhaul inferred it from the attributes",
        plural: "name no table; Keyhaul inferred it from the attributes"),
      remark(items.count { $0.item?.isTombstone == true }, singular: "is a tombstone", plural: "are tombstones"),
      remark(
        secretCounts.absent, singular: "has no secret in the \(noun)", plural: "have no secret in the \(noun)"),
      remark(secretCounts.undecryptable, singular: undecryptable, plural: undecryptable),
      remark(
        items.count(where: \.isSecretRendered),
        singular: "has its secret as the tool displayed it: the original bytes may differ",
        plural: "have their secrets as the tool displayed them: the original bytes may differ"),
      remark(
        items.count(where: \.hasMismatchedDigest),
        singular: "has a digest (sha1) that does not match: the item was changed",
        plural: "have digests (sha1) that do not match: the items were changed"),
      remark(
        items.count { $0.item != nil && $0.protection == nil }, singular: "has no known protection class",
        plural: "have no known protection class"),
      remark(
        items.count { !$0.unusableAttributes.isEmpty },
        singular: "has attributes with invalid values; those were left out",
        plural: "have attributes with invalid values; those were left out"),
    ].compactMap(\.self)
  }

  /// Remarks about the format of the dump.
  private var formatRemarks: [String] {
    var sentences: [String] = []
    if dump.format == .keychainDumper {
      sentences.append(
        "The text does not mark where a value ends: a value with line breaks can look like another item.")
    }
    if dump.recordedAttributes != nil {
      sentences.append(
        "The format has only some attributes of each item. It does not show the others, or whether two items "
          + "differ in them.")
    }
    if dump.repeatedKeyCount > 0 {
      sentences.append(
        "\(HumanReadable.count(dump.repeatedKeyCount, "key")) \(dump.repeatedKeyCount == 1 ? "occurs" : "occur") twice "
          + "in one entry; the first was used.")
    }
    return sentences
  }

  /// The unreadable items: "1 of class dku without the secret and the attributes (no-class-key) and 2 of class ak without
  /// the secret (tag-mismatch)". If the dump was never encrypted, they are counted by fault instead of by class.
  private var undecryptedList: String {
    HumanReadable.list(dump.format.hasEncryptedItems ? undecryptedCountsByClass : unreadableCountsByFault)
  }

  private var undecryptedCountsByClass: [String] {
    dump.undecryptedCounts.map { count in
      let name = count.protection.map { "class \($0.rawValue)" } ?? "no known class"
      return
        "\(HumanReadable.grouped(count.itemCount)) of \(name) \(Self.missingParts(hasAttributes: count.hasAttributes)) "
        + "(\(count.reason.rawValue))"
    }
  }

  /// The numbers of unreadable items with the same missing parts and fault, the largest first.
  private var unreadableCountsByFault: [String] {
    let descriptions = dump.items.compactMap { item in
      item.fault.map { fault in "\(Self.missingParts(hasAttributes: item.item != nil)) (\(fault.detail))" }
    }
    let counts = Dictionary(descriptions.map { ($0, 1) }, uniquingKeysWith: +)
    return counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { description, count in
      "\(HumanReadable.grouped(count)) \(description)"
    }
  }

  private static func missingParts(hasAttributes: Bool) -> String {
    hasAttributes ? "without the secret" : "without the secret and the attributes"
  }

  /// The numbers of items whose secret is readable, missing, or cannot be decrypted.
  package var secretCounts: (readable: Int, absent: Int, undecryptable: Int) {
    let readable = dump.items.count(where: \.hasSecret)
    let undecryptable = dump.items.count { $0.fault != nil }
    return (readable, dump.items.count - readable - undecryptable, undecryptable)
  }

  /// The assumptions about a move of these items, and what is not known about them, one sentence each.
  package var moveAssumptions: [String] {
    [
      "The items' source device is not known. Keyhaul assumes that the target is another device. If it is the same "
        + "device, the this-device-only items are restored too.",
      dump.format == .database
        ? nil
        : "Keyhaul knows whether an item belongs to an App Clip or requires authentication only if the dump "
          + "says so.",
      "Keyhaul cannot show items that the \(noun) omits.", undecryptedSentence, tombstoneSentence,
    ].compactMap(\.self)
  }

  /// A sentence about the items without a readable secret that count as readable; `nil` if there are none.
  private var undecryptedSentence: String? {
    let count = dump.undecryptedCounts.reduce(0) { $0 + ($1.hasAttributes ? $1.itemCount : 0) }
    guard count > 0 else { return nil }
    let participle = dump.format.hasEncryptedItems ? "decrypted" : "read"
    let predicate = count == 1 ? "counts as readable" : "count as readable"
    return
      "\(HumanReadable.count(count, "item")) whose secret cannot be \(participle) here \(predicate) on the device, "
      + "which has its own keys."
  }

  private var tombstoneSentence: String? {
    let count = dump.items.count { $0.item?.isTombstone == true }
    guard count > 0 else { return nil }
    return "\(HumanReadable.count(count, "tombstone")) of deleted items \(count == 1 ? "is" : "are") not counted, "
      + "because it is not known whether the device synchronizes."
  }

  /// The field of every document about a dump.
  package var field: (String, JSONValue) { ("dump", json) }

  /// The disclaimer as a part of a plan's document.
  package var planDocument: PlanDocument.Dump {
    PlanDocument.Dump(
      form: dump.format.rawValue, sentence: sentence, unknown: moveAssumptions + skippedSentences + remarks)
  }

  private var json: JSONValue {
    let counts = secretCounts
    let document: JSONValue = [
      "form": .string(dump.format.rawValue), "sentence": .string(sentence), "entries": .count(dump.entryCount),
      "items": .count(dump.items.count),
      "skipped": .object(
        KeychainDump.SkippedEntry.allCases.compactMap { reason in
          dump.skipped[reason].map { (reason.rawValue, .count($0)) }
        }),
      "unknown_tables": .array(dump.unknownTables.map { .string($0) }),
      "secrets": [
        "open": .count(counts.readable), "absent": .count(counts.absent), "shut": .count(counts.undecryptable),
      ],
      "remarks": .array(remarks.map { .string($0) }),
    ]
    return document.adding(dump.database.map { [("database", Self.json($0))] } ?? [])
  }

  private static func json(_ details: DatabaseDetails) -> JSONValue {
    let versions = details.versionCounts.sorted { $0.key < $1.key }
    return [
      "schema": .text(details.schema), "log": .string(details.journalStatus.rawValue),
      "keys": .string(details.keys.rawValue),
      "versions": .object(versions.map { (String($0.key), .count($0.value)) }),
      "missing_tables": .array(details.missingTables.map { .string($0.rawValue) }),
    ]
  }
}
