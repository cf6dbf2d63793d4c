public import KeyhaulKit

/// A page about the difference between two keychains. It names the attributes that changed, never their values.
public struct DifferencePage: HTMLPage {
  let first: Side
  let second: Side
  let difference: KeychainDifference
  let program: String

  /// Creates the page of a comparison.
  ///
  /// - Parameters:
  ///   - first: The keychain before.
  ///   - second: The keychain after.
  ///   - difference: The difference from the first to the second.
  ///   - program: Name and version of the program that makes the page.
  public init(from first: Side, to second: Side, _ difference: KeychainDifference, program: String) {
    self.first = first
    self.second = second
    self.difference = difference
    self.program = program
  }

  /// Returns the page as one document. Equal differences give equal pages.
  ///
  /// - Throws: `.cryptoFailed` if the style sheet's digest cannot be computed.
  public func html() throws(DataProtectionError) -> String {
    let title = "From \(HTMLWriter.shortened(first.name)) to \(HTMLWriter.shortened(second.name))"
    return try ReportPage(title: title, program: program).html(body: { page in
      writeHeading(to: &page)
      tiles.write(to: &page)
      for table in tables { table.write(to: &page) }
      writeUndecryptedSection(to: &page)
      writeOmissionSections(to: &page)
      StepList(self).write(to: &page)
    })
  }

  private func writeHeading(to page: inout HTMLWriter) {
    page.element("header") { page in
      page.element("h1") { page in
        page.text("From ")
        page.name(first.name)
        page.text(" to ")
        page.name(second.name)
      }
      page.element("p", ["class": "verdict"], verdict)
      page.element("p", ["class": "facts"]) { page in
        describe(first, after: "From ", to: &page)
        page.text(" ")
        describe(second, after: "To ", to: &page)
        page.text(" Keyhaul matches items by kind, names and access group.")
        if let sentence = difference.undecrypted.identicalItemsSentence { page.text(" \(sentence)") }
      }
      if first.kind == .archive || second.kind == .archive {
        page.element("p", ["class": "facts"], BackupBlindSpots.line)
      }
    }
  }

  private func describe(_ side: Side, after preposition: String, to page: inout HTMLWriter) {
    page.text(preposition + (side.kind == .device ? "the device " : ""))
    page.element("strong") { $0.name(side.name) }
    if side.kind == .archive, let device = side.deviceName {
      page.text(", made by ")
      page.name(device)
    }
    page.text(side.hasKeychain ? ": \(HumanReadable.count(side.itemCount, "item"))." : ": it has no keychain.")
  }

  private var tiles: Tiles {
    var tiles: [Tiles.Tile] = [
      .init(style: .moves, symbol: "+", count: difference.added.count, text: "new"),
      .init(style: .stays, symbol: "~", count: difference.changed.count, text: "changed"),
      .init(style: .gone, symbol: "-", count: difference.removed.count, text: "missing"),
      .init(style: .plain, symbol: "=", count: difference.sameCount, text: "the same"),
    ]
    if possibleMatchCount > 0 {
      tiles.append(.init(style: .plain, symbol: "?", count: possibleMatchCount, text: "may be encrypted"))
    }
    return Tiles(tiles: tiles)
  }

  // MARK: Items

  private var tables: [PageTable] {
    [
      table(
        "New in \(HTMLWriter.shortened(second.name))",
        difference.added.map { row($0, style: .moves, symbol: "+", result: "new") }),
      table("Changed in \(HTMLWriter.shortened(second.name))", difference.changed.map(row)),
      table(
        "Only in \(HTMLWriter.shortened(first.name))",
        difference.removed.map { row($0, style: .gone, symbol: "-", result: "missing") }),
      possibleMatchTable,
    ]
  }

  /// The table of the items that may match an encrypted item on the other side.
  private var possibleMatchTable: PageTable {
    func possibleMatchRow(
      _ item: KeychainDifference.UnmatchedItem, _ state: String, orEncryptedIn side: Side
    ) -> PageTable.Row {
      let sideName = HTMLWriter.shortened(side.name, to: Self.maximumTextLength)
      return row(item, style: .stays, symbol: "?", result: "\(state), or encrypted in \(sideName)")
    }
    let removedState = "only in \(HTMLWriter.shortened(first.name))"
    let rows =
      difference.possiblyInSecond.map { possibleMatchRow($0, removedState, orEncryptedIn: second) }
      + difference.possiblyInFirst.map { possibleMatchRow($0, "new", orEncryptedIn: first) }
    var table = table("May be encrypted on the other side", rows)
    table.note =
      "Each of these items can be decrypted on only one side, but may match an encrypted item of its kind on the "
      + "other. Because this is not known, these items count neither as missing on one side nor as the same."
    return table
  }

  private func table(_ title: String, _ rows: [PageTable.Row]) -> PageTable {
    PageTable(
      title: "\(title) (\(HumanReadable.grouped(rows.count)))", resultTitle: "What differs", rows: rows,
      isExpanded: rows.count <= PageTable.rowsPerBody)
  }

