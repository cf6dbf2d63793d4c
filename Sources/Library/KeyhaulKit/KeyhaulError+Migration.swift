import Backups
public import Basics
import KeychainFormats
import Keychains
import VirtualDevice

extension KeyhaulError.Domain {
  /// Errors of backups, plans and restores. The outcome for a single item is a `Reason` instead.
  public static let migration = Self("migration")
}

extension KeyhaulError.Code {
  private static func migration(
    _ rawValue: String, _ category: ErrorCategory, _ summary: String, advice: Remedy
  ) -> Self {
    Self(rawValue, of: .migration, category, summary, advice: advice)
  }

  /// Rows of the device cannot be read until it is unlocked.
  public static let deviceLocked = migration(
    "deviceLocked", .locked, "the device is locked, so its keychain cannot be read",
    advice: .unlock(device: "the device"))
  /// The backup or the target has changed since the plan was made.
  public static let stalePlan = migration("stalePlan", .stalePlan, "the plan no longer matches", advice: "plan again")
  /// The plan was made only to be shown, not for `.restoring`, so it does not contain the items to write.
  public static let displayOnlyPlan = migration(
    "displayOnlyPlan", .usage, "this plan was made for display only", advice: "make the plan for .restoring")
  /// The file is not a saved plan, or has unknown members.
  public static let malformedPlan = migration(
    "malformedPlan", .refused, "the file is not a saved plan", advice: "plan again")
  /// The saved plan has an unsupported format.
  public static let otherPlanFormat = migration(
    "otherPlanFormat", .refused, "the plan has a different format", advice: "plan again")
  /// The file is not a list of expectations, has unsupported content, or requires more work than the limit allows.
  public static let malformedExpectations = migration(
    "malformedExpectations", .usage, "the file is not a list of expectations", advice: "another file")
  /// The device's system does not write this kind of backup.
  public static let unsupportedSystem = migration(
    "unsupportedSystem", .refused, "the device does not write this kind of backup", advice: "another device")
  /// No item has the requested index.
  public static let noSuchItem = migration("noSuchItem", .usage, "there is no such item", advice: .listItems)
}

extension KeyhaulError {
  /// Whether the operation was cancelled and rolled back.
  public var isCancelled: Bool { code == .cancelled }

  init(_ code: Code, _ category: ErrorCategory, _ summary: String, reason: String, advice: Remedy) {
    self.init(code, reason, meaning: ErrorMeaning(category, summary, advice: advice))
  }

  /// Returns the error of a backup that could not be made. If there was no space for temporary files, the error advises
  /// a different folder for them.
  static func advisingTemporaryFolder(for error: KeyhaulError) -> KeyhaulError {
    guard error.code == .noTemporarySpace else { return error }
    return error.with(
      meaning: ErrorMeaning(
        .failed, "a temporary file cannot be written", advice: "set TMPDIR to a folder with free space"))
  }

  /// Returns the error of a locked device, with the number of items whose class key is not in memory.
  ///
  /// - Parameters:
  ///   - itemCount: The number of these items in the most frequent class, or 0 if only the keys for new items are not
  ///     in memory.
  ///   - protection: The most frequent class.
  ///   - otherCount: The number of these items in other classes.
  ///   - device: The name of the device.
  static func deviceLocked(
    itemCount: Int, protection: ProtectionClass, otherCount: Int, device: String
  ) -> KeyhaulError {
    let othersText =
      otherCount == 0
      ? "" : ", and \(otherCount) more \(otherCount == 1 ? "has another class" : "have other classes")"
    let reason =
      switch (itemCount, otherCount) {
      case (0, _): "the keys of items in the class \"\(protection.phrase)\" are not in memory"
      case (1, 0): "1 item is in the class \"\(protection.phrase)\"; its key is not in memory"
      case (1, _): "1 item is in the class \"\(protection.phrase)\"\(othersText); their keys are not in memory"
      default:
        "\(itemCount) items are in the class \"\(protection.phrase)\"\(othersText); their keys are not in memory"
      }
    return KeyhaulError(
      .deviceLocked, .locked, "\(device) is locked, so its keychain cannot be read", reason: reason,
      advice: .unlock(device: device))
  }

  /// Returns the error of an index that no item has.
  ///
  /// - Parameters:
  ///   - name: The name of the backup or the device.
  ///   - count: The number of its items.
  static func noSuchItem(_ index: Int, in name: String, count: Int) -> KeyhaulError {
    KeyhaulError(
      .noSuchItem, .usage, "there is no item \(HumanReadable.grouped(index))",
      reason: "\(name) has \(HumanReadable.count(count, "item")), counted from 0", advice: .listItems)
  }

  static var displayOnlyPlan: KeyhaulError {
    KeyhaulError(
      .displayOnlyPlan, .usage, "this plan was made for display only",
      reason: "it does not contain the items that it would write",
      advice: "make the plan for .restoring")
  }

  package static func stalePlan(_ reason: String) -> KeyhaulError {
    KeyhaulError(
      .stalePlan, .stalePlan, "the plan no longer matches", reason: reason, advice: "plan again")
  }

  static func malformedPlan(_ reason: String) -> KeyhaulError {
    KeyhaulError(.malformedPlan, .refused, "the file is not a saved plan", reason: reason, advice: "plan again")
  }
}
