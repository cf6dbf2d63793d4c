import KeychainFormats
import Keychains
import VirtualDevice

/// Rows whose class key is not in memory, counted for the sentence that says so.
struct LockedRows {
  private var counts: [ProtectionClass: Int] = [:]

  mutating func note(_ row: KeychainRow) {
    guard case .locked(let keyClass)? = row.fault, let protection = ProtectionClass(keyClass: keyClass),
      protection != .whenPasscodeSetThisDeviceOnly
    else { return }
    counts[protection, default: 0] += 1
  }

  /// - Throws: Category `locked` where there is a locked row, or the keys that new items need are not in memory.
  func check(_ session: DeviceSession) throws(KeyhaulError) {
    let total = counts.values.reduce(0, +)
    guard total > 0 || session.state != .unlocked else { return }
    let most = counts.max { ($0.value, $1.key.keyClass) < ($1.value, $0.key.keyClass) }
    throw .deviceLocked(
      lockedItems: most?.value ?? 0, protection: most?.key ?? .whenUnlocked, others: total - (most?.value ?? 0),
      device: session.name)
  }

  /// Returns whether every row can be read, except for rows of the passcode class.
  ///
  /// - Throws: Category `locked`, with how many rows are. While the device is unlocked none is, and none is looked at.
  static func requireNone(on session: DeviceSession) throws(KeyhaulError) {
    guard session.state != .unlocked else { return }
    let store = try session.keychain
    var locked = LockedRows()
    try store.forEachRow(includingTombstones: true, keys: session.classKeys) { locked.note($0) }
    try locked.check(session)
  }
}
