import ArchivedKeychain
import BackupArchive
import CommandSession
import DataProtection
import KeychainFormats
import VirtualDevice

/// The hardware key that may have made a backup, and where it is from. Whether it did is for the backup's items to prove.
final class HardwareKey: Sendable {
  enum Source: Sendable {
    /// The user's word for it: `--device-key-file` or `--device-key-fd`.
    case given
    /// A device that the user named beside the archive.
    case named
    /// A device of the home folder that calls itself as the backup calls its maker.
    case homeFolder(name: String, folder: String, isPublished: Bool)
  }

  let source: Source
  /// The key that would be used had the user given none.
  let otherwise: HardwareKey?
  private let held: DeviceKey

  init(_ source: Source, _ key: consuming DeviceKey, otherwise: HardwareKey? = nil) {
    self.source = source
    self.otherwise = otherwise
    held = key
  }

  func key() -> DeviceKey { held.copy() }

  /// Whether nobody said that the key is the maker's.
  var isGuess: Bool { if case .given = source { false } else { true } }

  /// The device of the home folder, where it was found there.
  var homeDevice: (name: String, folder: String)? {
    if case .homeFolder(let name, let folder, _) = source { (name, folder) } else { nil }
  }

  /// Whether it is known that everybody can compute the key.
  var isPublished: Bool { if case .homeFolder(_, _, let isPublished) = source { isPublished } else { false } }
}

extension Session {
  /// Gets the hardware key of the device that made a backup, where the user has one.
  func deviceKey(_ options: OpeningOptions, of subject: String) throws(CommandFailure) -> DeviceKey? {
    guard let source = try options.deviceKeySource() else { return nil }
    return try deviceKey(from: source, of: subject)
  }

  /// The hardware key to open an archive with: the one that the user gives, or else that of the device which the archive
  /// is compared with, or else that of a virtual device which calls itself the backup's maker.
  ///
  /// - Parameter target: The device that the items should go to, whose own key is tried anyway.
  func hardwareKey(
    of named: NamedArchive, _ opening: OpeningOptions, comparedWith compared: HardwareKey? = nil,
    besides target: DeviceSession? = nil
  ) throws(CommandFailure) -> HardwareKey? {
    let own = compared ?? maker(of: named.archive, besides: target)
    guard let key = try deviceKey(opening, of: named.name) else { return own }
    return HardwareKey(.given, key, otherwise: own)
  }

  /// The hardware key to go on with, once the password's key is there to try it: where one that the user gave opens none
  /// of the items that need it, that is said, and the key that would be used without it takes its place.
  func fitting(
    _ hardware: HardwareKey?, _ named: NamedArchive, with key: borrowing ArchiveKey
  ) -> HardwareKey? {
    guard let hardware, !hardware.isGuess else { return hardware }
    // What keeps the archive from being opened at all is told by whoever opens it.
    let tried = try? OpenedArchive(named.archive, key: key, deviceKey: hardware.key(), requiresKeychain: false)
    guard tried?.isSameDevice == false else { return hardware }
    warnOfForeignKey(archive: named.name)
    return hardware.otherwise ?? hardware
  }

  func warnOfForeignKey(archive name: String) {
    warn(
      "the device key that was given is not of the device that made \(name)",
      why: "none of the items that need it opens with it", try: "the key 0x835 of that device")
  }

  /// Looks for the device in the home folder without waiting for whoever uses one; what cannot be read is passed over.
  func maker(of archive: BackupArchive, besides target: DeviceSession? = nil) -> HardwareKey? {
    guard let identifier = archive.device.identifier?.lowercased(), identifier != target?.record.udid.lowercased(),
      let devices = try? deviceHome().devices()
    else { return nil }
    for device in devices {
      // Only the one whose record fits is held at all.
      guard let record = try? device.storedRecord(), record.udid.lowercased() == identifier,
        let session = try? device.openSession(.reading, verb: verb)
      else { continue }
      defer { session.end() }
      if let key = try? session.deviceKey() {
        let isPublished = (try? session.isHardwareKeyPublished(knownSeeds: PublishedSeeds.all)) == true
        return HardwareKey(
          .homeFolder(name: device.name.text, folder: device.folder, isPublished: isPublished), key)
      }
    }
    return nil
  }

  /// The device of the home folder that made an archive, held for reading; the caller ends it.
  func makerDevice(
    of archive: BackupArchive, besides target: DeviceSession?
  ) throws(CommandFailure) -> DeviceSession? {
    guard let folder = maker(of: archive, besides: target)?.homeDevice?.folder else { return nil }
    let device = try virtualDevice(folder.contains("/") ? folder : "./\(folder)")
    return try? device.openSession(.reading, verb: verb)
  }

  /// Says whose key opened items, where the user did not name it.
  func tell(ofProven hardware: HardwareKey?, archive name: String) {
    guard let device = hardware?.homeDevice?.name else { return }
    note("\(HostileText.shown(name)): items of this device only were opened with the key of \(device)")
  }
}
