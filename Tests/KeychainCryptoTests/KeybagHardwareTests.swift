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

  private func keybag(
    _ password: String?, changingWrapOf classNumber: UInt32, to wrap: Keybag.WrapFlags
  ) throws -> Keybag {
    var keybag = try keybag(password)
    let index = try #require(keybag.classKeys.firstIndex { $0.keyClass?.rawValue == classNumber })
    keybag.classKeys[index].wrap = wrap
    return keybag
  }

  private func classesWithoutDeviceWrap(in keybag: Keybag, hasPassword: Bool) -> [UInt32] {
    BackupKeybag.classesWithoutDeviceWrap(in: keybag, hasPassword: hasPassword).map(\.rawValue)
  }

  @Test("A new keybag has all device wraps of its kind, and the two kinds differ in classes 6 to 8")
  func newKeybags() throws {
    #expect(classesWithoutDeviceWrap(in: try keybag("pw"), hasPassword: true) == [])
    #expect(classesWithoutDeviceWrap(in: try keybag(nil), hasPassword: false) == [])
    #expect(classesWithoutDeviceWrap(in: try keybag(nil), hasPassword: true) == [])
    #expect(classesWithoutDeviceWrap(in: try keybag("pw"), hasPassword: false) == [6, 7, 8])
  }

  @Test(
    "For every class and WRAP, a missing device wrap is reported only if a device would have added it",
    arguments: [true, false])
  func everyClassAndWrap(hasPassword: Bool) throws {
    let deviceWrappedClasses =
      hasPassword ? BackupClassNumbers.deviceWrapped : BackupClassNumbers.deviceWrappedWithoutPassword
    for classNumber in BackupClassNumbers.all {
      for wrap in (UInt32(0)...7).map(Keybag.WrapFlags.init(rawValue:)) {
        let lacksDeviceWrap = deviceWrappedClasses.contains(classNumber) && !wrap.contains(.device)
        let keybag = try keybag(hasPassword ? "pw" : nil, changingWrapOf: classNumber, to: wrap)
        #expect(
          classesWithoutDeviceWrap(in: keybag, hasPassword: hasPassword) == (lacksDeviceWrap ? [classNumber] : []),
          "class \(classNumber), WRAP \(wrap.rawValue)")
      }
    }
  }

  /// A record of a class whose key only the password wraps.
  private func recordWithoutDeviceWrap(_ classNumber: UInt32) -> Keybag.ClassKey {
    Keybag.ClassKey(
      uuid: [UInt8](repeating: 1, count: 16), keyClass: KeyClass(rawValue: classNumber), wrap: .password,
      wrappedKey: [UInt8](repeating: 2, count: 40))
  }

  @Test("A duplicate class counts once, and the passcode's class counts")
  func duplicateClasses() throws {
    var keybag = try keybag(nil)
    // Class 13 does not exist.
    keybag.classKeys += [7, 7, 12, 13].map(recordWithoutDeviceWrap)
    #expect(classesWithoutDeviceWrap(in: keybag, hasPassword: false) == [7, 12])
  }

  @Test("A class of files needs no device wrap")
  func fileClass() throws {
    var keybag = try keybag(nil)
    keybag.classKeys = [recordWithoutDeviceWrap(3)]
    #expect(classesWithoutDeviceWrap(in: keybag, hasPassword: false) == [])
  }

  @Test("A class without WRAP does not count")
  func missingWrap() throws {
    var keybag = try keybag(nil)
    keybag.classKeys = [recordWithoutDeviceWrap(7)]
    #expect(classesWithoutDeviceWrap(in: keybag, hasPassword: false) == [7])
    keybag.classKeys[0].wrap = nil
    #expect(classesWithoutDeviceWrap(in: keybag, hasPassword: false) == [])
  }

  @Test("A password is not added to a keybag that lacks device wraps")
  func addingPassword() throws {
    for classNumber in BackupClassNumbers.deviceWrappedWithoutPassword {
      let keybag = try keybag(nil, changingWrapOf: classNumber, to: .password)
      let error = #expect(throws: DataProtectionError.self) {
        _ = try BackupKeybag.addingPassword(
          keybag, passcodeKey: keybag.passcodeKey(password: .empty), with: Secret(utf8: "new"),
          deviceKey: deviceKey(), rounds: 1)
      }
      #expect(error?.code == .hardwareLayerMissing && error?.category == .refused)
      #expect(error?.reason == "the key of class \(classNumber) is not wrapped with a device key")
    }
  }

  @Test("The password of a keybag whose this-device-only classes lack device wraps is not removed")
  func removingPassword() throws {
    for classNumber in BackupClassNumbers.deviceWrapped {
      let keybag = try keybag("pw", changingWrapOf: classNumber, to: .password)
      let passcodeKey = try keybag.passcodeKey(password: Secret(utf8: "pw"))
      let error = #expect(throws: DataProtectionError.self) {
        _ = try BackupKeybag.removingPassword(keybag, passcodeKey: passcodeKey, deviceKey: deviceKey())
      }
      #expect(error?.code == .hardwareLayerMissing)
    }
  }
}
