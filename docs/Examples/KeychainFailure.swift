public import Foundation
public import KeychainServices

/// Why one of the wrappers did not do what it was asked: a status of the keychain, or one of two numbers of their own.
public struct KeychainFailure: Error, Hashable, CustomNSError, LocalizedError {
  public static let errorDomain = "KeychainServices"
  /// A service or an account is missing, or a password is empty.
  public static let badArguments = KeychainFailure(status: -1001)
  /// There is no password where one is needed.
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

  /// - Throws: A `KeychainFailure` for every status but success.
  static func check(_ status: OSStatus) throws(KeychainFailure) {
    guard status == errSecSuccess else { throw KeychainFailure(status: status) }
  }
}
