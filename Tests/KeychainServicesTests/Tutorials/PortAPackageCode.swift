import Foundation
import LocalAuthentication
import Security

/// Tickets that only the phone's user can read.
struct Tickets {
  enum Failure: Error, Equatable { case status(OSStatus) }

  let service: String

  private var query: [String: Any] {
    [kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: service]
  }

  func save(_ ticket: Data, for event: String) throws {
    var error: Unmanaged<CFError>?
    let control = SecAccessControlCreateWithFlags(
      nil, kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly, .userPresence, &error)
    guard let control else { throw Failure.status(errSecParam) }
    var item = query
    item[kSecAttrAccount as String] = event
    item[kSecAttrAccessControl as String] = control
    item[kSecValueData as String] = ticket
    let status = SecItemAdd(item as CFDictionary, nil)
    guard status == errSecSuccess else { throw Failure.status(status) }
  }

  func ticket(for event: String) throws -> Data? {
    let context = LAContext()
    context.localizedReason = "to show your ticket"
    var search = query
    search[kSecAttrAccount as String] = event
    search[kSecReturnData as String] = true
    search[kSecUseAuthenticationContext as String] = context
    var found: CFTypeRef?
    switch SecItemCopyMatching(search as CFDictionary, &found) {
    case errSecSuccess: return found as? Data
    case errSecItemNotFound: return nil
    case let status: throw Failure.status(status)
    }
  }
}
