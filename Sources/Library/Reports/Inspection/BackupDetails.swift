package import KeyhaulKit

/// The details of a backup apart from its items: its device, its date and origin, and its keybag. All names are
/// untrusted.
package struct BackupDetails {
  private let archive: BackupArchive

  package init(_ archive: BackupArchive) { self.archive = archive }

  // MARK: The device

  /// The name of the device model: Apple's name if the product type is known, otherwise the name in Info.plist.
  package var modelName: String? {
    archive.device.productType.flatMap(ModelName.of) ?? archive.computerProperties?.productName
  }

  /// The source device: "iPhone 14 Pro (iPhone15,2), iOS 18.1 (build 22B83) · serial number F2L… · UDID 0000…".
  package var device: String {
    let device = archive.device
    let model =
      switch (modelName, device.productType) {
      case (let name?, let type?): "\(name) (\(type))"
      case (nil, let type?): "\(type), model name not known"
      case (let name?, nil): name
      case (nil, nil): "model not recorded"
      }
    let build = device.buildVersion.map { " (build \($0))" } ?? ""
    let system = device.productVersion.map { "iOS \($0)\(build)" } ?? "iOS version not recorded"
    return
      "\(model), \(system) · \(device.serialNumber.map { "serial number \($0)" } ?? "no serial number recorded") · "
      + (device.identifier.map { "UDID \($0)" } ?? "no UDID recorded")
  }

  // MARK: The origin

  /// Returns the origin of the backup: "full · passcode set · finished 2026-11-20 18:04 CET · by iTunes 12.13".
  ///
  /// - Parameter format: Formats a date, with its time zone.
  package func origin(formatting format: (KeychainDate) -> String) -> String {
    var parts = [completeness, passcode]
    if let status = archive.status {
      let date = status.date.map { " \(format($0))" } ?? ""
      let end =
        switch status.snapshotState {
        case nil: "whether it was finished is not recorded"
        case _ where status.isFinished: "finished"
        case let state?: "not finished (\(state))"
        }
      parts.append(end + date)
    }
    if let lastBackup = archive.computerProperties?.lastBackup, differsFromBackupDate(lastBackup) {
      parts.append("last backup according to the computer: \(format(lastBackup))")
    }
    return (parts + [program]).joined(separator: " · ")
  }

  private var completeness: String {
    switch archive.status?.isFullBackup {
    case true?: "full"
    case false?: "incremental: the device sent only what had changed"
    case nil: "full or incremental not recorded"
    }
  }

  private var passcode: String {
    switch archive.wasPasscodeSet {
    case true?: "passcode set"
    case false?: "no passcode set"
    case nil: "passcode not recorded"
    }
  }

  /// Returns whether a date that the computer recorded differs from the date of the backup by more than a minute. `true`
  /// if the backup has no date.
  private func differsFromBackupDate(_ date: KeychainDate) -> Bool {
    guard let backupDate = archive.status?.date ?? archive.date else { return true }
    return abs(backupDate.secondsSince1970 - date.secondsSince1970) > 60
  }

  /// The name of the program that wrote the backup, according to the backup.
  private var program: String {
    let info = archive.computerProperties
    switch (info?.macOSVersion, info?.iTunesVersion) {
    case (let system?, let version): return "by macOS \(system)\(version.map { " (iTunes version \($0))" } ?? "")"
    case (nil, let version?): return "by iTunes \(version)"
    case (nil, nil): return "no iTunes or Finder version recorded"
    }
  }

  // MARK: The keybag

  /// The class keys: "classes 1 to 11: 7 wrapped with the password, 4 with the password and the device".
  package var classes: String {
    let records = archive.keybag.classKeys
    let numbers = records.compactMap(\.keyClass).map(\.rawValue).sorted()
    guard !numbers.isEmpty else { return "no class keys" }
    var wraps: [(text: String, count: Int)] = []
    for record in records {
      if let index = wraps.firstIndex(where: { $0.text == record.wrapping }) {
        wraps[index].count += 1
      } else {
        wraps.append((record.wrapping, 1))
      }
    }
    let wrapClauses = wraps.enumerated().map { index, wrap in
      let keys = wrap.text.replacing("password", with: "the password").replacing("device", with: "the device")
      return "\(HumanReadable.grouped(wrap.count)) \(index == 0 ? "wrapped " : "")with \(keys)"
    }
    return "\(Self.text(ofClasses: numbers)): \(wrapClauses.joined(separator: ", "))"
  }

  /// Returns the numbers of classes: "class 7", "classes 1 to 11", or "classes 1, 2 and 7".
  ///
  /// - Parameter numbers: The numbers in ascending order.
  private static func text(ofClasses numbers: [UInt32]) -> String {
    guard let first = numbers.first, let last = numbers.last, numbers.count > 1 else {
      return "class \(HumanReadable.list(numbers.map { String($0) }))"
    }
    let isRange = zip(numbers, numbers.dropFirst()).allSatisfy { $1 > 0 && $0 == $1 - 1 }
    return isRange ? "classes \(first) to \(last)" : "classes \(HumanReadable.list(numbers.map { String($0) }))"
  }
}
