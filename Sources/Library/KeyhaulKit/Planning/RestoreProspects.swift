/// What becomes of one item in each of the four restores, as far as that is known.
public struct RestoreProspects: Sendable, Hashable, ExpressibleByDictionaryLiteral {
  private var withPassword: Pair = Pair()
  private var withoutPassword: Pair = Pair()

  private struct Pair: Sendable, Hashable {
    var onSameDevice: Prospect?
    var onOtherDevice: Prospect?

    var count: Int { (onSameDevice == nil ? 0 : 1) + (onOtherDevice == nil ? 0 : 1) }
  }

  /// Creates prospects of which nothing is known.
  public init() {}

  /// Creates prospects of a literal; where a restore occurs twice the last wins.
  public init(dictionaryLiteral elements: (RestoreSetting, Prospect)...) {
    for (setting, prospect) in elements { self[setting] = prospect }
  }

  /// The same in all four.
  init(all prospect: Prospect) {
    for setting in RestoreSetting.allCases { self[setting] = prospect }
  }

  /// In one of the four; `nil` where that is not known.
  public subscript(setting: RestoreSetting) -> Prospect? {
    get {
      let pair = setting.hasPassword ? withPassword : withoutPassword
      return setting.onSameDevice ? pair.onSameDevice : pair.onOtherDevice
    }
    set {
      switch (setting.hasPassword, setting.onSameDevice) {
      case (true, true): withPassword.onSameDevice = newValue
      case (true, false): withPassword.onOtherDevice = newValue
      case (false, true): withoutPassword.onSameDevice = newValue
      case (false, false): withoutPassword.onOtherDevice = newValue
      }
    }
  }

  /// Of how many of the four it is known.
  public var count: Int { withPassword.count + withoutPassword.count }
  /// Whether it is known of none.
  public var isEmpty: Bool { count == 0 }
}
