import KeyhaulKit

/// The remarks about differences between a dump and a keychain.
extension DumpDisclaimer {
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
    let parts = KeychainDump.SkipReason.allCases.compactMap { reason -> String? in
      guard let count = dump.skippedEntryCounts[reason] else { return nil }
      let names = reason == .unknownTable && !dump.unknownTableNames.isEmpty ? " (\(unknownTableNames))" : ""
      return HumanReadable.count(count, reason.noun, plural: reason.plural) + names
    }
    let predicate = dump.items.count == 1 ? "is an item" : "are items"
    let verb = dump.skippedCount == 1 ? "was" : "were"
    return
      "Of \(HumanReadable.count(dump.entryCount, "entry", plural: "entries")), \(HumanReadable.grouped(dump.items.count)) \(predicate); "
      + "the rest \(verb) skipped: \(HumanReadable.list(parts))."
  }

  var skippedSentences: [String] { [skippedSentence].compactMap(\.self) }

  private var unknownTableNames: String {
    dump.unknownTableNames.map { UntrustedText.quoted($0) }.joined(separator: ", ")
  }

  /// All remarks about differences between the dump and a keychain, one sentence each.
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
    HumanReadable.list(dump.format.hasEncryptedItems ? undecryptedTextsByClass : unreadableTextsByFault)
  }

  private var undecryptedTextsByClass: [String] {
    dump.undecryptedCounts.map { count in
      let name = count.protection.map { "class \($0.rawValue)" } ?? "no known class"
      return
        "\(HumanReadable.grouped(count.itemCount)) of \(name) \(Self.missingParts(hasAttributes: count.hasAttributes)) "
        + "(\(count.reason.rawValue))"
    }
  }

  /// The numbers of unreadable items with the same missing parts and fault, the largest first.
  private var unreadableTextsByFault: [String] {
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

  /// The numbers of items whose secret is readable, absent, or cannot be decrypted.
  package var secretCounts: (readable: Int, absent: Int, undecryptable: Int) {
    let readable = dump.items.count(where: \.hasSecret)
    let undecryptable = dump.items.count { $0.fault != nil }
    return (readable, dump.items.count - readable - undecryptable, undecryptable)
  }
}
