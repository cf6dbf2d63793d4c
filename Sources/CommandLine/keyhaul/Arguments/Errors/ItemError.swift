import KeyhaulKit
import Reports

/// Creates the errors of a device's keychain. Many reasons contain the result code that an app gets on iOS for the same
/// failure.
enum ItemError {
  /// Returns the error for an item that could not be added.
  static func adding(_ item: KeychainItem, to device: String, error: KeyhaulError) -> CommandError {
    let protection = item.protection ?? .whenUnlocked
    switch error.code {
    case .duplicateItem:
      let attributes = identifyingAttributes(of: item.kind)
      return CommandError(
        .failed, "\(device) already has this item",
        why:
          "\(ItemText.nounWithArticle(item.kind)) with the same \(attributes) and access group exists (errSecDuplicateItem, "
          + "-25299)",
        try: "\(otherName(of: item.kind)); to see the existing item, run \"keyhaul item find "
          + "\(ShellQuoting.quote(device))\"")
    case .interactionNotAllowed:
      return CommandError(
        .locked, "\(device) is locked, so the item cannot be encrypted",
        why: "the key for \"\(protection.phrase)\" is not in memory (errSecInteractionNotAllowed, -25308)",
        try: "keyhaul device unlock \(ShellQuoting.quote(device))")
    case .authFailed:
      return CommandError(
        .failed, "\(device) has no passcode, but the item needs one",
        why: "the key for \"\(protection.phrase)\" exists only while a passcode is set (errSecAuthFailed, -25293)",
        try: "keyhaul device passcode set \(ShellQuoting.quote(device)), or another --protection")
    default:
      return unspecific(error, failedAction: "cannot add the item to \(device)", device: device)
    }
  }

  /// Rejects an app that the device does not have, and access groups that the app may not use.
  ///
  /// - Parameter app: The app that uses the groups; `nil` if no app was named, which allows every group.
  static func checkGroups(
    _ groups: [String], of app: String?, on openDevice: DeviceSession
  ) throws(CommandError) {
    guard let app else { return }
    guard let allowed = openDevice.record.apps.first(where: { $0.name == app })?.accessGroups,
      let example = allowed.first
    else {
      let names = openDevice.record.apps.filter { !$0.accessGroups.isEmpty }.map(\.name)
      throw CommandError(
        .failed, "\(openDevice.name) has no app \(short(app))",
        why: names.isEmpty ? "it has no apps" : "the apps on it are \(HumanReadable.list(names.map(short)))",
        try: EditDistance.nearest(to: app, among: names).map { "--app \($0)" }
          ?? "leave --app out to use any access group")
    }
    guard let otherGroup = groups.first(where: { !allowed.contains($0) }) else { return }
    throw CommandError(
      .failed, "\(short(app)) may not use the access group \(short(otherGroup))",
      why: "it has \(HumanReadable.list(allowed.map(short))) (errSecMissingEntitlement, -34018)",
      try: "--access-group \(short(example)), or leave --app out")
  }

  private static func short(_ name: String) -> String { UntrustedText.shortened(name, columns: 60) }

  /// Returns the error for items that could not be changed or deleted.
  ///
  /// - Parameter verb: "change" or "delete".
  static func committing(_ error: KeyhaulError, verb: String, on openDevice: DeviceSession) -> CommandError {
    let device = openDevice.name
    switch error.code {
    case .duplicateItem:
      return CommandError(
        .failed, "the change would make an item a duplicate of another item on \(device)",
        why: "\(error.reason) (errSecDuplicateItem, -25299); nothing was changed", try: "fewer items, or another value")
    case .interactionNotAllowed: return locked(verb, on: openDevice)
    case .cancelled: return CommandError(error, device: device)
    case .authFailed:
      return CommandError(
        .failed, "\(device) has no passcode, but the items would need one",
        why:
          "the key for \"\(ProtectionClass.whenPasscodeSetThisDeviceOnly.phrase)\" exists only while a passcode is set (errSecAuthFailed, -25293)",
        try: "keyhaul device passcode set \(ShellQuoting.quote(device)), or another --new-protection")
    default:
      return unspecific(error, failedAction: "cannot \(verb) items of \(device)", device: device)
    }
  }

