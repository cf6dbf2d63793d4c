import KeyhaulKit

extension FuturesFacts {
  /// Items that share a future and a reason, as the text has them under one heading and the page on one card.
  struct Group {
    let title: String
    /// `nil` for what arrives, and for what came after the backup was made.
    let reason: Reason?
    let style: Tiles.Style
    let symbol: String
    let items: [MigrationFutures.Item]
    /// Why, and what to do, where no reason says it.
    var fact: String?
    var advice: String?
  }

  /// What is lost, what is lost on a new device alone, what cannot be read; each item of the report that is not on both
  /// stands in one of them.
  var losses: [Group] {
    let items = futures.items.filter { $0.outlook != .both }
    func group(_ outlook: MigrationFutures.Outlook, _ reason: Reason, isOnDeviceAlone: Bool = false) -> Group? {
      let members = items.filter {
        $0.outlook == outlook && $0.reason == reason && ($0.index == nil) == isOnDeviceAlone
      }
      guard !members.isEmpty else { return nil }
      let style: Tiles.Style = reason.isDamage ? .lost : .stays
      return Group(
        title: title(outlook, reason, isOnDeviceAlone: isOnDeviceAlone), reason: reason, style: style,
        symbol: reason.isDamage ? "!" : outlook == .neither ? "x" : "<", items: members)
    }
    let rules = Reason.allCases.filter { !$0.isDamage }
    let damage = Reason.allCases.filter(\.isDamage)
    return rules.compactMap { group(.neither, $0, isOnDeviceAlone: true) } + [since(items)].compactMap(\.self)
      + rules.compactMap { group(.neither, $0) } + rules.compactMap { group(.sameDevice, $0) }
      + damage.flatMap { [group(.neither, $0), group(.sameDevice, $0), group(.neither, $0, isOnDeviceAlone: true)] }
      .compactMap(\.self)
  }

  /// What is on both afterwards, and of use there as far as anything is known against it.
  var arriving: Group {
    Group(
      title: "On both afterwards", reason: nil, style: .moves, symbol: "+",
      items: futures.items.filter { $0.outlook == .both && $0.warning == nil })
  }

  /// What arrives and may be of no use: on a new device, then on the same one alone.
  var warned: [Group] {
    func group(_ title: String, _ outlook: MigrationFutures.Outlook, _ warning: ArrivalWarning) -> Group? {
      let members = futures.items.filter { item in
        item.outlook == outlook && (outlook == .both ? item.warning : item.warningOnReturn) == warning
      }
      guard !members.isEmpty else { return nil }
      let words = warning.explanation
      return Group(
        title: title, reason: nil, style: .stays, symbol: "+", items: members,
        fact: "\(warning.rawValue): \(words.headline)", advice: words.action)
    }
    return [
      group("On both afterwards, but unusable on \(newPhone)", .both, .migratesButUnusable),
      group("Back on \(phone), but may be unusable there", .sameDevice, .useNotKnown),
    ].compactMap(\.self)
  }

  private func since(_ items: [MigrationFutures.Item]) -> Group? {
    let members = items.filter { $0.index == nil && $0.reason == nil }
    guard !members.isEmpty else { return nil }
    return Group(
      title: "Lost: not in this backup", reason: nil, style: .stays, symbol: "x", items: members,
      fact: "they came to \(phone) after the backup was made, or its references do not show them in it",
      advice: "Make a new backup.")
  }

  private func title(_ outlook: MigrationFutures.Outlook, _ reason: Reason, isOnDeviceAlone: Bool) -> String {
    if reason.isDamage { return isOnDeviceAlone ? "Cannot be read on \(phone)" : "Cannot be read" }
    switch outlook {
    case .neither where !UnseenItems.reasons.contains(reason): return "On neither afterwards"
    case .neither: return reason == .systemBound ? "On neither: never in a backup" : "Lost on both: never in a backup"
    case .sameDevice: return "Lost on \(newPhone), back on \(phone)"
    case .both: return "On both afterwards"
    }
  }

  /// What to do before the device is wiped, for either future.
  var checklist: Checklist {
    let brings = futures.comparison[RestoreSetting(hasPassword: true, onSameDevice: false)].arrives
    let needsNew =
      !isOfBackup || findings.obstacle != nil || maker?.since.isEmpty == false || (!futures.hasPassword && brings > 0)
    let best = RestoreSetting(hasPassword: true, onSameDevice: false)
    let known = futures.comparison.items.compactMap { item in
      item[best].reason.map { WipeChecklist.Loss(index: item.index, identity: item.identity, reason: $0) }
    }
    let alone = WipeChecklist.losses(of: maker, after: futures.comparison.items.count)
    return WipeChecklist(
      phone: phone, target: "the new \(model)", isReturn: nil,
      backup: needsNew
        ? .missing(command: Commands.backup(of: words.oldDevice, to: words.newBackup)) : .good(word: words.source),
      isOfBackup: isOfBackup, losses: known + alone, apps: apps
    ).checklist
  }
}
