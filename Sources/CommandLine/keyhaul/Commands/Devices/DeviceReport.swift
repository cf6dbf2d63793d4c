import KeyhaulKit

/// A device's record and state, for reports. If another process is using the device, only the record is known.
struct DeviceReport {
  /// The name of the device's folder, which is also the name that the user types.
  let name: String
  let record: DeviceRecord
  let state: DeviceState?
  let isPasscodeSet: Bool?
  let itemCount: Int?
  /// Whether anyone can compute the device key.
  let isDeviceKeyPublished: Bool?

  init(_ openDevice: DeviceSession) throws(KeyhaulError) {
    name = openDevice.name
    record = openDevice.record
    state = openDevice.state
    isPasscodeSet = openDevice.isPasscodeSet
    itemCount = try openDevice.itemCount
    isDeviceKeyPublished = try openDevice.isDeviceKeyPublished(knownSeeds: WellKnownSeeds.all)
  }

  init(_ summary: DeviceSummary, of device: VirtualDevice) {
    name = device.name.text
    record = summary.record
    state = summary.state
    isPasscodeSet = summary.isPasscodeSet
    itemCount = summary.itemCount
    isDeviceKeyPublished = summary.isDeviceKeyPublished
  }

  // MARK: JSON

  /// Returns the document `device/1`.
  ///
  /// - Parameter outcome: Further members about the command's result, such as the number of destroyed items.
  func document(_ outcome: [(String, JSONValue)] = []) -> JSONValue {
    .object([("format", "device/1")] + fields + outcome)
  }

  var fields: [(String, JSONValue)] {
    [
      ("name", .string(name)), ("udid", .string(record.udid)), ("product_type", .string(record.productType)),
      ("product_version", .string(record.productVersion.text)), ("state", .text(state?.rawValue)),
      ("passcode_set", isPasscodeSet.map { .boolean($0) } ?? .null), ("items", itemCount.map { .count($0) } ?? .null),
      ("revision", .string(record.revision)), ("last_backup", .text(record.lastBackup.map(Timestamp.text))),
      ("failed_attempts", .count(record.failedAttempts)),
      ("erase_after_failures", record.eraseAfterFailures.map { .count($0) } ?? .null),
      ("published_hardware_key", isDeviceKeyPublished.map { .boolean($0) } ?? .null),
    ]
  }

  // MARK: Text

  /// Returns the kind of device in a product type: "iPhone" for "iPhone15,2".
  static func model(_ productType: String) -> String {
    let letters = productType.prefix { $0.isLetter && $0.isASCII }
    return letters.isEmpty ? "device" : String(letters)
  }

  static func text(_ state: DeviceState) -> String {
    switch state {
    case .unlocked: "unlocked"
    case .locked: "locked"
    case .beforeFirstUnlock: "before first unlock"
    }
  }

  var stateText: String { state.map(Self.text) ?? "in use" }

  /// The cells of a row in the list: name, state, passcode, items, last backup.
  var cells: [String] {
    [
      name, stateText, isPasscodeSet.map { $0 ? "yes" : "no" } ?? "–", itemCount.map(HumanReadable.grouped) ?? "–",
      record.lastBackup.map(LocalTimeFormat.local) ?? "–",
    ]
  }

  /// A short summary: "iPhone, passcode set, unlocked, 18 items".
  var summary: String {
    let passcode = isPasscodeSet.map { $0 ? "passcode set" : "no passcode" }
    let items = itemCount.flatMap { $0 > 0 ? HumanReadable.count($0, "item") : nil }
    return [Self.model(record.productType), passcode, stateText, items].compactMap(\.self).joined(separator: ", ")
  }

  /// The labels and texts of `device show`.
  var lines: [(label: String, text: String)] {
    let build = record.build.map { " (\($0))" } ?? ""
    let limitNote = record.eraseAfterFailures.map { "; after \($0) in a row the device erases itself" } ?? ""
    let apps = record.apps.map(\.name).joined(separator: ", ")
    var lines: [(label: String, text: String)] = [
      (name, "\(record.productType), iOS \(record.productVersion)\(build)"),
      ("identifier", record.udid),
      ("state", isPasscodeSet.map { "\(stateText), \($0 ? "passcode set" : "no passcode")" } ?? stateText),
      ("items", itemCount.map(HumanReadable.grouped) ?? "–"),
      ("apps", apps.isEmpty ? "none" : apps),
      ("last backup", record.lastBackup.map(LocalTimeFormat.local) ?? "none"),
      ("wrong passcodes", HumanReadable.grouped(record.failedAttempts) + limitNote),
      ("revision", record.revision),
    ]
    if isDeviceKeyPublished == true {
      lines.append(("device key", "published: anyone can compute it, so backups bind no item to this device"))
    }
    return lines
  }
}

extension Session {
  /// Warns that anyone can compute a device key.
  ///
  /// - Parameter consequence: The consequence for this command; `nil` to say only that anyone can compute the key.
  func warnAboutPublishedKey(of device: String, _ consequence: String? = nil) {
    warn(
      consequence ?? "anyone can compute the device key of \(device)",
      why: "the device key of \(device) is published: it comes from a description's seed and the device's name",
      try: "outside tests, a device created without --published-hardware-key", ignoresQuiet: true)
  }
}
