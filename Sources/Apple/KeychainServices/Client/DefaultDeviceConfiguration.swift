import Basics
import Foundation
import KeychainCrypto
import VirtualDevice

/// The default device and app of a process. The environment takes precedence over the property list beside the program,
/// which takes precedence over the defaults for tests.
struct DefaultDeviceConfiguration: Equatable {
  /// The app's name, by default its bundle identifier.
  let app: String
  /// The app's access groups, at least one. New items are in the first.
  let accessGroups: [String]
  /// The passcode, or an empty string for a device without one.
  let passcode: String

  static let standardPasscode = "0000"

  /// Creates a configuration.
  ///
  /// - Parameters:
  ///   - environment: The environment variables. Only `KEYHAUL_DEVICE_APP`, `KEYHAUL_DEVICE_GROUPS` (separated by
  ///     commas) and `KEYHAUL_DEVICE_PASSCODE` (empty for a device without a passcode) are used.
  ///   - propertyList: The content of an `Info.plist`. Only `CFBundleIdentifier` and `keychain-access-groups` are
  ///     used.
  init(environment: [String: String], propertyList: [String: Any]) {
    app =
      Self.nonempty(environment["KEYHAUL_DEVICE_APP"]) ?? Self.nonempty(propertyList["CFBundleIdentifier"] as? String)
      ?? KeychainClient.standardApp
    let environmentGroups = (environment["KEYHAUL_DEVICE_GROUPS"] ?? "").split(separator: ",").compactMap {
      Self.nonempty(String($0))
    }
    let listedGroups = (propertyList["keychain-access-groups"] as? [String] ?? []).compactMap { Self.nonempty($0) }
    let groups = environmentGroups.isEmpty ? listedGroups : environmentGroups
    accessGroups = groups.isEmpty ? [app] : groups
    passcode = environment["KEYHAUL_DEVICE_PASSCODE"] ?? Self.standardPasscode
  }

  /// Returns the configuration of this process.
  static func forThisProcess() -> DefaultDeviceConfiguration {
    let path = Bundle.main.bundleURL.appending(path: "Info.plist")
    let list = (try? Data(contentsOf: path)).flatMap {
      try? PropertyListSerialization.propertyList(from: $0, format: nil)
    }
    return DefaultDeviceConfiguration(
      environment: ProcessInfo.processInfo.environment, propertyList: list as? [String: Any] ?? [:])
  }

  /// Returns the string without surrounding spaces, or `nil` if nothing remains.
  private static func nonempty(_ string: String?) -> String? {
    guard let string = string?.trimmingCharacters(in: .whitespaces), !string.isEmpty else { return nil }
    return string
  }
}
