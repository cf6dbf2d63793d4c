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
/// - Returns: The password, or `nil` if the system provides no random bytes.
public func SecCreateSharedWebCredentialPassword() -> CFString? {
  let (characterCount, groupSize) = (12, 3)
  // Without letters and digits that are easily confused.
  let alphabets = ["abcdefghkmnopqrstuvwxy", "ABCDEFGHJKLMNPQRSTUVWXYZ", "3456789"].map { Array($0.utf8) }
  let allCharacters = Array(alphabets.joined())
  // Bytes from this limit on are skipped, because they would make some characters more frequent.
  let byteLimit = 256 - 256 % allCharacters.count
  while true {
    // Most bytes are below the limit, so this many are usually sufficient.
    guard let bytes = try? SystemRandomSource().bytes(64) else { return nil }
    let characters = bytes.filter { $0 < byteLimit }.prefix(characterCount)
      .map { allCharacters[Int($0) % allCharacters.count] }
    let hasEveryAlphabet = alphabets.allSatisfy { !Set($0).isDisjoint(with: characters) }
    guard characters.count == characterCount, hasEveryAlphabet else { continue }
    let groups = stride(from: 0, to: characterCount, by: groupSize).map { start in
      String(decoding: characters[start..<start + groupSize], as: UTF8.self)
    }
    return groups.joined(separator: "-") as NSString
  }
}
