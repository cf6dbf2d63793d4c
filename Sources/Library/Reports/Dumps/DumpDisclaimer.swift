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

  /// Returns the lines for a report about a move, including the unknown properties of the items.
  func moveLines(style: TextStyle) -> [String] {
    ([sentence] + unknown + [skippedSentence].compactMap(\.self) + remarks).flatMap { sentence in
      WordWrap.lines(of: style.adapted(UntrustedText.escaped(sentence, keepingEscapes: true)), columns: style.width)
    }
  }

  /// Returns the lines for other reports: the disclaimer, the skipped entries and the remarks.
  package func lines(style: TextStyle) -> [String] {
    ([sentence] + [skippedSentence].compactMap(\.self) + remarks).flatMap { sentence in
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

  /// Remarks about a database apart from its items, one sentence each.
  private var databaseRemarks: [String] {
    guard let details = dump.database else { return [] }
    let versions = details.versionCounts.sorted { $0.key < $1.key }.map { version, count in
      "\(HumanReadable.count(count, "row")) of version \(version)"
    }
    let log =
      switch details.journalStatus {
      case .none: String?.none
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
    let schema = details.schema.map { "Its schema is \($0)" } ?? "It does not state its schema version"
    let missing =
      details.missingTables.isEmpty
      ? nil
      : "It has no readable \(HumanReadable.list(details.missingTables.map(\.rawValue), conjunction: "or")) table: "
        + "any items stored there are not shown."
    return [schema + (versions.isEmpty ? "" : ", with \(HumanReadable.list(versions))") + ".", log, missing].compactMap(
      \.self)
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

  private var tableNames: String {
    dump.unknownTables.map { UntrustedText.quoted($0) }.joined(separator: ", ")
  }

  /// Remarks about other differences from a keychain, one sentence each.
  package var remarks: [String] {
    let (items, counts) = (dump.items, counts)
    let inferred = items.count { $0.tableSource == .inferred }
    let unusable = items.count { !$0.unusableAttributes.isEmpty }
    let withoutClass = items.count { $0.item != nil && $0.protection == nil }
    let rendered = items.count(where: \.isSecretRendered)
    func line(_ count: Int, _ one: String, _ several: String) -> String? {
      count == 0 ? nil : "\(HumanReadable.count(count, "item")) \(count == 1 ? one : several)."
    }
    return databaseRemarks
      + [
        line(
          inferred, "names no table; Keyhaul inferred it from the attributes",
          "name no table; Keyhaul inferred it from the attributes"),
        line(
          items.count { $0.item?.isTombstone == true }, "is a tombstone", "are tombstones"),
        line(counts.absent, "has no secret in the \(noun)", "have no secret in the \(noun)"),
        line(counts.undecryptable, unreadable, unreadable).map { "\($0.dropLast()): \(undecryptedList)." },
        line(
          rendered, "has its secret as the tool displayed it: the original bytes may differ",
          "have their secrets as the tool displayed them: the original bytes may differ"),
        line(
          items.count(where: \.hasMismatchedDigest), "has a digest (sha1) that does not match: the item was changed",
          "have digests (sha1) that do not match: the items were changed"),
        line(withoutClass, "has no known protection class", "have no known protection class"),
        line(
          unusable, "has attributes with invalid values; those were left out",
          "have attributes with invalid values; those were left out"),
        dump.format == .keychainDumper
          ? "The text does not mark where a value ends: a value with line breaks can look like another item."
          : nil,
        dump.recordedAttributes == nil
          ? nil
          : "The format has only some attributes of each item. It does not show the others, or whether two items "
            + "differ in them.",
        dump.repeatedKeyCount == 0
          ? nil
          : "\(HumanReadable.count(dump.repeatedKeyCount, "key")) \(dump.repeatedKeyCount == 1 ? "occurs" : "occur") twice "
            + "in one entry; the first was used.",
      ].compactMap(\.self)
  }

  /// The predicate of unreadable items: "cannot be decrypted completely", or "cannot be read completely" if the dump was
  /// never encrypted.
  private var unreadable: String { "cannot be \(dump.format.hasEncryptedItems ? "decrypted" : "read") completely" }

  /// The unreadable items by class and reason: "1 of class dku without the secret and the attributes (no-class-key) and 2
  /// of class ak without the secret (tag-mismatch)". If the dump was never encrypted, by fault.
  private var undecryptedList: String {
    func missingParts(hasAttributes: Bool) -> String {
      hasAttributes ? "without the secret" : "without the secret and the attributes"
    }
    guard dump.format.hasEncryptedItems else {
      let faults = dump.items.compactMap { item in
        item.fault.map { "\(missingParts(hasAttributes: item.item != nil)) (\($0.detail))" }
      }
      let counts = Dictionary(faults.map { ($0, 1) }, uniquingKeysWith: +)
      return HumanReadable.list(
        counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { "\(HumanReadable.grouped($1)) \($0)" })
    }
    return HumanReadable.list(
      dump.undecryptedCounts.map { count in
        let name = count.protection.map { "class \($0.rawValue)" } ?? "no known class"
        return
          "\(HumanReadable.grouped(count.itemCount)) of \(name) \(missingParts(hasAttributes: count.hasAttributes)) "
          + "(\(count.reason.rawValue))"
      })
  }

  /// The numbers of items whose secret is readable, missing, or cannot be decrypted.
  package var counts: (readable: Int, absent: Int, undecryptable: Int) {
    let readable = dump.items.count(where: \.hasSecret)
    let undecryptable = dump.items.count { $0.fault != nil }
    return (readable, dump.items.count - readable - undecryptable, undecryptable)
  }

  /// Unknown and assumed properties of a move of these items, one sentence each.
  package var unknown: [String] {
    let tombstones = dump.items.count { $0.item?.isTombstone == true }
    let tombstoneSentence =
      tombstones == 0
      ? nil
      : "\(HumanReadable.count(tombstones, "tombstone")) of deleted items \(tombstones == 1 ? "is" : "are") not counted, "
        + "because it is not known whether the device synchronizes."
    let undecryptedCount = dump.undecryptedCounts.reduce(0) { $0 + ($1.hasAttributes ? $1.itemCount : 0) }
    let verb = dump.format.hasEncryptedItems ? "decrypted" : "read"
    let undecryptedSentence =
      undecryptedCount == 0
      ? nil
      : "\(HumanReadable.count(undecryptedCount, "item")) whose secret cannot be \(verb) here \(undecryptedCount == 1 ? "counts" : "count") "
        + "as readable on the device, which has its own keys."
    return [
      "The items' source device is not known. Keyhaul assumes that the target is another device. If it is the same "
        + "device, the this-device-only items are restored too.",
      dump.format == .database
        ? nil
        : "Keyhaul knows whether an item belongs to an App Clip or requires authentication only if the dump "
          + "says so.",
      "Keyhaul cannot show items that the \(noun) omits.", undecryptedSentence, tombstoneSentence,
    ].compactMap(\.self)
  }

  /// The field of every document about a dump.
  package var field: (String, JSONValue) { ("dump", json) }

  /// The disclaimer as a part of a plan's document.
  package var planDocument: PlanDocument.Dump {
    PlanDocument.Dump(
      form: dump.format.rawValue, sentence: sentence, unknown: unknown + [skippedSentence].compactMap(\.self) + remarks)
  }

  private var json: JSONValue {
    let counts = counts
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
    return document.adding(
      dump.database.map { details in
        [
          (
            "database",
            [
              "schema": .text(details.schema), "log": .string(details.journalStatus.rawValue),
              "keys": .string(details.keys.rawValue),
              "versions": .object(
                details.versionCounts.sorted { $0.key < $1.key }.map { (String($0.key), .count($0.value)) }),
              "missing_tables": .array(details.missingTables.map { .string($0.rawValue) }),
            ]
          )
        ]
      } ?? [])
  }
}
