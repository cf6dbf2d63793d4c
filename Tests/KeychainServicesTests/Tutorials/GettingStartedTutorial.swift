import KeyhaulKit
import Testing

@Suite("A first move")
struct FirstMove {
  let home: TemporaryDeviceSet
  let old: VirtualDevice
  let new: VirtualDevice

  /// Creates two phones in a temporary directory, which is removed with `home`. The old phone has two items.
  init() throws {
    home = try TemporaryDeviceSet()
    old = try home.devices.create(DeviceName("old-phone"), passcode: Secret(utf8: "1234")) {
      (phone) throws(KeyhaulError) in
      try phone.add(Self.password("mail", .afterFirstUnlock))
      try phone.add(Self.password("push token", .whenUnlockedThisDeviceOnly))
    }
    new = try home.devices.create(DeviceName("new-phone"), passcode: Secret(utf8: "0000"))
  }

  private static func password(_ account: String, _ protection: ProtectionClass) -> KeychainItem {
    var item = KeychainItem(kind: .genericPassword)
    item[.account] = .string(account)
    item[.service] = .string("org.example.app")
    item.protection = protection
    item.secret = SensitiveBytes(copying: Array("hunter2".utf8))
    return item
  }

  @Test("The plan shows which items would move, and why the others would not")
  func plan() throws {
    let source = try old.openSession(.reading, verb: "plan")
    let target = try new.openSession(.reading, verb: "plan")
    defer {
      source.invalidate()
      target.invalidate()
    }
    let simulatedBackup = try SimulatedBackup(of: source, hasPassword: true)
    let plan = try Restorer.plan(simulatedBackup, onto: target, policy: .replace)
    #expect(plan["mail"] == .migrates)
    #expect(plan["push token"] == .staysBehind)
    #expect(plan.reason(for: "push token") == .deviceBound)
    #expect(plan.summary.migrates == 1)
  }
}
