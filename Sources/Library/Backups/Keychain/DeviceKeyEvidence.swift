import Basics
package import KeychainFormats

/// The evidence whether the device key that was tried belongs to the source device, for each protection class.
///
/// A class key that is wrapped with the device key has no check value, so only items show whether the device key is the
/// right one. If the key of an item was unwrapped, this proves the device key for the item's class. It proves nothing
/// about other classes, because an attacker who knows a device's key could wrap a single class key with it.
public struct DeviceKeyEvidence: Sendable, Hashable {
  /// The classes with at least one item whose key was unwrapped.
  package private(set) var proven: Set<KeyClass> = []
  /// The classes whose items all failed. Either the device key belongs to a different device, or the items were
  /// changed.
  package private(set) var unproven: Set<KeyClass> = []

  /// Creates evidence without items.
  package init() {}

  /// Creates the evidence of items that were tried with a device key or without one.
  package init(_ items: some Sequence<BackupItem>) { add(items) }

  /// Adds the evidence of further items.
  mutating func add(_ items: some Sequence<BackupItem>) {
    for item in items {
      guard let keyClass = item.keyClass, let isProof = item.provesDeviceKey else { continue }
      if isProof { proven.insert(keyClass) } else { unproven.insert(keyClass) }
    }
    unproven.subtract(proven)
  }

  /// Whether the device key belongs to the source device: `true` if all classes with items that need the device key are
  /// proven, `false` if none of the classes is, `nil` if there are no such classes or only some are proven.
  package var isSameDevice: Bool? {
    if isMixed { return nil }
    return proven.isEmpty ? (unproven.isEmpty ? nil : false) : true
  }

  /// Whether some classes are proven and others are not. No device writes such a backup, unless its bytes were changed.
  package var isMixed: Bool { !proven.isEmpty && !unproven.isEmpty }

  /// Whether the key of the item's class is proven.
  package func proves(_ item: BackupItem) -> Bool { item.keyClass.map(proven.contains) ?? false }
}

/// The verdict on the device key with which a backup was opened.
///
/// Keyhaul wraps keys only with a proven device key, because no device can unwrap keys that are wrapped with a wrong
/// one.
package enum DeviceKeyVerification: Sendable, Hashable {
  /// The device key unwrapped the key of at least one item, and no class contradicts it.
  case proven
  /// The device key unwraps keys of items in some classes, but no item's key in the unproven classes.
  case mixed(unproven: [KeyClass])
  /// The device key unwraps no item's key, although items need it.
  case foreign(itemCount: Int)
  /// No item needs the device key, so nothing is known about it.
  case unknown
  /// There are no items.
  case noItems

  /// Determines the verdict from the items.
  init(_ items: [BackupItem]) {
    let (evidence, results) = (DeviceKeyEvidence(items), items.compactMap(\.provesDeviceKey))
    if evidence.isMixed {
      self = .mixed(unproven: evidence.unproven.sorted())
    } else if results.contains(true) {
      self = .proven
    } else if items.isEmpty {
      self = .noItems
    } else {
      self = results.isEmpty ? .unknown : .foreign(itemCount: results.count)
    }
  }
}

extension UnlockedBackup {
  /// The verdict on the device key that was used.
  package var deviceKeyVerification: DeviceKeyVerification { DeviceKeyVerification(items) }
}
