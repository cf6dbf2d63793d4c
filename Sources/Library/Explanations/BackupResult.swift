package import KeyhaulKit

/// A word of the RESULT column of `inspect`, `verify` and `plan` over many backups, and of `result` in their documents.
///
/// This is the only list of these words. Each word has one meaning. The program gives each word one exit code and one
/// page of `explain`.
package enum BackupResult: String, CaseIterable, Sendable {
  // verify
  case whole
  case unproven
  case foreign
  case consistent
  case incomplete
  case unconfirmed
  case otherDeviceKey = "other-device-key"
  case noSeal = "no-seal"
  // inspect
  case counted
  case notCounted = "not-counted"
  case noKeychain = "no-keychain"
  // plan
  case planned
  case asExpected = "as-expected"
  // The exit codes.
  case ok
  case failed
  case differs
  case partial
  case noMatch = "no-match"
  case doneBut = "done-but"
  case notFound = "not-found"
  case busy
  case wrongPassword = "wrong-password"
  case needsPassword = "needs-password"
  case damaged
  case refused
  case locked
  case stalePlan = "stale-plan"
  case usage
}

extension BackupResult {
  /// Creates the word for a verified backup: the verdict in `backup-verification/1`, which does not depend on flags.
  package init(_ verification: BackupVerification) {
    self =
      switch verification.verdict {
      case .whole: .whole
      case .unproven: .unproven
      case .foreign: .foreign
      case .unconfirmed: .unconfirmed
      case .damaged: verification.isHostile ? .refused : verification.isOnlyIncomplete ? .incomplete : .damaged
      }
  }
}

extension BackupResult {
  /// A line about the limits of a check that found no fault; `nil` if the word needs no note.
  package var note: String? {
    switch self {
    case .unproven: "no fault was found in what could be checked; a change in the rest would not show"
    case .foreign: "no fault was found; only the source device can decrypt the items"
    default: nil
    }
  }
}
