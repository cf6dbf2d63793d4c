import KeyhaulKit

/// What must be the same for an answer of an earlier run to be used again, besides the backup and the flags.
struct AnswerQuestion: Equatable, Sendable {
  /// The name of the member in a line of a `--resume` file.
  static let member = "question"

  /// Of the program, the flags, and the files and devices that shape an answer.
  let digest: String
  /// A random mark of the password that opened the backup; `nil` if none did. Passwords of two runs with one mark are the
  /// same.
  let password: String?

  init(digest: String, password: String?) {
    self.digest = digest
    self.password = password
  }

  /// - Returns: `nil` for every other value.
  init?(_ json: JSONValue?) {
    guard let digest = json?["digest"]?.stringValue else { return nil }
    self.init(digest: digest, password: json?["password"]?.stringValue)
  }

  var json: JSONValue { ["digest": .string(digest), "password": .text(password)] }

  /// The digest of what shapes an answer besides the backup and its password.
  ///
  /// A digest of a device key gives nothing away: the key is 16 random bytes.
  ///
  /// - Parameters:
  ///   - asked: As `BackupAnswer` has it.
  ///   - inputs: As the verb gives them.
  static func digest(
    asked: [String], inputs: [(flag: String, content: [UInt8])], _ opening: OpeningOptions, in session: Session
  ) throws(CommandFailure) -> String {
    var parts = [ProgramVersion.line, String(asked.count)].map { Array($0.utf8) } + asked.map { Array($0.utf8) }
    for input in inputs { parts += [Array(input.flag.utf8), input.content] }
    for record in session.storedDeviceRecords() { parts += [Array("home".utf8), record.identityBytes] }
    let key = try opening.deviceKey(of: "the backups", in: session)
    do throws(DataProtectionError) {
      if let key { parts += [Array("device key".utf8), try key.fingerprint()] }
      // Each part follows its length, so that no two lists of parts have the same bytes.
      return "sha256:" + String(hexadecimal: try Digest.sha256(parts.flatMap { Array("\($0.count):".utf8) + $0 }))
    } catch {
      throw CommandFailure(.failed, "cannot compute a digest for --resume", why: error.reason)
    }
  }
}

extension Session {
  /// What the devices of the home directory say of themselves: Keyhaul decrypts backups with the key of the device that
  /// made them, and lists what such a device has besides.
  fileprivate func storedDeviceRecords() -> [DeviceRecord] {
    guard let devices = try? DeviceHome(of: self).devices() else { return [] }
    return devices.compactMap { try? $0.storedRecord() }
  }
}

extension DeviceRecord {
  /// What a device made anew does not share, under whatever name, and its revision.
  var identityBytes: [UInt8] {
    Array([name, udid, serialNumber, Timestamp.text(of: created), revision].joined(separator: "\u{0}").utf8)
  }
}

extension DeviceSession {
  /// What tells a device from every other one, and its revision: its key as well as what it says of itself.
  func identity() throws(VirtualDeviceError) -> [UInt8] {
    let key = try deviceKey()
    return record.identityBytes + [0] + ((try? key.fingerprint()) ?? [])
  }
}
