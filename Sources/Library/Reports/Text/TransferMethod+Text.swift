package import KeyhaulKit

extension TransferMethod {
  /// The name of the method in reports.
  package var displayName: String {
    switch self {
    case .encryptedBackup: "backup with a password"
    case .unencryptedBackup: "backup without a password"
    case .directTransfer: "direct transfer (Quick Start)"
    case .iCloudKeychain: "iCloud Keychain"
    }
  }
}

extension TransferAssessment {
  /// The verdict with its rationale: "yes: it is flagged to sync".
  package var text: String { "\(verdict.displayName): \(rationale.text)" }
}

extension TransferAssessment.Verdict {
  /// The verdict in text: "yes", "no" or "not known".
  package var displayName: String {
    switch self {
    case .yes: "yes"
    case .no: "no"
    case .notKnown: "not known"
    }
  }

  /// The verdict as a symbol in a table.
  package var symbol: String {
    switch self {
    case .yes: "+"
    case .no: "<"
    case .notKnown: "?"
    }
  }
}

extension TransferRationale {
  /// The rationale in text.
  package var text: String {
    switch self {
    case .restored: "a restore moves it"
    case .movableClass: "its class is not bound to the device"
    case .synchronized: "it is flagged to sync, so it moves if iCloud Keychain is on"
    case .notSynchronized: "it is not flagged to sync"
    case .reason(let reason): reason.rawValue
    case .sealed: "the attribute that decides this is encrypted with the item"
    case .noSource: "Apple has not published whether it moves"
    }
  }
}
