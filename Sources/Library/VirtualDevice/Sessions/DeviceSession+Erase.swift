import Basics
import KeychainCrypto
import KeychainFormats

extension DeviceSession {
  /// "Erase All Content and Settings": a new keybag, so that nothing under the old one can ever be read again, an empty
  /// keychain, no passcode. The hardware stays what it is, and so do name and identifier: a backup of this device made
  /// before restores to it afterwards as to the same device.
  ///
  /// Apps stay installed; their items are gone. The device no longer knows of an earlier backup.
  public func erase() throws(VirtualDeviceError) {
    try requireWriting()
    let rounds = keybag.keybag.iterations ?? environment.passcodeRounds
    let fresh = try reporting { () throws(DataProtectionError) in
      try SystemKeybag.make(
        passcode: Secret(utf8: ""), hardware: hardware, rounds: rounds, random: environment.random,
        progress: environment.derivation)
    }
    try adopt(fresh, keychain: .empty) { record in record.lastBackup = nil }
  }
}
