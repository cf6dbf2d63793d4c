import KeychainFormats
import Keychains
import VirtualDevice

/// The rows whose class key is not in memory, counted for the error message.
struct LockedRows {
  private var counts: [ProtectionClass: Int] = [:]

  /// Counts the row if its class key is not in memory, except for the passcode class.
  mutating func count(_ row: KeychainRow) {
    guard case .locked(let keyClass)? = row.fault, let protection = ProtectionClass(keyClass: keyClass),
      protection != .whenPasscodeSetThisDeviceOnly
    else { return }
    counts[protection, default: 0] += 1
  }

  /// Checks that no row was counted, and that the device is unlocked.
  ///
  /// - Throws: Category `locked` otherwise.
  func check(_ session: DeviceSession) throws(KeyhaulError) {
    let total = counts.values.reduce(0, +)
    guard total > 0 || session.state != .unlocked else { return }
    // Of equally frequent classes, the first one is reported.
    let mostFrequent = counts.max { left, right in
      left.value == right.value ? left.key.keyClass > right.key.keyClass : left.value < right.value
    }
    let count = mostFrequent?.value ?? 0
    throw .deviceLocked(
      itemCount: count, protection: mostFrequent?.key ?? .whenUnlocked, otherCount: total - count,
      device: session.name)
  }

  /// Checks that every row can be read, except for rows of the passcode class.
  ///
  /// On an unlocked device, no row is read.
  ///
  /// - Throws: Category `locked` with the number of rows whose class key is not in memory.
  static func requireNone(on session: DeviceSession) throws(KeyhaulError) {
    guard session.state != .unlocked else { return }
    let store = try session.keychain
    var lockedRows = LockedRows()
    try store.forEachRow(includingTombstones: true, keys: session.classKeys) { lockedRows.count($0) }
    try lockedRows.check(session)
  }
}
