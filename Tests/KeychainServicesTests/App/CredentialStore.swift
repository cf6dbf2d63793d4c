import Basics
import Foundation
import KeychainServices  // on iOS: import LocalAuthentication, import Security

/// Keychain code of an app, as it is written for iOS. Only the import is specific to Linux.
final class CredentialStore {
  struct Credentials: Equatable {
    var account: String
    var token: String
  }

  enum Failure: Error, Equatable {
    case unhandled(OSStatus, String)
    case unexpectedData
    case accessControl(String)
  }

  private let service: String

  init(service: String) { self.service = service }

  // MARK: The session token, a generic password that migrates

  func save(_ credentials: Credentials) throws {
    let query: [String: Any] = [
      kSecClass as String: kSecClassGenericPassword,
      kSecAttrService as String: service,
      kSecAttrAccount as String: credentials.account,
    ]
    let attributes: [String: Any] = [
      kSecValueData as String: credentials.token.data(using: .utf8)!,
      kSecAttrAccessible as String: kSecAttrAccessibleAfterFirstUnlock,
      kSecAttrLabel as String: "Session",
    ]
    var status = SecItemUpdate(query as CFDictionary, attributes as CFDictionary)
    if status == errSecItemNotFound {
      let newItem = query.merging(attributes) { _, new in new }
      status = SecItemAdd(newItem as CFDictionary, nil)
    }
    guard status == errSecSuccess else { throw failure(status) }
  }

  func credentials(for account: String) throws -> Credentials? {
    let query =
      [
        kSecClass: kSecClassGenericPassword,
        kSecAttrService: service,
        kSecAttrAccount: account,
        kSecMatchLimit: kSecMatchLimitOne,
        kSecReturnAttributes: kCFBooleanTrue!,
        kSecReturnData: kCFBooleanTrue!,
      ] as [CFString: Any] as CFDictionary

    var result: CFTypeRef?
    switch SecItemCopyMatching(query, &result) {
    case errSecSuccess:
      guard let item = result as? [String: Any],
        let data = item[kSecValueData as String] as? Data,
        let token = String(data: data, encoding: .utf8),
        let account = item[kSecAttrAccount as String] as? String
      else { throw Failure.unexpectedData }
      return Credentials(account: account, token: token)
    case errSecItemNotFound: return nil
    case let status: throw failure(status)
    }
  }

  func accounts() throws -> [String] {
    let query: [String: Any] = [
      kSecClass as String: kSecClassGenericPassword,
      kSecAttrService as String: service,
      kSecMatchLimit as String: kSecMatchLimitAll,
      kSecReturnAttributes as String: true,
    ]
    var result: AnyObject?
    let status = withUnsafeMutablePointer(to: &result) {
      SecItemCopyMatching(query as CFDictionary, UnsafeMutablePointer($0))
    }
    if status == errSecItemNotFound { return [] }
    guard status == errSecSuccess, let items = result as? [[String: Any]] else { throw failure(status) }
    return items.compactMap { $0[kSecAttrAccount as String] as? String }.sorted()
  }

  func remove(_ account: String) throws {
    let status = SecItemDelete(
      [
        kSecClass as String: kSecClassGenericPassword,
        kSecAttrService as String: service,
        kSecAttrAccount as String: account,
      ] as CFDictionary)
    guard status == errSecSuccess || status == errSecItemNotFound else { throw failure(status) }
  }

  func removeAll() {
    for secClass in [kSecClassGenericPassword, kSecClassInternetPassword, kSecClassCertificate, kSecClassKey] {
      SecItemDelete([kSecClass: secClass] as NSDictionary)
    }
  }

  // MARK: The device identifier, which stays on the device

  func deviceIdentifier() throws -> String {
    var query = [String: AnyObject]()
    query[kSecClass as String] = kSecClassGenericPassword
    query[kSecAttrService as String] = "\(service).device" as AnyObject
    query[kSecReturnData as String] = kCFBooleanTrue
    var dataTypeRef: AnyObject?
    if SecItemCopyMatching(query as CFDictionary, &dataTypeRef) == noErr, let data = dataTypeRef as? Data {
      return String(decoding: data, as: UTF8.self)
    }
    let identifier = UUID().uuidString
    query[kSecReturnData as String] = nil
    query[kSecValueData as String] = identifier.data(using: .utf8) as AnyObject?
    query[kSecAttrAccessible as String] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
    let status = SecItemAdd(query as CFDictionary, nil)
    guard status == errSecSuccess else { throw failure(status) }
    return identifier
  }

  // MARK: The wallet's seed, which requires authentication

  func saveSeed(_ seed: Data) throws {
    var error: Unmanaged<CFError>?
    guard
      let access = SecAccessControlCreateWithFlags(
        kCFAllocatorDefault, kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly,
        [.biometryCurrentSet, .or, .devicePasscode],
        &error)
    else {
      let error = error!.takeRetainedValue() as any Error
      throw Failure.accessControl(error.localizedDescription)
    }
    let attributes: [String: Any] = [
      kSecClass as String: kSecClassGenericPassword,
      kSecAttrService as String: "\(service).seed",
      kSecAttrAccessControl as String: access,
      kSecUseDataProtectionKeychain as String: true,
      kSecValueData as String: seed,
    ]
    let status = SecItemAdd(attributes as CFDictionary, nil)
    guard status == errSecSuccess else { throw failure(status) }
  }

  func seed(reason: String, context: LAContext = LAContext()) throws -> Data {
    context.localizedReason = reason
    let query: [String: Any] = [
      kSecClass as String: kSecClassGenericPassword,
      kSecAttrService as String: "\(service).seed",
      kSecUseAuthenticationContext as String: context,
      kSecReturnData as String: true,
    ]
    var item: CFTypeRef?
    let status = SecItemCopyMatching(query as CFDictionary, &item)
    guard status == errSecSuccess else { throw failure(status) }
    return item as! Data
  }

  // MARK: A web login that the app shares with its extension

  func saveLogin(server: String, account: String, password: String, group: String) -> OSStatus {
    let attributes = NSMutableDictionary()
    attributes[kSecClass] = kSecClassInternetPassword
    attributes[kSecAttrServer] = server
    attributes[kSecAttrAccount] = account
    attributes[kSecAttrProtocol] = kSecAttrProtocolHTTPS
    attributes[kSecAttrAuthenticationType] = kSecAttrAuthenticationTypeHTMLForm
    attributes[kSecAttrPort] = 443
    attributes[kSecAttrAccessGroup] = group
    attributes[kSecValueData] = Data(password.utf8)
    return SecItemAdd(attributes as CFDictionary, nil)
  }

  func persistentReference(server: String) -> Data? {
    let query: NSDictionary = [
      kSecClass: kSecClassInternetPassword, kSecAttrServer: server, kSecReturnPersistentRef: true,
    ]
    var result: CFTypeRef?
    guard SecItemCopyMatching(query, &result) == errSecSuccess else { return nil }
    return result as? Data
  }

  func password(reference: Data) -> String? {
    let query = [kSecValuePersistentRef as String: reference, kSecReturnData as String: true] as [String: Any]
    var result: CFTypeRef?
    guard SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess, let data = result as? Data else {
      return nil
    }
    return String(data: data, encoding: .utf8)
  }

  private func failure(_ status: OSStatus) -> Failure {
    .unhandled(status, SecCopyErrorMessageString(status, nil) as String? ?? "")
  }
}
