import Basics
import KeychainFormats
import TestSupport

extension KeychainItem {
  /// Returns a random item, which may be invalid. There are few primary keys and dates, so that items conflict.
  ///
  /// - Parameter suffix: A suffix of the account.
  static func random(using random: inout SeededRandom, suffix: String) -> KeychainItem {
    func pick<Value>(_ values: [Value]) -> Value { values[Int.random(in: values.indices, using: &random)] }
    func rarely() -> Bool { Int.random(in: 0..<8, using: &random) == 0 }
    var item = KeychainItem.password(
      pick(["a", "b"]) + suffix, pick(ProtectionClass.allCases.filter { $0 != .whenPasscodeSetThisDeviceOnly }),
      group: pick([
        "app", "app", "app", "com.apple.security.sos", "com.apple.security.ckks", "com.apple.cfnetwork", "apple",
      ]),
      secret: pick([[], [1], [0, 0xFF]]), at: pick([0, 1000, 1000.5, 1000.501, 785_000_000.123_456]))
    if pick([true, false, false]) {
      item.kind = .internetPassword
      item[.service] = nil
      item.attributes.merge(["srvr": .string("example.org"), "ptcl": .string("htps"), "atyp": .string("form")]) { $1 }
    }
    if rarely() { item[.modificationDate] = nil }
    if pick([true, false, false]) { item[.synchronizable] = .integer(1) }
    if rarely() {
      item[.tombstone] = .integer(1)
      item.secret = nil
    }
    if rarely() { item[.tokenID] = .string("token") }
    if rarely() { item[.sharingGroup] = .string(pick(["g", ""])) }
    if rarely() { item[.systemBound] = .integer(pick([0, 1])) }
    if rarely() { item[.multiUser] = .data(pick([ItemKey.systemUser, [UInt8](repeating: 1, count: 16)])) }
    if rarely() { item[.accessGroup] = pick([nil, .data(Array("app".utf8)), .data([0xFF])]) }
    if rarely() { item[.synchronizable] = pick([.string("1"), .integer(2), .boolean(true), .string("x")]) }
    if rarely() { item[.accessControl] = pick([.dictionary([:]), .data([1])]) }
    if rarely() { item[.uuid] = .string("00000000-0000-4000-8000-00000000000\(Int.random(in: 0...9, using: &random))") }
    return item
  }
}
