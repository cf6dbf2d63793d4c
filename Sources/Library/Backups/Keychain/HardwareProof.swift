import Basics
public import KeychainFormats

/// What the items of an archive prove about the hardware key that was tried on them, class by class.
///
/// The hardware's layer has no check value, and each class key has a layer of its own. An item that opens proves the key
/// of its class and of no other: whoever knows a device's hardware key can wrap the key of one class with it, so that the
/// items of this class alone open there.
public struct HardwareProof: Sendable, Hashable {
  /// Classes of which at least one item's key came off.
  public private(set) var proven: Set<KeyClass> = []
  /// Classes that went through the hardware key, and of whose items no key came off: they are of other hardware, or
  /// changed. Nothing tells which.
  public private(set) var unproven: Set<KeyClass> = []

  /// Of no item at all.
  public init() {}

  /// Collects the proof of items to which a hardware key, or none, was applied.
  public init(_ items: some Sequence<ArchivedItem>) { take(items) }

  /// Adds the proof of further items.
  mutating func take(_ items: some Sequence<ArchivedItem>) {
    for item in items {
      guard let keyClass = item.keyClass, let own = item.provesHardware else { continue }
      if own { proven.insert(keyClass) } else { unproven.insert(keyClass) }
    }
    unproven.subtract(proven)
  }

  /// Whether the key is that of the device which made the archive: `true` where every class with items that need
  /// hardware is proven, `false` where none is; `nil` where there is none to try, or where some are and others are not.
  public var isSameDevice: Bool? {
    if isDivided { return nil }
    return proven.isEmpty ? (unproven.isEmpty ? nil : false) : true
  }

  /// Whether some classes are proven and others are not. No device writes such a backup, unless bytes of it were changed.
  public var isDivided: Bool { !proven.isEmpty && !unproven.isEmpty }

  /// Whether the key of the item's class is proven to be right.
  public func proves(_ item: ArchivedItem) -> Bool { item.keyClass.map(proven.contains) ?? false }
}

/// What an archive says of the hardware key that it was opened with, for whoever is about to wrap keys with it: what is
/// wrapped with a wrong one, no device opens again.
public enum HardwareVerdict: Sendable, Hashable {
  /// At least one item opens with it, and none of another class speaks against it.
  case proven
  /// It opens items of some classes, and none of these.
  case divided(unproven: [KeyClass])
  /// None of this many items that need it opens with it.
  case foreign(itemCount: Int)
  /// No item needs it, so none shows anything.
  case unshown
  /// There are no items that could be lost.
  case noItems

  /// Of the items that it was tried on.
  init(_ items: [ArchivedItem]) {
    let (proof, answers) = (HardwareProof(items), items.compactMap(\.provesHardware))
    if proof.isDivided {
      self = .divided(unproven: proof.unproven.sorted())
    } else if answers.contains(true) {
      self = .proven
    } else if items.isEmpty {
      self = .noItems
    } else {
      self = answers.isEmpty ? .unshown : .foreign(itemCount: answers.count)
    }
  }
}

extension OpenedArchive {
  /// What the items say of the hardware key that was tried on them.
  public var hardwareVerdict: HardwareVerdict { HardwareVerdict(items) }
}
