import KeyhaulKit

extension Remedy {
  /// The remedy as a call of the program, or as a flag to add.
  var call: String {
    switch self {
    case .words(let text): text
    case .listDevices: "keyhaul device list"
    case .waitForDevice: "wait, or add --wait 30s"
    case .unlock(let device): "keyhaul device unlock \(ShellWord.quoted(device))"
    case .setPasscode(let device): "keyhaul device passcode set \(ShellWord.quoted(device))"
    case .changePasscode(let device): "keyhaul device passcode change \(ShellWord.quoted(device))"
    case .removePasscode: "keyhaul device passcode remove leaves a device without one"
    case .newerSystem(let version): "a device created with --ios \(version) or later"
    case .keepInMemory: "set TMPDIR to a folder with free space, or add --memory"
    case .listItems: "plan --json shows the index of each item"
    }
  }
}

extension ExplainedError {
  /// One thing to do next, as a call of the program where it has one.
  var call: String { meaning.remedy.call }
}
