import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainCrypto

@Suite("Device wraps in a backup's keybag")
struct KeybagHardwareTests {
  private func deviceKey() throws -> DeviceKey { try DeviceKey(Secret(copying: [UInt8](repeating: 9, count: 16))) }

  private func keybag(_ password: String?) throws -> Keybag {
    try BackupKeybag.make(
      password: password.map { Secret(utf8: $0) }, deviceKey: deviceKey(), rounds: 1,
      random: SeededRandomSource(seed: "hardware")
    ).keybag
  }

  private func keybag(changing number: UInt32, to wrap: UInt32, _ password: String?) throws -> Keybag {
    var bag = try keybag(password)
    let index = try #require(bag.classKeys.firstIndex { $0.keyClass?.rawValue == number })
    bag.classKeys[index].wrap = Keybag.WrapFlags(rawValue: wrap)
    return bag
  }

  private func classesWithoutDeviceWrap(in bag: Keybag, hasPassword: Bool) -> [UInt32] {
    BackupKeybag.classesWithoutDeviceWrap(in: bag, hasPassword: hasPassword).map(\.rawValue)
  }

  @Test("A new keybag has all device wraps of its kind, and the two kinds differ in classes 6 to 8")
  func newKeybags() throws {
    #expect(classesWithoutDeviceWrap(in: try keybag("pw"), hasPassword: true) == [])
    #expect(classesWithoutDeviceWrap(in: try keybag(nil), hasPassword: false) == [])
    #expect(classesWithoutDeviceWrap(in: try keybag(nil), hasPassword: true) == [])
    #expect(classesWithoutDeviceWrap(in: try keybag("pw"), hasPassword: false) == [6, 7, 8])
  }

  @Test("Every combination of class and WRAP is classified", arguments: [true, false])
  func everyWrap(hasPassword: Bool) throws {
    let password = hasPassword ? "pw" : nil
    let bound: [UInt32] = hasPassword ? [5, 9, 10, 11] : [5, 6, 7, 8, 9, 10, 11]
    for number in UInt32(1)...11 {
      for wrap in UInt32(0)...7 {
        let isLacking = bound.contains(number) && wrap & 1 == 0
        let bag = try keybag(changing: number, to: wrap, password)
        #expect(
          classesWithoutDeviceWrap(in: bag, hasPassword: hasPassword) == (isLacking ? [number] : []),
          "class \(number), WRAP \(wrap)")
      }
    }
  }

  @Test("A duplicate class counts once, including the passcode's class, and one without WRAP is damaged instead")
  func records() throws {
    var bag = try keybag(nil)
    let key = try #require(bag.classKeys.first)
    func record(_ number: UInt32) -> Keybag.ClassKey {
      Keybag.ClassKey(
        uuid: [UInt8](repeating: 1, count: 16), keyClass: KeyClass(rawValue: number), wrap: .password,
        wrappedKey: key.wrappedKey ?? [])
    }
    bag.classKeys += [record(7), record(7), record(12), record(13)]
    #expect(classesWithoutDeviceWrap(in: bag, hasPassword: false) == [7, 12])
    bag.classKeys = [record(3)]
    #expect(classesWithoutDeviceWrap(in: bag, hasPassword: false) == [])
  }

  @Test("A password is not added to a keybag that lacks device wraps")
  func protecting() throws {
    for number in UInt32(5)...11 {
      let bag = try keybag(changing: number, to: 2, nil)
      let error = #expect(throws: DataProtectionError.self) {
        _ = try BackupKeybag.addingPassword(
          bag, passcodeKey: bag.passcodeKey(password: .empty), with: Secret(utf8: "new"), deviceKey: deviceKey(),
          rounds: 1)
      }
      #expect(error?.code == .hardwareLayerMissing && error?.category == .refused)
      #expect(error?.reason == "the key of class \(number) is not wrapped with the hardware key of any device")
    }
  }

  @Test("The password of a keybag whose this-device-only classes lack device wraps is not removed")
  func unprotecting() throws {
    for number: UInt32 in [5, 9, 10, 11] {
      let bag = try keybag(changing: number, to: 2, "pw")
      let key = try bag.passcodeKey(password: Secret(utf8: "pw"))
      let error = #expect(throws: DataProtectionError.self) {
        _ = try BackupKeybag.removingPassword(bag, passcodeKey: key, deviceKey: deviceKey())
      }
      #expect(error?.code == .hardwareLayerMissing)
    }
  }
}
