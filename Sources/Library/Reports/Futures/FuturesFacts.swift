public import KeyhaulKit

/// What becomes of a keychain on a new device and on its own one, erased, with what reports of it say besides.
public struct FuturesFacts: Sendable {
  /// As it shall be shown.
  let futures: MigrationFutures
  let source: PlanDocument.Source
  /// When the report was made, in RFC 3339 and UTC.
  let made: String
  let apps: AppDirectory
  /// What people call the kind of device: "iPhone".
  let model: String
  /// Whose hardware key was tried; `nil` where none was.
  let hardware: String?
  let isRedacted: Bool
  /// How the backup is protected, where neither "encrypted" nor "no password" is true of it.
  package var protection: String?
  /// What of the backup is not as a device leaves it.
  package var findings: [PlanDocument.Finding] = []
  /// What the commands call source and backups.
  let words: CommandWords

  /// Creates what reports of two futures say.
  ///
  /// - Parameters:
  ///   - futures: With all names; they are taken out here where that is asked for.
  ///   - source: The backup or the device.
  ///   - made: The time of the report, in RFC 3339 and UTC.
  ///   - apps: What people call the apps, as far as the backup or the device knows.
  ///   - productType: Such as `iPhone15,2`; hostile.
  ///   - hardware: The name of the device whose hardware key was tried on a backup, or what else the key is called.
  ///   - sourceArgument: What the person types for the source; `nil` where it came from a stream.
  ///   - isRedacted: Whether names are left out.
  public init(
    _ futures: MigrationFutures, of source: PlanDocument.Source, made: String, apps: AppDirectory,
    productType: String?, hardware: String?, sourceArgument: String?, isRedacted: Bool = false
  ) {
    self.futures = isRedacted ? futures.redacted : futures
    self.made = made
    self.apps = isRedacted ? AppDirectory([]) : apps
    self.hardware = hardware.map { isRedacted ? "the old device" : $0 }
    self.isRedacted = isRedacted
    model =
      productType.map { $0.hasPrefix("iPad") ? "iPad" : $0.hasPrefix("iPod") ? "iPod touch" : "iPhone" } ?? "iPhone"
    words = CommandWords(source, isRedacted: isRedacted, source: sourceArgument, target: nil)
    var shown = source
    if isRedacted {
      shown.name = source.kind.rawValue
      shown.device = nil
      shown.deviceName = nil
    }
    self.source = shown
  }

  var isOfBackup: Bool { futures.isOfBackup }
  var maker: MakerItems? { futures.maker }

  /// The device that is wiped or replaced, for sentences.
  var phone: String {
    if isRedacted { return "the old device" }
    return switch source.kind {
    case .device, .dump: source.name
    case .archive: maker?.device ?? source.deviceName ?? "the \(model) that made this backup"
    }
  }

  /// The device that nobody has yet, for sentences.
  package var newPhone: String { "a new \(model)" }
}
