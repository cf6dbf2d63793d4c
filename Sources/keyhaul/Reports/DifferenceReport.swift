import ArchivedKeychain
import KeychainFormats

/// One of two keychains that are compared.
struct ComparisonSide {
  enum Kind: String {
    case archive, device
  }

  /// An item of a device that a rule keeps out of every backup.
  struct LeftOut {
    let identity: ItemIdentity
    let reason: Reason
  }

  let kind: Kind
  /// As the user named it.
  let name: String
  /// The device that it is of, as far as it says.
  let deviceName: String?
  let items: [ComparedItem]
  let leftOut: [LeftOut]
  let keybagDamage: String?
}

/// What two keychains differ in, for people and as `keychain-diff/1`. Names attributes, never their values.
struct DifferenceReport: Report {
  let first: ComparisonSide
  let second: ComparisonSide
  let difference: KeychainDifference

  init(_ first: ComparisonSide, _ second: ComparisonSide) throws(CommandFailure) {
    self.first = first
    self.second = second
    do throws(ArchivedKeychainError) {
      difference = try KeychainDifference(from: first.items, to: second.items)
    } catch {
      throw CommandFailure(error, doing: "cannot compare \(first.name) and \(second.name)")
    }
  }

  private struct Row {
    let symbol: String
    let identity: ItemIdentity
    let remark: String
    let colour: Colour
  }

  // MARK: Text

  func lines(style: TextStyle, showsAll: Bool) -> [String] {
    let rows =
      difference.added.map { Row(symbol: "+", identity: $0.identity, remark: "new", colour: .green) }
      + difference.changed.map {
        Row(symbol: "~", identity: $0.after, remark: Self.remark(on: $0), colour: .yellow)
      } + difference.removed.map { Row(symbol: "-", identity: $0.identity, remark: "gone", colour: .red) }
    var lines = Self.lines(of: rows, style: style)
    let sentences = (showsAll ? [] : [leftOutSentence].compactMap(\.self)) + [sealedSentence].compactMap(\.self)
    if showsAll { lines += leftOutLines(style) }
    for sentence in sentences + [summary] {
      lines += WordWrap.lines(of: style.adapted(HostileText.shown(sentence)), columns: style.width)
    }
    return lines
  }

  private static func lines(of rows: [Row], style: TextStyle) -> [String] {
    let kindWidth = rows.map { ItemText.kind($0.identity.kind).count }.max() ?? 0
    let remarkWidth = rows.map { DisplayWidth.columns(of: $0.remark) }.max() ?? 0
    let names = rows.map { style.adapted(HostileText.shown(ItemText.name($0.identity))) }
    let widest = names.map(DisplayWidth.columns).max() ?? 0
    let head = 2 + kindWidth + 2
    let half = max(Table.narrowestColumn, style.width / 2)
    let room = style.width - head - 2 - remarkWidth
    let nameWidth = min(widest, max(room, half))
    return zip(rows, names).flatMap { row, name in
      let cut = DisplayWidth.cut(name, columns: nameWidth, ellipsis: style.ellipsis)
      let label =
        "\(row.symbol) " + DisplayWidth.padded(ItemText.kind(row.identity.kind), columns: kindWidth) + "  "
        + DisplayWidth.padded(cut, columns: nameWidth) + "  "
      let fits = DisplayWidth.columns(of: label) + DisplayWidth.columns(of: row.remark) <= style.width
      let remark = style.adapted(HostileText.shown(row.remark))
      let text = fits ? [label + remark] : [label] + WordWrap.labelled("      ", remark, columns: style.width)
      return text.map { line in
        style.painted(String(line.dropLast(line.reversed().prefix { $0 == " " }.count)), row.colour)
      }
    }
  }

  /// "secret and label changed 2026-11-19"
  private static func remark(on change: ItemChange) -> String {
    change.words + (change.modifiedAfter.map { " \(TimeText.localDay($0))" } ?? "")
  }

  private func leftOutLines(_ style: TextStyle) -> [String] {
    [first, second].flatMap { side in
      side.leftOut.flatMap { item in
        let label = "  \(DisplayWidth.padded(ItemText.kind(item.identity.kind), columns: 11))  "
        let name = HostileText.shown(ItemText.name(item.identity), columns: 40, ellipsis: style.ellipsis)
        return WordWrap.labelled(
          label, style.adapted("\(name): \(item.reason.rawValue), in no backup of \(side.name)"), columns: style.width)
      }
    }.map { style.painted($0, .faint) }
  }

