import Basics
import KeychainFormats
import TestSupport

@testable import KeychainCrypto

extension Secret {
  init(hex text: String) throws { self.init(copying: try [UInt8](hex: text)) }
  init(_ vector: TestVectors) throws { self.init(copying: try vector.bytes) }

  /// A copy of the secret bytes, for comparison.
  var revealed: [UInt8] { withBytes { Array($0) } }
}

extension ClassKeys {
  /// Returns a copy of a class key, for comparison.
  func revealed(_ number: UInt32) -> [UInt8]? { entries[KeyClass(rawValue: number)]?.key?.secret.revealed }

  subscript(number: UInt32) -> ClassKeyAvailability { availability(of: KeyClass(rawValue: number)) }
}

/// The synthetic backup in the vectors, which other code created.
struct SyntheticBackup {
  let vectors: TestVectors
  let keybag: Keybag
  let password: String

  init() throws {
    vectors = try TestVectors.section("synthetic_backup")
    keybag = try Keybag(parsing: vectors["keybag_hex"].bytes)
    password = try vectors["password"].string
  }

  func deviceKey() throws -> DeviceKey { try DeviceKey(Secret(vectors["key835_hex"])) }

  func unlock(withDeviceKey: Bool) throws -> ClassKeys {
    let deviceKey = withDeviceKey ? try deviceKey() : nil
    return try keybag.unlock(password: Secret(utf8: password), deviceKey: deviceKey)
  }
}
