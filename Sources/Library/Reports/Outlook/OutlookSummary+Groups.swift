import KeyhaulKit

extension OutlookSummary {
  /// Items with the same outlook and reason. They share a heading in the text and a card on the page.
  struct Group {
    let title: String
    /// The reason why the items are lost; `nil` if they arrive or were added after the backup.
    let reason: Reason?
    let style: Tiles.Style
    let symbol: String
    let items: [RestoreOutlook.Item]
    /// The cause, for a group without a reason.
    var fact: String?
    /// The recommended action, for a group without a reason.
    var advice: String?
  }

  /// The groups of items that are lost on both devices, lost only on a new device, or unreadable. Each item that does not
  /// arrive on both devices is in one group.
  var losses: [Group] {
    let lostItems = restoreOutlook.items.filter { $0.outlook != .both }
    func group(_ itemOutlook: RestoreOutlook.ItemOutlook, _ reason: Reason, isOnlyOnDevice: Bool = false) -> Group? {
      let members = lostItems.filter {
        $0.outlook == itemOutlook && $0.reason == reason && ($0.index == nil) == isOnlyOnDevice
      }
      guard !members.isEmpty else { return nil }
      let symbol = reason.isDamage ? "!" : itemOutlook == .neither ? "x" : "<"
      return Group(
        title: title(itemOutlook, reason, isOnlyOnDevice: isOnlyOnDevice), reason: reason,
        style: reason.isDamage ? .lost : .stays, symbol: symbol, items: members)
    }
    let rules = Reason.allCases.filter { !$0.isDamage }
    let neverInBackup = rules.map { group(.neither, $0, isOnlyOnDevice: true) }
    let lostOnBoth = rules.map { group(.neither, $0) }
    let lostOnNewDevice = rules.map { group(.sameDevice, $0) }
    let unreadable = Reason.allCases.filter(\.isDamage).flatMap { reason in
      [group(.neither, reason), group(.sameDevice, reason), group(.neither, reason, isOnlyOnDevice: true)]
    }
    return (neverInBackup + [addedLaterGroup(in: lostItems)] + lostOnBoth + lostOnNewDevice + unreadable)
      .compactMap(\.self)
  }

  /// The items that arrive on both devices without a warning.
  var arrivingGroup: Group {
    Group(
      title: "Kept either way", reason: nil, style: .moves, symbol: "+",
      items: restoreOutlook.items.filter { $0.outlook == .both && $0.warning == nil })
  }

  /// The groups of items that arrive but may be unusable: first on a new device, then on the same device.
  var warningGroups: [Group] {
    func group(
      _ title: String, outlook itemOutlook: RestoreOutlook.ItemOutlook, warning: ArrivalWarning
    ) -> Group? {
      let members = restoreOutlook.items.filter { item in
        item.outlook == itemOutlook && (itemOutlook == .both ? item.warning : item.warningOnReturn) == warning
      }
      guard !members.isEmpty else { return nil }
      let explanation = warning.explanation
      return Group(
        title: title, reason: nil, style: .stays, symbol: "+", items: members,
        fact: "\(warning.rawValue): \(explanation.headline)", advice: explanation.action)
    }
    return [
      group("Kept either way, but unusable on \(newPhone)", outlook: .both, warning: .migratesButUnusable),
      group("Restored to \(phone), but may be unusable there", outlook: .sameDevice, warning: .useNotKnown),
    ].compactMap(\.self)
  }

  /// Returns the group of items that were added to the device after the backup; `nil` if there are none.
  private func addedLaterGroup(in lostItems: [RestoreOutlook.Item]) -> Group? {
    let members = lostItems.filter { $0.index == nil && $0.reason == nil }
    guard !members.isEmpty else { return nil }
    return Group(
      title: "Lost: not in this backup", reason: nil, style: .stays, symbol: "x", items: members,
      fact: "they were added to \(phone) after the backup was made, or the backup lacks their references",
      advice: "Make a new backup.")
  }

  private func title(_ itemOutlook: RestoreOutlook.ItemOutlook, _ reason: Reason, isOnlyOnDevice: Bool) -> String {
    if reason.isDamage { return isOnlyOnDevice ? "Cannot be read on \(phone)" : "Cannot be read" }
    switch itemOutlook {
    case .neither where !BackupBlindSpots.reasons.contains(reason): return "Lost either way"
    case .neither:
      return reason == .systemBound
        ? "Not restored, and not needed: never in a backup"
        : "Lost either way: never in a backup"
    case .sameDevice: return "Lost on \(newPhone); kept if restored to \(phone)"
    case .both: return "Kept either way"
    }
  }
}
