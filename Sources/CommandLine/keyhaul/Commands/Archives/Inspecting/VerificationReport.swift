import KeyhaulKit
import Reports

/// What checking a backup found out, for people and as `backup-verification/1`, and how the verb ends.
struct VerificationReport {
  let verification: BackupVerification
  /// The archive as the user named it.
  let name: String
  /// The device that made the backup, as it claims.
  let device: String?
  /// Whether the password was left out on request.
  var isQuickAsked = true

  init(_ verification: BackupVerification, name: String, device: String?) {
    self.verification = verification
    self.name = name
    self.device = device
  }

  /// How the verb ends: missing payloads alone leave the rest safe.
  var status: CommandStatus {
    if verification.isHostile { return .refused }
    if verification.isFaultless { return .ok }
    return verification.isOnlyIncomplete || verification.verdict == .unconfirmed ? .partial : .damaged
  }

  var text: VerificationText {
    VerificationText(verification, of: name, device: device, isQuickAsked: isQuickAsked)
  }

  var json: JSONValue { VerificationDocument(verification, of: name).json }
}
