import KeyhaulKit

extension CommandStatus {
  /// The exit status for a kind of library error.
  init(_ category: ErrorCategory) {
    switch category {
    case .failed: self = .failed
    case .notFound: self = .notFound
    case .busy: self = .busy
    case .wrongPassword: self = .wrongPassword
    case .damaged: self = .damaged
    case .refused: self = .refused
    case .locked: self = .locked
    case .stalePlan: self = .stalePlan
    case .usage: self = .usage
    }
  }
}
