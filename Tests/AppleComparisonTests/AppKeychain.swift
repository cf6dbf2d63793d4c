import Foundation
import LocalAuthentication
import Security

/// A keychain on which the comparison makes the calls of its table. Each `CallRow` is a call with its expected status.
protocol ComparedKeychain {
  /// The name of the keychain in the report.
  var name: String { get }
  /// Returns what a row needs and this keychain does not have, as text for the report; `nil` if the row can be run.
  func missingRequirement(of row: CallRow) -> String?
  /// Deletes all items, and unlocks the device, so that the items of a row can be added.
  mutating func prepare(for row: CallRow) throws
  /// Brings the device into the conditions of a row, such as `locked`. Called after the row's items were added.
  func enterConditions(of row: CallRow) throws
  /// Returns a text with the table's access groups, such as `TEAM.mail`, replaced by the groups of this keychain.
  func withGroups(_ text: String) -> String
  /// Returns an authentication context in which the user has given an answer.
  func context(answered answer: String) throws -> LAContext
  /// Runs code as one of the table's apps, such as `mail`.
  func run<Result>(as app: String, _ body: () throws -> Result) throws -> Result
  /// Deletes every item that the rows have added.
  func clean() throws
}

/// The keychain of the app in which the tests run. It cannot lock the device or answer for the user.
///
/// The comparison deletes all items in the app's access groups, so the app must be made for the comparison: the names of
/// the groups end with `KeychainCalls` or `KeychainCalls.shared`. To find the app's own group, `init` adds one item and
/// deletes it again. No other item outside of these groups is read, changed or deleted.
struct AppKeychain: ComparedKeychain {
  /// The end of the name of the app's own group. A second group has the same name with `sharedEnding` after it.
  static let groupEnding = "KeychainCalls"
  private static let sharedEnding = ".shared"
  private static var classes: [CFString] {
    [kSecClassGenericPassword, kSecClassInternetPassword, kSecClassCertificate, kSecClassKey]
  }

  let name: String
  /// The group that the system gives to new items: the first of the app's groups. It replaces the table's `TEAM.mail`.
  private let defaultGroup: String
  /// The app's other group, which replaces the table's `TEAM.shared`; `nil` if the app has none.
  private let secondGroup: String?
  private let hasPasscode: Bool

  /// An error for an app or a system with which the comparison cannot run, or must not.
  struct Refused: Error, CustomStringConvertible {
    let description: String
  }

  /// Finds the access groups of this app.
  ///
  /// - Parameter name: The name of the keychain in the report.
  /// - Throws: `Refused` if the app was not made for the comparison. Its own items are not touched.
  init(named name: String) throws {
    self.name = name
    defaultGroup = try Self.groupOfNewItem()
    // Either of the two groups can be the first in the app's entitlements.
    let isShared = defaultGroup.hasSuffix(Self.sharedEnding)
    let ownGroup = isShared ? String(defaultGroup.dropLast(Self.sharedEnding.count)) : defaultGroup
    guard ownGroup.hasSuffix(Self.groupEnding) else {
      throw Refused(
        description: """
          The access group of this app does not end with "\(Self.groupEnding)", so the app may have items of its own. \
          They were not changed. Try: an app with the bundle identifier org.example.\(Self.groupEnding), as the README \
          says.
          """)
    }
    let otherGroup = isShared ? ownGroup : ownGroup + Self.sharedEnding
    let search: [String: Any] = [kSecClass as String: kSecClassKey, kSecAttrAccessGroup as String: otherGroup]
    secondGroup = SecItemCopyMatching(search as CFDictionary, nil) == errSecMissingEntitlement ? nil : otherGroup
    hasPasscode = LAContext().canEvaluatePolicy(.deviceOwnerAuthentication, error: nil)
  }

  /// Adds an item without an access group, and deletes it again.
  ///
  /// - Returns: The group that the system gave to the item.
  /// - Throws: `Refused` if no item can be added.
  private static func groupOfNewItem() throws -> String {
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

  func missingRequirement(of row: CallRow) -> String? {
    let conditions = Set(row.conditions)
    // `shop>genp acct=a` is an item that the app `shop` adds.
    if row.app != "mail" || row.given.contains(where: { $0.contains(">") }) { return "another app" }
    if !conditions.isDisjoint(with: ["locked", "boot"]) { return "a device that is locked or was restarted" }
    if conditions.contains("no-passcode") { return "a device without a passcode" }
    if !conditions.isDisjoint(with: ["allow", "deny", "cancel", "none"]) { return "an answer of the user" }
    if conditions.contains("syncing") { return "a device with iCloud Keychain" }
    let queries = row.queries
    // The twelve bytes of an item's former reference contain its row number, which no public function returns.
    if queries.contains("ref12") { return "the row number of an item in the database" }
    if queries.contains("TEAM.shared"), secondGroup == nil { return "a second access group of the app" }
    return !hasPasscode && needsPasscode(queries) ? "a passcode" : nil
  }

  /// Returns whether queries contain a protection class or an access control that requires a passcode.
  private func needsPasscode(_ queries: String) -> Bool {
    if queries.contains("pdmn=akpu") { return true }
    // A word `accc=ac:class:flag+flag` is an access control.
    return queries.split(separator: " ").contains { word in
      let parts = word.split(separator: ":")
      return parts.first == "accc=ac" && parts.count == 3 && !["none", "ask-delete"].contains(parts[2])
    }
  }

  func prepare(for row: CallRow) throws { try clean() }

  func enterConditions(of row: CallRow) {}

  func withGroups(_ text: String) -> String {
    let text = text.replacingOccurrences(of: "TEAM.mail", with: defaultGroup)
    return secondGroup.map { text.replacingOccurrences(of: "TEAM.shared", with: $0) } ?? text
  }

  func context(answered answer: String) -> LAContext { LAContext() }

  func run<Result>(as app: String, _ body: () throws -> Result) throws -> Result { try body() }

  func clean() throws {
    for itemClass in Self.classes {
      for group in [defaultGroup, secondGroup].compactMap({ $0 }) {
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
