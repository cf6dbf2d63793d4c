import Basics
import KeychainFormats

extension MigrationComparison {
  /// What to do with the comparison, in numbers. The sentence is `sentence`.
  public struct Advice: Sendable, Hashable {
    /// Items that are compared: those of the backup, or those of the device.
    public let total: Int
    /// Items that arrive in the restore at hand.
    public let arrivesNow: Int
    /// Items that a password would bring besides, to the same target; none where the backup at hand has one.
    public let gainedByPassword: Int
    /// Items that arrive because the backup at hand has a password, and would not without; none where it has none.
    public let broughtByPassword: Int
    /// Items that arrive on the device that made the backup and on no other.
    public let sameDeviceOnly: Int
    /// Items that no backup brings to the target at hand.
    public let neverToTarget: Int
    /// Items that are damaged in this copy.
    public let damaged: Int
  }

  /// What the four restores say together, counted for the sentence that a report ends with.
  public var advice: Advice {
    let withPassword = RestoreSetting(hasPassword: true, onSameDevice: current.onSameDevice)
    let without = RestoreSetting(hasPassword: false, onSameDevice: current.onSameDevice)
    func reaches(_ item: Item) -> Bool { item[withPassword] == .arrives || item[without] == .arrives }
    func isDamaged(_ item: Item) -> Bool { if case .unreadable = item[current] { true } else { false } }
    return Advice(
      total: items.count, arrivesNow: items.count { $0[current] == .arrives },
      gainedByPassword: items.count { $0[withPassword] == .arrives && $0[current] != .arrives },
      broughtByPassword: items.count { $0[current] == .arrives && $0[without] != .arrives },
      sameDeviceOnly: items.count { item in
        !item.canLeaveItsDevice && RestoreSetting.allCases.contains { $0.onSameDevice && item[$0] == .arrives }
      },
      neverToTarget: items.count { !reaches($0) && !isDamaged($0) }, damaged: items.count(where: isDamaged))
  }
}

extension MigrationComparison.Advice {
  /// "a password would bring 13 more items; 3 stay whatever you do"
  ///
  /// Says of how many items it speaks wherever it says that all of them arrive: a backup does not hold all that its
  /// device has.
  public func sentence(for setting: RestoreSetting) -> String {
    var parts: [String] = []
    switch (setting.hasPassword, setting.onSameDevice) {
    case (false, false) where gainedByPassword > 0:
      parts.append("a password would bring \(Amounts.count(gainedByPassword, "more item"))")
    case (false, false): parts.append("a password would bring no more items")
    case (true, false): parts.append("the password brings \(arrivals), which are all that can move")
    case (_, true): parts.append("the source device gets \(arrivals) back")
    }
    switch neverToTarget {
    case 0: parts.append("none of these stays behind")
    default: parts.append("\(Amounts.grouped(neverToTarget)) \(neverToTarget == 1 ? "stays" : "stay") in any case")
    }
    if !setting.onSameDevice, sameDeviceOnly > 0 {
      let come = sameDeviceOnly == 1 ? "comes" : "come"
      let they =
        sameDeviceOnly == neverToTarget
        ? (neverToTarget == 1 ? "it" : "they") : "\(Amounts.grouped(sameDeviceOnly)) of them"
      parts.append("\(they) \(come) back only on the source device")
    }
    if damaged > 0 { parts.append("\(Amounts.grouped(damaged)) cannot be read in this copy") }
    return parts.joined(separator: "; ")
  }

  /// "14 of 18 items"
  private var arrivals: String { "\(Amounts.grouped(arrivesNow)) of \(Amounts.count(total, "item"))" }
}
