import Foundation
import KeyhaulKit
import Synchronization
import TestSupport
import Testing

@testable import keyhaul

/// A sandbox with the two phones of the bundled fixtures, and the password of their backups in `.bp`.
final class PhoneSandbox: Sendable {
  static let password = "correct horse"

  /// The path of the keychain file in a backup's folder: the SHA-1 of `KeychainDomain-keychain-backup.plist`, in a folder
  /// named after its first two digits.
  static let keychainPath = "51/51a4616e576dd33cd2abadfea874eb8ff246bf0e"

  /// The name endings of the backups that Keyhaul writes: one for each container format, and a slash for a folder.
  static let backupEndings = [".tar", ".tar.gz", ".tar.zst", ".zip", "/"]

  let devices: DeviceSandbox

  /// The sandbox that all other sandboxes copy, because creating two phones takes longer than most tests.
  private static let original = Result { try PhoneSandbox(new: ()) }

  init() throws { devices = try DeviceSandbox(copyOf: Self.original.get().devices) }

  /// Creates the two phones. Only `original` does this.
  private init(new: Void) throws {
    devices = try DeviceSandbox()
    devices.removeAtExit()
    try write(Array("\(Self.password)\n".utf8), to: ".bp")
    for name in ["old-phone", "new-phone"] { try succeed("device create \(name) --from \(name) -q") }
  }

  /// Copies a sandbox that also has a backup of old-phone, which is created once.
  convenience init(backedUpTo name: String) throws {
    try self.init(named: "backup \(name)") { try $0.backUp(to: name) }
  }

  /// Copies the sandbox with this name, which a closure prepares once.
  convenience init(named name: String, _ prepare: (PhoneSandbox) throws -> Void) throws {
    let original = try Self.originals.withLock { originals in
      if let original = originals[name] { return original }
      let original = try PhoneSandbox()
      original.devices.removeAtExit()
      try prepare(original)
      originals[name] = original
      return original
    }
    try self.init(copyOf: original)
  }

  private static let originals = Mutex<[String: PhoneSandbox]>([:])

  init(copyOf sandbox: PhoneSandbox) throws { devices = try DeviceSandbox(copyOf: sandbox.devices) }

  var home: URL { devices.home }

  /// Runs `keyhaul` with arguments in shell syntax.
  func keyhaul(_ line: String, typed: [String]? = nil) throws -> BuiltProgram.Outcome {
    try devices.run("keyhaul \(line)", typed: typed)
  }

  @discardableResult
  func succeed(_ line: String) throws -> String {
    let outcome = try keyhaul(line)
    #expect(outcome.status == 0, "keyhaul \(line): \(outcome.errors)")
    return outcome.output
  }

  /// Runs a command to its end, and returns its duration in seconds.
  func duration(of line: String) throws -> Double {
    let start = Date()
    try succeed(line)
    return Date().timeIntervalSince(start)
  }

  /// Runs a command and kills it after this time, which may be after its end.
  func run(_ line: String, killedAfter seconds: Double) throws {
    let delay = String(format: "%.3f", seconds)
    try devices.run(
      "keyhaul \(line) > log 2>&1 & sleep \(delay); kill -KILL $! 2> /dev/null; wait $! 2> /dev/null")
  }

  /// Creates a backup of a device with a password and a minimal iteration count.
  func backUp(_ device: String = "old-phone", to name: String) throws {
    try succeed("backup \(device) -o \(name) --password-file .bp --rounds 1 -q --yes")
  }

  /// Returns the key of a device for `--device-key-file`: key 0x835, which is sixteen bytes 01 encrypted with the UID.
  ///
  /// Source: iphone-dataprotection, `IOAESAccelerator.c`.
  func deviceKey(of device: String) throws -> [UInt8] {
    let uid = Secret(copying: try read("devices/\(device)/hardware.uid"))
    return Array(try FileCipher.encrypt([UInt8](repeating: 1, count: 16), key: uid).prefix(16))
  }

  /// Changes an iteration count in a backup's keybag. No password is right then, but trying a password takes as long as
  /// the count implies.
  func setIterations(_ count: UInt32, in tag: String, of directory: String) throws {
    let bytes = withUnsafeBytes(of: count.bigEndian) { Array($0) }
    try editKeybagField(tag, in: directory) { $0 = bytes }
  }

  /// Changes the value of a field in a backup's keybag.
  ///
  /// - Parameter keyClass: The class to which the field belongs; `nil` if it belongs to the keybag itself.
  func editKeybagField(
    _ tag: String, ofClass keyClass: UInt8? = nil, in directory: String, _ change: (inout [UInt8]) -> Void
  ) throws {
    var manifest = try read("\(directory)/Manifest.plist")
    var fields = KeybagFields.all(in: manifest)[...]
    if let keyClass { fields = fields.drop { $0.tag != "CLAS" || $0.value != [0, 0, 0, keyClass] } }
    let field = try #require(fields.first { $0.tag == tag })
    var value = field.value
    change(&value)
    manifest.replaceSubrange(field.range, with: value)
    try write(manifest, to: "\(directory)/Manifest.plist")
  }

