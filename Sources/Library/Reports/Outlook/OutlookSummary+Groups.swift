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
    /// The explanation why the items are lost or may be unusable, if no `Reason` says it.
    var explanation: String?
    /// The recommended action, if no `Reason` says it.
    var advice: String?
  }

  /// Every item that does not arrive on both devices, in groups: lost everywhere, lost only on a new device, unreadable.
  var losses: [Group] {
    let lostItems = restoreOutlook.items.filter { $0.outlook != .both }
    func group(_ itemOutlook: RestoreOutlook.ItemOutlook, _ reason: Reason, isMissingFromBackup: Bool = false) -> Group?
    {
      let members = lostItems.filter {
        $0.outlook == itemOutlook && $0.reason == reason && ($0.index == nil) == isMissingFromBackup
      }
      guard !members.isEmpty else { return nil }
      // Unreadable items have the style `.lost`, and all other items have the style `.stays`.
      let symbol = reason.isDamage ? "!" : itemOutlook == .neither ? "x" : "<"
      return Group(
        title: title(itemOutlook, reason, isMissingFromBackup: isMissingFromBackup), reason: reason,
        style: reason.isDamage ? .lost : .stays, symbol: symbol, items: members)
    }
    let rules = Reason.allCases.filter { !$0.isDamage }
    let missingFromBackup = rules.map { group(.neither, $0, isMissingFromBackup: true) }
    let lostOnBoth = rules.map { group(.neither, $0) }
    let lostOnNewDevice = rules.map { group(.sameDevice, $0) }
    let unreadable = Reason.allCases.filter(\.isDamage).flatMap { reason in
      [group(.neither, reason), group(.sameDevice, reason), group(.neither, reason, isMissingFromBackup: true)]
    }
    return (missingFromBackup + [addedLaterGroup(in: lostItems)] + lostOnBoth + lostOnNewDevice + unreadable)
      .compactMap(\.self)
  }

  /// The items that arrive on both devices without a warning.
  var arrivingGroup: Group {
    Group(
      title: "Kept either way", reason: nil, style: .moves, symbol: "+",
      items: restoreOutlook.items.filter { $0.outlook == .both && $0.warningOnNewDevice == nil })
  }

  /// The groups of items that arrive but may be unusable: first on a new device, then on the same device.
  var warningGroups: [Group] {
    func group(
      _ title: String, outlook itemOutlook: RestoreOutlook.ItemOutlook, warning: ArrivalWarning
    ) -> Group? {
      let members = restoreOutlook.items.filter { item in
        item.outlook == itemOutlook
          && (itemOutlook == .both ? item.warningOnNewDevice : item.warningOnSameDevice) == warning
      }
      guard !members.isEmpty else { return nil }
      let explanation = warning.explanation
      return Group(
        title: title, reason: nil, style: .stays, symbol: "+", items: members,
        explanation: "\(warning.rawValue): \(explanation.headline)", advice: explanation.action)
    }
    return [
      group("Kept either way, but unusable on \(newPhone)", outlook: .both, warning: .migratesButUnusable),
      group("Restored to \(sourcePhone), but may be unusable there", outlook: .sameDevice, warning: .useNotKnown),
    ].compactMap(\.self)
  }

  /// Returns the group of items that were added to the device after the backup; `nil` if there are none.
  private func addedLaterGroup(in lostItems: [RestoreOutlook.Item]) -> Group? {
    let members = lostItems.filter { $0.index == nil && $0.reason == nil }
    guard !members.isEmpty else { return nil }
    return Group(
      title: "Lost: not in this backup", reason: nil, style: .stays, symbol: "x", items: members,
      explanation: "they were added to \(sourcePhone) after the backup was made, or the backup lacks their references",
      advice: "Make a new backup.")
  }

  private func title(_ itemOutlook: RestoreOutlook.ItemOutlook, _ reason: Reason, isMissingFromBackup: Bool) -> String {
    if reason.isDamage { return isMissingFromBackup ? "Cannot be read on \(sourcePhone)" : "Cannot be read" }
    let isNeverInBackup = BackupBlindSpots.reasons.contains(reason)
    switch itemOutlook {
    case .neither where isNeverInBackup && reason == .systemBound:
      return "Not restored, and not needed: never in a backup"
    case .neither where isNeverInBackup: return "Lost either way: never in a backup"
    case .neither: return "Lost either way"
    case .sameDevice: return "Lost on \(newPhone); kept if restored to \(sourcePhone)"
    case .both: return "Kept either way"
    }
  }
}
