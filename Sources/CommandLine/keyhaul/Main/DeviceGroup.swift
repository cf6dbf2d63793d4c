import ArgumentParser

/// `keyhaul device`: groups the commands for virtual devices.
struct DeviceGroup: GroupCommand {
  static let configuration = CommandConfiguration(
    commandName: "device", abstract: "Create and manage virtual devices", usage: "keyhaul device <command> [arguments]",
    subcommands: [
      DeviceCreate.self, DeviceList.self, DeviceShow.self, DeviceLock.self, DeviceUnlock.self, DeviceRestart.self,
      DevicePasscodeGroup.self, DeviceErase.self, DeviceDelete.self, DeviceExport.self, DeviceServe.self,
      DeviceFixtureCommand.self,
    ],
    helpNames: .long)
}

/// `keyhaul device passcode`: groups the commands for a device's passcode.
struct DevicePasscodeGroup: GroupCommand {
  static let configuration = CommandConfiguration(
    commandName: "passcode", abstract: "Set, change or remove a device's passcode",
    usage: "keyhaul device passcode <command> NAME",
    subcommands: [DevicePasscodeSet.self, DevicePasscodeChange.self, DevicePasscodeRemove.self],
    helpNames: .long)
}
