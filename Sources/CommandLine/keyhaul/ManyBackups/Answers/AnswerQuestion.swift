import KeyhaulKit

/// The inputs, other than the backup and the flags, that must match before an earlier run's answer is used again.
struct AnswerQuestion: Equatable, Sendable {
  /// The name of the member in a line of a `--resume` file.
  static let member = "question"

  /// The digest of the program version, the flags, and the files and devices that shape an answer.
  let digest: String
  /// A random mark of the password that opened the backup; `nil` if none did. If two runs have the same mark, they had
  /// the same password.
  let password: String?

  init(digest: String, password: String?) {
    self.digest = digest
    self.password = password
  }

  /// - Returns: `nil` if the value has no digest.
  init?(_ json: JSONValue?) {
    guard let digest = json?["digest"]?.stringValue else { return nil }
    self.init(digest: digest, password: json?["password"]?.stringValue)
  }

  var json: JSONValue { ["digest": .string(digest), "password": .text(password)] }

  /// Returns the digest of all inputs that shape an answer, except the backup and its password.
  ///
  /// The digest of a device key does not reveal the key, which is 16 random bytes.
  ///
  /// - Parameters:
  ///   - asked: The value of `BackupAnswer.asked`.
  ///   - inputs: The command's flags, with the contents of their files or the identities of their devices.
  static func digest(
    asked: [String], inputs: [(flag: String, content: [UInt8])], _ opening: OpeningOptions, in session: Session
  ) throws(CommandFailure) -> String {
    var parts = [ProgramVersion.line, String(asked.count)].map { Array($0.utf8) } + asked.map { Array($0.utf8) }
    for input in inputs { parts += [Array(input.flag.utf8), input.content] }
    for record in session.storedDeviceRecords() { parts += [Array("home".utf8), record.identityBytes] }
    let key = try opening.deviceKey(of: "the backups", in: session)
    do throws(DataProtectionError) {
      if let key { parts += [Array("device key".utf8), try key.fingerprint()] }
      // Each part is preceded by its length, so that two different lists of parts never have equal bytes.
      return "sha256:" + String(hexadecimal: try Digest.sha256(parts.flatMap { Array("\($0.count):".utf8) + $0 }))
    } catch {
      throw CommandFailure(.failed, "cannot compute a digest for --resume", why: error.reason)
    }
  }
}

extension Session {
  /// Returns the records of the devices in the home directory. They shape answers: Keyhaul decrypts a backup with its
  /// source device's key, and lists the device's other items.
  fileprivate func storedDeviceRecords() -> [DeviceRecord] {
    guard let devices = try? DeviceSet(of: self).devices() else { return [] }
    return devices.compactMap { try? $0.storedRecord() }
  }
}

extension DeviceRecord {
  /// The values that differ for a newly made device, even one with an equal name, and the revision.
  var identityBytes: [UInt8] {
    Array([name, udid, serialNumber, Timestamp.text(of: created), revision].joined(separator: "\u{0}").utf8)
  }
}

extension DeviceSession {
  /// Returns the values that identify a device, and its revision: its record and its key.
  func identity() throws(KeyhaulError) -> [UInt8] {
    let key = try deviceKey()
    return record.identityBytes + [0] + ((try? key.fingerprint()) ?? [])
  }
}
