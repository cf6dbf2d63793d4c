import Foundation
import LocalAuthentication
import Security

/// A keychain that can run rows of the table.
protocol ComparedKeychain {
  /// The name of the keychain in the report.
  var name: String { get }
  /// Returns the reason why a row cannot be run with this keychain, or `nil` if it can.
  func obstacle(to row: CallRow) -> String?
  /// Empties the keychain and brings the device to the state in which items are added.
  mutating func prepare(for row: CallRow) throws
  /// Brings the device to the state of the row, after its items were added.
  func enterState(of row: CallRow) throws
  /// Returns a text of the table after replacing the table's access groups with the keychain's.
  func withGroups(_ text: String) -> String
  /// Returns a context in which the user has given an answer.
  func context(answered answer: String) throws -> LAContext
  /// Runs code as one of the table's apps.
  func run<Result>(as app: String, _ body: () throws -> Result) throws -> Result
  /// Deletes every item that the rows have added.
  func clean() throws
}

/// The keychain of one app, with the access groups that the app has. It cannot lock the device or answer for the user.
///
/// The comparison deletes all items of these groups, so the app must be made for the comparison: the names of its
/// groups end with `KeychainCalls`. Nothing outside of these groups is read, changed or deleted.
struct AppKeychain: ComparedKeychain {
  /// The end of the names of the groups, apart from `.shared`.
  static let groupEnding = "KeychainCalls"
  private static let sharedEnding = ".shared"
  private static var classes: [CFString] {
    [kSecClassGenericPassword, kSecClassInternetPassword, kSecClassCertificate, kSecClassKey]
  }

  let name: String
  /// The group of new items.
  private let ownGroup: String
  /// The app's other group, or `nil` if it has none.
  private let sharedGroup: String?
  private let hasPasscode: Bool

  /// An app or a system that the comparison must not use.
  struct Refused: Error, CustomStringConvertible {
    let description: String
  }

  /// Finds the groups of this app.
  ///
  /// - Parameter name: The name of the keychain in the report.
  /// - Throws: `Refused` if the app was not made for the comparison. Its items are not touched.
  init(named name: String) throws {
    self.name = name
    ownGroup = try Self.defaultGroup()
    let baseGroup =
      ownGroup.hasSuffix(Self.sharedEnding) ? String(ownGroup.dropLast(Self.sharedEnding.count)) : ownGroup
    guard baseGroup.hasSuffix(Self.groupEnding) else {
      throw Refused(
        description: """
          The access group of this app does not end with "\(Self.groupEnding)", so the app may have items of its own. \
          Nothing of them was changed. Try: an app with the bundle identifier org.example.\(Self.groupEnding), as the \
          README says.
          """)
    }
    let otherGroup = baseGroup == ownGroup ? baseGroup + Self.sharedEnding : baseGroup
    let search: [String: Any] = [kSecClass as String: kSecClassKey, kSecAttrAccessGroup as String: otherGroup]
    sharedGroup = SecItemCopyMatching(search as CFDictionary, nil) == errSecMissingEntitlement ? nil : otherGroup
    hasPasscode = LAContext().canEvaluatePolicy(.deviceOwnerAuthentication, error: nil)
  }

  /// Adds an item without a group, reads its group, and deletes the item.
  private static func defaultGroup() throws -> String {
    let account = "org.example.\(groupEnding).\(UUID().uuidString)"
    let item: [String: Any] = [
      kSecClass as String: kSecClassGenericPassword, kSecAttrAccount as String: account,
      kSecReturnAttributes as String: true,
    ]
    var result: CFTypeRef?
    let status = SecItemAdd(item as CFDictionary, &result)
    defer {
      let search: [String: Any] = [
        kSecClass as String: kSecClassGenericPassword, kSecAttrAccount as String: account,
      ]
      SecItemDelete(search as CFDictionary)
    }
    guard status == errSecSuccess, let group = (result as? [String: Any])?[kSecAttrAccessGroup as String] as? String
    else {
      throw Refused(
        description: """
          This process has no keychain (status \(status)). Status -34018 means that the tests do not run inside an app. \
          Try: the host application of the test target, as the README says.
          """)
    }
    return group
  }

  func obstacle(to row: CallRow) -> String? {
    let conditions = Set(row.device)
    // `shop>genp acct=a` is an item of the app `shop`.
    if row.app != "mail" || row.given.contains(where: { $0.contains(">") }) { return "another app" }
    if !conditions.isDisjoint(with: ["locked", "boot"]) { return "a device that is locked or was restarted" }
    if conditions.contains("no-passcode") { return "a device without a passcode" }
    if !conditions.isDisjoint(with: ["allow", "deny", "cancel", "none"]) { return "an answer of the user" }
    if conditions.contains("syncing") { return "a device with iCloud Keychain" }
    let queries = row.queries
    if queries.contains("ref12") { return "the row number of an item in the database" }
    if queries.contains("TEAM.shared"), sharedGroup == nil { return "a second access group of the app" }
    return !hasPasscode && needsPasscode(queries) ? "a passcode" : nil
  }

  private func needsPasscode(_ queries: String) -> Bool {
    if queries.contains("pdmn=akpu") { return true }
    // An access control is `accc=ac:class:flag+flag`.
    return queries.split(separator: " ").contains { word in
      let parts = word.split(separator: ":")
      return parts.first == "accc=ac" && parts.count == 3 && !["none", "ask-delete"].contains(parts[2])
    }
  }

  func prepare(for row: CallRow) throws { try clean() }

  func enterState(of row: CallRow) {}

  func withGroups(_ text: String) -> String {
    let text = text.replacingOccurrences(of: "TEAM.mail", with: ownGroup)
    return sharedGroup.map { text.replacingOccurrences(of: "TEAM.shared", with: $0) } ?? text
  }

  func context(answered answer: String) -> LAContext { LAContext() }

  func run<Result>(as app: String, _ body: () throws -> Result) throws -> Result { try body() }

  func clean() throws {
    for itemClass in Self.classes {
      for group in [ownGroup, sharedGroup].compactMap({ $0 }) {
        let items: [String: Any] = [
          kSecClass as String: itemClass, kSecAttrAccessGroup as String: group,
          kSecAttrSynchronizable as String: kSecAttrSynchronizableAny,
        ]
        let status = SecItemDelete(items as CFDictionary)
        guard status == errSecSuccess || status == errSecItemNotFound else {
          throw Refused(description: "Items could not be deleted (status \(status)). Try: erase this Simulator.")
        }
      }
    }
  }
}