  /// Returns the row of an item. If another row would look the same, the result states how the items differ: "new: port
  /// 8443, not synced".
  private func row(
    _ item: KeychainDifference.UnmatchedItem, style: PageTable.Style, symbol: String, result: String
  ) -> PageTable.Row {
    let disambiguators = item.disambiguators.map { HTMLWriter.shortened($0, to: Self.maximumTextLength) }
    return PageTable.Row(
      style: style, symbol: symbol, item: ItemLabel(item.identity, index: item.index), kind: item.identity.kind,
      app: Self.app(of: item.identity), protection: item.protection,
      result: disambiguators.isEmpty ? result : "\(result): \(disambiguators.joined(separator: ", "))",
      detail: item.modified.map(LongDateFormat.day))
  }

  /// The maximum number of Unicode scalars of a name or a value in a row.
  private static let maximumTextLength = 60

  private func row(_ change: ItemChange) -> PageTable.Row {
    PageTable.Row(
      style: .stays, symbol: "~", item: ItemLabel(change.identityAfter, index: change.positionAfter),
      kind: change.identityAfter.kind,
      app: Self.app(of: change.identityAfter), protection: change.protection, result: change.summary,
      detail: change.modifiedAfter.map(LongDateFormat.day))
  }

  /// Returns the name of an item's app according to its access group. The list of apps that a side may have is not used,
  /// because it does not apply to the items of the other side.
  private static func app(of identity: ItemDescriptor) -> String {
    let app = AppDirectory([]).app(of: identity)
    return app.kind == .encrypted ? "" : app.displayName
  }

  // MARK: What is not compared

  private func writeUndecryptedSection(to page: inout HTMLWriter) {
    let undecrypted = difference.undecrypted
    guard undecrypted.total > 0 else { return }
    page.newLine()
    page.element("section") { page in
      page.element("h2", "What could not be compared")
      page.element("article", ["class": undecrypted.damaged > 0 ? "card lost" : "card stays"]) { page in
        page.element("p", ["class": "count"]) { page in
          if undecrypted.possiblePairs > 0 { page.text("at least ") }
          page.element("b", HumanReadable.count(undecrypted.total, "item"))
        }
        page.element("h3", "They are encrypted on one side or on both")
        page.element("p", undecryptedText)
        guard undecrypted.occurrenceCount > undecrypted.damaged else { return }
        page.element("p", ["class": "do"]) { page in
          page.element("strong", "What to do. ")
          page.text("The source device's key can decrypt \(undecrypted.damaged > 0 ? "the others" : "them"): ")
          page.element("code", SuggestedCommands.deviceKeyFile)
          page.text(".")
        }
      }
    }
  }

  /// The sentences about the items that could not be compared.
  private var undecryptedText: String {
    let undecrypted = difference.undecrypted
    let counts: [(count: Int, clause: String)] = [
      (undecrypted.inBoth, "in both"),
      (undecrypted.decryptedOnlyInFirst, Self.decryptedClause(first)),
      (undecrypted.decryptedOnlyInSecond, Self.decryptedClause(second)),
      (undecrypted.onlyInFirst, "only in \(HTMLWriter.shortened(first.name))"),
      (undecrypted.onlyInSecond, "only in \(HTMLWriter.shortened(second.name))"),
    ]
    let clauses = counts.filter { $0.count > 0 }.map { "\(HumanReadable.grouped($0.count)) \($0.clause)" }
    let matchSentence = undecrypted.possiblePairs == 0 ? "" : " It is not known which of them match."
    let damageSentence =
      undecrypted.damaged == 0
      ? "" : " \(HumanReadable.grouped(undecrypted.damaged)) of them cannot be read because of damage."
    return
      "\(HumanReadable.list(clauses)). It is not known whether their contents differ, so they count neither as equal "
      + "nor as changed.\(matchSentence)\(damageSentence)"
  }

  /// Returns the text after a count: "of them can be decrypted in family.backup".
  private static func decryptedClause(_ side: Side) -> String {
    "of them can be decrypted in \(HTMLWriter.shortened(side.name))"
  }

  private func writeOmissionSections(to page: inout HTMLWriter) {
    for side in [first, second] where !side.omissions.isEmpty {
      page.newLine()
      page.element("section") { page in
        page.element("h2") { page in
          page.text("Items that no backup of ")
          page.name(side.name)
          page.text(" contains")
        }
        page.element(
          "p",
          "These items are on the device. They do not count as a difference from the backup, because a rule keeps "
            + "each of them out of every backup.")
        for reason in Reason.allCases {
          let items = side.omissions.filter { $0.outcome.reason == reason }
          if !items.isEmpty { Self.writeCard(of: items, because: reason, to: &page) }
        }
      }
    }
  }

  private static func writeCard(
    of items: [MigrationPlan.Decision], because reason: Reason, to page: inout HTMLWriter
  ) {
    page.element("article", ["class": "card"]) { page in
      page.element("p", ["class": "count"]) { page in
        page.element("b", HumanReadable.count(items.count, "item"))
        page.element("code", reason.rawValue)
      }
      let headline = reason.explanation.headline
      page.element("h3", headline.prefix(1).uppercased() + headline.dropFirst())
      NameList(items.map { ItemLabel($0.identity, index: nil) }).write(
        collapsingAfter: ReasonCard.maximumListCount, to: &page)
    }
  }
}

