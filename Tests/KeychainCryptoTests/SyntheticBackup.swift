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
  func revealed(_ classNumber: UInt32) -> [UInt8]? { entries[KeyClass(rawValue: classNumber)]?.key?.secret.revealed }

  subscript(classNumber: UInt32) -> ClassKeyAvailability { availability(of: KeyClass(rawValue: classNumber)) }
}

/// The numbers of the classes in a backup's keybag.
enum BackupClassNumbers {
  static let all: [UInt32] = Array(1...11)

  /// The classes that the device wraps in a backup with a password: 5 and the this-device-only classes.
  static let deviceWrapped: [UInt32] = [5, 9, 10, 11]
  /// The classes that only the password wraps in a backup with a password.
  static let passwordWrapped: [UInt32] = [1, 2, 3, 4, 6, 7, 8]

  /// The classes that the device wraps in a backup without a password: 5 and all keychain classes.
  static let deviceWrappedWithoutPassword: [UInt32] = Array(5...11)
  /// The classes of files.
  static let files: [UInt32] = Array(1...4)
}

/// The synthetic backup in the test vectors, which independent code created.
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
