package import KeyhaulKit

/// The difference between two keychains (`keychain-diff/1`). It names attributes, never their values.
package struct DifferenceReport: Report {
  package let first: ComparisonSide
  package let second: ComparisonSide
  package let difference: KeychainDifference

  package init(_ first: ComparisonSide, _ second: ComparisonSide) throws(KeyhaulError) {
    self.first = first
    self.second = second
    difference = try KeychainDifference(from: first.items, to: second.items)
  }

  private struct Row {
    let symbol: String
    let identity: ItemDescriptor
    let remark: String
    let color: Color
  }

  // MARK: Text

  package func lines(style: TextStyle, showsAll: Bool) -> [String] {
    var rows = difference.added.map { Self.row(of: $0, symbol: "+", state: "new", color: .green) }
    rows += difference.changed.map {
      Row(symbol: "~", identity: $0.identityAfter, remark: Self.remark(on: $0), color: .yellow)
    }
    rows += difference.removed.map { Self.row(of: $0, symbol: "-", state: "missing", color: .red) }
    rows += (difference.possiblyInSecond + difference.possiblyInFirst).map {
      Self.row(of: $0, symbol: "?", state: "not comparable", color: .faint)
    }
    var lines = Self.lines(of: rows, style: style)
    let sentences =
      emptySentences
      + [
        showsAll ? nil : omissionSentence, difference.undecrypted.identicalItemsSentence, undecryptedSentence,
        uncomparedSecretSentence,
      ].compactMap(\.self) + possibleMatchSentences
      + (comparesWithBackup ? [BackupBlindSpots.line] : [])
    if showsAll { lines += omissionLines(style) }
    for side in [first, second] { lines += side.disclaimer?.lines(style: style) ?? [] }
    for sentence in sentences + [summary] {
      lines += WordWrap.lines(of: style.adapted(UntrustedText.escaped(sentence)), columns: style.width)
    }
    return lines
  }

  private static func lines(of rows: [Row], style: TextStyle) -> [String] {
    let kindWidth = rows.map { ItemText.kind($0.identity.kind).count }.max() ?? 0
    let remarks = rows.map { style.adapted(UntrustedText.escaped($0.remark)) }
    let remarkWidth = remarks.map(DisplayWidth.columns).max() ?? 0
    let names = rows.map { style.escapedName(ItemText.name($0.identity)) }
    let maximumNameWidth = names.map(DisplayWidth.columns).max() ?? 0
    let symbolAndKindWidth = 2 + kindWidth + 2
    let availableWidth = style.width - symbolAndKindWidth - 2 - remarkWidth
    // A long remark goes to its own line instead of leaving too little room for the name.
    let reservedWidth = max(Table.minimumColumnWidth, style.width / 2)
    let nameWidth = style.cutsText ? min(maximumNameWidth, max(availableWidth, reservedWidth)) : maximumNameWidth
    return rows.indices.flatMap { index in
      let (row, name, remark) = (rows[index], names[index], remarks[index])
      let shortName = style.cut(name, columns: nameWidth)
      let label =
        "\(row.symbol) " + DisplayWidth.padded(ItemText.kind(row.identity.kind), columns: kindWidth) + "  "
        + DisplayWidth.padded(shortName, columns: nameWidth) + "  "
      let fits = DisplayWidth.columns(of: label) + DisplayWidth.columns(of: remark) <= style.width
      let rowLines = fits ? [label + remark] : [label] + WordWrap.labeled("      ", remark, columns: style.width)
      return rowLines.map { line in
        // The padding must not leave spaces at the end of the line.
        style.painted(String(line.dropLast(line.reversed().prefix { $0 == " " }.count)), row.color)
      }
    }
  }

  /// Returns the row of an item. If another row would look the same, the remark states how the items differ: "new: port
  /// 8443, not synced".
  private static func row(
    of item: KeychainDifference.UnmatchedItem, symbol: String, state: String, color: Color
  ) -> Row {
    let disambiguators = item.disambiguators.map { UntrustedText.shortened($0, columns: maximumDisambiguatorColumns) }
    let remark = disambiguators.isEmpty ? state : "\(state): \(disambiguators.joined(separator: ", "))"
    return Row(symbol: symbol, identity: item.identity, remark: remark, color: color)
  }

  /// The maximum width of a text that distinguishes an item from similar ones.
  private static let maximumDisambiguatorColumns = 60

  /// Returns the remark about a change: "secret and label changed on 2026-11-19".
  private static func remark(on change: ItemChange) -> String {
    change.summary + (change.modifiedAfter.map { " on \(LocalTimeFormat.localDay($0))" } ?? "")
  }

  private func omissionLines(_ style: TextStyle) -> [String] {
    [first, second].flatMap { side in
      side.omissions.flatMap { item in
        // The longest kind, "certificate", has 11 letters.
        let label = "  \(DisplayWidth.padded(ItemText.kind(item.identity.kind), columns: 11))  "
        let name = UntrustedText.escaped(ItemText.name(item.identity), columns: 40, ellipsis: style.ellipsis)
        return WordWrap.labeled(
          label, style.adapted("\(name): \(item.outcome.reason?.rawValue ?? ""), in no backup of \(side.name)"),
          columns: style.width)
      }
    }.map { style.painted($0, .faint) }
  }

  /// Whether one of the two sources is a backup.
  private var comparesWithBackup: Bool { first.kind == .archive || second.kind == .archive }

  /// The sentences about sides without a keychain.
  private var emptySentences: [String] {
    [first, second].filter { !$0.hasKeychain }.map { "\($0.name) has no keychain." }
  }

  /// The sentence about items that were compared without their secrets, because one side does not contain the secrets;
  /// `nil` if there are none.
  private var uncomparedSecretSentence: String? {
    let count = difference.uncomparedSecretCount
    guard count > 0 else { return nil }
    let (verb, secrets) = count == 1 ? ("was", "its secret") : ("were", "their secrets")
    return
      "\(HumanReadable.count(count, "item")) on both sides \(verb) compared without \(secrets), which one side does not show."
  }

  /// The sentences about items that may match encrypted items on the other side.
  private var possibleMatchSentences: [String] {
    [
      Self.possibleMatchSentence(of: difference.possiblyInSecond, in: first, and: second, state: "missing"),
      Self.possibleMatchSentence(of: difference.possiblyInFirst, in: second, and: first, state: "new"),
    ].compactMap(\.self)
  }

  /// Returns the sentence about items of a side that may match encrypted items of the other side; `nil` if there are none.
  private static func possibleMatchSentence(
    of items: [KeychainDifference.UnmatchedItem], in side: ComparisonSide, and otherSide: ComparisonSide, state: String
  ) -> String? {
    guard !items.isEmpty else { return nil }
    let subject = items.count == 1 ? "it is" : "they are"
    return
      "\(HumanReadable.count(items.count, "item")) of \(side.name) may be among the encrypted items of \(otherSide.name): "
      + "it is not known whether \(subject) \(state)."
  }

  /// The sentence about items that a rule excludes: "4 items of old-phone are never in a backup; -v lists them."
  private var omissionSentence: String? {
    let sides = [first, second].filter { !$0.omissions.isEmpty }
    guard let side = sides.first else { return nil }
    let count = side.omissions.count
    let (verb, pronoun) = count == 1 ? ("is", "it") : ("are", "them")
    return "\(HumanReadable.count(count, "item")) of \(side.name) \(verb) never in a backup; -v lists \(pronoun)."
  }

  /// The sentence about encrypted items: "4 encrypted items could not be compared (3 in both, 1 in new.backup): 4 can be
  /// decrypted only on the source device."; `nil` if there are none.
  private var undecryptedSentence: String? {
    let undecrypted = difference.undecrypted
    guard undecrypted.total > 0 else { return nil }
    let qualifier = undecrypted.possiblePairs > 0 ? "at least " : ""
    let matchClause = undecrypted.possiblePairs > 0 ? "; it is not known which of them match" : ""
    let subject = "\(qualifier)\(HumanReadable.count(undecrypted.total, "encrypted item")) could not be compared"
    return "\(subject.prefix(1).uppercased())\(subject.dropFirst()) "
      + "(\(undecryptedCountClauses.joined(separator: ", "))\(matchClause)): "
      + "\(undecryptedReasonClauses.joined(separator: ", "))."
  }

  /// The numbers of encrypted items in both sources, or in one of them.
  private var undecryptedCountClauses: [String] {
    let undecrypted = difference.undecrypted
    var clauses: [String] = []
    if undecrypted.inBoth > 0 {
      clauses.append("\(HumanReadable.grouped(undecrypted.inBoth)) in both")
      for (count, side) in [(undecrypted.decryptedOnlyInFirst, first), (undecrypted.decryptedOnlyInSecond, second)]
      where count > 0 {
        clauses.append("\(HumanReadable.grouped(count)) of them can be decrypted in \(side.name)")
      }
    }
    for (count, side) in [(undecrypted.onlyInFirst, first), (undecrypted.onlyInSecond, second)] where count > 0 {
      clauses.append("\(HumanReadable.grouped(count)) in \(side.name)")
    }
    return clauses
  }

  /// The reasons why items cannot be decrypted.
  private var undecryptedReasonClauses: [String] {
    let undecrypted = difference.undecrypted
    var clauses: [String] = []
    let deviceBoundCount = undecrypted.occurrenceCount - undecrypted.damaged
    if deviceBoundCount > 0 {
      // If the items are encrypted on both sides, the side does not need to be named.
      let isDecryptedOnOneSide = undecrypted.decryptedOnlyInFirst + undecrypted.decryptedOnlyInSecond > 0
      let pronoun = deviceBoundCount == 1 ? "it is" : "they are"
      clauses.append(
        (isDecryptedOnOneSide ? "on the side where \(pronoun) encrypted, " : "")
          + "\(HumanReadable.grouped(deviceBoundCount)) can be decrypted only on the source device")
    }
    if undecrypted.damaged > 0 {
      clauses.append("\(HumanReadable.grouped(undecrypted.damaged)) cannot be read in this copy")
    }
    return clauses
  }

  /// The last line: "2 backups compared: 1 new, 1 changed, 1 missing, 13 the same." A pair of matching items counts once.
  package var summary: String {
    let subject =
      first.noun == second.noun ? "2 \(first.noun)s compared" : "\(first.name) and \(second.name) compared"
    let sameCount = difference.sameCount
    let unknownCount = difference.unknownCount
    if difference.isEmpty, difference.isComplete, unknownCount == 0, sameCount > 0, first.omissions.isEmpty,
      second.omissions.isEmpty
    {
      let verb = sameCount == 1 ? "is" : "are"
      return "\(subject): no item differs, \(HumanReadable.grouped(sameCount)) \(verb) the same."
    }
    var countTexts = [
      "\(HumanReadable.grouped(difference.added.count)) new",
      "\(HumanReadable.grouped(difference.changed.count)) changed",
      "\(HumanReadable.grouped(difference.removed.count)) missing", "\(HumanReadable.grouped(sameCount)) the same",
    ]
    if unknownCount > 0 { countTexts.append("\(HumanReadable.grouped(unknownCount)) not comparable") }
    return "\(subject): \(countTexts.joined(separator: ", "))."
  }

  package var json: JSONValue {
    DifferenceDocument(first, second, difference, listsBlindSpots: comparesWithBackup).json
  }
}

extension DifferenceReport {
  /// Returns the comparison as one HTML file.
  ///
  /// - Parameter program: The name and version that the page states.
  package func page(program: String) -> DifferencePage {
    DifferencePage(from: Self.side(first), to: Self.side(second), difference, program: program)
  }

  private static func side(_ side: ComparisonSide) -> DifferencePage.Side {
    DifferencePage.Side(
      kind: side.kind == .archive ? .archive : .device, name: side.name, argument: side.argument,
      deviceName: side.deviceName, itemCount: side.items.count, hasKeychain: side.hasKeychain,
      omissions: side.omissions)
  }
}
