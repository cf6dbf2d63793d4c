import Basics
import KeychainFormats
import TestSupport

@testable import KeychainCrypto

extension Secret {
  init(hex text: String) throws { self.init(copying: try [UInt8](hex: text)) }
  init(_ vector: TestVectors) throws { self.init(copying: try vector.bytes) }

  /// The bytes in clear, to compare them.
  var revealed: [UInt8] { withBytes { Array($0) } }
}

extension ClassKeys {
  /// A class key in clear, to compare it.
  func revealed(_ number: UInt32) -> [UInt8]? { entries[KeyClass(rawValue: number)]?.key?.secret.revealed }

  subscript(number: UInt32) -> ClassKeyAvailability { availability(of: KeyClass(rawValue: number)) }
}

/// The backup of the vectors that was made by other code.
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
