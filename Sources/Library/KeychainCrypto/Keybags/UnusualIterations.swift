/// A number of iterations far above the number in real keybags, although it may be within the limit.
package struct ExcessiveIterationCount: Sendable, Equatable {
  /// The iterations that the keybag requires.
  package let iterations: UInt32
  /// The iterations of real keybags.
  package let usual: UInt32

  /// The multiple of the usual number above which a number is excessive, so that the user is asked.
  static let maximumUsualMultiple: UInt32 = 5

  /// The factor by which the usual number is exceeded, rounded down.
  package var multiple: UInt32 { iterations / max(1, usual) }

  /// Creates a value for an excessive number.
  ///
  /// - Returns: `nil` if the number is at most `maximumUsualMultiple` times the usual number.
  init?(_ iterations: UInt32, usual: UInt32) {
    guard UInt64(iterations) > UInt64(usual) * UInt64(Self.maximumUsualMultiple) else { return nil }
    self.iterations = iterations
    self.usual = usual
  }
}

/// A number of iterations that differs from the number in real keybags. Either the keybag was changed, and no password
/// can unlock it any more, or it was created to be unlocked quickly.
package struct NonstandardIterationCount: Sendable, Equatable {
  /// The iterations that the keybag requires; 0 if it lacks the SHA-256 step.
  package let iterations: UInt32
  /// The iterations of real keybags.
  package let usual: UInt32
}

extension PasswordDerivation.Parameters {
  /// Returns the first number of iterations that differs from real keybags. The SHA-256 step is checked before the SHA-1
  /// step.
  ///
  /// - Parameter hasTwoSteps: Whether the source device derives the key in two steps. Devices do so since iOS 10.2, the
  ///   first version with an encrypted manifest.
  /// - Returns: `nil` if all steps have the usual numbers.
  package func nonstandardIterations(hasTwoSteps: Bool) -> NonstandardIterationCount? {
    let standard = UInt32(BackupKeybag.standardRounds)
    if hasTwoSteps || sha256Step != nil, sha256Step?.iterations != standard {
      return NonstandardIterationCount(iterations: sha256Step?.iterations ?? 0, usual: standard)
    }
    guard iterations != BackupKeybag.lastRounds else { return nil }
    return NonstandardIterationCount(iterations: iterations, usual: BackupKeybag.lastRounds)
  }

  /// The number of iterations that exceeds real keybags by the largest factor, or `nil` if no step has more than five
  /// times the usual number. Real keybags have 10,000 in the SHA-1 step and 10,000,000 in the SHA-256 step.
  ///
  /// Source: See `BackupKeybag.standardRounds` and `BackupKeybag.lastRounds`.
  package var excessiveIterations: ExcessiveIterationCount? {
    let sha1 = ExcessiveIterationCount(iterations, usual: BackupKeybag.lastRounds)
    let sha256 = sha256Step.flatMap {
      ExcessiveIterationCount($0.iterations, usual: UInt32(BackupKeybag.standardRounds))
    }
    guard let sha1, let sha256 else { return sha1 ?? sha256 }
    return sha256.multiple > sha1.multiple ? sha256 : sha1
  }
}
