import Basics
import Testing

@testable import KeychainFormats

@Suite("Names of key classes")
struct KeyClassTests {
  @Test("A key generation does not change the meaning of a class, and the class's name states it")
  func generations() {
    for (number, protection, name) in [
      (6, ProtectionClass.whenUnlocked, "6 (when unlocked)"),
      (0x16, .whenUnlocked, "22 (when unlocked, key generation 1)"),
      (0x2B, .alwaysThisDeviceOnly, "43 (always, this device, key generation 2)"),
      (0x1C, .whenPasscodeSetThisDeviceOnly, "28 (passcode only, key generation 1)"),
      (3, nil, "3 (files)"), (0x13, nil, "19 (files, key generation 1)"),
    ] as [(UInt32, ProtectionClass?, String)] {
      let keyClass = KeyClass(rawValue: number)
      #expect(ProtectionClass(keyClass: keyClass) == protection && keyClass.displayName == name)
    }
  }

  static let numbers: [UInt32] = [0, 5, 13, 15, 0x10, 0x15, 0x1D, 0xFFFF_FFFF]

  @Test("An unknown class has no name in any key generation", arguments: numbers)
  func unknown(number: UInt32) {
    let keyClass = KeyClass(rawValue: number)
    #expect(ProtectionClass(keyClass: keyClass) == nil && keyClass.displayName == "\(number) (unknown use)")
    #expect(!keyClass.protectsFiles)
  }
}