  /// "4 items of old-phone are never in a backup; -v names them."
  private var leftOutSentence: String? {
    let sides = [first, second].filter { !$0.leftOut.isEmpty }
    guard let side = sides.first else { return nil }
    let count = side.leftOut.count
    let (are, them) = count == 1 ? ("is", "it") : ("are", "them")
    return "\(Amounts.count(count, "item")) of \(side.name) \(are) never in a backup; -v names \(them)."
  }

  private var sealedSentence: String? {
    let sealed = difference.sealed
    guard sealed.total > 0 else { return nil }
    var parts: [String] = []
    if sealed.inBoth > 0 { parts.append("\(Amounts.grouped(sealed.inBoth)) in both") }
    if sealed.onlyInFirst > 0 { parts.append("\(Amounts.grouped(sealed.onlyInFirst)) in \(first.name)") }
    if sealed.onlyInSecond > 0 { parts.append("\(Amounts.grouped(sealed.onlyInSecond)) in \(second.name)") }
    let bound = sealed.total - sealed.damaged
    var reasons: [String] = []
    if bound > 0 {
      reasons.append(
        bound == 1
          ? "1 opens only on the device that made it"
          : "\(Amounts.grouped(bound)) open only on the device that made them")
    }
    if sealed.damaged > 0 { reasons.append("\(Amounts.grouped(sealed.damaged)) cannot be read in this copy") }
    return "\(Amounts.count(sealed.total, "sealed item")) could not be compared (\(parts.joined(separator: ", "))): "
      + "\(reasons.joined(separator: ", "))."
  }

  /// "2 archives compared: 1 new, 1 changed, 1 gone, 13 the same."
  var summary: String {
    let subject =
      first.kind == second.kind ? "2 \(first.kind.rawValue)s compared" : "\(first.name) and \(second.name) compared"
    let counts = [
      (difference.added.count, "new"), (difference.changed.count, "changed"), (difference.removed.count, "gone"),
      (difference.sameCount, "the same"),
    ]
    return "\(subject): \(counts.map { "\(Amounts.grouped($0.0)) \($0.1)" }.joined(separator: ", "))."
  }

  // MARK: JSON

  var json: JSONValue {
    let sealed = difference.sealed
    return [
      "format": "keychain-diff/1", "first": Self.json(first), "second": Self.json(second),
      "added": .array(difference.added.map(Self.json)), "changed": .array(difference.changed.map(Self.json)),
      "removed": .array(difference.removed.map(Self.json)), "same": .count(difference.sameCount),
      "sealed": [
        "in_both": .count(sealed.inBoth), "only_in_first": .count(sealed.onlyInFirst),
        "only_in_second": .count(sealed.onlyInSecond), "damaged": .count(sealed.damaged),
      ],
      "never_in_backups": .array(
        (first.leftOut + second.leftOut).map { item in
          .object(JSONValue.identity(item.identity) + [("reason", .string(item.reason.rawValue))])
        }),
    ]
  }

  private static func json(_ side: ComparisonSide) -> JSONValue {
    [
      "kind": .string(side.kind.rawValue), "name": .string(side.name), "device_name": .text(side.deviceName),
      "items": .count(side.items.count),
    ]
  }

  private static func json(_ side: KeychainDifference.Side) -> JSONValue {
    .object(
      [("index", .count(side.index))] + JSONValue.identity(side.identity) + [
        ("protection", .text(side.protection?.rawValue)), ("modified", .text(side.modified.map(Timestamp.text))),
      ])
  }

  private static func json(_ change: ItemChange) -> JSONValue {
    .object(
      [("index_first", .count(change.indexBefore)), ("index_second", .count(change.indexAfter))]
        + JSONValue.identity(change.after) + [
          ("attributes", .array(change.attributes.map { .string($0.rawValue) })),
          ("secret_changed", .boolean(change.isSecretChanged)),
          ("modified_first", .text(change.modifiedBefore.map(Timestamp.text))),
          ("modified_second", .text(change.modifiedAfter.map(Timestamp.text))),
        ])
  }
}
