import Basics
import KeychainCrypto
import KeychainFormats

/// The file that simulates a device's RAM: the unlocked class keys, wrapped with the hardware UID.
///
/// Wrapping (RFC 3394 with the UID) corresponds to the encrypted memory of the Secure Enclave. A copy of the folder
/// without its hardware UID has no usable keys, even if the device was unlocked.
enum DeviceMemory {
  private static let magic = Array("keyhaul-memory/1\n".utf8)

  /// Returns the content of the file.
  static func wrapped(
    _ keys: ClassKeys, with hardware: borrowing HardwareUID
  ) throws(DataProtectionError) -> [UInt8] {
    let contents = try keys.exported()
    return magic + (try KeyWrap.wrap(contents, with: hardware.withBytes { Secret(copying: $0) }))
  }

  /// Unwraps the keys.
  ///
  /// - Returns: The keys, or `nil` if the bytes are damaged, or belong to a different chip or keybag. The device is
  ///   then in the same state as after a restart.
  static func unwrapped(
    _ bytes: [UInt8], with hardware: borrowing HardwareUID, keybagUUID: [UInt8]?
  ) -> ClassKeys? {
    guard bytes.starts(with: magic) else { return nil }
    do throws(DataProtectionError) {
      let key = hardware.withBytes { Secret(copying: $0) }
      guard let contents = try KeyWrap.unwrap(Array(bytes.dropFirst(magic.count)), with: key) else { return nil }
      let keys = try ClassKeys(importing: contents)
      guard keys.keybagUUID == keybagUUID else { return nil }
      return keys
    } catch {
      return nil
    }
  }
}

extension DeviceFiles {
  func createHardware(_ hardware: borrowing HardwareUID, in directory: String) throws(KeyhaulError) {
    let path = DeviceFile.hardware.path(in: directory)
    var bytes = hardware.withBytes { Array($0) }
    defer { bytes.withUnsafeMutableBytes { wipe($0) } }
    try create(path, bytes)
  }

  /// Reads the hardware UID.
  ///
  /// - Throws: `.deviceDamaged` if the file is missing or does not have 32 bytes.
  func readHardware(in directory: String, device: String) throws(KeyhaulError) -> HardwareUID {
    let path = DeviceFile.hardware.path(in: directory)
    guard var bytes = try read(path, atMost: DeviceFile.hardware.sizeLimit) else {
      throw KeyhaulError(.deviceDamaged, device, "its hardware UID (hardware.uid) is missing")
    }
    defer { bytes.withUnsafeMutableBytes { wipe($0) } }
    do throws(DataProtectionError) {
      return try HardwareUID(Secret(copying: bytes))
    } catch {
      throw KeyhaulError(.deviceDamaged, device, "hardware.uid: \(error.reason)")
    }
  }
}
