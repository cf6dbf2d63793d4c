public import Keychains

extension KeychainStoreError {
  /// What Apple's keychain services answer with. Source: Apple `SecBase.h`, `SecBasePriv.h`.
  public var status: SecItemStatus {
    switch code {
    case .duplicateItem: .duplicateItem
    case .itemNotFound: .itemNotFound
    case .interactionNotAllowed: .interactionNotAllowed
    case .authFailed: .authFailed
    case .decode: .decode
    case .parameter: .parameter
    case .noSuchAttribute: .noSuchAttribute
    case .io: .ioError
    case .diskFull: .diskFull
    case .cancelled: .userCanceled
    case .notAvailable, .closed, .busy, .damaged: .notAvailable
    }
  }
}
