import Foundation
import Synchronization
import Testing

@testable import keyhaul

/// Two phones as the bundled fixtures describe them, and the password of their backups in `.bp`.
final class MoveWorld: Sendable {
  static let password = "correct horse"

  let devices: DeviceWorld

  /// A world like every other, to be copied: making two phones takes longer than most of what is done with them.
  private static let pattern = Result { try MoveWorld(new: ()) }

  init() throws { devices = try DeviceWorld(copyOf: Self.pattern.get().devices) }

  private init(new: Void) throws {
    devices = try DeviceWorld()
    devices.removeAtExit()
    try write(Array("\(Self.password)\n".utf8), to: ".bp")
    for name in ["old-phone", "new-phone"] { try succeed("device create \(name) --from \(name) -q") }
  }

  /// The same with a backup of old-phone, which too is made once.
  convenience init(backedUpTo name: String) throws {
    try self.init(named: "backup \(name)") { try $0.backUp(to: name) }
  }

  /// A copy of the one world of this name, which `make` brings into its state the first time.
  convenience init(named name: String, _ make: (MoveWorld) throws -> Void) throws {
    let pattern = try Self.patterns.withLock { patterns in
      if let pattern = patterns[name] { return pattern }
      let pattern = try MoveWorld()
      pattern.devices.removeAtExit()
      try make(pattern)
      patterns[name] = pattern
      return pattern
    }
    try self.init(copyOf: pattern)
  }

  private static let patterns = Mutex<[String: MoveWorld]>([:])

  init(copyOf other: MoveWorld) throws { devices = try DeviceWorld(copyOf: other.devices) }

  var home: URL { devices.home }

  /// Runs `keyhaul` with a line of arguments as a shell reads it.
  func keyhaul(_ line: String, typed: [String]? = nil) throws -> BuiltProgram.Outcome {
    try devices.run("keyhaul \(line)", typed: typed)
  }

  @discardableResult
  func succeed(_ line: String) throws -> String {
    let outcome = try keyhaul(line)
    #expect(outcome.status == 0, "keyhaul \(line): \(outcome.errors)")
    return outcome.output
  }

  /// A backup of old-phone with a password and next to no rounds.
  func backUp(_ device: String = "old-phone", to name: String) throws {
    try succeed("backup \(device) -o \(name) --password-file .bp --rounds 1 -q --yes")
  }

  /// Lets a backup's directory ask for another number of rounds than it was made with: no password fits any more, but
  /// trying one takes as long as that number says.
  func ask(for rounds: UInt32, in tag: String, of directory: String) throws {
    var manifest = try read("\(directory)/Manifest.plist")
    let field = try #require(KeybagFields.inside(manifest).first { $0.tag == tag })
    manifest.replaceSubrange(field.range, with: withUnsafeBytes(of: rounds.bigEndian) { Array($0) })
    try write(manifest, to: "\(directory)/Manifest.plist")
  }

  /// Writes a file. Of a backup's directory the seal goes with it, as if another program had made it so: what a seal shows
  /// has tests of its own.
  func write(_ bytes: [UInt8], to name: String, keepingSeal: Bool = false) throws {
    let url = home.appending(path: name)
    try Data(bytes).write(to: url)
    if !keepingSeal, let backup = name.split(separator: "/").first, name.contains("/") { try unseal(String(backup)) }
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: url.path)
  }

  /// Takes the seal of a backup's directory away.
  func unseal(_ directory: String) throws {
    let seal = home.appending(path: "\(directory)/Keyhaul.seal").path
    if FileManager.default.fileExists(atPath: seal) { try FileManager.default.removeItem(atPath: seal) }
  }

  func read(_ name: String) throws -> [UInt8] { Array(try Data(contentsOf: home.appending(path: name))) }

  func names(in directory: String = ".") throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: home.appending(path: directory).path).sorted()
  }

  /// The files of a backup's directory, by their paths in it.
  func files(in directory: String) throws -> [String] {
    let paths = try FileManager.default.subpathsOfDirectory(atPath: home.appending(path: directory).path)
    return paths.filter { path in
      var isDirectory: ObjCBool = false
      return FileManager.default.fileExists(
        atPath: home.appending(path: "\(directory)/\(path)").path, isDirectory: &isDirectory) && !isDirectory.boolValue
    }.sorted()
  }

  /// Everything on a device, secrets included, as one text.
  func contents(of device: String) throws -> String {
    try succeed("item find \(device) --json --reveal") + succeed("device show \(device) --json")
  }

  /// The document of `plan --json`.
  func plan(_ archive: String, to device: String = "new-phone", _ flags: String = "") throws -> [String: Any] {
    try object(keyhaul("plan \(archive) --to \(device) --password-file .bp --json \(flags)").output)
  }

  func object(_ text: String) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
  }
}

/// What a plan decides for each item, without dates and names of archives.
struct PlannedItems: Equatable {
  /// Outcome, change and reason by index.
  let decisions: [Int: String]
  let migrating: Set<Int>

  /// - Parameter namesSealed: Whether the names of what stays behind count. They are known where the device that made the
  ///   backup is found by its identifier, and its key opens them.
  init(_ plan: [String: Any], namesSealed: Bool = true) {
    var decisions: [Int: String] = [:]
    var migrating: Set<Int> = []
    for item in plan["items"] as? [[String: Any]] ?? [] {
      guard let index = item["index"] as? Int else { continue }
      let names = namesSealed || item["outcome"] as? String == "migrates"
      let fields =
        ["outcome", "change", "reason", "protection"] + (names ? ["account", "service", "server", "label"] : [])
      decisions[index] = fields.map { item[$0] as? String ?? "-" }.joined(separator: "|")
      if item["outcome"] as? String == "migrates" { migrating.insert(index) }
    }
    (self.decisions, self.migrating) = (decisions, migrating)
  }
}
