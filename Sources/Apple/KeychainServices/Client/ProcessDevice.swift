import Basics
import Foundation
import KeychainCrypto
import VirtualDevice

/// The device and the app of a process that chose none: what its environment says of them, then the property list beside
/// the program, then what every test can live on.
struct ProcessDevice: Equatable {
  /// The app's name: its bundle identifier where there is one.
  let app: String
  /// The groups of the app; the first is the one of its new items. Never empty.
  let accessGroups: [String]
  /// Empty for a device without one.
  let passcode: String

  static let standardPasscode = "0000"

  /// - Parameters:
  ///   - environment: `KEYHAUL_DEVICE_APP`; `KEYHAUL_DEVICE_GROUPS`, with commas between the groups;
  ///     `KEYHAUL_DEVICE_PASSCODE`, empty for none.
  ///   - propertyList: An `Info.plist`, of which `CFBundleIdentifier` and `keychain-access-groups` count.
  init(environment: [String: String], propertyList: [String: Any]) {
    app =
      Self.named(environment["KEYHAUL_DEVICE_APP"]) ?? Self.named(propertyList["CFBundleIdentifier"] as? String)
      ?? KeychainClient.standardApp
    let named = (environment["KEYHAUL_DEVICE_GROUPS"] ?? "").split(separator: ",").compactMap { Self.named(String($0)) }
    let listed = (propertyList["keychain-access-groups"] as? [String] ?? []).compactMap { Self.named($0) }
    let groups = named.isEmpty ? listed : named
    accessGroups = groups.isEmpty ? [app] : groups
    passcode = environment["KEYHAUL_DEVICE_PASSCODE"] ?? Self.standardPasscode
  }

  /// What this process says of itself.
  static func ofThisProcess() -> ProcessDevice {
    let path = Bundle.main.bundleURL.appending(path: "Info.plist")
    let list = (try? Data(contentsOf: path)).flatMap {
      try? PropertyListSerialization.propertyList(from: $0, format: nil)
    }
    return ProcessDevice(
      environment: ProcessInfo.processInfo.environment, propertyList: list as? [String: Any] ?? [:])
  }

  /// - Returns: `nil` for nothing but blanks.
  private static func named(_ text: String?) -> String? {
    guard let text = text?.trimmingCharacters(in: .whitespaces), !text.isEmpty else { return nil }
    return text
  }
}
