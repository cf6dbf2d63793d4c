package import KeyhaulKit

/// A keychain on one side of a comparison.
package struct ComparisonSide {
  /// The kinds of sources of a keychain.
  package enum Kind: String {
    case archive, device, dump
  }

  package let kind: Kind
  /// The kind of source in sentences: "backup", "device", "dump" or "database".
  package var noun: String { disclaimer?.noun ?? (kind == .archive ? "backup" : kind.rawValue) }
  /// The name in messages.
  package let name: String
  /// The command-line argument; `nil` if the keychain came from a stream.
  package let argument: String?
  /// The name of the keychain's device; `nil` if it is unknown.
  package let deviceName: String?
  package let items: [KeychainEntry]
  /// Whether the source has a keychain. A device always has one.
  package let hasKeychain: Bool
  /// The decisions about items that a rule excludes from every backup.
  package let omissions: [MigrationPlan.Decision]
  /// The description of damage in the keybag; `nil` if there is none.
  package let keybagDamage: String?
  /// The disclaimer about a dump; `nil` if the keychain is not from a dump.
  package let disclaimer: DumpDisclaimer?

  package init(
    kind: Kind, name: String, argument: String?, deviceName: String?, items: [KeychainEntry], hasKeychain: Bool,
    omissions: [MigrationPlan.Decision], keybagDamage: String?, disclaimer: DumpDisclaimer? = nil
  ) {
    self.kind = kind
    self.name = name
    self.argument = argument
    self.deviceName = deviceName
    self.items = items
    self.hasKeychain = hasKeychain
    self.omissions = omissions
    self.keybagDamage = keybagDamage
    self.disclaimer = disclaimer
  }
}

extension KeychainEntry {
  /// Returns the decision to exclude the item from every backup.
  package func omission(because rule: Reason) -> MigrationPlan.Decision {
    MigrationPlan.Decision(
      index: index ?? 0, identity: identity, protection: protection, outcome: .staysBehind(rule), detail: nil)
  }
}
