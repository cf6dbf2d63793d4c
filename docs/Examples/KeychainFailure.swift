public import Foundation
public import KeychainServices

/// An error of the wrappers: a status of the keychain, or one of two codes of their own.
public struct KeychainFailure: Error, Hashable, CustomNSError, LocalizedError {
  public static let errorDomain = "KeychainServices"
  /// A service or an account is missing, or a password is empty.
  public static let badArguments = KeychainFailure(status: -1001)
  /// A required password does not exist.
  public static let noPassword = KeychainFailure(status: -1002)

  public let status: OSStatus

  public init(status: OSStatus) { self.status = status }

  public var errorCode: Int { Int(status) }
  public var errorUserInfo: [String: Any] { [NSLocalizedDescriptionKey: sentence] }
  public var errorDescription: String? { sentence }

  private var sentence: String {
    switch self {
    case .badArguments: "A service, an account or a password is missing."
    case .noPassword: "There is no password for this service and account."
    default: SecCopyErrorMessageString(status, nil).map { String(describing: $0) } ?? "Status \(status)."
    }
  }

  /// - Throws: A `KeychainFailure` for every status except success.
  static func check(_ status: OSStatus) throws(KeychainFailure) {
    guard status == errSecSuccess else { throw KeychainFailure(status: status) }
  }
}
