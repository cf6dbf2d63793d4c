import Basics
import KeychainFormats

/// A change of several of a device's files that happens as a whole or not at all, wherever it is cut off.
///
/// First every new file is written and synced beside its place (`keybag.next`). Then the file `change`, which lists what
/// is to be done, is put in place by one rename: from that moment the change has happened. Carrying it out renames the
/// new files to their places; each step can be done twice, and whoever opens the device next finishes what was left.
/// A process that dies before that rename leaves files that nobody reads and the next one removes.
struct DeviceChange {
  /// What happens to the keychain's database as part of the change.
  enum KeychainAction: String, CaseIterable {
    case keep
    /// The rows of class `akpu` go, as their key does.
    case dropPasscodeItems = "drop-passcode-items"
    /// A new, empty database.
    case empty
  }

  private static let format = "device-change/1"
  /// The files a change can put in place.
  private static let changeable: [DeviceFile] = [.record, .keybag, .memory]

  private(set) var replaced: [(file: DeviceFile, bytes: [UInt8])] = []
  var keychain = KeychainAction.keep

  mutating func replace(_ file: DeviceFile, with bytes: [UInt8]) { replaced.append((file, bytes)) }

  /// Prepares the change and decides on it. When this returns, the change has happened; `finish` carries it out.
  ///
  /// - Throws: `.deviceIO`; of stage `afterCommit` where it has happened all the same.
  func commit(in directory: String, _ files: DeviceFiles) throws(KeyhaulError) {
    do throws(KeyhaulError) {
      for (file, bytes) in replaced { try files.create(file.stagedPath(in: directory), bytes) }
      try files.create(DeviceFile.change.stagedPath(in: directory), encoded())
      // The names of the new files must be durable before the list that relies on them is.
      try files.syncDirectory(directory)
      try files.rename(DeviceFile.change.stagedPath(in: directory), to: DeviceFile.change.path(in: directory))
    } catch {
      try? Self.discardStaged(in: directory, files)
      throw error
    }
    try files.committed { () throws(KeyhaulError) in try files.syncDirectory(directory) }
  }

  /// Carries out a change that was decided on; does nothing where there is none. Needs the device's lock.
  ///
  /// - Returns: How many items the change destroyed one by one.
  @discardableResult
  static func finish(
    in directory: String, device: String, _ files: DeviceFiles
  ) throws(KeyhaulError) -> Int {
    let path = DeviceFile.change.path(in: directory)
    guard let bytes = try files.read(path, atMost: DeviceFile.change.sizeLimit) else { return 0 }
    let plan: Plan
    do throws(JSONCursor.Fault) {
      plan = try Plan(decoding: bytes)
    } catch {
      throw KeyhaulError(.deviceDamaged, device, "\(error.path) \(error.reason)")
    }
    let count = try DeviceKeychain(directory: directory, device: device, files: files).apply(plan.keychain)
    for file in plan.replaced where try files.kind(of: file.stagedPath(in: directory)) == .file {
      try files.rename(file.stagedPath(in: directory), to: file.path(in: directory))
    }
    try files.syncDirectory(directory)
    try files.remove(path)
    try files.syncDirectory(directory)
    return count
  }

  static func isPending(in directory: String, _ files: DeviceFiles) throws(KeyhaulError) -> Bool {
    try files.kind(of: DeviceFile.change.path(in: directory)) != nil
  }

  /// Removes what a change that was never decided on has left. Needs the device's lock, and no change pending.
  static func discardStaged(in directory: String, _ files: DeviceFiles) throws(KeyhaulError) {
    for file in changeable + [.change] {
      let path = file.stagedPath(in: directory)
      if try files.kind(of: path) != nil { try files.remove(path) }
    }
  }

  private func encoded() -> [UInt8] {
    var object = JSONObject()
    object["format"] = .string(Self.format)
    object["replace"] = .array(replaced.map { .string($0.file.rawValue) })
    object["keychain"] = .string(keychain.rawValue)
    return JSONValue.sorted(object).bytes()
  }

  /// What the file `change` says.
  private struct Plan {
    let replaced: [DeviceFile]
    let keychain: KeychainAction

    init(decoding bytes: [UInt8]) throws(JSONCursor.Fault) {
      let root: JSONCursor
      do throws(JSONParseError) {
        root = JSONCursor(try JSONValue(parsing: bytes), path: DeviceFile.change.rawValue)
      } catch {
        throw JSONCursor.Fault(path: DeviceFile.change.rawValue, reason: "is not JSON")
      }
      try root.allow(only: ["format", "replace", "keychain"])
      _ = try root.member("format").string(where: { $0 == DeviceChange.format }, "is not \(DeviceChange.format)")
      replaced = try Self.files(root.member("replace"))
      let action = try root.member("keychain")
      guard let keychain = KeychainAction(rawValue: try action.string()) else { throw action.fault("is not known") }
      self.keychain = keychain
    }

    private static func files(_ node: JSONCursor) throws(JSONCursor.Fault) -> [DeviceFile] {
      var files: [DeviceFile] = []
      for element in try node.elements() {
        guard let file = DeviceFile(rawValue: try element.string()), changeable.contains(file) else {
          throw element.fault("is not a file that a change can touch")
        }
        files.append(file)
      }
      return files
    }
  }
}