  /// Returns the error for items that a locked device cannot decrypt.
  ///
  /// - Parameter verb: "change", "delete" or "compare".
  static func locked(_ verb: String, on openDevice: DeviceSession) -> CommandError {
    locked(openDevice, message: "\(openDevice.name) is locked, so not all matching items can be \(verb)d")
  }

  /// Returns the error for a command that must read all items of a locked device.
  static func unreadable(on openDevice: DeviceSession) -> CommandError {
    locked(openDevice, message: "items of \(openDevice.name) cannot be read now")
  }

  private static func locked(_ openDevice: DeviceSession, message: String) -> CommandError {
    CommandError(
      .locked, message, why: lockedItemsReason(of: openDevice),
      try: "keyhaul device unlock \(ShellQuoting.quote(openDevice.name))")
  }

  /// Returns the attributes that identify an item, in addition to the access group. Source: Apple `SecItemSchema.c`
  /// (flag P).
  private static func identifyingAttributes(of kind: ItemKind) -> String {
    switch kind {
    case .genericPassword: "service, account"
    case .internetPassword: "server, account, protocol, port, path"
    case .certificate: "issuer, serial number"
    case .key: "public key, half (public or private), application tag"
    }
  }

  private static func otherName(of kind: ItemKind) -> String {
    switch kind {
    case .genericPassword, .internetPassword: "another --account"
    case .certificate: "another --access-group"
    case .key: "another --application-tag"
    }
  }

  /// Returns the error for a search that could not finish.
  static func finding(_ error: KeyhaulError, on openDevice: DeviceSession) -> CommandError {
    let device = openDevice.name
    guard error.code == .interactionNotAllowed else {
      return unspecific(error, failedAction: "cannot search \(device)", device: device)
    }
    return CommandError(
      .locked, "\(device) is locked, so not all matching items can be read",
      why: lockedItemsReason(of: openDevice) ?? error.reason,
      try: "keyhaul device unlock \(ShellQuoting.quote(device))")
  }

  /// Returns why items cannot be read: "11 items are in the class "when unlocked"; their keys are not in memory". `nil`
  /// if the items cannot be counted, or if all keys are in memory.
  private static func lockedItemsReason(of openDevice: DeviceSession) -> String? {
    guard let summaries = try? openDevice.keychain.rowSummaries(includingTombstones: false) else { return nil }
    let protections = summaries.compactMap(\.protection).filter { !openDevice.classKeys.hasKey(of: $0.keyClass) }
    guard !protections.isEmpty else { return nil }
    // Omits "this device", because a locked device lacks the keys of both variants of a class.
    let phrases = protections.map { $0.phrase.replacing(", this device", with: "") }
    let quotedPhrases = Set(phrases).sorted().map { "\"\($0)\"" }
    let classes = HumanReadable.list(quotedPhrases, conjunction: "or")
    let count = HumanReadable.count(protections.count, "item")
    return protections.count == 1
      ? "\(count) is in the class \(classes); its key is not in memory"
      : "\(count) are in the class \(classes); their keys are not in memory"
  }

  /// Returns the error for all other codes, without an explanation about items.
  private static func unspecific(_ error: KeyhaulError, failedAction: String, device: String) -> CommandError {
    error.code.domain == .device ? CommandError(error, device: device) : CommandError(error, failedAction: failedAction)
  }
}

extension ItemText {
  /// Returns a kind's noun with its article: "an internet password".
  static func nounWithArticle(_ kind: ItemKind) -> String {
    (kind == .internetPassword ? "an " : "a ") + kind.noun
  }
}
