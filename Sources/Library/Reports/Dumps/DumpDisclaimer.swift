package import KeyhaulKit

/// The disclaimer in every report about another tool's dump: nothing protected its items, and some entries may have been
/// skipped.
package struct DumpDisclaimer {
  private let name: String
  let dump: KeychainDump

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

  /// A sentence about items whose secret cannot be read here, but which the plan counts as readable on the device. `nil`
  /// if there are no such items.
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
      format: dump.format.rawValue, sentence: sentence,
      unknownProperties: moveAssumptions + skippedSentences + remarks)
  }

  private var json: JSONValue {
    let counts = secretCounts
    let document: JSONValue = [
      "form": .string(dump.format.rawValue), "sentence": .string(sentence), "entries": .count(dump.entryCount),
      "items": .count(dump.items.count),
      "skipped": .object(
        KeychainDump.SkipReason.allCases.compactMap { reason in
          dump.skippedEntryCounts[reason].map { (reason.rawValue, .count($0)) }
        }),
      "unknown_tables": .array(dump.unknownTableNames.map { .string($0) }),
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
