@testable import keyhaul

/// A list of expectations, and the phones for which it is checked.
struct ExpectationSandbox {
  let sandbox: PhoneSandbox

  /// The login moves only with a password, and the push token is restored only to the same device.
  static let fourScenarios = """
    {"service": "chat.example", "account": "anna", "expect": "migrates", "password": true},
    {"service": "chat.example", "account": "anna", "expect": "stays-behind", "reason": "backup-not-encrypted",
     "password": false, "same_device": false},
    {"account": "push token", "expect": "stays-behind", "reason": "device-bound", "same_device": false},
    {"account": "push token", "expect": "migrates", "same_device": true}
    """

  init(_ expectations: String, in sandbox: PhoneSandbox? = nil) throws {
    self.sandbox = try sandbox ?? PhoneSandbox()
    let list = #"{"format": "plan-expectations/1", "expectations": [\#(expectations)]}"#
    try self.sandbox.write(Array(list.utf8), to: "list.json")
  }

  func check(_ flags: String = "", of source: String = "old-phone") throws -> BuiltProgram.Outcome {
    try sandbox.keyhaul("plan \(source) --to new-phone --expect list.json \(flags)")
  }
}
