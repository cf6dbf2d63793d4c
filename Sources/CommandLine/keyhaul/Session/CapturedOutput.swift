/// The output of a command on one backup of a batch, for the combined report.
final class CapturedOutput {
  /// The result, byte for byte.
  private(set) var result: [UInt8] = []
  private(set) var warnings: [Warning] = []

  /// A warning that the command printed.
  struct Warning: Equatable, Sendable {
    let message: String
    let why: String?
    let advice: String?

    init(_ message: String, why: String?, try advice: String?) {
      self.message = message
      self.why = why
      self.advice = advice
    }
  }

  func add(_ bytes: some Collection<UInt8>) { result.append(contentsOf: bytes) }

  /// Adds a warning, unless there is already one with the same message and reason.
  func add(_ warning: Warning) {
    guard !warnings.contains(where: { $0.message == warning.message && $0.why == warning.why }) else { return }
    warnings.append(warning)
  }
}