extension DifferencePage {
  /// A keychain that takes part in the comparison.
  public struct Side: Sendable {
    /// The kinds of sources of a keychain.
    public enum Kind: Sendable {
      /// A backup.
      case archive
      /// The current state of a virtual device.
      case device
    }

    let kind: Kind
    let name: String
    let argument: String?
    let deviceName: String?
    let itemCount: Int
    let hasKeychain: Bool
    let omissions: [MigrationPlan.Decision]

    /// Creates a side of a comparison.
    ///
    /// - Parameters:
    ///   - kind: The kind of the source.
    ///   - name: The name in messages.
    ///   - argument: The command-line argument; `nil` if the keychain came from a stream.
    ///   - deviceName: The name of the keychain's device; `nil` if it is unknown.
    ///   - itemCount: The number of items, including encrypted ones.
    ///   - hasKeychain: Whether the source has a keychain. A device always has one.
    ///   - omissions: Items of a device that a rule excludes from every backup; empty if two devices are compared.
    public init(
      kind: Kind, name: String, argument: String?, deviceName: String?, itemCount: Int, hasKeychain: Bool,
      omissions: [MigrationPlan.Decision] = []
    ) {
      self.kind = kind
      self.name = name
      self.argument = argument
      self.deviceName = deviceName
      self.itemCount = itemCount
      self.hasKeychain = hasKeychain
      self.omissions = omissions
    }

    /// This side as an argument of suggested commands.
    var commandArgument: String { ShellQuoting.argument(argument, placeholder: kind == .device ? "DEVICE" : "ARCHIVE") }
  }
}

extension DifferencePage {
  /// The result in one sentence: "1 item is new, 2 changed, 1 is missing; 13 are the same."
  var verdict: String {
    let counts: [(count: Int, singular: String, plural: String)] = [
      (difference.added.count, "is new", "are new"), (difference.changed.count, "changed", "changed"),
      (difference.removed.count, "is missing", "are missing"),
    ]
    let clauses = counts.filter { $0.count > 0 }.enumerated().map { index, clause in
      // Only the first number has the noun "item".
      let number = index == 0 ? HumanReadable.count(clause.count, "item") : HumanReadable.grouped(clause.count)
      return "\(number) \(clause.count == 1 ? clause.singular : clause.plural)"
    }
    guard !clauses.isEmpty else { return verdictWithoutDifferences + possibleMatchClause + "." }
    let sameClause =
      switch difference.sameCount {
      case 0: "nothing is the same"
      case 1: "1 is the same"
      case let sameCount: "\(HumanReadable.grouped(sameCount)) are the same"
      }
    return clauses.joined(separator: ", ") + "; " + sameClause + possibleMatchClause + "."
  }

  /// The verdict if no item is known to be new, changed or missing.
  private var verdictWithoutDifferences: String {
    let sameCount = difference.sameCount
    if minimumDifferenceCount > 0 {
      return
        "At least \(HumanReadable.count(minimumDifferenceCount, "item")) \(minimumDifferenceCount == 1 ? "differs" : "differ"), "
        + "but it is not known which"
    }
    if difference.undecrypted.total > 0 {
      return sameCount == 0
        ? "None of the items can be compared"
        : "All comparable items are the same: \(HumanReadable.count(sameCount, "item"))"
    }
    return sameCount == 0
      ? "There is nothing to compare" : "Nothing differs: \(HumanReadable.count(sameCount, "item")) on both sides"
  }

  /// The last part of the verdict: "; 2 may be encrypted on the other side". Empty if there are no possible matches.
  private var possibleMatchClause: String {
    possibleMatchCount == 0
      ? "" : "; \(HumanReadable.grouped(possibleMatchCount)) may be encrypted on the other side"
  }

  /// The number of items on either side that may match an encrypted item on the other side.
  var possibleMatchCount: Int { difference.possiblyInSecond.count + difference.possiblyInFirst.count }

  /// The minimum number of items that differ, although it is not known which.
  ///
  /// Each encrypted item can match only one item. If there are more possible matches than encrypted items, the surplus
  /// must differ.
  private var minimumDifferenceCount: Int {
    max(0, difference.possiblyInSecond.count - difference.undecrypted.onlyInSecond)
      + max(0, difference.possiblyInFirst.count - difference.undecrypted.onlyInFirst)
  }
}

extension KeychainDifference.UndecryptedCounts {
  /// The sentence about encrypted items that are stored identically on both sides; `nil` if there are none.
  package var identicalItemsSentence: String? {
    guard identicalCount > 0 else { return nil }
    let damage =
      identicalDamagedCount == 0
      ? "" : "; \(HumanReadable.grouped(identicalDamagedCount)) cannot be read on either side"
    return
      "\(HumanReadable.grouped(identicalCount)) of the same items \(identicalCount == 1 ? "is" : "are") encrypted and stored identically, "
      + "byte for byte\(damage)."
  }
}
