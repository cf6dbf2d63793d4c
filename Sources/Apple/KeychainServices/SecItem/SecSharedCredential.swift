// swift-format-ignore-file: AlwaysUseLowerCamelCase

import Basics
public import Foundation
import KeychainCrypto
import VirtualDevice

/// Reports an error, because apps on a virtual device have no associated websites. Nothing is stored.
///
/// - Parameters:
///   - fqdn: The website's name.
///   - account: The account.
///   - password: The password, or `nil` to delete it.
///   - completionHandler: Receives `errSecMissingEntitlement`, on another thread, or on the caller's if no thread can
///     be started.
public func SecAddSharedWebCredential(
  _ fqdn: CFString, _ account: CFString, _ password: CFString?,
  _ completionHandler: @escaping @Sendable (CFError?) -> Void
) {
  SecureThread.detach { completionHandler(CFError(noAssociatedDomain)) }
}

private let noAssociatedDomain = SecItemError(
  .missingEntitlement, "apps on a virtual device have no associated websites")

/// Returns a random password such as `xxx-xxx-xxx-xxx`, with lowercase letters, uppercase letters and digits.
///
/// Source: Apple `SecSharedCredential.h`.
///
/// - Returns: `nil` if there are no random bytes.
public func SecCreateSharedWebCredentialPassword() -> CFString? {
  let alphabets = ["abcdefghkmnopqrstuvwxy", "ABCDEFGHJKLMNPQRSTUVWXYZ", "3456789"].map { Array($0.utf8) }
  let characters = alphabets.joined().map { $0 }
  let limit = 256 - 256 % characters.count
  while true {
    guard let bytes = try? SystemRandomSource().bytes(64) else { return nil }
    // Larger values would make some characters more frequent.
    let chosen = bytes.filter { $0 < limit }.prefix(12).map { characters[Int($0) % characters.count] }
    guard chosen.count == 12, alphabets.allSatisfy({ !Set($0).isDisjoint(with: chosen) }) else { continue }
    let groups = stride(from: 0, to: 12, by: 3).map { String(decoding: chosen[$0..<$0 + 3], as: UTF8.self) }
    return groups.joined(separator: "-") as NSString
  }
}
