package import KeyhaulKit

/// The difference between two keychains (`keychain-diff/1`). It names attributes, never their values.
package struct DifferenceDocument {
  let first: ComparisonSide
  let second: ComparisonSide
  let difference: KeychainDifference
  let listsBlindSpots: Bool

  /// Creates the document of a difference.
  ///
  /// - Parameter listsBlindSpots: Whether to list the kinds of items that no backup contains, as reports about a backup
  ///   do.
  package init(
    _ first: ComparisonSide, _ second: ComparisonSide, _ difference: KeychainDifference, listsBlindSpots: Bool
  ) {
    self.first = first
    self.second = second
    self.difference = difference
    self.listsBlindSpots = listsBlindSpots
  }

  /// The document. These words in the names of its members have a special meaning:
  ///
  /// - `sealed`: encrypted items.
  /// - `open`: decrypted items.
  /// - `alike`: identical items.
  /// - `doubtful`: decrypted items of one keychain that may be among the encrypted items of the other keychain.
  package var json: JSONValue {
    let undecrypted = difference.undecrypted
    let document: JSONValue = [
      "format": "keychain-diff/1", "first": Self.json(first), "second": Self.json(second),
      "added": .each(difference.added) { Self.json($0) }, "changed": .each(difference.changed) { Self.json($0) },
      "removed": .each(difference.removed) { Self.json($0) }, "same": .count(difference.sameCount),
      "sealed": [
        "in_both": .count(undecrypted.inBoth), "open_in_first": .count(undecrypted.decryptedOnlyInFirst),
        "open_in_second": .count(undecrypted.decryptedOnlyInSecond), "only_in_first": .count(undecrypted.onlyInFirst),
        "only_in_second": .count(undecrypted.onlyInSecond), "damaged": .count(undecrypted.damaged),
        "alike": .count(undecrypted.identicalCount), "damaged_alike": .count(undecrypted.identicalDamagedCount),
        "total": .count(undecrypted.total),
      ],
      "unknown": .count(difference.unknownCount), "secrets_not_compared": .count(difference.uncomparedSecretCount),
      // `in_first` has items that are decrypted in the first keychain, and possibly encrypted in the second.
      "doubtful": [
        "in_first": .each(difference.possiblyInSecond) { Self.json($0) },
        "in_second": .each(difference.possiblyInFirst) { Self.json($0) },
      ],
      "never_in_backups": .each(first.omissions + second.omissions) { item in
        .object(JSONValue.identity(item.identity) + [("reason", .text(item.outcome.reason?.rawValue))])
      },
    ]
    return document.adding(listsBlindSpots ? [BackupBlindSpots.field] : [])
  }

  private static func json(_ side: ComparisonSide) -> JSONValue {
    let json: JSONValue = [
      "kind": .string(side.kind.rawValue), "name": .string(side.name), "device_name": .text(side.deviceName),
      "items": .count(side.items.count), "has_keychain": .boolean(side.hasKeychain),
    ]
    return json.adding(side.disclaimer.map { [$0.field] } ?? [])
  }

  private static func json(_ item: KeychainDifference.UnmatchedItem) -> JSONValue {
    .object(
      [("index", .count(item.index))] + JSONValue.identity(item.identity) + [
        ("protection", .text(item.protection?.rawValue)), ("modified", .text(item.modified.map(Timestamp.text))),
        ("distinctions", .array(item.disambiguators.map { .string($0) })),
      ])
  }

  private static func json(_ change: ItemChange) -> JSONValue {
    .object(
      [("index_first", .count(change.positionBefore)), ("index_second", .count(change.positionAfter))]
        + JSONValue.identity(change.identityAfter) + [
          ("attributes", .array(change.attributes.map { .string($0.rawValue) })),
          ("secret_changed", .boolean(change.isSecretChanged)),
          ("modified_first", .text(change.modifiedBefore.map(Timestamp.text))),
          ("modified_second", .text(change.modifiedAfter.map(Timestamp.text))),
        ])
  }
}
