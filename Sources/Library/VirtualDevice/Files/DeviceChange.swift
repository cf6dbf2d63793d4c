import Basics
import KeychainFormats

/// An atomic change of several files of a device.
///
/// All new files are first written and synced under temporary names (`keybag.next`). Then the file `change`, which
/// lists the actions, is moved to its place with one rename. This commits the change. Applying the change renames
/// the new files. Each step can be repeated, and the next process that opens the device completes an interrupted
/// change. If a process dies before the commit, the next process removes the temporary files.
struct DeviceChange {
  /// The effect of a change on the keychain database.
  enum KeychainAction: String, CaseIterable {
    case keep
    /// Deletes the rows of class `akpu`, because the class key is removed.
    case dropPasscodeItems = "drop-passcode-items"
    /// Replaces the database with an empty one.
    case empty
  }

  private static let format = "device-change/1"
  /// The files that a change can replace.
  private static let changeableFiles: [DeviceFile] = [.record, .keybag, .memory]

  private(set) var replacements: [(file: DeviceFile, bytes: [UInt8])] = []
  var keychain = KeychainAction.keep

  mutating func replace(_ file: DeviceFile, with bytes: [UInt8]) { replacements.append((file, bytes)) }

  /// Writes and commits the change. `finish` then applies it.
  ///
  /// - Throws: `.deviceIO`. The change was committed nevertheless if the error's `stage` is `.afterCommit`.
  func commit(in directory: String, _ files: DeviceFiles) throws(KeyhaulError) {
    do throws(KeyhaulError) {
      for (file, bytes) in replacements { try files.create(file.stagedPath(in: directory), bytes) }
      try files.create(DeviceFile.change.stagedPath(in: directory), encoded())
      // The names of the new files must be durable before the list that refers to them.
      try files.syncDirectory(directory)
      try files.rename(DeviceFile.change.stagedPath(in: directory), to: DeviceFile.change.path(in: directory))
    } catch {
      try? Self.discardStaged(in: directory, files)
      throw error
    }
    try files.afterCommit { () throws(KeyhaulError) in try files.syncDirectory(directory) }
  }

  /// Applies a committed change, if there is one. The caller must hold the device's file lock.
  ///
  /// - Returns: The number of items that the action `.dropPasscodeItems` deleted; 0 if the change does not contain it.
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
    for file in plan.replacedFiles where try files.kind(of: file.stagedPath(in: directory)) == .file {
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

  /// Removes the files of a change that was not committed. The caller must hold the device's file lock, and no change
  /// may be pending.
  static func discardStaged(in directory: String, _ files: DeviceFiles) throws(KeyhaulError) {
    for file in changeableFiles + [.change] {
      let path = file.stagedPath(in: directory)
      if try files.kind(of: path) != nil { try files.remove(path) }
    }
  }

  private func encoded() -> [UInt8] {
    var object = JSONObject()
    object["format"] = .string(Self.format)
    object["replace"] = .array(replacements.map { .string($0.file.rawValue) })
    object["keychain"] = .string(keychain.rawValue)
    return JSONValue.sorted(object).bytes()
  }

  /// The content of the file `change`.
  private struct Plan {
    let replacedFiles: [DeviceFile]
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
      replacedFiles = try Self.files(root.member("replace"))
      let action = try root.member("keychain")
      guard let keychain = KeychainAction(rawValue: try action.string()) else { throw action.fault("is not known") }
      self.keychain = keychain
    }

    private static func files(_ node: JSONCursor) throws(JSONCursor.Fault) -> [DeviceFile] {
      var files: [DeviceFile] = []
      for element in try node.elements() {
        guard let file = DeviceFile(rawValue: try element.string()), changeableFiles.contains(file) else {
          throw element.fault("is not a file that a change can touch")
        }
        files.append(file)
      }
      return files
    }
  }
}
