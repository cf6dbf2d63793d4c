import ArgumentParser
import KeyhaulKit

/// `keyhaul device …`
struct DeviceGroup: VerbGroup {
  static let configuration = CommandConfiguration(
    commandName: "device", abstract: "Create and manage virtual devices", usage: "keyhaul device <command> [arguments]",
    subcommands: [
      DeviceCreate.self, DeviceList.self, DeviceShow.self, DeviceLock.self, DeviceUnlock.self, DeviceRestart.self,
      DevicePasscodeGroup.self, DeviceErase.self, DeviceDelete.self, DeviceExport.self,
      DeviceFixtureVerb.self,
    ],
    helpNames: .long)
}

/// `keyhaul device passcode …`
struct DevicePasscodeGroup: VerbGroup {
  static let configuration = CommandConfiguration(
    commandName: "passcode", abstract: "Set, change or remove a device's passcode",
    usage: "keyhaul device passcode <command> NAME",
    subcommands: [DevicePasscodeSet.self, DevicePasscodeChange.self, DevicePasscodeRemove.self],
    helpNames: .long)
}
