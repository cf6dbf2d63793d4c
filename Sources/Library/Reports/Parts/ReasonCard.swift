import KeyhaulKit

/// A card with a reason why items do not arrive, cannot be decrypted or may be unusable, and with the recommended
/// action.
struct ReasonCard {
  struct Item {
    /// The position of the item in the backup; `nil` if it is not in one.
    let index: Int?
    let label: ItemLabel

    init(_ index: Int?, _ identity: ItemDescriptor) {
      self.index = index
      label = ItemLabel(identity, index: index)
    }
  }

  let explanation: Explanation
  let style: Tiles.Style
  let items: [Item]
  /// The outcome for the items, such as "Lost either way", if the page has cards of several outcomes.
  var outcome: String?

  init(reason: Reason, style: Tiles.Style, items: [Item], outcome: String? = nil) {
    self.init(explanation: reason.explanation, style: style, items: items)
    self.outcome = outcome
  }

  init(explanation: Explanation, style: Tiles.Style, items: [Item]) {
    self.explanation = explanation
    self.style = style
    self.items = items
  }

  /// The maximum number of items that a card names. The table below contains the others.
  static let maximumListCount = 10

  func write(to page: inout HTMLWriter) {
    page.element("article", ["class": "card \(style.rawValue)"]) { page in
      page.element("p", ["class": "count"]) { page in
        page.element("b", HumanReadable.count(items.count, "item"))
        if let outcome { page.text(outcome) }
        page.element("code", explanation.id)
      }
      page.element("h3", explanation.headline.prefix(1).uppercased() + explanation.headline.dropFirst())
      page.element("p", explanation.rule + " " + explanation.effect)
      page.element("p", ["class": "do"]) { page in
        page.element("strong", "What to do. ")
        page.text(explanation.action)
      }
      if let ways = explanation.otherWays, explanation.action != "Nothing." {
        page.element("p") { page in
          page.element("strong", "Other ways. ")
          page.text(ways)
        }
      }
      list(&page)
    }
  }

  /// Writes the names of items, and the number of items whose names are encrypted.
  private func list(_ page: inout HTMLWriter) {
    let named = items.filter { !$0.label.isEncrypted }
    let encrypted = items.filter(\.label.isEncrypted)
    NameList(named.prefix(Self.maximumListCount).map(\.label)).write(to: &page)
    if named.count > Self.maximumListCount {
      page.element(
        "p", ["class": "more"],
        "\(HumanReadable.grouped(named.count - Self.maximumListCount)) more are in the table below."
      )
    }
    guard !encrypted.isEmpty else { return }
    let subject =
      encrypted.count == 1
      ? "The name of 1 item is" : "The names of \(HumanReadable.count(encrypted.count, "item")) are"
    page.element(
      "p", ["class": "more"],
      "\(subject) encrypted too, so Keyhaul cannot say which apps "
        + "\(encrypted.count == 1 ? "it belongs" : "they belong") to.")
  }
}

/// A list of item names next to each other.
struct NameList {
  private let names: [ItemLabel]

  init(_ names: [ItemLabel]) { self.names = names }

  func write(to page: inout HTMLWriter) {
    guard !names.isEmpty else { return }
    page.element("ul", ["class": "names"]) { page in
      for item in names { page.element("li") { item.write(to: &$0) } }
    }
  }

  /// Writes the first names, and the others in a collapsed list.
  func write(collapsingAfter limit: Int, to page: inout HTMLWriter) {
    NameList(Array(names.prefix(limit))).write(to: &page)
    guard names.count > limit else { return }
    page.element("details") { page in
      page.element("summary", "\(HumanReadable.grouped(names.count - limit)) more")
      NameList(Array(names.dropFirst(limit))).write(to: &page)
    }
  }
}

/// The name of an item on a page, with its account.
struct ItemLabel: Sendable {
  /// The first name of the item, or its position or kind if it has no name.
  let name: String
  /// The second name of the item, usually the account; `nil` if there is none.
  let account: String?
  /// Whether the name is encrypted.
  let isEncrypted: Bool

  init(_ identity: ItemDescriptor, index: Int?) {
    let names = identity.names
    isEncrypted = names.isEmpty && identity.accessGroup == nil
    let positionOrKind = index.map { "item \($0)" } ?? identity.kind.noun
    name = names.first ?? (isEncrypted ? "encrypted \(positionOrKind)" : "unnamed \(positionOrKind)")
    account = names.dropFirst().first
  }

  init(_ decision: MigrationPlan.Decision) { self.init(decision.identity, index: decision.index) }

  /// Writes the name with the account, for a sentence or a list.
  func write(to page: inout HTMLWriter) {
    if isEncrypted { page.text(name) } else { page.name(name) }
    if let account {
      page.text(" · ")
      page.name(account)
    }
  }
}

/// The names of the source, the target and the new backup in a page's commands.
///
/// Commands in a redacted document contain `ARCHIVE`, `DEVICE` and `TARGET` instead of names.
struct CommandPlaceholders: Sendable {
  /// The backup or the device that the page is about.
  let source: String
  /// The target of the restore.
  let target: String
  /// The device to back up.
  let oldDevice: String
  /// The path of the backup to create.
  let newBackup: String

  /// Creates the placeholders from a plan.
  ///
  /// - Parameters:
  ///   - document: The document of the plan, which may be redacted.
  ///   - sourceArgument: The source as a command-line argument; `nil` if it came from a stream.
  ///   - targetArgument: The target as a command-line argument; `nil` if it is unknown.
  init(_ document: PlanDocument, source sourceArgument: String?, target targetArgument: String?) {
    self.init(
      document.source, isRedacted: document.redacted == true, source: sourceArgument, target: targetArgument)
  }

  /// Creates the placeholders from a source, for reports without a plan's document.
  init(_ origin: PlanDocument.Source, isRedacted: Bool, source sourceArgument: String?, target targetArgument: String?)
  {
    let isDevice = origin.kind == .device
    source = ShellQuoting.argument(isRedacted ? nil : sourceArgument, placeholder: origin.kind.rawValue.uppercased())
    target = ShellQuoting.argument(isRedacted ? nil : targetArgument, placeholder: "TARGET")
    oldDevice = isDevice ? source : ShellQuoting.device(named: isRedacted ? nil : origin.deviceName)
    if isDevice, !isRedacted, let device = try? DeviceName(origin.name) {
      newBackup = device.text + ".backup"
    } else {
      newBackup = "with-password.backup"
    }
  }
}
