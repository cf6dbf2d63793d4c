import KeychainFormats
import Keychains
import VirtualDevice

/// The rows whose class key is not in memory, counted for the error message.
struct LockedRows {
  private var counts: [ProtectionClass: Int] = [:]

  /// Counts the row if its class key is not in memory.
  mutating func count(_ row: KeychainRow) {
    guard case .locked(let keyClass)? = row.fault, let protection = ProtectionClass(keyClass: keyClass),
      protection != .whenPasscodeSetThisDeviceOnly
    else { return }
    counts[protection, default: 0] += 1
  }

  /// - Throws: Category `locked` if a row is locked, or if the keys for new items are not in memory.
  func check(_ session: DeviceSession) throws(KeyhaulError) {
    let total = counts.values.reduce(0, +)
    guard total > 0 || session.state != .unlocked else { return }
    // Of equally frequent classes, the first one is reported.
    let mostFrequent = counts.max { ($0.value, $1.key.keyClass) < ($1.value, $0.key.keyClass) }
    let count = mostFrequent?.value ?? 0
    throw .deviceLocked(
      lockedItems: count, protection: mostFrequent?.key ?? .whenUnlocked, others: total - count, device: session.name)
  }

  /// Checks that every row can be read, except for rows of the passcode class.
  ///
  /// - Throws: Category `locked` with the number of locked rows. On an unlocked device, no row is read.
  static func requireNone(on session: DeviceSession) throws(KeyhaulError) {
    guard session.state != .unlocked else { return }
    let store = try session.keychain
    var locked = LockedRows()
    try store.forEachRow(includingTombstones: true, keys: session.classKeys) { locked.count($0) }
    try locked.check(session)
  }
}
