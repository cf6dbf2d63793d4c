import KeychainFormats
import Testing
import VirtualDevice

@testable import KeyhaulKit

/// Two phones and a backup of the first, which holds one item of every class that a backup can hold.
struct TwoPhones {
  static let migratable: [ProtectionClass] = [.whenUnlocked, .afterFirstUnlock, .always]
  static let deviceOnly: [ProtectionClass] = [
    .whenUnlockedThisDeviceOnly, .afterFirstUnlockThisDeviceOnly, .alwaysThisDeviceOnly,
  ]

  let desk: Desk
  let old: VirtualDevice
  let new: VirtualDevice
  let forge: Forge

  init(password: String? = Desk.password) throws {
    desk = try Desk(seed: "pretending")
    old = try desk.phone("old-phone", passcode: "123456")
    new = try desk.phone("new-phone", passcode: "654321")
    forge = Forge(desk: desk, password: password)
    let session = try old.held()
    defer { session.invalidate() }
    try session.plant((Self.migratable + Self.deviceOnly).map { .password($0.rawValue, $0) })
  }

  /// What the new phone decides about each item, by account's class, after a restore; and which items it then holds.
  struct End: Equatable {
    var outcomes: [ProtectionClass: MigrationPlan.Outcome] = [:]
    var arrived: Set<String> = []
    var isSameDevice: Bool?
  }

  /// Restores a forged backup on a phone whose keychain is empty before.
  ///
  /// - Parameter claimed: What the items' blobs say they are, in the order of the archive; the accounts tell the truth.
  func restore(_ path: String, onto phone: VirtualDevice? = nil, password: String?? = .none) throws -> End {
    let session = try (phone ?? new).held()
    defer { session.invalidate() }
    try HeldKeychain.empty(session.device)
    let archive = try desk.open(path, password: password ?? forge.password, on: session)
    let plan = try session.restore(archive)
    var end = End(isSameDevice: plan.isSameDevice)
    let order = Self.migratable + Self.deviceOnly
    for decision in plan.decisions { end.outcomes[order[decision.index]] = decision.outcome }
    let held = try HeldKeychain(session)
    end.arrived = Set(held.items.compactMap { $0[.account]?.stringValue })
    // The plan and the file agree, whatever was forged.
    let planned = end.outcomes.filter { $0.value == .migrates(.new) }.map(\.key.rawValue)
    #expect(end.arrived == Set(planned))
    #expect(held.items.count == planned.count)
    return end
  }

  static let deviceOnlyAccounts = Set(deviceOnly.map(\.rawValue))
  static let migratableAccounts = Set(migratable.map(\.rawValue))
}
