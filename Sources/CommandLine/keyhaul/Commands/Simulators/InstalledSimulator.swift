import ArgumentParser
import Foundation
import KeyhaulKit

/// A Simulator, as the `device.plist` in its folder describes it.
///
/// The folder's name is the Simulator's UDID. Source: the property lists that Xcode 8 to 16 write, and the states in
/// FBSimulatorControl (`FBiOSTargetState`), which are the same as in `SimDevice`.
struct InstalledSimulator {
  /// The state that Xcode has recorded.
  enum State: Int64 {
    case creating = 0
    case shutDown = 1
    case booting = 2
    case booted = 3
    case shuttingDown = 4

    /// The word that `simctl` uses.
    var word: String {
      switch self {
      case .creating: "creating"
      case .shutDown: "shutdown"
      case .booting: "booting"
      case .booted: "booted"
      case .shuttingDown: "shutting down"
      }
    }
  }

  /// The path of the folder.
  let path: String
  /// The UDID, which is the name of the folder.
  let udid: String
  /// The name that Xcode shows, such as "iPhone 16". Untrusted.
  let name: String?
  /// The system and its version, such as "iOS 18.0". Untrusted.
  let runtime: String?
  /// The state; `nil` if it is unknown.
  let state: State?

  /// The maximum number of bytes to read. The file usually has about a thousand bytes.
  private static let maximumByteCount = 1 << 16

  /// Reads the `device.plist` in a Simulator's folder.
  ///
  /// - Returns: `nil` if the folder has no `device.plist` that can be read.
  init?(folder: String) {
    let bytes = InputFile.start(of: "\(folder)/device.plist", byteCount: Self.maximumByteCount)
    guard !bytes.isEmpty,
      let values = try? PropertyListSerialization.propertyList(from: Data(bytes), format: nil) as? [String: Any]
    else { return nil }
    path = folder
    udid = URL(filePath: folder).lastPathComponent
    name = values["name"] as? String
    runtime = (values["runtime"] as? String).map(Self.systemName)
    state = (values["state"] as? Int64).flatMap(State.init)
  }

  /// Finds the Simulator that a keychain belongs to.
  ///
  /// - Parameter database: The path of the keychain database.
  /// - Returns: `nil` if the keychain is not in a Simulator's folder.
  init?(ofKeychain database: String) {
    let keychains = URL(filePath: database).deletingLastPathComponent()
    guard keychains.path.hasSuffix("/data/Library/Keychains") else { return nil }
    self.init(
      folder: keychains.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path)
  }

  /// Returns "iOS 18.0" for "com.apple.CoreSimulator.SimRuntime.iOS-18-0".
  private static func systemName(_ identifier: String) -> String {
    let parts = (identifier.split(separator: ".").last ?? "").split(separator: "-")
    guard parts.count > 1 else { return identifier }
    return "\(parts[0]) \(parts.dropFirst().joined(separator: "."))"
  }

  /// Returns whether an argument names this Simulator: by UDID, by name, or with `booted`.
  func isNamed(by argument: String) -> Bool {
    let argument = argument.lowercased()
    return udid.lowercased() == argument || name?.lowercased() == argument
      || argument == "booted" && state == .booted
  }

  /// The folder of the Simulators that Xcode creates.
  static func standardDirectory(_ environment: [String: String]) -> String {
    "\(environment["HOME"] ?? "~")/Library/Developer/CoreSimulator/Devices"
  }

  /// Returns the Simulators in a folder, ordered by UDID; empty if the folder cannot be read.
  static func all(in directory: String) -> [InstalledSimulator] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    return names.sorted().compactMap { InstalledSimulator(folder: "\(directory)/\($0)") }
  }
}

extension CompletionKind {
  /// The names and UDIDs of the Simulators, and files.
  static let simulators = CompletionKind.custom { _, _, prefix in
    let simulators = InstalledSimulator.all(in: InstalledSimulator.standardDirectory(ProgramEnvironment.all))
    return simulators.flatMap { [$0.udid, $0.name].compactMap(\.self) }.filter(FileCompletion.isSafeForShell)
      + (simulators.contains { $0.state == .booted } ? ["booted"] : []) + FileCompletion.paths(startingWith: prefix)
  }
}