  /// Writes a file. In a backup's folder, also removes the seal, because seals have their own tests.
  func write(_ bytes: [UInt8], to name: String, keepingSeal: Bool = false) throws {
    let url = home.appending(path: name)
    try Data(bytes).write(to: url)
    if !keepingSeal, let backup = name.split(separator: "/").first, name.contains("/") {
      try removeSeal(String(backup))
    }
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: url.path)
  }

  /// Changes the property list in a file, and keeps its format.
  func editPropertyList(
    _ name: String, keepingSeal: Bool = false, _ change: (inout [String: Any]) throws -> Void
  ) throws {
    var format = PropertyListSerialization.PropertyListFormat.binary
    let original = try PropertyListSerialization.propertyList(from: Data(read(name)), format: &format)
    var root = try #require(original as? [String: Any])
    try change(&root)
    let changed = try PropertyListSerialization.data(fromPropertyList: root, format: format, options: 0)
    try write(Array(changed), to: name, keepingSeal: keepingSeal)
  }

  /// Flips a bit of the byte in the middle of a file.
  func flipMiddleBit(of name: String) throws {
    let bytes = try read(name)
    try write(bytes.flipping(bit: bytes.count / 2 * 8), to: name)
  }

  /// Damages the first item in a backup without a password: its blob gets a version that no system writes.
  func damageFirstItem(in backup: String) throws {
    let name = "\(backup)/\(Self.keychainPath)"
    var keychain = try read(name)
    // Blobs start with their version, 3, as a little-endian integer of four bytes.
    let version = try #require(keychain.firstRange(of: [3, 0, 0, 0]))
    keychain[version.lowerBound] = 9
    try write(keychain, to: name)
  }

  /// Flips one random bit of a file at a time. At the end, the file is as before.
  ///
  /// - Parameters:
  ///   - count: The number of bits.
  ///   - body: A closure that gets the offset of the changed byte.
  func flipBits(
    _ count: Int, of file: String, using random: inout SeededRandom, keepingSeal: Bool = false,
    _ body: (_ offset: Int) throws -> Void
  ) throws {
    let original = try read(file)
    for _ in 0..<count {
      var bytes = original
      let offset = Int.random(in: original.indices, using: &random)
      bytes[offset] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      try write(bytes, to: file, keepingSeal: keepingSeal)
      try body(offset)
    }
    try write(original, to: file, keepingSeal: keepingSeal)
  }

  /// Removes the seal from a backup's folder.
  func removeSeal(_ directory: String) throws {
    let seal = home.appending(path: "\(directory)/Keyhaul.seal").path
    if FileManager.default.fileExists(atPath: seal) { try FileManager.default.removeItem(atPath: seal) }
  }

  func read(_ name: String) throws -> [UInt8] { Array(try Data(contentsOf: home.appending(path: name))) }

  func names(in directory: String = ".") throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: home.appending(path: directory).path).sorted()
  }

  /// Returns the paths of the files in a backup's folder, relative to the folder.
  func files(in directory: String) throws -> [String] {
    let paths = try FileManager.default.subpathsOfDirectory(atPath: home.appending(path: directory).path)
    return paths.filter { path in
      var isDirectory: ObjCBool = false
      return FileManager.default.fileExists(
        atPath: home.appending(path: "\(directory)/\(path)").path, isDirectory: &isDirectory) && !isDirectory.boolValue
    }.sorted()
  }

  /// Returns the contents of the files in a backup's folder, by path.
  func fileContents(in directory: String) throws -> [String: [UInt8]] {
    let paths = try files(in: directory)
    return try Dictionary(uniqueKeysWithValues: paths.map { ($0, try read("\(directory)/\($0)")) })
  }

  /// Returns everything on a device, including secrets, as one text.
  func contents(of device: String) throws -> String {
    try succeed("item find \(device) --json --reveal") + succeed("device show \(device) --json")
  }

  /// Returns the document of `plan --json`.
  func plan(_ backup: String, to device: String = "new-phone", _ flags: String = "") throws -> [String: Any] {
    try object(keyhaul("plan \(backup) --to \(device) --password-file .bp --json \(flags)").output)
  }

  /// Returns the JSON object in a text.
  func object(_ text: String) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
  }
}

/// The decisions of a plan, without dates and names of backups.
struct PlannedItems: Equatable {
  /// The outcome, change and reason by index.
  let decisions: [Int: String]
  let migrating: Set<Int>

  /// - Parameter includesEncryptedNames: Whether to compare the names of items that stay behind. A plan has them if the
  ///   source device is available.
  init(_ plan: [String: Any], includesEncryptedNames: Bool = true) {
    var decisions: [Int: String] = [:]
    var migrating: Set<Int> = []
    for item in plan["items"] as? [[String: Any]] ?? [] {
      guard let index = item["index"] as? Int else { continue }
      let isMigrating = item["outcome"] as? String == "migrates"
      let nameFields = includesEncryptedNames || isMigrating ? ["account", "service", "server", "label"] : []
      let fields = ["outcome", "change", "reason", "protection"] + nameFields
      decisions[index] = fields.map { item[$0] as? String ?? "-" }.joined(separator: "|")
      if isMigrating { migrating.insert(index) }
    }
    (self.decisions, self.migrating) = (decisions, migrating)
  }
}
