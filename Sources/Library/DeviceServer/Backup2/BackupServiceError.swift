import Basics

/// A failure that ends a request of a backup client.
package enum BackupServiceError: Error, Sendable, Hashable {
  /// The conversation cannot continue.
  case connection(WireError)
  /// The request failed, and the client receives the reason.
  case failed(BackupFailure)

  static func failed(_ code: BackupFailure.Code, _ reason: String) -> BackupServiceError {
    .failed(BackupFailure(code, reason))
  }
}

/// The failure of a request, as reported to the client.
package struct BackupFailure: Error, Sendable, Hashable {
  /// The numbers of `MBErrorDomain` that this server uses.
  package enum Code: Int64, Sendable, CaseIterable {
    /// The request is unknown, or the device is in use.
    case other = 1
    case notFound = 4
    /// The client broke the protocol.
    case protocolViolation = 100
    /// A file of the client's backup, or of the device's staging folder, cannot be read.
    case cannotRead = 103
    /// The client cannot write a file, or the device cannot read or write one of its own (see `explain MBErrorDomain/104`).
    case cannotWrite = 104
    case noSpace = 105
    /// There is no complete backup.
    case noBackup = 205
    case wrongPassword = 207
    case deviceLocked = 208
  }

  package let code: Code
  /// A description of the failure, without a secret.
  package let reason: String

  package init(_ code: Code, _ reason: String) { (self.code, self.reason) = (code, reason) }

  /// The text that a client shows.
  package var text: String { "\(reason) (MBErrorDomain/\(code.rawValue))" }

  /// Translates an error of the library into the failure that the client receives.
  init(_ error: any ExplainedError) {
    let code: Code =
      switch error.category {
      case .wrongPassword: .wrongPassword
      case .locked: .deviceLocked
      case .damaged, .notFound: .noBackup
      // The error may be about reading or writing. 104 stands for both.
      case .failed: .cannotWrite
      case .busy, .refused, .stalePlan, .usage: .other
      }
    self.init(code, code == .wrongPassword ? Self.wrongPassword : "\(error.summary): \(error.reason)")
  }

  static let wrongPassword = "Invalid password"
}
